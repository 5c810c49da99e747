"""A program that is not right is refused before its first record runs, and never touches a byte outside."""

import ctypes
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench_core.programs import encoded_program
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native import segments
from hedgerow_agent.core.native.draft import Draft
from hedgerow_agent.core.native.layout import MOST_OPERANDS, MOST_SIZES, Record, Refusal, Region
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans import codec
from support.repository import ROOT

HOSTILE = 10_000
GUARD = 4096
MOST_ROOM = 1 << 19
ODD_NUMBERS = (-1, 0, 1, 2, 3, 7, 8, 63, 64, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))


def true_records(library: Library, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """Return the records of real plans that are small enough to be tried often."""
    taken: list[Record] = []
    keep = segments.Segment._record

    def remember(self: segments.Segment, draft: Draft) -> Record:
        record = keep(self, draft)
        taken.append(record)
        return record

    monkeypatch.setattr(segments.Segment, "_record", remember)
    for name in ("cnn", "mobilenet", "encoder"):
        Executor(codec.decode(encoded_program(WORKLOADS[name])), {}, 0, backend=NativeBackend(library, 2)).close()
    return [record for record in taken if sum(operand.bytes for operand in record.operands) < MOST_ROOM]


class Field:
    """Memory for one record: every operand in a region of its own size, with a guard zone on both sides."""

    def __init__(self, record: Record) -> None:
        self.regions = (Region * MOST_OPERANDS)()
        self.memory: list[Array] = []
        for at, operand in enumerate(record.operands):
            size = operand.bytes if operand.region >= 0 else 64
            memory = np.full(size + 2 * GUARD, 0xA5, np.uint8)
            memory[GUARD : GUARD + size] = 0
            self.memory.append(memory)
            self.regions[at] = Region(memory.ctypes.data + GUARD, size, 1)
            if operand.region >= 0:
                operand.region, operand.offset = at, 0

    def untouched(self) -> bool:
        """Whether every guard zone is as it was."""
        return all((part == 0xA5).all() for memory in self.memory for part in (memory[:GUARD], memory[-GUARD:]))


def copy_of(record: Record) -> Record:
    return Record.from_buffer_copy(bytes(record))


def spoil(record: Record, rng: random.Random) -> None:
    """Change one to three things of a record."""
    for _ in range(rng.randint(1, 3)):
        number = rng.choice((*ODD_NUMBERS, rng.randrange(1 << 16)))
        match rng.randrange(7):
            case 0:
                record.op = rng.randrange(-2, 200)
            case 1:
                record.operands[rng.randrange(MOST_OPERANDS)].offset = number
            case 2:
                record.operands[rng.randrange(MOST_OPERANDS)].bytes = number
            case 3:
                record.operands[rng.randrange(MOST_OPERANDS)].region = rng.randrange(-3, MOST_OPERANDS + 2)
            case 4:
                record.cuts[rng.randrange(5)] = number
            case 5:
                record.parts = rng.choice((-1, 0, 2, 3, 4, 5, 1 << 30))
            case _:
                record.sizes[rng.randrange(MOST_SIZES)] = number


def spoilt(records: list[Record], count: int) -> Iterator[tuple[Record, Field]]:
    rng = random.Random(1)
    for _ in range(count):
        record = copy_of(rng.choice(records))
        field = Field(record)
        spoil(record, rng)
        yield record, field


def test_ten_thousand_spoilt_records_are_refused_or_stay_inside(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = true_records(library, monkeypatch)
    refused = 0
    for record, field in spoilt(records, HOSTILE):
        refusal = Refusal()
        program = library.handle.hedgerow_open(ctypes.byref(record), 1, field.regions, MOST_OPERANDS, refusal)
        if program:
            library.handle.hedgerow_run(program, 2)
            library.handle.hedgerow_close(program)
        refused += not program
        assert field.untouched(), library.handle.hedgerow_operator_name(record.op)
    print(f"FIGURE spoilt records refused: {refused} of {HOSTILE}")
    assert refused > HOSTILE // 2


def test_one_wrong_record_keeps_all_others_from_running(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    zero = next(r for r in true_records(library, monkeypatch) if r.op == library.operators["sgd"])
    field = Field(zero)
    wrong = copy_of(zero)
    wrong.sizes[0] += 1
    pair = (Record * 2)(zero, wrong)
    before = [memory.copy() for memory in field.memory]
    refusal = Refusal()
    assert not library.handle.hedgerow_open(pair, 2, field.regions, MOST_OPERANDS, refusal)
    assert refusal.record == 1
    assert all(np.array_equal(a, b) for a, b in zip(before, field.memory, strict=True))


@pytest.mark.parametrize("flags", [[], ["--sanitize"]], ids=["plain", "sanitized"])
def test_the_kernels_own_test_program_is_content(flags: list[str], tmp_path: Path) -> None:
    program = tmp_path / "test-kernels"
    subprocess.run([sys.executable, ROOT / "native" / "build.py", "--test", "--output", program, *flags], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
