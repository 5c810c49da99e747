"""Learning rates over a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.training import Schedule as RunSchedule
from hedgerow_agent.core.training import TrainingRun
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.training.schedules import Constant, Cosine, Length, Schedule, Stepped
from support.digits import digits
from support.programs import make_program

SCHEDULES: list[Schedule] = [Constant(), Stepped(2, 0.5), Cosine(), Cosine(7, 0.1), Cosine(10_000)]


@given(st.sampled_from(SCHEDULES), st.integers(1, 20), st.integers(1, 50))
def test_a_share_is_never_more_than_all_nor_less_than_nothing(
    schedule: Schedule, epochs: int, steps_per_epoch: int
) -> None:
    length = Length(epochs, steps_per_epoch)
    shares = [schedule.share(step, length) for step in range(length.steps)]
    assert all(0 <= share <= 1 for share in shares)


def test_a_stepped_rate_falls_between_epochs() -> None:
    shares = [Stepped(2, 0.5).share(step, Length(5, 3)) for step in range(15)]
    assert shares == [1.0] * 6 + [0.5] * 6 + [0.25] * 3


def test_a_cosine_rises_in_equal_steps_and_ends_at_its_share() -> None:
    shares = np.array([Cosine(4, 0.1).share(step, Length(2, 20)) for step in range(40)])
    assert np.allclose(shares[:5], [0.2, 0.4, 0.6, 0.8, 1.0])
    assert np.all(np.diff(shares[4:]) < 0)
    assert shares[-1] == pytest.approx(0.1)
    assert shares[4 + 35 // 2] + shares[39 - 35 // 2] == pytest.approx(1.1)  # half-way down it is half-way in value


def test_settings_that_make_no_schedule_are_refused() -> None:
    for broken in (
        lambda: Stepped(0, 0.5),
        lambda: Stepped(1, 0.0),
        lambda: Stepped(1, 1.5),
        lambda: Cosine(-1),
        lambda: Cosine(0, 1.1),
    ):
        with pytest.raises(GraphError, match="The learning-rate schedule"):
            broken()


def test_a_run_takes_each_step_at_its_rate_also_after_a_restart() -> None:
    program = make_program("mlp", Full())
    schedule = RunSchedule(1, 0.05, 3, Cosine(5, 0.0))
    whole = TrainingRun(Executor(program, {}, seed=1), digits(), schedule)
    rates = []
    while not whole.done:
        rates.append(whole.learning_rate)
        if whole.step == 50:
            resumed = TrainingRun(Executor(program, {}, seed=9), digits(), schedule, step=50)
            resumed.executor.load_resident_state(whole.executor.resident_state())
        whole.run_step()
    assert rates[:6] == pytest.approx([0.05 * (number + 1) / 6 for number in range(6)])
    assert max(rates) == 0.05
    assert rates[-1] == pytest.approx(0.0, abs=1e-12)
    while not resumed.done:
        resumed.run_step()
    assert resumed.executor.resident_state() == whole.executor.resident_state()
