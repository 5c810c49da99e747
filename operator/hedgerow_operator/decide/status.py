"""A job's status: six conditions that always have a reason and a sentence, one summary word, counts and times."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from hedgerow_operator.actions import Counts, PlanInUse, SetJobStatus
from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.planned import judge_planned, wanted_classes
from hedgerow_operator.decide.progress import accuracies, count, judge_progressing, progress_percent
from hedgerow_operator.decide.rollbacks import judge_rollback
from hedgerow_operator.decide.standing import Member, Stand
from hedgerow_operator.decide.success import Ended, judge_success
from hedgerow_operator.world import Job, Ready, World
from hedgerow_plans.resources.conditions import Condition, ConditionStatus, with_condition
from hedgerow_plans.resources.reasons import (
    AbortedReason,
    ConditionType,
    JobState,
    PlannedReason,
    ProgressingReason,
    RolledBackReason,
    SucceededReason,
    SuspendedReason,
)

Verdict = tuple[ConditionStatus, StrEnum, str]
MAX_MESSAGE_LENGTH = 1000


def timestamp(now: float) -> str:
    """Return a moment as Kubernetes writes it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """Return the moment that a timestamp names."""
    return datetime.fromisoformat(text).timestamp()


@dataclass(frozen=True, slots=True)
class Judgement:
    """A job's status, and whether it came to its end just now."""

    status: SetJobStatus
    ended: Ended | None


def judge(entry: OpenJob, members: Sequence[Member], world: World, now: float, *, finished: bool) -> Judgement:
    """Return what a job's status should say."""
    job, numbers = entry.job, count(members)
    planned = judge_planned(entry, members, world)
    start_time = _start_time(entry, now)
    running_seconds = now - seconds(start_time) if start_time else 0.0
    ended = None if finished else judge_success(entry, members, planned[1], running_seconds)
    is_over = finished or (ended is not None and ended.is_final)
    verdicts: dict[ConditionType, Verdict] = {
        ConditionType.PLANNED: planned,
        ConditionType.PROGRESSING: judge_progressing(entry, members, finished=is_over),
        ConditionType.SUSPENDED: _suspended(entry),
        ConditionType.ROLLED_BACK: judge_rollback(entry, members),
    }
    if ended is not None:  # a finished job keeps what was said at its end
        verdicts[ConditionType.SUCCEEDED] = (ended.status, ended.reason, ended.message)
        verdicts[ConditionType.ABORTED] = _aborted(ended)
    conditions = write_conditions(job, verdicts, now)
    before, latest = accuracies(entry, members)
    status = SetJobStatus(
        job=job.name,
        observed_generation=job.generation,
        training_generation=entry.memory.generation,
        training_digest=entry.memory.training_digest,
        state=_state(entry, conditions, numbers, members),
        conditions=conditions,
        counts=numbers,
        progress_percent=progress_percent(entry, members),
        accuracy_before=before,
        accuracy_now=latest,
        start_time=start_time,
        completion_time=_completion_time(job, now, finished=finished, is_over=is_over),
        plans=_plans(entry, members, world),
    )
    return Judgement(status, ended)


def write_conditions(job: Job, verdicts: dict[ConditionType, Verdict], now: float) -> tuple[Condition, ...]:
    """Return the job's conditions with the verdicts in them; times move only when a status does."""
    conditions = job.status.conditions
    for kind, (status, reason, message) in verdicts.items():
        new = Condition(
            type=kind,
            status=status,
            reason=reason,
            message=message[:MAX_MESSAGE_LENGTH],
            last_transition_time=timestamp(now),
            observed_generation=job.generation,
        )
        conditions = with_condition(conditions, new)
    return conditions


def invalid(job: Job, now: float) -> SetJobStatus:
    """Return the status of a job whose specification does not parse."""
    unread = "The specification cannot be read; see Planned."
    conditions = write_conditions(
        job,
        {
            ConditionType.SUCCEEDED: (ConditionStatus.FALSE, SucceededReason.INVALID_SPEC, unread),
            ConditionType.PLANNED: (ConditionStatus.FALSE, PlannedReason.INVALID_SPEC, job.problem),
            ConditionType.PROGRESSING: (ConditionStatus.FALSE, ProgressingReason.NOTHING_ASSIGNED, unread),
            ConditionType.SUSPENDED: (ConditionStatus.FALSE, SuspendedReason.NOT_REQUESTED, unread),
            ConditionType.ABORTED: (ConditionStatus.FALSE, AbortedReason.NOT_ABORTED, unread),
            ConditionType.ROLLED_BACK: (ConditionStatus.FALSE, RolledBackReason.NOT_REQUESTED, unread),
        },
        now,
    )
    return SetJobStatus(
        job=job.name, observed_generation=job.generation, state=JobState.INVALID, conditions=conditions, counts=Counts()
    )


def _suspended(entry: OpenJob) -> Verdict:
    if entry.spec.suspend:
        text = "spec.suspend is true: devices stop and keep their checkpoints."
        return ConditionStatus.TRUE, SuspendedReason.SUSPEND_REQUESTED, text
    return ConditionStatus.FALSE, SuspendedReason.NOT_REQUESTED, "spec.suspend is false."


def _aborted(ended: Ended) -> Verdict:
    if ended.reason is SucceededReason.DEADLINE_EXCEEDED:
        return ConditionStatus.TRUE, AbortedReason.DEADLINE_EXCEEDED, ended.message
    return ConditionStatus.FALSE, AbortedReason.NOT_ABORTED, "Nothing has ended the job before its devices did."


def _start_time(entry: OpenJob, now: float) -> str | None:
    """Return when this training began: an edited one begins anew, and so does its deadline."""
    status = entry.job.status
    if status.start_time is not None and status.training_digest == entry.memory.training_digest:
        return status.start_time
    return None if entry.spec.suspend else timestamp(now)


def _completion_time(job: Job, now: float, *, finished: bool, is_over: bool) -> str | None:
    if finished:
        return job.status.completion_time
    return timestamp(now) if is_over else None


def _plans(entry: OpenJob, members: Sequence[Member], world: World) -> tuple[PlanInUse, ...]:
    programs = {name: world.programs.get((entry.job.uid, name)) for name in wanted_classes(members)}
    return tuple(
        PlanInUse(name, program.plan, program.reference.digest)
        for name, program in programs.items()
        if isinstance(program, Ready)
    )


def _state(  # noqa: PLR0911 - in the order of what a person should be told first
    entry: OpenJob, conditions: Sequence[Condition], numbers: Counts, members: Sequence[Member]
) -> JobState:
    found = {condition.type: condition for condition in conditions}
    succeeded = found[ConditionType.SUCCEEDED]
    if found[ConditionType.ROLLED_BACK].status is ConditionStatus.TRUE:
        return JobState.ROLLED_BACK
    if succeeded.status is not ConditionStatus.UNKNOWN:
        return JobState.SUCCEEDED if succeeded.status is ConditionStatus.TRUE else JobState.FAILED
    if entry.spec.suspend:
        return JobState.SUSPENDED
    if succeeded.reason == SucceededReason.NOTHING_CAN_RUN:
        return JobState.INVALID
    if succeeded.reason == SucceededReason.ALL_DEVICES_HELD:
        return JobState.ROLLED_BACK
    if numbers.training or numbers.completed or any(member.stand is Stand.PENDING for member in members):
        return JobState.TRAINING
    return JobState.PLANNING if any(member.stand is Stand.UNPLANNED for member in members) else JobState.PENDING
