"""What a run came to, for people and for programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow_agent.local.planning import knows_energy
from hedgerow_agent.trainer.protocol import Ready
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import CheckpointReport, Energy, EnergySource, Progress, Quality
from hedgerow_plans.resources.quantities import format_bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything a summary speaks of."""

    program: Program
    digest: str
    progress: Progress
    checkpoint: CheckpointReport | None
    folder: Path
    ready: Ready


def as_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome for programs to read."""
    progress, ready = outcome.progress, outcome.ready
    energy = {"source": "unknown"} if _is_unknown(outcome) else progress.energy.model_dump(mode="json")
    return {
        "program": outcome.digest,
        "model": outcome.program.model,
        "method": outcome.program.method,
        "progress": progress.model_dump(mode="json", exclude={"energy"}),
        "energy": energy,
        "checkpoint": str(_file(outcome)) if outcome.checkpoint else None,
        "footprintBytes": ready.footprint_bytes,
        "data": ready.data.model_dump(mode="json"),
        "backend": ready.backend,
    }


def as_text(outcome: Outcome) -> str:
    """Return the outcome for people to read."""
    rows = {
        "program": _program(outcome),
        "data": _data(outcome),
        "backend": outcome.ready.backend.removesuffix("."),
        "steps": _steps(outcome.progress),
        "accuracy": _accuracy(outcome.progress),
        "validation": _quality(outcome.progress.validation),
        "memory": _memory(outcome),
        "energy": _energy(outcome),
        "checkpoint": str(_file(outcome)) if outcome.checkpoint else "none",
    }
    return "\n".join(f"{name:<11} {text}" for name, text in rows.items() if text)


def _program(outcome: Outcome) -> str:
    program, progress = outcome.program, outcome.progress
    rung = program.rungs[progress.rung]
    return (
        f"{outcome.digest[:16]}: {program.model} by {program.method} for {program.device_class}, rung "
        f"{progress.rung + 1} of {progress.rungs} ({rung.strategy}, micro-batch {rung.micro_batch} of "
        f"{program.batch_size})"
    )


def _data(outcome: Outcome) -> str:
    data = outcome.ready.data
    copied = f", {data.copied_bytes} copied to storage" if data.copied_bytes else ""
    skipped = f", {data.skipped} lines skipped" if data.skipped else ""
    count = f"{data.samples} samples{skipped}"
    return f"{count}; {data.held_bytes} bytes held, at most {data.at_once_bytes} read at once{copied}"


def _steps(progress: Progress) -> str:
    pace = f", {progress.step_microseconds / 1000:.3f} ms each (median)" if progress.step_microseconds else ""
    return f"{progress.step} of {progress.total_steps}{pace}"


def _accuracy(progress: Progress) -> str:
    if progress.accuracy_before is None or progress.accuracy_after is None:
        return ""
    where = "on the last batches of the stream, each before it was learnt from"
    if progress.test is not None:
        where = f"on {progress.test.samples} samples kept apart"
    return f"{progress.accuracy_before:.4f} before, {progress.accuracy_after:.4f} after, {where}"


def _quality(found: Quality | None) -> str:
    if found is None:
        return ""
    words = [f"{found.samples} samples"]
    words += [f"loss {found.loss:.4f}"] if found.loss is not None else []
    words += [f"accuracy {found.accuracy:.4f}"] if found.accuracy is not None else []
    words += [f"F1 {found.f1_macro:.4f} (macro)"] if found.f1_macro is not None else []
    return ", ".join(words)


def _memory(outcome: Outcome) -> str:
    memory = outcome.progress.memory
    measured = "not measured" if memory.measured_bytes is None else f"{memory.measured_bytes} measured"
    return (
        f"{memory.planned_bytes} bytes planned, {measured}, of a budget of {format_bytes(memory.budget_bytes)}; the "
        f"process itself {format_bytes(outcome.ready.footprint_bytes)}"
    )


def _energy(outcome: Outcome) -> str:
    energy: Energy = outcome.progress.energy
    if _is_unknown(outcome):
        return "unknown: this machine measures none and no class gives figures; name one with --class"
    source = f"modelled for {outcome.program.device_class}"
    if energy.source is EnergySource.MEASURED:
        source = "measured, of the whole processor package"
    return f"{energy.microjoules / 1e6:.3f} J, {source}"


def _is_unknown(outcome: Outcome) -> bool:
    return outcome.progress.energy.source is EnergySource.MODELLED and not knows_energy(outcome.program)


def _file(outcome: Outcome) -> Path:
    name = outcome.checkpoint.id if outcome.checkpoint else ""
    return outcome.folder / f"{name}.safetensors"
