"""Programs as canonical bytes and back: one program, one byte string, one digest.

Canonical is JSON in ASCII with sorted keys, no spaces and finite floats. What decodes encodes to the same bytes again,
so a digest names a program whoever computes it. Decoding trusts nothing: hostile bytes give a MalformedProgram with a
sentence, never another exception. Whether the decoded program makes sense is for `verify` to say.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields

from hedgerow_plans.graph.codec import choice_of, graph_in, graph_out, row_of
from hedgerow_plans.plan import (
    PROGRAM_SCHEMA,
    Bounds,
    Compute,
    Free,
    PageIn,
    PageOut,
    Placement,
    Plan,
    Program,
    Promise,
    Recompute,
    Step,
    Update,
)
from hedgerow_plans.untrusted import Untrustworthy, Value, parse

MOST_BYTES = 64 * 1024 * 1024
"""Largest encoded program; a thousand-node network with six rungs has about one megabyte."""

_MOST_GRAPHS = 16
_MOST_RUNGS = 64
_MOST_TENSORS = 100_000
_MOST_STEPS = 1_000_000
_MOST_NAMES = 64  # outputs of one node
_MOST_REMARKS = 16

_Json = dict[str, object]


class MalformedProgram(ValueError):  # noqa: N818 - reads as what it says of the input
    """Bytes that are no program; the text is a sentence for a status or a log."""


def digest(encoded: bytes) -> str:
    """Return the address of an encoded program."""
    return hashlib.sha256(encoded).hexdigest()


def encode(program: Program) -> bytes:
    """Return the canonical bytes of a program."""
    return json.dumps(
        _program_out(program), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode("ascii")


def decode(encoded: bytes) -> Program:
    """Return the program these bytes stand for; raise MalformedProgram, and nothing else, if there is none."""
    try:
        program = _program_in(parse(encoded, "The program", MOST_BYTES))
    except Untrustworthy as error:
        raise MalformedProgram(str(error)) from None
    if encode(program) != encoded:
        raise MalformedProgram("The program is not in canonical form; encode it again with this version.")
    return program


def _program_out(program: Program) -> _Json:
    return {
        "schema": program.schema,
        "kernelTable": program.kernel_table,
        "model": program.model,
        "method": program.method,
        "deviceClass": program.device_class,
        "batchSize": program.batch_size,
        "graphs": [graph_out(graph) for graph in program.graphs],
        "delta": program.delta,
        "resident": [[place.tensor, place.offset] for place in program.resident],
        "residentBytes": program.resident_bytes,
        "mapped": program.mapped,
        "rungs": [_plan_out(rung) for rung in program.rungs],
        "evaluation": _plan_out(program.evaluation),
        "remarks": program.remarks,
    }


def _program_in(value: Value) -> Program:
    names = ("schema", "kernelTable", "model", "method", "deviceClass", "batchSize", "graphs", "delta", "resident")
    schema, kernels, model, method, device_class, batch, graphs, delta, resident, size, mapped, rungs, *rest = (
        value.record(*names, "residentBytes", "mapped", "rungs", "evaluation", "remarks")
    )
    evaluation, remarks = rest
    return Program(
        schema=schema.integer(PROGRAM_SCHEMA, PROGRAM_SCHEMA),
        kernel_table=kernels.integer(),
        model=model.text(),
        method=method.text(),
        device_class=device_class.text(),
        batch_size=batch.integer(1),
        graphs=tuple(graph_in(item) for item in graphs.items(_MOST_GRAPHS)),
        delta=delta.texts(_MOST_TENSORS),
        resident=tuple(_placement_in(item) for item in resident.items(_MOST_TENSORS)),
        resident_bytes=size.integer(),
        mapped=mapped.texts(_MOST_TENSORS),
        rungs=tuple(_plan_in(item) for item in rungs.items(_MOST_RUNGS)),
        evaluation=_plan_in(evaluation),
        remarks=remarks.texts(_MOST_REMARKS),
    )


def _placement_in(value: Value) -> Placement:
    tensor, offset = row_of(value, 2)
    return Placement(tensor.text(), offset.integer())


def _plan_out(plan: Plan) -> _Json:
    return {
        "graph": plan.graph,
        "strategy": plan.strategy,
        "microBatch": plan.micro_batch,
        "microBatches": plan.micro_batches,
        "begin": [_step_out(step) for step in plan.begin],
        "body": [_step_out(step) for step in plan.body],
        "finish": [_step_out(step) for step in plan.finish],
        "promise": [getattr(plan.promise, field.name) for field in fields(Promise)],
        "bounds": [getattr(plan.bounds, field.name) for field in fields(Bounds)],
    }


def _plan_in(value: Value) -> Plan:
    names = ("graph", "strategy", "microBatch", "microBatches", "begin", "body", "finish", "promise", "bounds")
    graph, strategy, micro_batch, micro_batches, begin, body, finish, promise, bounds = value.record(*names)
    return Plan(
        graph.text(),
        strategy.text(),
        micro_batch.integer(1, 2**31 - 1),
        micro_batches.integer(1, 2**31 - 1),
        _steps_in(begin),
        _steps_in(body),
        _steps_in(finish),
        Promise(*(item.integer() for item in row_of(promise, len(fields(Promise))))),
        Bounds(*(item.integer() for item in row_of(bounds, len(fields(Bounds))))),
    )


def _steps_in(value: Value) -> tuple[Step, ...]:
    return tuple(_step_in(item) for item in value.items(_MOST_STEPS))


def _step_out(step: Step) -> list[object]:
    match step:
        case Compute(node, offsets, scratch):
            return ["compute", node, offsets, scratch]
        case Recompute(node, offsets, scratch):
            return ["recompute", node, offsets, scratch]
        case Update(node, scratch):
            return ["update", node, scratch]
        case Free(tensor):
            return ["free", tensor]
        case PageOut(tensor):
            return ["page_out", tensor]
        case PageIn(tensor, offset):
            return ["page_in", tensor, offset]


_STEP_KINDS: dict[str, tuple[int, Callable[[list[Value]], Step]]] = {
    "compute": (4, lambda row: Compute(row[1].integer(), row[2].integers(_MOST_NAMES), row[3].integer())),
    "recompute": (4, lambda row: Recompute(row[1].integer(), row[2].integers(_MOST_NAMES), row[3].integer())),
    "update": (3, lambda row: Update(row[1].integer(), row[2].integer())),
    "free": (2, lambda row: Free(row[1].integer())),
    "page_out": (2, lambda row: PageOut(row[1].integer())),
    "page_in": (3, lambda row: PageIn(row[1].integer(), row[2].integer())),
}


def _step_in(value: Value) -> Step:
    row = value.items(4)
    if not row:
        value.refuse("a step")
    length, build = _STEP_KINDS[choice_of(row[0], tuple(_STEP_KINDS))]
    return build(row_of(value, length))
