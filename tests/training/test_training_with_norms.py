"""Training with batch norms and dropout, however it is planned: statistics move once a step, the same is dropped."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.catalogue import Full, Last, Method
from hedgerow_plans.plan import Program, Recompute
from support.programs import program_of

SHAPE = (2, 6, 6)
BATCH = 12


def network(norm: bool = True) -> Graph:
    build = Builder("normed")
    x = build.input(SHAPE)
    for number in (1, 2, 3):
        x = build.conv2d(f"conv{number}", x, 4)
        x = build.batch_norm(f"bn{number}", x) if norm else build.group_norm(f"gn{number}", x, 2)
        x = build.dropout(f"drop{number}", build.activation(f"act{number}", x, "relu6"), 0.2)
    return build.graph(build.linear("logits", build.flatten("flat", x), 3))


def batches() -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng(3)
    while True:
        yield rng.standard_normal((BATCH, *SHAPE)).astype(np.float32) + 2, rng.integers(0, 3, BATCH).astype(np.int32)


def trained(program: Program, rung: int, folder: Path, steps: int = 3) -> dict[str, Array]:
    """Take some steps on a rung, the last one measured; check its promise and return the delta."""
    executor, source = Executor(program, {}, seed=1, rung=rung, paging_folder=folder), batches()
    for _ in range(steps - 1):
        executor.step(*next(source), 0.05)
    result = executor.measure(*next(source), 0.05)
    assert result.measured_peak_bytes == program.rungs[rung].promise.peak_bytes
    delta = executor.delta()
    executor.close()
    return delta


def test_recomputed_norms_train_to_the_same_bits_and_move_their_statistics_once(tmp_path: Path) -> None:
    program = program_of(network(), Full(), BATCH)
    recomputed = {
        program.graph(rung.graph).nodes[step.node].name
        for rung in program.rungs
        for step in rung.body
        if isinstance(step, Recompute)
    }
    assert {"bn1", "drop1"} <= recomputed
    assert not {name for name in recomputed if name.startswith("move.")}
    reference = trained(program, 0, tmp_path)
    assert not np.array_equal(reference["bn1.running_mean"], np.zeros(4))
    for rung in range(1, len(program.rungs)):
        found = trained(program, rung, tmp_path)
        assert all(np.array_equal(found[name], reference[name]) for name in reference), program.rungs[rung].strategy


def test_one_step_moves_running_statistics_a_tenth_of_the_way(tmp_path: Path) -> None:
    delta = trained(program_of(network(), Full(), BATCH), 0, tmp_path, steps=1)
    executor = Executor(program_of(network(), Full(), BATCH), {}, seed=1)
    weight, bias = (executor.delta()[f"conv1.{name}"] for name in ("weight", "bias"))
    x = next(batches())[0]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, weight) + bias[:, np.newaxis, np.newaxis]
    assert np.allclose(delta["bn1.running_mean"], 0.1 * y.mean(axis=(0, 2, 3)), atol=1e-5)
    assert np.allclose(delta["bn1.running_var"], 0.9 + 0.1 * y.var(axis=(0, 2, 3), ddof=1), atol=1e-5)


@pytest.mark.parametrize(("norm", "method"), [(True, Last()), (False, Full())], ids=["frozen-batch", "group"])
def test_micro_batches_drop_the_same_elements_as_the_whole_batch(norm: bool, method: Method, tmp_path: Path) -> None:
    program = program_of(network(norm), method, BATCH)
    assert {rung.micro_batches for rung in program.rungs} == {1, 2, 3, BATCH}
    reference = trained(program, 0, tmp_path)
    for rung in range(1, len(program.rungs)):
        found = trained(program, rung, tmp_path)
        for name, wanted in reference.items():
            assert np.allclose(found[name], wanted, rtol=1e-4, atol=1e-5), (program.rungs[rung].strategy, name)


def test_every_step_drops_other_elements() -> None:
    program = program_of(network(norm=False), Full(), BATCH)
    executor, (x, y) = Executor(program, {}, seed=1), next(batches())
    losses = [executor.step(x, y, 0.0).loss for _ in range(3)]
    assert len(set(losses)) == 3
    executor.steps_taken = 0
    assert executor.step(x, y, 0.0).loss == losses[0]


def test_evaluation_does_not_depend_on_its_company() -> None:
    executor, source = Executor(program_of(network(), Full(), BATCH, 5), {}, seed=1), batches()
    for _ in range(3):
        executor.step(*next(source), 0.05)
    x = next(source)[0]
    alone = np.concatenate([executor.predict(x[at : at + 1]) for at in range(7)])
    assert np.allclose(executor.predict(x[:7]), alone, rtol=1e-5, atol=1e-6)
    assert np.array_equal(executor.predict(x[:7]), executor.predict(x[:7]))
