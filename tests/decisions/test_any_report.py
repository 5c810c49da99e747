"""Whatever a device says, the others get their work: a report is refused at the door, or decided upon."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError

from hedgerow_operator.decide import decide
from hedgerow_operator.statuses import job_status
from hedgerow_plans.protocol.messages import CheckpointReport, Phase, Progress, Reported
from support.message_strategies import payloads
from support.worlds import NOW, device, job, progress, reported, shown, status_of, told, world

HEALTHY = device("healthy", reported=reported(Phase.TRAINING, progress=progress(10)))
SLOW_TO_MAKE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW_TO_MAKE
@given(payloads(Reported))
def test_every_report_that_is_understood_can_be_decided_upon(payload: dict[str, Any]) -> None:
    said = Reported.model_validate_json(json.dumps(payload | {"job_uid": "uid-drift", "generation": 1}))
    actions = decide(world([job()], [device("odd", reported=said), HEALTHY]), NOW)
    assert told(actions, "healthy").desired.assignment is not None
    assert shown(actions, "odd").status.reason != "ReportUnusable", "what is understood can be shown"
    json.dumps(shown(actions, "odd").status.to_yaml_form(), allow_nan=False)
    json.dumps(job_status(status_of(actions)).to_yaml_form(), allow_nan=False)


NO_ACCURACY = ["1e300", "-0.1", "1.0001", "NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("number", NO_ACCURACY)
@pytest.mark.parametrize("field", ["accuracy_before", "accuracy_now", "accuracy_after"])
def test_an_accuracy_that_is_no_share_is_refused_at_the_door(field: str, number: str) -> None:
    payload = json.dumps(progress(1) | {field: 0.125}).replace("0.125", number)
    with pytest.raises(ValidationError, match=field):
        Progress.model_validate_json(payload)


@pytest.mark.parametrize("number", NO_ACCURACY)
def test_a_checkpoint_whose_accuracy_is_no_share_is_refused(number: str) -> None:
    values = {"id": "step-1", "step": 1, "sha256": "a" * 64, "size_bytes": 1, "accuracy": 0.125}
    with pytest.raises(ValidationError, match="accuracy"):
        CheckpointReport.model_validate_json(json.dumps(values).replace("0.125", number))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1.7e308"])
def test_a_loss_of_which_no_mean_can_be_taken_is_refused(number: str) -> None:
    payload = json.dumps(progress(1, loss=0.125)).replace("0.125", number)
    with pytest.raises(ValidationError, match="loss"):
        Progress.model_validate_json(payload)


def test_a_report_that_cannot_be_shown_does_not_keep_the_others_from_their_work() -> None:
    one = reported(Phase.TRAINING, progress=progress(10))
    assert one.progress is not None
    beyond = one.progress.model_copy(update={"accuracy_now": 1e300})  # as if the door had a gap
    odd = replace(HEALTHY, name="odd", reported=one.model_copy(update={"progress": beyond}))
    actions = decide(world([job()], [odd, HEALTHY]), NOW)
    assert told(actions, "healthy").desired.assignment is not None
    assert shown(actions, "healthy").status.phase == "Training"
    assert shown(actions, "odd").status.reason == "ReportUnusable"
    assert "DeviceAccuracy now" in shown(actions, "odd").status.message
