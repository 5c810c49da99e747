"""Tables that commands print: jobs, devices, and the ladder of a program that was planned on the spot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import yaml

from hedgerow_operator.kube import Body
from hedgerow_operator.planning.requests import device_costs
from hedgerow_operator.planning.worker import Planned, Unusable
from hedgerow_operator.planning.worker import plan as plan_program
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.models import zoo
from hedgerow_plans.program import ProgramRequest
from hedgerow_plans.resources.columns import format_energy
from hedgerow_plans.resources.device_class import DeviceClass, FrozenWeights
from hedgerow_plans.resources.parsing import Unparsable, parse_resource
from hedgerow_plans.resources.quantities import format_bytes, parse_quantity
from hedgerow_plans.training.optimizers import Sgd

PLAN_TIMEOUT_SECONDS = 600.0


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows in columns, as kubectl does."""
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    lines = (
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (headings, *rows)
    )
    return "\n".join(line.rstrip() for line in lines)


def job_rows(bodies: Sequence[Body]) -> tuple[list[str], list[list[str]]]:
    """Return jobs as rows."""
    rows = []
    for body in bodies:
        status = body.get("status") or {}
        devices, columns = status.get("devices") or {}, status.get("columns") or {}
        counts = [str(devices.get(name, 0)) for name in ("matched", "completed", "failed", "offline")]
        rows.append(
            [
                body["metadata"]["name"],
                status.get("state", "Unknown"),
                *counts,
                columns.get("progress", ""),
                columns.get("accuracy", ""),
            ]
        )
    return ["NAME", "STATE", "DEVICES", "DONE", "FAILED", "OFFLINE", "PROGRESS", "ACCURACY"], rows


def device_rows(bodies: Sequence[Body]) -> tuple[list[str], list[list[str]]]:
    """Return devices as rows."""
    rows = []
    for body in bodies:
        status = body.get("status") or {}
        columns = status.get("columns") or {}
        rows.append(
            [
                body["metadata"]["name"],
                body["spec"]["class"],
                status.get("state", "Unknown"),
                status.get("job", ""),
                *(columns.get(name, "") for name in ("rung", "memory", "accuracy", "rollback")),
                status.get("checkpoint", ""),
            ]
        )
    return ["NAME", "CLASS", "STATE", "JOB", "RUNG", "MEMORY", "ACCURACY", "ROLLBACK", "CHECKPOINT"], rows


def parameters(model: str) -> int:
    """Return how many parameters a model of the zoo has by default, counted as its publication does."""
    return zoo.published_size(model).parameters


def read_device_class(file: Path, budget: str | None) -> DeviceClass:
    """Return the DeviceClass in a manifest, with another budget if one is given."""
    try:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise click.ClickException(f"{file} cannot be read: {problem}.") from problem
    if not isinstance(body, dict) or body.get("kind") != "DeviceClass":
        raise click.ClickException(f"{file} holds no DeviceClass; give a manifest with kind: DeviceClass.")
    return with_budget(body, budget)


def with_budget(body: Body, budget: str | None) -> DeviceClass:
    """Return a DeviceClass from its manifest, with another budget if one is given."""
    if budget is not None:
        memory = {key: value for key, value in body["spec"]["memory"].items() if key not in {"floor", "allowance"}}
        body["spec"]["memory"] = memory | {"budget": budget}
    parsed = parse_resource(DeviceClass, body)
    if isinstance(parsed, Unparsable):
        raise click.ClickException(parsed.message)
    return parsed


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody would like to train."""

    model: str
    method: Method
    batch_size: int
    momentum: float
    classes: int | None
    input_shape: tuple[int, ...] | None


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the shape that numbers with commas between them name."""
    words = text.split(",")
    if not 1 <= len(words) <= 4 or not all(w.isascii() and w.isdigit() and 0 < int(w) <= 65_536 for w in words):
        raise click.ClickException(f"{text!r} is not a shape; write one to four whole numbers, such as 1,28,28.")
    return tuple(int(word) for word in words)


def ladder(wish: Wish, device_class: DeviceClass) -> str:
    """Plan a program and return its ladder as a table, or end with the numbers that do not fit."""
    spec = device_class.spec
    request = ProgramRequest(
        model=wish.model,
        method=wish.method,
        optimizer=Sgd(wish.momentum),
        batch_size=wish.batch_size,
        device_class=device_class.metadata.name,
        costs=device_costs(spec),
        budget_bytes=spec.budget_bytes,
        floor_bytes=spec.floor_bytes,
        classes=wish.classes,
        input_shape=wish.input_shape,
        frozen_outside=spec.memory.frozen_weights is FrozenWeights.MAPPED,
    )
    outcome = plan_program(request, PLAN_TIMEOUT_SECONDS)
    if isinstance(outcome, Unusable):
        raise click.ClickException(outcome.message)
    if not isinstance(outcome, Planned):
        budget = f"{spec.memory.budget} ({parse_quantity(spec.memory.budget)} bytes)"
        raise click.ClickException(
            f"Nothing fits {device_class.metadata.name}: {outcome.needed_bytes} bytes are needed, "
            f"the budget is {budget}; "
            f"nothing can run below {outcome.floor_bytes} bytes."
        )
    return _ladder_table(outcome)


def _ladder_table(planned: Planned) -> str:
    rows = [
        [
            str(number + 1),
            str(rung.micro_batch),
            rung.strategy,
            format_bytes(rung.peak_bytes),
            f"{rung.peak_bytes}",
            f"{rung.step_microseconds / 1000:.2f} ms",
            format_energy(rung.step_microjoules),
        ]
        for number, rung in enumerate(planned.summary.rungs)
    ]
    headings = ["RUNG", "MICRO-BATCH", "STRATEGY", "PEAK", "BYTES", "STEP TIME", "STEP ENERGY"]
    return f"{table(headings, rows)}\nprogram {planned.summary.digest[:16]}, {len(planned.encoded)} bytes"
