"""A real device goes back over the air, and its predictions go back with it."""

import numpy as np
import pytest

from hedgerow_plans.protocol.messages import Assignment, Desired, Phase, Reported, RollbackRequest, RollbackResult
from support.devices import (
    Device,
    OperatorEnd,
    assignment,
    limits_toml,
    predict,
    running,
    small_program,
)

pytestmark = pytest.mark.broker


def ask(operator: OperatorEnd, job: Assignment, to: str, request_id: str) -> Reported:
    operator.desire(Desired(assignment=job, rollback=RollbackRequest(to=to, request_id=request_id)))
    return operator.wait_for(
        lambda report: (
            report.rollback is not None
            and report.rollback.request_id == request_id
            and report.rollback.result is not RollbackResult.PENDING
        ),
        f"an answer to {request_id}",
    )


def outcome(report: Reported) -> tuple[RollbackResult, str, Phase]:
    assert report.rollback is not None
    assert report.rollback.running == report.running
    return report.rollback.result, report.running, report.phase


def test_predictions_follow_every_rollback(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    job = assignment(operator.publish_program(small_program()), epochs=2)
    complete = RollbackResult.COMPLETE
    with running(device):
        operator.desire(Desired(assignment=job))
        operator.wait_for_phase(Phase.COMPLETED)
        finished = predict(device)
        assert finished["running"] == "step-000078"

        unchanged = ask(operator, job, "last", "r1")
        assert outcome(unchanged) == (RollbackResult.NO_STATE_CHANGE, "step-000078", Phase.COMPLETED)
        assert predict(device) == finished

        assert outcome(ask(operator, job, "previous", "r2")) == (complete, "step-000060", Phase.HELD)
        previous = predict(device)
        assert previous["running"] == "step-000060"

        assert outcome(ask(operator, job, "base", "r3")) == (complete, "base", Phase.HELD)
        base = predict(device)
        assert base["accuracy"] < 0.3 < previous["accuracy"]

        assert outcome(ask(operator, job, "step-000078", "r4")) == (complete, "step-000078", Phase.HELD)
        assert predict(device) == finished
        assert len({tuple(one["predictions"]) for one in (finished, previous, base)}) == 3

        delta = next((device.store / "jobs").glob("*/*/step-000040.safetensors"))
        delta.write_bytes(delta.read_bytes()[:-1] + b"\0\0")
        unable = ask(operator, job, "step-000040", "r5")
        assert outcome(unable) == (RollbackResult.UNABLE, "step-000078", Phase.HELD)
        assert unable.rollback is not None
        assert "step-000040" in unable.rollback.message
        assert predict(device) == finished


def test_last_in_the_middle_of_training_drops_the_progress_since_and_holds(
    device: Device, operator: OperatorEnd
) -> None:
    device.write_files(more=limits_toml(rest_seconds=0.02))
    job = assignment(operator.publish_program(small_program()), epochs=3)
    with running(device) as agent:
        operator.desire(Desired(assignment=job))
        operator.wait_for(lambda report: report.running == "step-000020", "the first checkpoint")
        held = ask(operator, job, "last", "r1")
        assert held.phase is Phase.HELD
        assert held.progress is not None
        assert held.progress.step == held.checkpoints[-1].step
        assert agent.trainer_pid() is None
        operator.desire(Desired(assignment=job, rollback=RollbackRequest(to="last", request_id="r1", released=True)))
        done = operator.wait_for_phase(Phase.COMPLETED)
        assert done.progress is not None
        assert done.progress.accuracy_after is not None
        assert done.progress.accuracy_after > 0.7


def test_released_from_an_older_checkpoint_it_trains_on_from_there(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    job = assignment(operator.publish_program(small_program()), epochs=2)
    with running(device):
        operator.desire(Desired(assignment=job))
        before = operator.wait_for_phase(Phase.COMPLETED)
        ask(operator, job, "step-000040", "r1")
        request = RollbackRequest(to="step-000040", request_id="r1", released=True)
        operator.desire(Desired(assignment=job, rollback=request))
        operator.wait_for_phase(Phase.PREPARING)
        after = operator.wait_for_phase(Phase.COMPLETED)
        assert [one.id for one in after.checkpoints] == [one.id for one in before.checkpoints]
        assert after.checkpoints[:2] == before.checkpoints[:2]
        # Without the optimiser's memory of step 40 the way is another one.
        assert after.checkpoints[-1].sha256 != before.checkpoints[-1].sha256
        assert np.isclose(predict(device)["accuracy"], 0.75, atol=0.25)
