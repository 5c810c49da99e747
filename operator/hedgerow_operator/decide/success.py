"""Whether a job has come to its end: the success threshold over the devices that are not held, and the deadline."""

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.progress import count
from hedgerow_operator.decide.standing import ENDED, REFUSED, Member, Stand
from hedgerow_operator.decide.wording import listed, plural
from hedgerow_plans.resources.conditions import ConditionStatus
from hedgerow_plans.resources.reasons import PlannedReason, SucceededReason


@dataclass(frozen=True, slots=True)
class Ended:
    """The `Succeeded` condition; final when it is not Unknown."""

    status: ConditionStatus
    reason: SucceededReason
    message: str

    @property
    def is_final(self) -> bool:
        """Whether the job is over."""
        return self.status is not ConditionStatus.UNKNOWN


def judge_success(entry: OpenJob, members: Sequence[Member], planned: PlannedReason, running_seconds: float) -> Ended:
    """Return the `Succeeded` condition of a job that has not finished before."""
    numbers = count(members)
    judged = [m for m in members if m.device.spec.approved and m.stand is not Stand.HELD]
    threshold = entry.spec.completion.success_threshold_percent
    shares = f"{numbers.completed} of {plural(len(judged), 'device')} completed, {threshold} % are asked for"
    if judged and numbers.completed * 100 >= threshold * len(judged) and numbers.completed:
        return Ended(ConditionStatus.TRUE, SucceededReason.THRESHOLD_REACHED, f"{shares}.")
    deadline = entry.spec.completion.deadline_seconds
    if deadline is not None and running_seconds >= deadline and not entry.spec.suspend:
        text = f"The deadline of {deadline} s has passed: {shares}."
        return Ended(ConditionStatus.FALSE, SucceededReason.DEADLINE_EXCEEDED, text)
    if any(m.stand in ENDED for m in judged) and all(m.stand in ENDED | REFUSED for m in judged):
        return Ended(ConditionStatus.FALSE, SucceededReason.THRESHOLD_UNREACHABLE, _why_not(shares, judged))
    return _still_open(entry, members, judged, planned, shares)


def _why_not(shares: str, judged: Sequence[Member]) -> str:
    """Say what kept the rest, with the words of the first device."""
    rest = [m for m in judged if m.stand is not Stand.COMPLETED]
    names = listed(m.device.name for m in rest)
    spoken = [m.device for m in rest if m.device.reported is not None and m.device.reported.message]
    words = f" {spoken[0].name} says: {spoken[0].reported.message}" if spoken and spoken[0].reported else ""
    return f"{shares}, and nothing is left to wait for; failed or rejected: {names}.{words}"


def _still_open(
    entry: OpenJob, members: Sequence[Member], judged: Sequence[Member], planned: PlannedReason, shares: str
) -> Ended:
    if entry.spec.suspend:
        return _open(SucceededReason.JOB_SUSPENDED, f"The job is suspended: {shares}.")
    if planned is PlannedReason.UNKNOWN_MODEL or (judged and all(m.stand in REFUSED for m in judged)):
        return _open(SucceededReason.NOTHING_CAN_RUN, "No device can run this job as it is; see Planned.")
    if members and not judged and any(m.stand is Stand.HELD for m in members):
        text = (
            f"{plural(count(members).held, 'device')} held after a rollback, and no other; release one to train again."
        )
        return _open(SucceededReason.ALL_DEVICES_HELD, text)
    if not judged:
        return _open(SucceededReason.WAITING_FOR_DEVICES, "No approved device matches yet; see Planned.")
    if planned is PlannedReason.PLANNING_PROGRAMS and not any(m.stand is not Stand.UNPLANNED for m in judged):
        return _open(SucceededReason.WAITING_FOR_PLANS, "No program is ready yet; see Planned.")
    return _open(SucceededReason.DEVICES_TRAINING, f"{shares}.")


def _open(reason: SucceededReason, message: str) -> Ended:
    return Ended(ConditionStatus.UNKNOWN, reason, message)
