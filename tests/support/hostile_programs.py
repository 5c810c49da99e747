"""A child process that offers mutated records to the library: `python -m support.hostile_programs LIBRARY SEED COUNT`.

Every operand is a region of its own between fences. What is refused is counted; what is accepted is run on random
bytes, which are hostile labels, tokens and positions too, and may change nothing but its operands. Whoever started this
reads the answer as JSON; a crash or an alarm is an answer as well, and the last record tried is on standard error.
"""

import ctypes
import itertools
import json
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hedgerow_agent.core.kernels.call import Bytes
from hedgerow_agent.core.native.layout import VERDICTS, Record, Refusal, Region
from hedgerow_agent.core.native.library import Library, Unavailable, load
from support.fenced_memory import Fenced
from support.native_records import records_of
from support.record_mutations import mutant, with_other_ranges

MOST_OPERAND_BYTES = 150_000
SECONDS_FOR_ONE_RECORD = 60
WRONG_RANGES = VERDICTS.index("ranges that do not cover the work")


@dataclass
class Outcome:
    """What became of all records."""

    refused: int = 0
    run: int = 0
    strayed: list[str] = field(default_factory=list)
    operators: set[str] = field(default_factory=set)  # of those that ran


class Trial:
    """One real record, its operands in fenced memory, and what is done to it."""

    def __init__(self, library: Library, record: Record, noise: Bytes, outcome: Outcome) -> None:
        self._library, self._noise, self._outcome = library, noise, outcome
        self.record = Record.from_buffer_copy(record)
        self._memory: list[Fenced] = []
        for operand in self.record.operands:
            if operand.region >= 0:
                operand.region, operand.offset = len(self._memory), 0
                self._memory.append(Fenced(operand.bytes, np.roll(noise, 8 * len(self._memory))))
            else:
                operand.offset = operand.bytes = 0

    def offer(self, record: Record, read_only: int) -> None:
        """Offer a record; one that is refused for its ranges is offered again with others."""
        verdict = self._offer(record, read_only)
        if verdict == WRONG_RANGES:
            any(self._offer(again, read_only) == 0 for again in with_other_ranges(record))

    def _offer(self, record: Record, read_only: int) -> int:
        regions = (Region * len(self._memory))(
            *(
                Region(memory.address, memory.pages.size - memory.gap, int(at != read_only))
                for at, memory in enumerate(self._memory)
            )
        )
        refusal, handle = Refusal(), self._library.handle
        program = handle.hedgerow_open(ctypes.byref(record), 1, regions, len(regions), refusal)
        if not program:
            self._outcome.refused += 1
            return int(refusal.verdict)
        print(describe(self._library, record), file=sys.stderr)
        sys.stderr.flush()
        signal.alarm(SECONDS_FOR_ONE_RECORD)  # whose default is to end this process, whatever C is doing
        handle.hedgerow_run(program, 1 + self._outcome.run % 2)
        signal.alarm(0)
        handle.hedgerow_close(program)
        self._outcome.run += 1
        self._look(record, read_only)
        return 0

    def _look(self, record: Record, read_only: int) -> None:
        self._outcome.operators.add(name_of(self._library, record.op))
        for at, memory in enumerate(self._memory):
            changed = memory.changed()
            if changed is None:
                continue
            memory.put_back()
            own = [operand for operand in record.operands if operand.region == at]
            allowed = at != read_only and any(
                operand.offset <= changed[0] and changed[1] <= operand.offset + operand.bytes for operand in own
            )
            if not allowed and not (at != read_only and covered(memory, changed, own)):
                self._outcome.strayed.append(f"{describe(self._library, record)} changed {changed} of region {at}")


def covered(_memory: Fenced, changed: tuple[int, int], own: list[ctypes.Structure]) -> bool:
    """Whether operands that lie in the same region cover what changed between them."""
    return (
        len(own) > 1
        and min(operand.offset for operand in own) <= changed[0]
        and changed[1] <= max(operand.offset + operand.bytes for operand in own)
    )


def name_of(library: Library, op: int) -> str:
    """Return an operator's name."""
    return next(name for name, number in library.operators.items() if number == op)


def describe(library: Library, record: Record) -> str:
    """Return a record as one line."""
    operands = [(o.region, o.offset, o.bytes) for o in record.operands if o.region >= 0]
    sizes, cuts = list(record.sizes), list(record.cuts)[: record.parts + 1]
    return f"{name_of(library, record.op)} sizes {sizes} cuts {cuts} operands {operands}"


def evenly(records: list[Record], count: int, source: random.Random) -> Iterator[Record]:
    """Yield so many of some records, of each operator as many as of any other."""
    by_operator: dict[int, list[Record]] = {}
    for record in records:
        by_operator.setdefault(record.op, []).append(record)
    for _, same in zip(range(count), itertools.cycle(by_operator.values()), strict=False):
        yield source.choice(same)


def main(words: list[str]) -> int:
    """Offer every real record, and as many mutants as asked for."""
    library = load(Path(words[0]))
    if isinstance(library, Unavailable):
        sys.stderr.write(library.reason)
        return 1
    source, count, outcome = random.Random(int(words[1])), int(words[2]), Outcome()
    noise: Bytes = np.random.default_rng(int(words[1])).integers(0, 256, 1 << 16, dtype=np.uint8)
    records = records_of(library, MOST_OPERAND_BYTES)
    for record in records:
        trial = Trial(library, record, noise, outcome)
        trial.offer(trial.record, -1)
    for record in evenly(records, count, source):
        trial, read_only = Trial(library, record, noise, outcome), source.randrange(10) if source.random() < 0.1 else -1
        trial.offer(mutant(source, trial.record, len(library.operators)), read_only)
    answer = {"refused": outcome.refused, "run": outcome.run, "strayed": outcome.strayed[:5]}
    encoded = {name_of(library, record.op) for record in records}
    answer |= {"operators": sorted(outcome.operators), "encoded": sorted(encoded), "real": len(records)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
