"""Learning from readings as they come: windows, files that grow, and steps whenever a batch is full."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.data.streams import Place, Windows
from hedgerow_agent.core.data.tail import Mark, Tail
from hedgerow_agent.core.data.text import Numbers
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.online import OnlineRun
from hedgerow_agent.core.samples import SampleShape, Targets
from hedgerow_plans.methods.selection import Full
from support.digits import digits
from support.layer_networks import transformer
from support.programs import make_program, program_of

SENSOR = SampleShape((4, 3), "float32", (2,), Targets.LABELS)


def readings(count: int) -> Iterator[Numbers]:
    for number in range(count):
        yield np.array([number, number + 0.25, number + 0.5, number % 2], np.float64)


def cut(windows: Windows, stream: Iterable[Numbers | None]) -> list[tuple[Array, int]]:
    """Return the samples of a stream; None is a reading that somebody passes over."""
    found: list[tuple[Array, int]] = []
    for reading in stream:
        if reading is None:
            windows.skip()
        elif (sample := windows.add(reading)) is not None:
            found.append((sample[0].copy(), sample[1]))
    return found


@pytest.mark.parametrize(
    ("hop", "first"), [(4, [0, 4, 8]), (1, [0, 1, 2, 3, 4, 5, 6, 7, 8]), (3, [0, 3, 6]), (6, [0, 6])]
)
def test_windows_overlap_as_asked_and_carry_the_last_label(hop: int, first: list[int]) -> None:
    found = cut(Windows(SENSOR, 4, hop), readings(12))
    assert [sample[0, 0] for sample, _ in found] == first
    for sample, label in found:
        begin = int(sample[0, 0])
        assert sample.tolist() == [[begin + i, begin + i + 0.25, begin + i + 0.5] for i in range(4)]
        assert label == (begin + 3) % 2


@pytest.mark.parametrize(
    ("hop", "bad", "first"),
    [(4, 5, [0, 6, 10]), (1, 5, [0, 1, 6, 7, 8, 9, 10]), (4, 3, [4, 8]), (6, 4, [0, 6]), (6, 7, [0, 8])],
)
def test_no_window_holds_readings_from_both_sides_of_a_bad_one(hop: int, bad: int, first: list[int]) -> None:
    stream = [None if number == bad else reading for number, reading in enumerate(readings(14))]
    found = cut(Windows(SENSOR, 4, hop), stream)
    assert [int(sample[0, 0]) for sample, _ in found] == first
    for sample, _ in found:
        assert np.diff(sample[:, 0]).tolist() == [1, 1, 1]


@pytest.mark.parametrize("hop", [1, 3, 4, 6])
def test_windows_go_on_from_the_last_one_as_if_nothing_had_been(hop: int) -> None:
    whole, before, after = Windows(SENSOR, 4, hop), Windows(SENSOR, 4, hop), Windows(SENSOR, 4, hop)
    expected = [sample.tolist() for sample, _ in cut(whole, readings(40))]
    stream = list(readings(40))
    begins: list[Place] = []
    for number, reading in enumerate(stream[:23]):
        if before.add(reading, Place(number * 10, number + 1)) is not None:
            begins.append(before.begin)
    after.go_on()
    rest = cut(after, stream[begins[-1].line - 1 :])
    assert begins[-1].byte == 10 * (begins[-1].line - 1)
    assert [sample.tolist() for sample, _ in rest] == expected[len(begins) :]


@pytest.mark.parametrize(
    ("reading", "sentence"),
    [
        ([0, 0, 0], "There are 3 numbers and a reading has 4, the label last"),
        ([0, np.nan, 0, 0], "A number is nan and float32 has no such"),
        ([0, 1e39, 0, 0], r"A number is 1e\+39 and float32 has no such"),
        ([0, 0, 0, 0.5], r"A label is 0\.5; labels are whole"),
        ([0, 0, 0, 2], "A label is 2 and the model has classes 0 to 1"),
        ([0, 0, 0, 1e12], "A label is 1000000000000; labels are whole numbers of 32 bits"),
        ([0, 0, 0, np.inf], "A label is inf"),
    ],
)
def test_a_reading_nobody_can_learn_from_is_refused_and_changes_nothing(reading: list[float], sentence: str) -> None:
    windows = Windows(SENSOR, 4)
    good = list(readings(4))
    assert cut(windows, good[:3]) == []
    with pytest.raises(BadInput, match=sentence):
        windows.add(np.array(reading, np.float64))
    assert len(cut(windows, good[3:])) == 1


def test_tokens_of_a_stream_are_whole_and_known() -> None:
    windows = Windows(SampleShape((4,), "int32", (2,), Targets.LABELS, tokens=9), 2)
    for reading, sentence in (([3.7, 1, 0], r"A token is 3\.7; tokens are whole"), ([9, 1, 0], "A token is 9 and")):
        with pytest.raises(BadInput, match=sentence):
            windows.add(np.array(reading, np.float64))
    found = cut(windows, [np.array([1, 2, 0.0]), np.array([3, 8, 1.0])])
    assert [(sample.tolist(), label) for sample, label in found] == [([1, 2, 3, 8], 1)]


def test_a_stream_that_fits_no_window_is_refused() -> None:
    with pytest.raises(BadInput, match="which windows of 5 readings do not make"):
        Windows(SENSOR, 5)


def test_a_file_is_followed_while_somebody_writes_to_it(tmp_path: Path) -> None:
    path = tmp_path / "sensor.csv"
    path.write_text("a,b\n1,2\n3")
    appended, told = [",4\n\n5,6\n", "", "7,8"], list[bool]()

    def more(came: bool) -> bool:
        told.append(came)
        if not appended:
            return False
        with path.open("a") as file:
            file.write(appended.pop(0))
        return True

    with closing(Tail(path)) as tail:
        lines = list(tail.lines(more))
    assert [line.numbers().tolist() for line in lines] == [[1, 2], [3, 4], [5, 6]]
    assert [line.place for line in lines] == [Place(4, 2), Place(8, 3), Place(13, 5)]
    assert [line.end for line in lines] == [8, 12, 17]
    assert told == [True, True, False, True]  # the last is half a line


def test_a_line_that_is_none_does_not_end_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow_agent.core.data.tail.LONGEST_LINE", 16)
    path = tmp_path / "sensor.csv"
    path.write_bytes(b"1,2\nx,y\n\xff,1\n" + b"3" * 40 + b"\n5,6\n")
    with closing(Tail(path)) as tail:
        lines = list(tail.lines(lambda _came: False))
    assert [line.place.line for line in lines] == [1, 2, 3, 4, 4, 5]
    assert lines[-1].numbers().tolist() == [5, 6]
    for line, sentence in zip(
        lines[1:], ("string to float: 'x'", "codec", "more than 16", "more than 16"), strict=False
    ):
        with pytest.raises(BadInput, match=sentence):
            line.numbers()
    with pytest.raises(BadInput, match="cannot be read"):
        Tail(tmp_path / "nowhere.csv")


def test_a_file_is_gone_on_with_only_if_it_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "sensor.csv"
    path.write_text("1,2\n3,4\n5,6\n")
    with closing(Tail(path)) as tail:
        second = list(tail.lines(lambda _came: False))[1]
        mark = tail.mark(second.place, second.end)
    assert mark is not None
    with path.open("a") as file:
        file.write("7,8\n")
    assert from_mark(path, mark) == (True, [[3, 4], [5, 6], [7, 8]])
    path.write_text("1,2\n3,9\n5,6\n")  # written anew in its place
    assert from_mark(path, mark) == (False, [[1, 2], [3, 9], [5, 6]])
    path.write_text("1,2\n")
    assert from_mark(path, mark) == (False, [[1, 2]])
    path.rename(tmp_path / "sensor.csv.1")
    path.write_text("1,2\n3,4\n5,6\n")  # another file with the same beginning
    assert from_mark(path, mark) == (False, [[1, 2], [3, 4], [5, 6]])


def from_mark(path: Path, mark: Mark) -> tuple[bool, list[list[float]]]:
    with closing(Tail(path)) as tail:
        same = tail.go_to(mark)
        return same, [line.numbers().tolist() for line in tail.lines(lambda _came: False)]


def test_a_stream_teaches_what_it_shows() -> None:
    program = make_program("cnn-small", Full())
    executor = Executor(program, {}, seed=1)
    run = OnlineRun(executor, 0.05)
    data = digits()
    for x, y in zip(data.x, data.y, strict=True):
        run.add(x, int(y))
    first, last = run.accuracies()
    assert first is not None
    assert last is not None
    assert run.step == len(data.x) // program.batch_size
    assert first < 0.4
    assert last > 0.7
    assert run.held_bytes == program.batch_size * (data.x[0].nbytes + 4)


def test_a_generator_and_steps_on_arrays_give_the_same_bits() -> None:
    program, data = make_program("mlp", Full()), digits()
    online, plain = Executor(program, {}, seed=1), Executor(program, {}, seed=1)
    run = OnlineRun(online, 0.05)
    size = program.batch_size
    for x, y in zip(data.x[: 5 * size], data.y[: 5 * size], strict=True):
        run.add(x, int(y))
    for first in range(0, 5 * size, size):
        plain.step(data.x[first : first + size], data.y[first : first + size], 0.05)
    assert online.resident_state() == plain.resident_state()


@pytest.mark.parametrize(
    ("spoil", "label", "sentence"),
    [
        (0.0, 10, "A label is 10 and"),
        (0.0, 10**12, "A label is 1000000000000 and"),
        (np.nan, 1, "A number is nan"),
        (1e39, 1, "A number is 1e"),
    ],
)
def test_a_sample_nobody_can_learn_from_costs_only_itself(spoil: float, label: int, sentence: str) -> None:
    program, data = make_program("mlp", Full()), digits()
    run = OnlineRun(Executor(program, {}, seed=1), 0.05)
    with pytest.raises(BadInput, match=sentence):
        run.add(data.x[0].astype(np.float64) + spoil, label)
    with pytest.raises(BadInput, match=r"A sample is \[1\] and the model takes"):
        run.add(data.x[0].ravel()[:1], 1)
    done = [run.add(x, int(y)) for x, y in zip(data.x[:12], data.y[:12], strict=True)]
    assert [step is None for step in done] == [True] * 11 + [False]


def test_tokens_that_a_model_does_not_know_are_refused_before_they_count() -> None:
    program = program_of(transformer(), Full())
    run = OnlineRun(Executor(program, {}, seed=1), 0.05)
    samples = run.executor.samples
    assert samples.tokens is not None
    tokens = np.zeros(samples.shape, np.int32)
    for odd in (samples.tokens, -1, 0.5):
        with pytest.raises(BadInput, match="A token is"):
            run.add(tokens + odd, 0)
    assert [run.add(tokens, 0) is None for _ in range(12)] == [True] * 11 + [False]
