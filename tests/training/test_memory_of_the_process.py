"""What the whole process takes: its arena in use, a tenth more, and the buffers of BLAS, named and printed."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import ROOT

SCRIPT = """
import json, sys
from functools import partial
from pathlib import Path
import numpy as np
from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.core.executor import Executor
from support.process_memory import HighWater
from support.zoo_ladders import SEED, batch_of
from hedgerow_plans import codec

model, program, folder = sys.argv[1], codec.decode(Path(sys.argv[2]).read_bytes()), Path(sys.argv[3])
batch = batch_of(model)
start = read_rss_bytes()
# BLAS keeps buffers for packing once it has worked: their size is what its first large product leaves behind.
one, other, product = (np.ones((1024, 1024), np.float32) for _ in range(3))
before = read_rss_bytes()
np.dot(one, other, out=product)
blas = read_rss_bytes() - before
del one, other, product
water, rows = HighWater(), []

def note(rung, what, call):
    before = executor.plan.promise.peak_bytes
    water.restart()
    call()
    # what a higher rung wrote goes back at the end of a switch
    rows.append([rung, what, max(before, executor.plan.promise.peak_bytes), water.read_bytes() - start])

executor = Executor(program, {}, SEED, 0, paging_folder=folder)
rows.append([0, "begin", executor.plan.promise.peak_bytes, water.read_bytes() - start])
note(0, "prepare", executor.prepare)
rungs = range(len(program.rungs))
for rung in (*rungs, *reversed(rungs[:-1])):
    note(rung, "switch", partial(executor.switch, rung))
    note(rung, "step", partial(executor.step, *batch, 0.01))
    note(rung, "measure", partial(executor.measure, *batch, 0.01))
    note(rung, "evaluate", partial(executor.evaluate, *batch))
print(json.dumps({"blas": max(0, blas), "rows": rows}))
"""

MODELS = ["resnet18", "encoder-4x256", "vgg11", "mobilenetv2", "resnet50"]


@pytest.mark.parametrize("model", MODELS)
def test_a_process_grows_by_its_arena_a_tenth_and_the_buffers_of_blas(model: str, tmp_path: Path) -> None:
    """Down the ladder and up again: on every rung, whatever is done there, at the moment when the most is held."""
    from hedgerow_plans import codec  # noqa: PLC0415 - the child must not pay for what the test imports
    from hedgerow_plans.methods.catalogue import Full  # noqa: PLC0415
    from support.zoo_ladders import Pair, ladder  # noqa: PLC0415

    program = ladder(Pair(model, Full()))
    (tmp_path / "program.json").write_bytes(codec.encode(program))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model, str(tmp_path / "program.json"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "tests"), "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    blas, rows = found["blas"], found["rows"]
    assert {rung for rung, *_ in rows} == set(range(len(program.rungs)))
    assert program.rungs[-1].promise.peak_bytes > 19_000_000  # a tenth of it is more than Python's own objects
    tightest: dict[int, tuple[float, str, int, int]] = {}
    for rung, what, arena, grown in rows:
        left = 1.1 * arena + blas - grown
        tightest[rung] = min(tightest.get(rung, (math.inf, "", 0, 0)), (left, what, arena, grown))
    for rung, (left, what, arena, grown) in tightest.items():
        print(
            f"FIGURE process of {model} on rung {rung}: grown by at most {grown} bytes ({what}), arena {arena}, "
            f"buffers of BLAS (OpenBLAS, packing, one thread) {blas}, left {left:.0f}"
        )
    assert min(tightest.values())[0] >= 0
