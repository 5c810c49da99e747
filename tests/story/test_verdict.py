"""The demo judges itself: each thing that may not be true makes it fail with a sentence."""

import dataclasses

import pytest

from demo.verdict import DeviceEnding, RollbackEnding, judge

GOOD = DeviceEnding(
    name="gate-01",
    device_class="raspberry-pi-4",
    drift="rotated",
    accuracy_before=0.5,
    accuracy_after=0.9,
    rungs_used=(0, 3),
    switches_down=1,
    switches_up=1,
    peaks=((0, 1000, 1000), (3, 400, 400)),
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
        ({"peaks": ((0, 1000, 1000), (3, 400, 464))}, "a peak of 400 bytes on rung 4 and 464 bytes were measured"),
        ({"peaks": ((0, 1000, 1000),)}, "used rung 4 and its memory was never measured"),
        ({"accuracy_before": 0.9}, "cost only 0.05 of accuracy"),
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
