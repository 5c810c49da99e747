"""What `kubectl get` shows. Printer columns can only copy text, so the operator writes it with these functions."""

from hedgerow_plans.resources.device import DeviceColumns, DeviceStatus
from hedgerow_plans.resources.execution_plan import PlanColumns
from hedgerow_plans.resources.quantities import format_bytes
from hedgerow_plans.resources.training_job import JobColumns, TrainingJobStatus

_ENERGY_UNITS = ((10**12, "MJ"), (10**9, "kJ"), (10**6, "J"), (10**3, "mJ"))


def format_percent(percent: int) -> str:
    """Return such as 61%."""
    return f"{percent}%"


def format_rung(rung: int, rungs: int) -> str:
    """Return such as 2/4; people count from 1."""
    return f"{rung + 1}/{rungs}"


def format_memory(used_bytes: int, budget_bytes: int) -> str:
    """Return such as 3.1Mi/3.2Mi."""
    return f"{format_bytes(used_bytes)}/{format_bytes(budget_bytes)}"


def format_accuracy(value: float) -> str:
    """Return such as 0.71; a status holds decimals as text."""
    return f"{value:.2f}"


def format_change(before: str | None, now: str | None) -> str:
    """Return such as 0.71→0.94, or what is known of it."""
    if before and now:
        return f"{before}→{now}"
    return f"{before}→" if before else f"→{now}" if now else ""


def format_energy(microjoules: int) -> str:
    """Return such as 1.2J."""
    for factor, unit in _ENERGY_UNITS:
        if microjoules >= factor:
            return f"{microjoules / factor:.1f}{unit}"
    return f"{microjoules}µJ"


def job_columns(status: TrainingJobStatus) -> JobColumns:
    """Return the columns of a job from the rest of its status."""
    accuracy = format_change(status.accuracy.before, status.accuracy.now)
    return JobColumns(progress=format_percent(status.progress_percent), accuracy=accuracy)


def device_columns(status: DeviceStatus) -> DeviceColumns:
    """Return the columns of a device from the rest of its status."""
    return DeviceColumns(
        rung=_rung(status),
        memory=_memory(status),
        accuracy=_accuracy(status),
        energy=f"{format_energy(status.energy.microjoules)} {status.energy.source}" if status.energy else "",
        rollback=str(status.rollback.result) if status.rollback else "",
        refused=_refused(status),
    )


def plan_columns(floor_bytes: int, peak_bytes: int, rungs: int, gap_percent: str = "-") -> PlanColumns:
    """Return the columns of an execution plan; the gap is a decimal, or - if no bound is known."""
    gap = gap_percent if gap_percent == "-" else f"{gap_percent}%"
    return PlanColumns(floor=format_bytes(floor_bytes), peak=format_bytes(peak_bytes), rungs=str(rungs), gap=gap)


def _rung(status: DeviceStatus) -> str:
    return "" if status.rung is None or status.rungs is None else format_rung(status.rung, status.rungs)


def _memory(status: DeviceStatus) -> str:
    memory = status.memory
    if memory is None:
        return ""
    return format_memory(memory.planned if memory.measured is None else memory.measured, memory.budget)


def _accuracy(status: DeviceStatus) -> str:
    accuracy = status.accuracy
    return "" if accuracy is None else format_change(accuracy.before, accuracy.after or accuracy.now)


def _refused(status: DeviceStatus) -> str:
    refusal = status.refusal
    if refusal is None or refusal.count == 0:
        return ""
    return f"{refusal.count}x {refusal.reason}: {refusal.message}"
