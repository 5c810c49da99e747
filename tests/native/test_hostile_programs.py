"""Programs that no agent would send: refused, or run without a step outside their operands."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from hedgerow_agent.core.native.layout import Operand, Record, Refusal, Region
from hedgerow_agent.core.native.library import Library
from support.repository import ROOT
from support.sampling import repetitions

MUTANTS = repetitions(1_000, 10_000)


def answer_of_child(library: Library, seed: int, count: int) -> Mapping[str, Any]:
    """Try mutants in a child process, and fail with a sentence if it does not live to tell."""
    child = subprocess.run(
        [sys.executable, "-m", "support.hostile_programs", str(library.path), str(seed), str(count)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "tests"), str(ROOT / "hack")))},
        capture_output=True,
        text=True,
        check=False,
    )
    last = child.stderr.strip().rpartition("\n")[2]
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        pytest.fail(f"The library accepted a record and ended with {name} (seed {seed}): {last}")
    assert child.returncode == 0, child.stderr[-2000:]
    answer: Mapping[str, Any] = json.loads(child.stdout.strip().rpartition("\n")[2])
    return answer


@pytest.fixture(scope="module")
def answer(library: Library) -> Mapping[str, Any]:
    found = answer_of_child(library, 1, MUTANTS)
    print(f"FIGURE hostile records refused: {found['refused']}, run within their operands: {found['run']}")
    return found


def test_nothing_that_is_accepted_changes_a_byte_outside_its_operands(answer: Mapping[str, Any]) -> None:
    assert answer["strayed"] == []


def test_all_mutants_were_tried_and_most_of_them_refused(answer: Mapping[str, Any]) -> None:
    assert answer["refused"] + answer["run"] >= MUTANTS + answer["real"]
    assert answer["refused"] > MUTANTS / 2


def test_every_real_record_runs_and_some_that_were_changed(answer: Mapping[str, Any]) -> None:
    assert answer["run"] > answer["real"]
    assert set(answer["operators"]) >= set(answer["encoded"])


def test_every_kernel_is_reached_by_what_encoders_make_of_small_programs(
    answer: Mapping[str, Any], library: Library
) -> None:
    assert set(answer["encoded"]) == set(library.operators)


def test_one_wrong_record_keeps_all_others_from_running(library: Library) -> None:
    memory = np.ones(64, np.float32)
    fine, wrong = zeroing(library, 16), zeroing(library, 65)
    refusal = Refusal()

    opened = library.handle.hedgerow_open(
        (Record * 2)(fine, wrong), 2, (Region * 1)(Region(memory.ctypes.data, memory.nbytes, 1)), 1, refusal
    )

    assert not opened
    assert refusal.record == 1
    assert (memory == 1).all()


def zeroing(library: Library, count: int) -> Record:
    """Return a record that writes zeros over the first numbers of a region of 64."""
    record = Record(op=library.operators["zero"], parts=1)
    record.cuts[1] = record.sizes[0] = count
    for operand in record.operands:
        operand.region = -1
    record.operands[0] = Operand(0, 0, 64 * ctypes.sizeof(ctypes.c_float))
    return record
