"""What a person would want to be told when it happens: the turns in a job's conditions, as events."""

from collections.abc import Iterator

from hedgerow_operator.actions import SetJobStatus, Tell
from hedgerow_operator.world import Job
from hedgerow_plans.resources.conditions import Condition, ConditionStatus, find_condition
from hedgerow_plans.resources.reasons import ConditionType, EventReason, PlannedReason, RolledBackReason


def tell(job: Job, status: SetJobStatus) -> Iterator[Tell]:
    """Return an event for every condition whose reason is another one than before."""
    for condition in status.conditions:
        before = find_condition(job.status.conditions, condition.type)
        turned = before is None or (before.status, before.reason) != (condition.status, condition.reason)
        if turned and (found := _event(condition)):
            reason, is_warning = found
            yield Tell(job.name, reason, condition.message, is_warning)


def _event(condition: Condition) -> tuple[EventReason, bool] | None:  # noqa: PLR0911 - a table
    match ConditionType(condition.type), condition.status:
        case ConditionType.SUCCEEDED, ConditionStatus.TRUE:
            return EventReason.JOB_SUCCEEDED, False
        case ConditionType.SUCCEEDED, ConditionStatus.FALSE:
            return EventReason.JOB_FAILED, True
        case ConditionType.PLANNED, ConditionStatus.TRUE:
            return EventReason.PROGRAM_PLANNED, False
        case ConditionType.PLANNED, ConditionStatus.FALSE:
            infeasible = condition.reason == PlannedReason.BUDGET_TOO_SMALL
            return (EventReason.PROGRAM_INFEASIBLE if infeasible else EventReason.INVALID_SPEC), True
        case ConditionType.ROLLED_BACK, ConditionStatus.UNKNOWN:
            return EventReason.ROLLBACK_REQUESTED, False
        case ConditionType.ROLLED_BACK, _ if condition.reason != RolledBackReason.NOT_REQUESTED:
            return EventReason.ROLLBACK_FINISHED, condition.status is ConditionStatus.FALSE
    return None
