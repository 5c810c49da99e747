"""Datasets: files, splits and batches; first values of parameters."""

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.data import Batches, load_dataset, split
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.initial import initial_value
from hedgerow_plans.graph.ir import Init, Role, Tensor


@given(st.integers(7, 3000), st.integers(0, 2**63))
def test_a_split_has_no_overlap_and_leaves_nobody_out(count: int, seed: int) -> None:
    parts = split(count, seed)
    rows = np.concatenate([parts.train[:], parts.validation[:], parts.test[:]])
    assert np.array_equal(np.sort(rows), np.arange(count))
    assert len(parts.validation) == len(parts.test) == count * 15 // 100 >= 1
    assert np.array_equal(split(count, seed).test[:], parts.test[:])


def test_another_seed_splits_otherwise() -> None:
    assert not np.array_equal(split(100, 1).train[:], split(100, 2).train[:])


@given(st.integers(1, 200), st.integers(1, 40), st.integers(0, 100))
def test_an_epoch_shows_every_sample_once_and_no_epoch_is_like_another(count: int, batch: int, seed: int) -> None:
    rows = np.arange(1000, 1000 + count)
    if count < batch:
        with pytest.raises(BadInput, match="lower the batch size"):
            Batches(rows, batch, seed)
        return
    batches = Batches(rows, batch, seed)
    epochs = [[batches.rows(epoch * batches.per_epoch + at) for at in range(batches.per_epoch)] for epoch in range(2)]
    for epoch in epochs:
        seen = np.concatenate(epoch)
        assert len(seen) == len(set(seen.tolist())) == count // batch * batch
        assert set(seen.tolist()) <= set(rows.tolist())
    if count >= 20:
        assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))


@given(st.lists(st.integers(0, 900), min_size=1, max_size=10), st.sampled_from([50, 3000]))
def test_the_batch_of_a_step_depends_on_nothing_but_its_number(steps: list[int], count: int) -> None:
    wandering = Batches(np.arange(count), 8, 5)
    for step in steps:
        assert np.array_equal(wandering.rows(step), Batches(np.arange(count), 8, 5).rows(step))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_dataset_comes_back_from_its_file(tmp_path: Path, save: object) -> None:
    path = tmp_path / "set.npz"
    x, y = np.arange(60, dtype=np.float32).reshape(10, 6), np.arange(10)
    assert callable(save)
    save(path, x=x, y=y)
    data = load_dataset(path)
    assert np.array_equal(data.x, x)
    assert data.x.dtype == np.float32
    assert np.array_equal(data.y, y)
    assert data.y.dtype == (y.dtype if save is np.savez else np.int32)
    assert isinstance(data.x, np.memmap)
    assert isinstance(data.y, np.memmap)
    assert data.reading.copied_bytes == (0 if save is np.savez else x.nbytes + 4 * len(y))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("label", [-1, 2**31, 2**40])
def test_a_label_that_is_none_is_named_with_its_row(tmp_path: Path, save: Callable[..., None], label: int) -> None:
    y = np.zeros(100_000, np.int64)
    y[70_000] = label  # beyond the first piece
    save(tmp_path / "set.npz", x=np.zeros((100_000, 1), np.float32), y=y)
    with pytest.raises(BadInput, match=f"holds the label {label} in row 70000; labels count from 0"):
        load_dataset(tmp_path / "set.npz")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_tokens_and_targets_are_read_as_they_are(tmp_path: Path, save: Callable[..., None]) -> None:
    path = tmp_path / "set.npz"
    tokens = np.arange(12, dtype=np.int32).reshape(4, 3)
    targets = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)
    save(path, x=tokens, y=targets)
    data = load_dataset(path)
    assert np.array_equal(data.x, tokens)
    assert np.array_equal(data.y, targets)
    assert data.x.dtype == np.int32
    assert data.y.dtype == np.float32


