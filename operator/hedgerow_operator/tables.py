"""Tables that commands print, of jobs and devices, and what options name: classes in files, and shapes."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from hedgerow_operator.kube import Body
from hedgerow_operator.mistakes import BadInput
from hedgerow_plans.models import zoo
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.parsing import Unparsable, parse_resource


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
        raise BadInput(f"{file} cannot be read: {problem}.") from problem
    if not isinstance(body, dict) or body.get("kind") != "DeviceClass":
        raise BadInput(f"{file} holds no DeviceClass; give a manifest with kind: DeviceClass.")
    return with_budget(body, budget)


def with_budget(body: Body, budget: str | None) -> DeviceClass:
    """Return a DeviceClass from its manifest, with another budget if one is given."""
    if budget is not None:
        memory = {key: value for key, value in body["spec"]["memory"].items() if key not in {"floor", "allowance"}}
        body["spec"]["memory"] = memory | {"budget": budget}
    parsed = parse_resource(DeviceClass, body)
    if isinstance(parsed, Unparsable):
        raise BadInput(parsed.message)
    return parsed


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the shape that numbers with commas between them name."""
    words = text.split(",")
    if not 1 <= len(words) <= 4 or not all(w.isascii() and w.isdigit() and 0 < int(w) <= 65_536 for w in words):
        raise BadInput(f"{text!r} is not a shape; write one to four whole numbers, such as 1,28,28.")
    return tuple(int(word) for word in words)
