"""Who works for whom: one running job per device.

A device stays with the job it works for. A free device goes to the oldest job that wants it; the others wait and say
so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedgerow_operator.decide.standing import ENDED, Stand, report_for, stand_of, unsupported
from hedgerow_operator.world import Device, Impossible, Job, JobMemory, ProgramState
from hedgerow_plans.resources.conditions import ConditionStatus, find_condition
from hedgerow_plans.resources.reasons import ConditionType
from hedgerow_plans.resources.training_job import TrainingJobSpec


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job with what is remembered of it, and whether it still wants work done."""

    job: Job
    spec: TrainingJobSpec
    memory: JobMemory
    wants_work: bool  # neither suspended nor finished


def claim(device: Device, jobs: Sequence[OpenJob], programs: Mapping[tuple[str, str], ProgramState]) -> OpenJob | None:
    """Return the job whose assignment the device should have; `jobs` are sorted, oldest first."""
    if not device.spec.approved or unsupported(device):
        return None
    wanted = [entry for entry in jobs if entry.spec.devices.selector.matches(device.labels)]
    current = home(device, wanted)
    if current is not None and _keeps(device, current):
        return current
    takers = (entry for entry in wanted if entry.wants_work and _has_work_for(entry, device, programs))
    return next(takers, _done_with(device, wanted, current))


def home(device: Device, wanted: Sequence[OpenJob]) -> OpenJob | None:
    """Return the job that the device worked for last, if it is still there."""
    uid = device.memory.job_uid or (device.reported.job_uid if device.reported else None)
    return next((entry for entry in wanted if entry.job.uid == uid), None)


def _stand(device: Device, entry: OpenJob) -> Stand:
    reported = report_for(device, entry.job, entry.memory.generation)
    return stand_of(device, entry.job, entry.memory.generation, None, None) if reported else Stand.PENDING


def _keeps(device: Device, entry: OpenJob) -> bool:
    """Say whether the device stays: held, it waits for its release; at work, it finishes if the job still wants it."""
    stand = _stand(device, entry)
    return stand is Stand.HELD or (entry.wants_work and stand not in ENDED)


def _has_work_for(entry: OpenJob, device: Device, programs: Mapping[tuple[str, str], ProgramState]) -> bool:
    impossible = isinstance(programs.get((entry.job.uid, device.spec.device_class)), Impossible)
    return not impossible and _stand(device, entry) not in ENDED


def _done_with(device: Device, wanted: Sequence[OpenJob], current: OpenJob | None) -> OpenJob | None:
    """Return whose assignment stays when nobody has work: what was completed, and what a success left unfinished."""
    if current is None or current not in wanted:
        return None
    if _stand(device, current) in ENDED:
        return current
    return current if not current.spec.suspend and _has_succeeded(current) else None


def _has_succeeded(entry: OpenJob) -> bool:
    """Say whether this training has: the summary word will not do, it says RolledBack after a rollback."""
    status = entry.job.status
    succeeded = find_condition(status.conditions, ConditionType.SUCCEEDED)
    this_one = status.training_digest == entry.memory.training_digest
    return this_one and succeeded is not None and succeeded.status is ConditionStatus.TRUE
