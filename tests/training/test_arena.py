"""The arena gives memory back, and finds the highest byte that changed."""

import errno
import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.arena import GUARD_BYTES, Arena
from hedgerow_agent.core.errors import CoreError, PagingFailed
from hedgerow_agent.core.paging import PageFile

MEBIBYTE = 1 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_memory_above_a_lower_peak_goes_back_to_the_system() -> None:
    arena = Arena(64 * MEBIBYTE)
    before = resident_bytes()
    arena.fill(0, 64 * MEBIBYTE, 1)
    full = resident_bytes()
    given = arena.give_back_above(16 * MEBIBYTE + 1)
    low = resident_bytes()
    assert given >= 47 * MEBIBYTE
    assert full - before > 60 * MEBIBYTE
    assert full - low > 44 * MEBIBYTE
    kept = arena.view(0, (16 * MEBIBYTE,), np.uint8)
    assert (kept == 1).all()
    assert not arena.view(20 * MEBIBYTE, (MEBIBYTE,), np.uint8).any()


@pytest.mark.parametrize("position", [100, 4095, 4096, 70_000, 99_999 + GUARD_BYTES])
def test_the_highest_changed_byte_is_found_whatever_its_value(position: int) -> None:
    arena = Arena(100_000)
    for value in (0x00, 0x5A, 0xA5, 0xFF):
        ends = []
        for pattern in (0xA5, 0x5A):
            arena.fill(64, 100_000 + GUARD_BYTES, pattern)
            arena.view(position, (1,), np.uint8)[0] = value
            ends.append(arena.highest_changed(64, 100_000 + GUARD_BYTES, pattern))
        assert max(ends) == position + 1


def test_views_are_aligned_and_stay_inside() -> None:
    arena = Arena(1000)
    view = arena.view(128, (3, 5), np.float32)
    assert view.ctypes.data % 64 == 0
    assert view.flags.c_contiguous
    with pytest.raises(CoreError, match="not verified"):
        arena.view(1024, (GUARD_BYTES + 1,), np.uint8)
    with pytest.raises(CoreError, match="not verified"):
        arena.view(-64, (1,), np.uint8)


def test_what_is_paged_out_comes_back_elsewhere(tmp_path: Path) -> None:
    pages = PageFile(tmp_path)
    one, two = np.arange(1000, dtype=np.float32), np.full(77, 5, np.uint8)
    for name, array in (("one", one), ("two", two)):
        pages.bind_out(name, array)()
    back, other = np.zeros_like(one), np.zeros_like(two)
    pages.bind_in("two", other)()
    pages.bind_in("one", back)()
    assert np.array_equal(back, one)
    assert np.array_equal(other, two)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PagingFailed, match="gave back 0 of 40 bytes"):
        pages.bind_in("never", np.zeros(10, np.float32))()
    pages.close()


def test_storage_that_is_full_is_named_in_a_sentence(tmp_path: Path) -> None:
    write = PageFile(tmp_path).bind_out("large", np.zeros(10_000, np.float32))
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(PagingFailed, match=r"took 4096 of 40000 bytes of large .*; make room"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_storage_that_gives_nothing_back_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.zeros(10_000, np.float32)
    pages = PageFile(tmp_path)
    pages.bind_out("large", array)()
    read = pages.bind_in("large", array)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", broken)
    with pytest.raises(PagingFailed, match=r"gave back 0 of 40000 bytes of large \(Input/output error\); check"):
        read()
    pages.close()


def test_a_folder_that_takes_no_file_is_named_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PagingFailed, match=r"can be made in .*/gone \(No such file or directory\); make room there"):
        PageFile(tmp_path / "gone").bind_out("one", np.zeros(3, np.float32))


def test_paging_without_a_folder_is_refused_in_a_sentence() -> None:
    with pytest.raises(PagingFailed, match="name one"):
        PageFile(None).bind_out("one", np.zeros(3, np.float32))
