"""Learning from readings as they come: windows, files that grow, and steps whenever a batch is full."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.data.streams import Windows, follow
from hedgerow_agent.core.data.text import Numbers
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.online import OnlineRun
from hedgerow_agent.core.samples import SampleShape, Targets
from hedgerow_plans.methods.selection import Full
from support.digits import digits
from support.programs import make_program

SENSOR = SampleShape((4, 3), "float32", (2,), Targets.LABELS)


def readings(count: int) -> Iterator[Numbers]:
    for number in range(count):
        yield np.array([number, number + 0.25, number + 0.5, number % 2], np.float64)


@pytest.mark.parametrize(
    ("hop", "first"), [(4, [0, 4, 8]), (1, [0, 1, 2, 3, 4, 5, 6, 7, 8]), (3, [0, 3, 6]), (6, [0, 6])]
)
def test_windows_overlap_as_asked_and_carry_the_last_label(hop: int, first: list[int]) -> None:
    found = [(sample.copy(), label) for sample, label in Windows(SENSOR, 4, hop).cut(readings(12))]
    assert [sample[0, 0] for sample, _ in found] == first
    for sample, label in found:
        begin = int(sample[0, 0])
        assert sample.tolist() == [[begin + i, begin + i + 0.25, begin + i + 0.5] for i in range(4)]
        assert label == (begin + 3) % 2


def test_a_stream_that_fits_no_window_is_refused() -> None:
    with pytest.raises(BadInput, match="which windows of 5 readings do not make"):
        Windows(SENSOR, 5)
    with pytest.raises(BadInput, match="Reading 1 has 3 numbers and the window wants 4"):
        next(Windows(SENSOR, 4).cut(iter([np.zeros(3)])))
    with pytest.raises(BadInput, match="Reading 2 holds NaN"):
        next(Windows(SENSOR, 4).cut(iter([np.zeros(4), np.array([0, np.nan, 0, 0])])))
    with pytest.raises(BadInput, match=r"label of reading 1 is 0\.5"):
        next(Windows(SENSOR, 4).cut(iter([np.array([0, 0, 0, 0.5])])))


def test_a_file_is_followed_while_somebody_writes_to_it(tmp_path: Path) -> None:
    path = tmp_path / "sensor.csv"
    path.write_text("a,b\n1,2\n3")
    appended = [",4\n5,6\n", "", "7,8"]

    def more() -> bool:
        if not appended:
            return False
        with path.open("a") as file:
            file.write(appended.pop(0))
        return True

    assert [line.tolist() for line in follow(path, more)] == [[1, 2], [3, 4], [5, 6]]
    path.write_text("1,2\nx,y\n")
    with pytest.raises(BadInput, match="Line 2 of"):
        list(follow(path, lambda: False))
    with pytest.raises(BadInput, match="cannot be read"):
        list(follow(tmp_path / "nowhere.csv", lambda: False))


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


def test_a_label_that_is_no_class_costs_only_its_sample() -> None:
    program, data = make_program("mlp", Full()), digits()
    run = OnlineRun(Executor(program, {}, seed=1), 0.05)
    with pytest.raises(BadInput, match="A label is 10"):
        run.add(data.x[0], 10)
    done = [run.add(x, int(y)) for x, y in zip(data.x[:12], data.y[:12], strict=True)]
    assert [step is None for step in done] == [True] * 11 + [False]
