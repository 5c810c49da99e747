"""What the cache notices about its own files, and that entries appear whole or not at all."""

from pathlib import Path

import pytest

from provision import cache


@pytest.fixture
def final(tmp_path: Path) -> Path:
    return cache.entry_folder(tmp_path, "etcd", "0123456789abcdef")


def make_entry(final: Path, content: str = "a program") -> Path:
    partial = cache.begin(final)
    (partial / "etcd").write_text(content)
    cache.publish(partial, final, "3.6.6", "built for a test")
    return final / "etcd"


def fault_of(final: Path, thorough: bool = True) -> str | None:
    entry = cache.read_entry(final)
    return entry.fault(thorough) if isinstance(entry, cache.Entry) else entry


def test_a_whole_entry_has_no_fault(final: Path) -> None:
    make_entry(final)

    assert fault_of(final) is None


def test_a_truncated_file_is_noticed_without_reading_it(final: Path) -> None:
    path = make_entry(final)
    path.write_text("a prog")

    assert fault_of(final, thorough=False) == f"{path} has 6 bytes instead of 9"


def test_an_altered_file_of_the_same_length_is_noticed_by_a_thorough_look(final: Path) -> None:
    path = make_entry(final)
    path.write_text("A program")

    assert fault_of(final, thorough=False) is None
    assert fault_of(final) == f"{path} has been altered: its sha256 is not the one written down when it was made"


def test_a_missing_file_is_noticed(final: Path) -> None:
    path = make_entry(final)
    path.unlink()

    assert fault_of(final, thorough=False) == f"{path} is missing"


@pytest.mark.parametrize("manifest", ["", "{}", "[]", '{"version": 1, "origin": "x", "files": {"etcd": 3}}', "\0"])
def test_an_unusable_manifest_is_noticed(final: Path, manifest: str) -> None:
    make_entry(final)
    (final / cache.MANIFEST).write_text(manifest)

    assert (fault_of(final) or "").startswith(f"{final / cache.MANIFEST} cannot be read (")


def test_an_entry_without_a_manifest_is_no_entry(final: Path) -> None:
    make_entry(final)
    (final / cache.MANIFEST).unlink()

    assert fault_of(final) == f"{final / cache.MANIFEST} cannot be read (FileNotFoundError)"


def test_a_broken_entry_is_replaced_whole(final: Path) -> None:
    make_entry(final, "a broken program").write_text("")

    make_entry(final, "a good program")

    assert fault_of(final) is None
    assert (final / "etcd").read_text() == "a good program"
    assert [path.name for path in final.parent.iterdir()] == [final.name]


def test_what_killed_runs_left_is_cleared_away(final: Path) -> None:
    for name in (f"{cache.PARTIAL}1", f"{cache.BROKEN}2"):
        (final.parent / name / "folder").mkdir(parents=True)

    make_entry(final)

    assert [path.name for path in final.parent.iterdir()] == [final.name]


def test_a_key_depends_on_every_part_and_on_where_parts_end() -> None:
    keys = {cache.key_of(parts) for parts in ([b"ab", b"c"], [b"a", b"bc"], [b"abc"], [b"ab", b"d"])}

    assert len(keys) == 4
