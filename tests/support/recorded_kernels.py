"""Kernels at work in real networks, written down for `native/tests` to run again on other machines."""

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench_core.core import samples
from bench_core.programs import encoded_program
from bench_core.workloads import WORKLOADS, Workload
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.native.draft import Block, Draft
from hedgerow_agent.core.native.encoders import ENCODERS
from hedgerow_agent.core.native.layout import Record
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend, Segment, _Program, _reach
from hedgerow_plans import codec
from hedgerow_plans.plan import Program
from support.native_records import batch_of, layer_programs

SMALL: tuple[Workload, ...] = (
    replace(WORKLOADS["mlp"], batch_size=5),
    replace(WORKLOADS["cnn"], batch_size=2),
    replace(WORKLOADS["resnet"], batch_size=2, shape=(3, 32, 32)),
    replace(WORKLOADS["mobilenet"], batch_size=2, shape=(3, 32, 32)),
    replace(WORKLOADS["encoder"], batch_size=2, shape=(12,)),
)
MOST_CASES_OF_AN_OPERATOR = 2
NAME_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Span:
    """Memory that operands of a case lie in."""

    first: int
    end: int
    real_bytes: int  # of one real number in it; 0: they are none

    def content(self) -> bytes:
        return ctypes.string_at(self.first, self.end - self.first)


class Recorder:
    """A backend that runs one record at a time and keeps the smallest cases of each operator."""

    name = "native"

    def __init__(self, library: Library) -> None:
        self._backend = NativeBackend(library, 2)
        self.cases: dict[str, list[bytes]] = {}

    def bind(self, steps: Sequence[Call | Bound], arena: Array) -> tuple[Bound, ...]:
        """Return one bound call for each step."""
        return tuple(self._bound(step, arena) if isinstance(step, Call) else step for step in steps)

    def _bound(self, call: Call, arena: Array) -> Bound:
        block, encode = Block(), ENCODERS.get(call.node.op)
        drafts = encode(call, block) if encode is not None else None
        if drafts is None:
            return bind(call)

        def run() -> None:
            block.set(call.runtime)
            for draft in drafts:
                self._run(draft, arena)

        return run

    def _run(self, draft: Draft, arena: Array) -> None:
        segment = Segment(self._backend, arena)
        record = segment._record(draft)
        program = _Program(self._backend.library, [record], segment._regions, [draft.op])
        spans = _spans(draft)
        before = [span.content() for span in spans]
        program.run(1)
        regions = [
            struct.pack("<qq", len(content), span.real_bytes) + content + span.content()
            for span, content in zip(spans, before, strict=True)
        ]
        moved = bytes(_moved(record, draft, spans))
        name = draft.op.encode().ljust(NAME_BYTES, b"\0")
        self._keep(draft.op, name + moved + struct.pack("<q", len(regions)) + b"".join(regions))

    def _keep(self, op: str, case: bytes) -> None:
        kept = sorted([*self.cases.get(op, []), case], key=len)
        self.cases[op] = kept[:MOST_CASES_OF_AN_OPERATOR]


def _spans(draft: Draft) -> list[_Span]:
    """Return the memory of the operands; those that overlap share it, as they did."""
    merged: list[_Span] = []
    operands = [operand for operand in draft.operands if operand is not None]
    for operand in sorted(operands, key=lambda one: one.ctypes.data):
        first, real_bytes = operand.ctypes.data, operand.itemsize if operand.dtype.kind == "f" else 0
        span = _Span(first, first + _reach(operand), real_bytes)
        if merged and first < merged[-1].end:
            last = merged.pop()
            span = _Span(last.first, max(last.end, span.end), min(last.real_bytes, real_bytes))
        merged.append(span)
    return merged


def _moved(record: Record, draft: Draft, spans: list[_Span]) -> Record:
    """Return the record with its operands in regions of their own."""
    moved = Record.from_buffer_copy(record)
    for at, operand in enumerate(draft.operands):
        if operand is not None:
            number, span = next(
                (number, span) for number, span in enumerate(spans) if span.first <= operand.ctypes.data < span.end
            )
            moved.operands[at].region, moved.operands[at].offset = number, operand.ctypes.data - span.first
    return moved


def record_networks(library: Library, output: Path) -> set[str]:
    """Train networks by a step each and write down what their kernels did; return the operators' names."""
    recorder = Recorder(library)
    for workload in SMALL:
        _step(codec.decode(encoded_program(workload)), samples(workload), recorder)
    for program in layer_programs():
        _step(program, batch_of(program), recorder)
    cases = [case for kept in recorder.cases.values() for case in kept]
    output.write_bytes(struct.pack("<q", len(cases)) + b"".join(cases))
    return set(recorder.cases)


def _step(program: Program, batch: tuple[Array, Array], recorder: Recorder) -> None:
    executor = Executor(program, {}, seed=3, backend=recorder)
    executor.step(*batch, 0.05)
    executor.close()
