"""Runs of consecutive calls as programs of the library: one bound call replays a whole segment."""

import ctypes
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Bound, Call, Runtime
from hedgerow_agent.core.native.draft import Block, Draft
from hedgerow_agent.core.native.encoders import ENCODERS
from hedgerow_agent.core.native.layout import ABSENT, MOST_PARTS, VERDICTS, Record, Refusal, Region
from hedgerow_agent.core.native.library import Library

_LEAST_WORK = 8_192
"""Numbers to touch below which a kernel is left to one thread: its share would not outlast a meeting."""


class NativeBackend:
    """Binds calls to the library where it has their kernels, and to numpy where it has not."""

    name = "native"

    def __init__(self, library: Library, threads: int = 1, parts: int | None = None) -> None:
        """Run on so many threads; work is cut into as many parts, or as many as asked for: bits depend on these."""
        self.library = library
        self.threads = min(max(1, threads), MOST_PARTS)
        self.parts = self.threads if parts is None else min(max(1, parts), MOST_PARTS)

    def bind(self, steps: Sequence[Call | Bound], arena: Array) -> tuple[Bound, ...]:
        """Return what runs these steps, as few calls as possible; some steps are bound already."""
        bound: list[Bound] = []
        segment = Segment(self, arena)
        for step in steps:
            if isinstance(step, Call) and segment.take(step):
                continue
            bound += segment.close()
            segment = Segment(self, arena)
            bound.append(bind(step) if isinstance(step, Call) else step)
        return (*bound, *segment.close())


@dataclass(frozen=True, slots=True)
class _Place:
    region: int
    offset: int


class _Regions:
    """The arena, and every array outside it that a segment names."""

    def __init__(self, arena: Array) -> None:
        self._arena_address, self._arena_bytes = _address(arena), arena.nbytes
        self._arrays = [arena]
        self._numbers: dict[tuple[int, int], int] = {}

    def place(self, array: Array) -> _Place:
        """Return where an array lies."""
        address = _address(array)
        if 0 <= address - self._arena_address < self._arena_bytes:
            return _Place(0, address - self._arena_address)
        key = (address, _reach(array))
        if key not in self._numbers:
            self._numbers[key] = len(self._arrays)
            self._arrays.append(array)
        return _Place(self._numbers[key], 0)

    def as_c(self) -> ctypes.Array[Region]:
        """Return the regions as the library takes them."""
        regions = [Region(_address(array), _reach(array), int(array.flags.writeable)) for array in self._arrays]
        return (Region * len(regions))(*regions)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _reach(array: Array) -> int:
    """Return the bytes from a view's first element to the end of its last."""
    if array.flags.c_contiguous:
        return int(array.nbytes)
    last = sum((length - 1) * step for length, step in zip(array.shape, array.strides, strict=True))
    return int(last) + array.itemsize


class Segment:
    """Consecutive calls that the library runs in one go."""

    def __init__(self, backend: NativeBackend, arena: Array) -> None:
        self._backend = backend
        self._regions = _Regions(arena)
        self._block = Block()
        self._records: list[Record] = []
        self._nodes: list[str] = []
        self._runtime: Runtime | None = None

    def take(self, call: Call) -> bool:
        """Append a call; False if the library cannot run it."""
        encode = ENCODERS.get(call.node.op)
        drafts = encode(call, self._block) if encode is not None and _in_32_bits(call) else None
        if drafts is None or any(draft.op not in self._backend.library.operators for draft in drafts):
            return False
        for draft in drafts:
            self._records.append(self._record(draft))
            self._nodes.append(call.node.name)
        self._runtime = call.runtime
        return True

    def close(self) -> list[Bound]:
        """Return the call that runs what was taken, if anything was."""
        if not self._records or self._runtime is None:
            return []
        program = _Program(self._backend.library, self._records, self._regions, self._nodes)
        block, runtime, threads = self._block, self._runtime, self._backend.threads

        def run() -> None:
            block.set(runtime)
            program.run(threads)

        return [run]

    def _record(self, draft: Draft) -> Record:
        record = Record(op=self._backend.library.operators[draft.op])
        for at, operand in enumerate(record.operands):
            self._fill(operand, draft.operands[at] if at < len(draft.operands) else None)
        record.sizes[: len(draft.sizes)] = draft.sizes
        record.numbers[: len(draft.numbers)] = draft.numbers
        cuts = _cuts(draft, self._backend.parts)
        record.parts = len(cuts) - 1
        record.cuts[: len(cuts)] = cuts
        return record

    def _fill(self, operand: ctypes.Structure, array: Array | None) -> None:
        if array is None:
            operand.region = ABSENT
            return
        place = self._regions.place(array)
        operand.region, operand.offset, operand.bytes = place.region, place.offset, _reach(array)


def _in_32_bits(call: Call) -> bool:
    return all(array.dtype != np.float64 for array in (*call.inputs, *call.outputs, *call.updates))


def _cuts(draft: Draft, most_parts: int) -> list[int]:
    """Return where the work of a draft is cut: evenly, at multiples of its grain, and not at all if it is little."""
    parts = min(most_parts, draft.most_parts, draft.units // draft.grain) if draft.work >= _LEAST_WORK else 1
    parts = max(1, parts)  # a unit is never cut
    inner = [draft.units * part // parts // draft.grain * draft.grain for part in range(1, parts)]
    return [0, *inner, draft.units]


class _Program:
    """A program the library has accepted; closed when it is forgotten."""

    def __init__(self, library: Library, records: Iterable[Record], regions: _Regions, nodes: Sequence[str]) -> None:
        rows, refusal = list(records), Refusal()
        self._handle, self._regions = library.handle, regions
        places = regions.as_c()
        self._address = self._handle.hedgerow_open((Record * len(rows))(*rows), len(rows), places, len(places), refusal)
        if not self._address:
            raise CoreError(
                f"The compiled backend refuses node {nodes[refusal.record]}: {VERDICTS[refusal.verdict]}; "
                "this agent and its library do not belong together, install them again."
            )
        weakref.finalize(self, self._handle.hedgerow_close, self._address)

    def run(self, threads: int) -> None:
        """Run every record once."""
        self._handle.hedgerow_run(self._address, threads)
