"""Label selectors mean what they mean in Kubernetes; conditions change their time only with their status."""

import pytest

from hedgerow_plans.resources.conditions import Condition, ConditionStatus, find_condition, with_condition
from hedgerow_plans.resources.selector import LabelSelector

NORTH = {"site": "north", "camera": ""}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"site": "north"}}, True),
        ({"matchLabels": {"site": "south"}}, False),
        ({"matchLabels": {"camera": ""}}, True),
        ({"matchLabels": {"missing": ""}}, False),
        ({"matchExpressions": [{"key": "site", "operator": "In", "values": ["south", "north"]}]}, True),
        ({"matchExpressions": [{"key": "missing", "operator": "In", "values": [""]}]}, False),
        ({"matchExpressions": [{"key": "site", "operator": "NotIn", "values": ["north"]}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "NotIn", "values": ["north"]}]}, True),
        ({"matchExpressions": [{"key": "camera", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "camera", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"site": "north"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
    ],
)
def test_a_selector_finds_what_kubernetes_would_find(selector: dict[str, object], selected: bool) -> None:
    assert LabelSelector.model_validate(selector).matches(NORTH) is selected


def condition(kind: str, status: ConditionStatus, at: str, reason: str = "Because") -> Condition:
    return Condition(type=kind, status=status, reason=reason, last_transition_time=at)


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = with_condition((), condition("Planned", ConditionStatus.FALSE, "2026-01-01T00:00:00Z"))
    both = with_condition(first, condition("Succeeded", ConditionStatus.UNKNOWN, "2026-01-01T00:00:01Z"))
    same = with_condition(both, condition("Planned", ConditionStatus.FALSE, "2026-01-02T00:00:00Z", "Otherwise"))
    planned = find_condition(same, "Planned")
    assert planned is not None
    assert (planned.reason, planned.last_transition_time) == ("Otherwise", "2026-01-01T00:00:00Z")

    changed = find_condition(
        with_condition(same, condition("Planned", ConditionStatus.TRUE, "2026-01-03T00:00:00Z")), "Planned"
    )
    assert changed is not None
    assert changed.last_transition_time == "2026-01-03T00:00:00Z"
    assert [entry.type for entry in same] == ["Planned", "Succeeded"]
