"""Datasets of every form hold the same samples, in bounded memory; what is wrong with one is a sentence."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.data import Dataset, load_dataset
from hedgerow_agent.core.data.source import PIECE_BYTES
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import SampleShape, Targets

IMAGES = SampleShape((1, 3, 4), "float32", (5,), Targets.LABELS)
COUNT = 50


def arrays(count: int = COUNT) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((count, *IMAGES.shape)).astype(np.float32), rng.integers(0, 5, count)


def write_csv(path: Path, x: Array, y: Array, header: bool = False) -> None:
    lines = [
        ",".join([*(repr(float(value)) for value in sample.ravel()), str(label)])
        for sample, label in zip(x, y, strict=True)
    ]
    names = [",".join(f"pixel{number}" for number in range(12)) + ",label"] if header else []
    path.write_text("\n".join([*names, *lines]) + "\n")


def write_npz(path: Path) -> Path:
    x, y = arrays()
    np.savez(path / "set.npz", x=x, y=y)
    return path / "set.npz"


def write_compressed(path: Path) -> Path:
    x, y = arrays()
    np.savez_compressed(path / "set.npz", x=x, y=y)
    return path / "set.npz"


def write_flat(path: Path) -> Path:
    x, y = arrays()
    np.savez(path / "set.npz", x=x.reshape(COUNT, -1), y=y)
    return path / "set.npz"


def write_pair(path: Path) -> Path:
    x, y = arrays()
    np.save(path / "set-x.npy", x)
    np.save(path / "set-y.npy", y)
    return path / "set-x.npy"


def write_text(path: Path) -> Path:
    write_csv(path / "set.csv", *arrays(), header=True)
    return path / "set.csv"


def write_folder(path: Path) -> Path:
    x, y = arrays()
    np.savez(path / "a.npz", x=x[:10], y=y[:10].astype(np.uint8))
    write_csv(path / "b.csv", x[10:20], y[10:20])
    np.savez_compressed(path / "c.npz", x=x[20:35].reshape(15, 12), y=y[20:35])
    np.save(path / "d_x.npy", x[35:])
    np.save(path / "d_y.npy", y[35:])
    (path / "notes.txt").write_text("not data")
    return path


def write_unlike(path: Path, x: Array, y: Array) -> None:
    np.savez(path / "a.npz", x=x, y=y)
    np.savez(path / "b.npz", x=x.reshape(COUNT, 1, 4, 3), y=y)


FORMS: list[Callable[[Path], Path]] = [write_npz, write_compressed, write_flat, write_pair, write_text, write_folder]


@pytest.mark.parametrize("write", FORMS, ids=lambda write: write.__name__)
def test_every_form_gives_the_same_samples(write: Callable[[Path], Path], tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path), IMAGES)
    x, y = arrays()
    assert np.array_equal(data.x, x)
    assert np.array_equal(data.y, y)
    assert data.x.dtype == np.float32
    assert data.y.dtype == (y.dtype if data.reading.copied_bytes == 0 else np.int32)
    IMAGES.check_arrays(data.x, data.y)


def test_copies_have_no_name_and_go_where_they_are_told(tmp_path: Path) -> None:
    source, spool = tmp_path / "source", tmp_path / "spool"
    source.mkdir()
    spool.mkdir()
    data = load_dataset(write_folder(source), IMAGES, spool)
    assert list(spool.iterdir()) == []
    assert f"{spool}/" in Path("/proc/self/maps").read_text()
    assert data.reading.copied_bytes > 0
    assert data.reading.files == 4


@pytest.mark.parametrize("form", ["stored", "compressed", "text", "two-files"])
def test_memory_stays_bounded_whatever_the_size_of_the_dataset(form: str, tmp_path: Path) -> None:
    count = 20_000 if form == "text" else 200_000
    x, y = arrays(count)
    path = tmp_path / ("set.csv" if form == "text" else "set.npz")
    if form == "text":
        write_csv(path, x, y)
    elif form == "two-files":
        np.savez(tmp_path / "a.npz", x=x, y=y)
        np.savez(tmp_path / "b.npz", x=x, y=y)
        path = tmp_path
    else:
        (np.savez if form == "stored" else np.savez_compressed)(path, x=x, y=y)
    size = x.nbytes
    del x, y
    tracemalloc.start()
    try:
        data = load_dataset(path, IMAGES, tmp_path.parent)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert data.reading.at_once_bytes <= PIECE_BYTES
    # A few pieces are in flight: as text, as numbers, and as what is asked about them. Nothing of them stays.
    assert peak < 16 * PIECE_BYTES
    assert held < PIECE_BYTES
    assert form == "text" or peak < size


def bad_cases() -> dict[str, tuple[Callable[[Path], object], str]]:
    x, y = arrays()
    holes = x.copy()
    holes[7, 0, 0, 0] = np.nan
    endless = x.copy()
    endless[9] = np.inf
    half = "1,2,3,4,5,6,7,8,9,10,11,12,0.5\n"
    return {
        "nan": (lambda path: np.savez(path / "set.npz", x=holes, y=y), "holds NaN or infinity in row 7"),
        "infinity": (lambda path: np.savez(path / "set.npz", x=endless, y=y), "holds NaN or infinity in row 9"),
        "nan-in-text": (lambda path: write_csv(path / "set.csv", holes, y), "holds NaN or infinity in row 7"),
        "empty": (lambda path: np.savez(path / "set.npz", x=x[:0], y=y[:0]), "is empty; give it samples"),
        "empty-text": (lambda path: (path / "set.csv").write_text(""), "is empty; give it samples"),
        "empty-folder": (lambda path: path.touch(), "holds no dataset"),
        "no-partner": (lambda path: np.save(path / "set-x.npy", x), "cannot be read"),
        "unlike-files": (
            lambda path: write_unlike(path, x, y),
            "the files of a dataset must be alike",
        ),
        "words": (lambda path: (path / "set.csv").write_text("1,2\na,b\nc,d\n"), "not rows of 13 numbers"),
        "short-line": (lambda path: (path / "set.csv").write_text("1,2,3\n"), "has 3 numbers and the model wants 13"),
        "ragged": (lambda path: (path / "set.csv").write_text(half + "1,2\n"), "not rows of 13 numbers"),
        "half-label": (lambda path: (path / "set.csv").write_text(half), "A label of .* is 0.5"),
        "negative": (lambda path: np.savez(path / "set.npz", x=x, y=y - 9), "labels count from 0"),
    }


@pytest.mark.parametrize("case", bad_cases())
def test_what_is_wrong_is_one_sentence(case: str, tmp_path: Path) -> None:
    write, sentence = bad_cases()[case]
    write(tmp_path)
    with pytest.raises(BadInput, match=sentence):
        load_dataset(tmp_path, IMAGES)


def test_text_needs_a_model_to_be_understood(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is text, which only a model's samples give a shape"):
        load_dataset(write_text(tmp_path))


def test_targets_and_samples_without_labels_come_from_text_too(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("1,2,3,4\n5,6,7,8\n")
    numbers = load_dataset(path, SampleShape((2,), "float32", (2,), Targets.NUMBERS))
    assert numbers.y.tolist() == [[3, 4], [7, 8]]
    alone: Dataset = load_dataset(path, SampleShape((2, 2), "float32", (2, 2), Targets.SAMPLES))
    assert alone.x.tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    tokens = load_dataset(path, SampleShape((3,), "int32", (9,), Targets.LABELS, tokens=9))
    assert tokens.x.dtype == np.int32
    assert tokens.y.tolist() == [4, 8]


def test_tokens_and_labels_of_text_are_whole_numbers_that_fit(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    tokens = SampleShape((3,), "int32", (9,), Targets.LABELS, tokens=9)
    for line, sentence in (
        ("1,3.7,2,0", r"A token of .*set\.csv is 3\.7; tokens are whole"),
        ("1,nan,2,0", "A token of .* is nan"),
        ("1,1e12,2,0", "A token of .* is 1000000000000;"),
        ("1,3,2,1e12", "A label of .* is 1000000000000;"),
    ):
        path.write_text(f"1,2,3,4\n{line}\n")
        with pytest.raises(BadInput, match=sentence):
            load_dataset(path, tokens)


def test_a_number_of_text_that_is_too_large_for_the_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("1,2,0\n1,1e39,0\n")
    with pytest.raises(BadInput, match="holds NaN or infinity in row 1"):
        load_dataset(path, SampleShape((2,), "float32", (2,), Targets.LABELS))
