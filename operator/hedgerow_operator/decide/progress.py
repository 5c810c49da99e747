"""How far a job is: counts, percentages and accuracy over its devices, and the `Progressing` condition."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from hedgerow_operator.actions import Counts
from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.standing import REFUSED, Member, Stand, progress_for
from hedgerow_operator.decide.wording import listed, plural
from hedgerow_plans.resources.conditions import ConditionStatus
from hedgerow_plans.resources.reasons import ProgressingReason

AT_WORK = (Stand.PREPARING, Stand.TRAINING, Stand.PAUSED)
WAITING = (Stand.UNPLANNED, Stand.BUSY, Stand.PENDING)
Verdict = tuple[ConditionStatus, ProgressingReason, str]


def count(members: Sequence[Member]) -> Counts:
    """Return how the devices stand."""
    stands = Counter(member.stand for member in members)
    approved = [member for member in members if member.device.spec.approved]
    return Counts(
        matched=len(members),
        approved=len(approved),
        pending=sum(stands[stand] for stand in WAITING),
        training=sum(stands[stand] for stand in AT_WORK),
        completed=stands[Stand.COMPLETED],
        failed=stands[Stand.FAILED],
        rejected=sum(stands[stand] for stand in REFUSED),
        held=stands[Stand.HELD],
        offline=sum(not member.is_online for member in approved),
    )


def progress_percent(entry: OpenJob, members: Sequence[Member]) -> int:
    """Return the mean progress of the devices that take part and are not held."""
    taking_part = [
        m for m in members if m.device.spec.approved and m.stand is not Stand.HELD and m.stand not in REFUSED
    ]
    if not taking_part:
        return 0
    return int(fmean(_percent(entry, member) for member in taking_part))


def _percent(entry: OpenJob, member: Member) -> float:
    if member.stand is Stand.COMPLETED:
        return 100.0
    progress = progress_for(member.device, entry.job, entry.memory.generation)
    if progress is None or progress.total_steps == 0:
        return 0.0
    return min(100.0, 100.0 * progress.step / progress.total_steps)


def accuracies(entry: OpenJob, members: Sequence[Member]) -> tuple[str | None, str | None]:
    """Return the mean accuracy before training and now, over the devices that know theirs."""
    found = [progress_for(member.device, entry.job, entry.memory.generation) for member in members]
    known = [progress for progress in found if progress is not None]
    before = [p.accuracy_before for p in known if p.accuracy_before is not None]
    latest = [p.accuracy_now if p.accuracy_after is None else p.accuracy_after for p in known]
    now = [accuracy for accuracy in latest if accuracy is not None]
    return _mean(before), _mean(now)


def _mean(values: Sequence[float]) -> str | None:
    return f"{min(max(fmean(values), 0.0), 1.0):.2f}" if values else None


def judge_progressing(entry: OpenJob, members: Sequence[Member], *, finished: bool) -> Verdict:
    """Return the `Progressing` condition."""
    if finished:
        return ConditionStatus.FALSE, ProgressingReason.JOB_FINISHED, "The job has finished."
    if entry.spec.suspend:
        text = "The job is suspended; its devices keep their checkpoints and go on when spec.suspend is false."
        return ConditionStatus.FALSE, ProgressingReason.JOB_SUSPENDED, text
    numbers = count(members)
    stands = Counter(member.stand for member in members if member.is_online)
    summary = (
        f"{numbers.training} of {plural(numbers.approved, 'approved device')} at work, {numbers.completed} completed"
    )
    summary += f", {progress_percent(entry, members)} % of all steps done."
    if stands[Stand.TRAINING]:
        return ConditionStatus.TRUE, ProgressingReason.DEVICES_TRAINING, summary
    if stands[Stand.PREPARING] or stands[Stand.PENDING]:
        return ConditionStatus.TRUE, ProgressingReason.DEVICES_PREPARING, summary
    return _explain_standstill(members)


def _explain_standstill(members: Sequence[Member]) -> Verdict:
    paused = [m for m in members if m.stand is Stand.PAUSED and m.is_online]
    if paused:
        text = f"Nothing fits the memory that is allowed right now on {plural(len(paused), 'paused device')}: "
        text += f"{listed(m.device.name for m in paused)}; raise spec.memory.allowance of the class."
        return ConditionStatus.FALSE, ProgressingReason.DEVICES_PAUSED, text
    busy = [f"{m.device.name} ({m.busy_with})" for m in members if m.stand is Stand.BUSY]
    if busy:
        text = f"Waiting for {plural(len(busy), 'device')} at work for another job: {listed(busy)}."
        return ConditionStatus.FALSE, ProgressingReason.DEVICES_BUSY, text
    offline = [m.device.name for m in members if not m.is_online and m.stand in (*AT_WORK, Stand.PENDING)]
    if offline:
        text = f"What is left to do is on {plural(len(offline), 'device')} without a connection: {listed(offline)}."
        return ConditionStatus.FALSE, ProgressingReason.DEVICES_OFFLINE, text
    return ConditionStatus.FALSE, ProgressingReason.NOTHING_ASSIGNED, "No device has been given work yet; see Planned."
