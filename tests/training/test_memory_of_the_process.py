"""What the whole process takes: its arena, a tenth more, and the buffers of BLAS, which are named and printed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import ROOT
from support.sampling import sample

SCRIPT = """
import json, sys
import numpy as np
from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.core.executor import Executor
from support.zoo_ladders import SEED, batch_of
from hedgerow_plans import codec

model = sys.argv[1]
program = codec.decode(open(sys.argv[2], "rb").read())
batch = batch_of(model)
# BLAS keeps buffers for packing once it has worked: their size is what its first large product leaves behind.
one, other, product = (np.ones((1024, 1024), np.float32) for _ in range(3))
before = read_rss_bytes()
np.dot(one, other, out=product)
blas = read_rss_bytes() - before
del one, other, product
start = read_rss_bytes()
executor = Executor(program, {}, SEED, 0)
executor.prepare()
arena = executor._arena.capacity_bytes
for rung in range(len(program.rungs)):
    executor.switch(rung)
    for _ in range(2):
        executor.step(*batch, 0.01)
print(json.dumps({"arena": arena, "blas": max(0, blas), "grown": read_rss_bytes() - start}))
"""

MODELS = ["resnet18", "encoder-4x256", "vgg11", "mobilenetv2", "resnet50"]


@pytest.mark.parametrize("model", sample(MODELS, 2))
def test_a_process_grows_by_its_arena_a_tenth_and_the_buffers_of_blas(model: str, tmp_path: Path) -> None:
    from hedgerow_plans import codec  # noqa: PLC0415 - the child must not pay for what the test imports
    from hedgerow_plans.methods.catalogue import Full  # noqa: PLC0415
    from support.zoo_ladders import Pair, ladder  # noqa: PLC0415

    program = ladder(Pair(model, Full()))
    (tmp_path / "program.json").write_bytes(codec.encode(program))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, model, str(tmp_path / "program.json")],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "tests"), "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(
        f"FIGURE process of {model}: grown by {found['grown']} bytes, arena {found['arena']}, buffers of BLAS "
        f"(OpenBLAS, packing, one thread) {found['blas']}"
    )
    assert found["arena"] > 20_000_000  # large enough that a tenth of it is more than Python's own objects
    assert found["grown"] <= 1.1 * found["arena"] + found["blas"]
