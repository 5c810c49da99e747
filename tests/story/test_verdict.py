"""The demo judges itself: each thing that may not be true makes it fail with a sentence."""

import dataclasses

import pytest

from demo.verdict import DeviceEnding, RollbackEnding, judge, recovered_share

GOOD = DeviceEnding(
    name="gate-01",
    device_class="raspberry-pi-4",
    drift="rotated",
    accuracy_before=0.5,
    accuracy_after=0.9,
    rungs_used=(0, 3),
    switches_down=1,
    switches_up=1,
    planned_bytes=1000,
    measured_bytes=1000,
    energy_microjoules=5,
    energy_source="modelled",
    checkpoint="step-000180",
)
BACK = RollbackEnding("gate-01", "Complete", (1, 2, 3), (1, 9, 3), (1, 2, 3))


def test_a_story_that_is_true_is_not_complained_about() -> None:
    assert judge(0.95, [GOOD], BACK) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"accuracy_after": 0.7}, "won back only 44%"),
        ({"measured_bytes": 1064}, "promised a peak of 1000 bytes and 1064 bytes was measured"),
        ({"measured_bytes": None}, "promised a peak of 1000 bytes and nothing was measured"),
        ({"switches_down": 0}, "No device switched to a smaller plan"),
        ({"switches_up": 0}, "No device went back to a larger plan"),
    ],
)
def test_what_is_not_true_of_a_device_is_said(change: dict[str, object], sentence: str) -> None:
    (wrong,) = judge(0.95, [dataclasses.replace(GOOD, **change)], BACK)  # type: ignore[arg-type]

    assert sentence in wrong


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"result": "Unable"}, "ended as 'Unable'"),
        ({"predictions_after_training": (1, 2, 3)}, "changed none"),
        ({"predictions_after_rollback": (1, 9, 3)}, "does not predict what the base model predicts"),
    ],
)
def test_what_is_not_true_of_the_rollback_is_said(change: dict[str, object], sentence: str) -> None:
    (wrong,) = judge(0.95, [GOOD], dataclasses.replace(BACK, **change))  # type: ignore[arg-type]

    assert sentence in wrong


def test_a_drift_that_cost_nothing_is_won_back() -> None:
    assert recovered_share(0.9, dataclasses.replace(GOOD, accuracy_before=0.92)) == 1.0