def test_a_large_compressed_array_is_refused_before_it_fills_the_storage(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez_compressed(path, x=np.zeros((1000, 1000), np.float32), y=np.zeros(1000, np.int64))
    assert path.stat().st_size < 100_000
    with pytest.raises(BadInput, match="more than 1000000 bytes to be copied; store it uncompressed"):
        load_dataset(path, limit_bytes=1_000_000)


def test_unreadable_and_misshapen_files_get_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    x, y = np.zeros((4, 2), np.float32), np.zeros(4, np.int64)
    with pytest.raises(BadInput, match="cannot be read"):
        load_dataset(path)
    path.write_bytes(b"no archive at all")
    with pytest.raises(BadInput, match="cannot be read"):
        load_dataset(path)
    arrays = [
        ({"x": x}, "has no array 'y'"),
        ({"x": x.astype(np.float64), "y": y}, "must be float32"),
        ({"x": x, "y": y[:3]}, "one whole number per sample"),
        ({"x": x, "y": y.astype(np.float32)}, "one whole number per sample"),
        ({"x": x, "y": np.zeros((3, 2), np.float32)}, "one whole number per sample"),
        ({"x": x, "y": np.zeros((4, 2))}, "one whole number per sample"),
        ({"x": x.astype(np.int64), "y": y}, "int32 for tokens"),
        ({"x": x, "y": y - 1}, "labels count from 0"),
        ({"x": x, "y": np.array([None] * 4)}, "Python objects"),
    ]
    for content, sentence in arrays:
        np.savez(path, **content)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match=sentence):
            load_dataset(path)
    with pytest.raises(BadInput, match="at least 7"):
        split(0, 1)


def test_a_torn_file_gets_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, x=np.random.default_rng(0).standard_normal((500, 9)).astype(np.float32), y=np.zeros(500, np.int64))
        whole = path.read_bytes()
        for length in range(0, len(whole), 997):
            path.write_bytes(whole[:length])
            with pytest.raises(BadInput, match="cannot be read"):
                load_dataset(path)


def test_an_encrypted_file_gets_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, x=np.zeros((4, 2), np.float32), y=np.zeros(4, np.int64))
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # of a member, and in the directory at the end
        for start in range(len(content)):
            if content.startswith(header, start):
                content[start + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"array 'x' of .*set.npz is encrypted; store it without a password"):
        load_dataset(path)


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_packed_as_numpy_never_does_gets_one_sentence(tmp_path: Path, kind: int) -> None:
    plain, path = tmp_path / "plain.npz", tmp_path / "set.npz"
    np.savez(plain, x=np.zeros((4, 2), np.float32), y=np.zeros(4, np.int64))
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w", kind) as packed:
        for name in source.namelist():
            packed.writestr(name, source.read(name))
    with pytest.raises(BadInput, match=r"packed unusually; store it with numpy.savez_compressed"):
        load_dataset(path)


def test_a_header_that_does_not_fit_its_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.savez(path, x=np.zeros((4, 2), np.float32), y=np.zeros(4, np.int64))
    with zipfile.ZipFile(path) as archive:
        x, y = archive.read("x.npy"), archive.read("y.npy")
    for claim in (b"(4, 20000), }", b"(5, 2), }    ", b"(-4, 2), }   "):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", x.replace(b"(4, 2), }    ", claim))
            archive.writestr("y.npy", y)
        with pytest.raises(BadInput, match=r"claims -?[0-9]+ bytes and has 32"):
            load_dataset(path)


def test_first_values_depend_on_seed_and_name_and_never_change() -> None:
    def value(name: str, seed: int) -> bytes:
        tensor = Tensor(name, (3, 50), batched=False, role=Role.TRAINABLE, init=Init("normal", 0.5))
        return initial_value(tensor, seed).tobytes()

    assert value("w", 1) == value("w", 1)
    assert len({value("w", 1), value("w", 2), value("v", 1)}) == 3
    # The same on every machine: a device that starts anew must start where the others did.
    assert (
        hashlib.sha256(value("w", 1)).hexdigest() == "5b0a5595d6346a104519a053e2ec49c29f77428ecf0c30681d451fe7ae4ef0ea"
    )


def test_normal_values_have_the_deviation_asked_for() -> None:
    tensor = Tensor("w", (400, 500), batched=False, role=Role.TRAINABLE, init=Init("normal", 0.1))
    values = initial_value(tensor, 3)
    assert values.dtype == np.float32
    assert abs(float(values.mean())) < 1e-3
    assert abs(float(values.std()) - 0.1) < 1e-3
    assert 0.66 < float((np.abs(values) < 0.1).mean()) < 0.70


def test_a_parameter_without_weights_or_rule_is_named() -> None:
    with pytest.raises(BadInput, match="weights bring no w"):
        initial_value(Tensor("w", (3,), batched=False, role=Role.FROZEN), 1)
