"""Whole networks against PyTorch, both in 64 bits, where 32 would prove little: a flipped rectifier moves percents.

PyTorch lives in a venv of its own, which `hack/bench-core` makes; where there is none there is nothing to compare with.
"""

from pathlib import Path

import numpy as np
import pytest

from bench_core.core import samples
from bench_core.exchange import by_position
from bench_core.workloads import WORKLOADS, Workload
from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Graph, Tensor
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.tuning import tuned
from support.kernel_calls import Laboratory
from support.torchs_gradients import NO_TORCH, PYTHON, torchs_steps

TOLERANCE = 1e-8
PLENTY = 2**40


def first_value(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Move what starts at zeros and ones a little, so that nothing is right by being trivial."""
    value = initial_value(tensor, 0).astype(np.float64)
    return value + 0.1 * rng.standard_normal(value.shape) if value.ndim == 1 else value


def our_step(
    workload: Workload, graph: Graph, arrays: dict[str, Array], budget_bytes: int
) -> tuple[float, dict[str, Array]]:
    """Return the mean loss, and the gradient as what a step with rate 1 subtracts."""
    plain = differentiate(Full().apply(graph).graph, Sgd(), workload.batch_size)
    graphs = tuned(plain, budget_bytes, workload.batch_size)
    found = Laboratory(workload.batch_size).run_graph(
        graphs.direct, {name: value.copy() for name, value in arrays.items()}
    )
    moved = {tensor.name: arrays[tensor.name] - found[tensor.name] for tensor in graph.resident()}
    return float(found["losses"].mean()), moved


@pytest.mark.skipif(PYTHON is None, reason=NO_TORCH)
@pytest.mark.parametrize("name", ["resnet", "mobilenet", "encoder"])
def test_gradients_are_torchs(name: str, tmp_path: Path) -> None:
    workload, rng = WORKLOADS[name], np.random.default_rng(1)
    graph = zoo.build(workload.model, workload.classes, workload.shape)
    arrays = {tensor.name: first_value(tensor, rng) for tensor in graph.resident()}
    x, labels = samples(workload)
    batch: dict[str, Array] = {"x": x if workload.vocabulary else x.astype(np.float64), "labels": labels}
    (theirs,) = torchs_steps(workload, [by_position(graph, arrays)], batch, tmp_path)
    for budget_bytes in (0, PLENTY):  # as differentiating makes the graph, and as devices with memory run it
        loss, gradients = our_step(workload, graph, {**arrays, **batch}, budget_bytes)
        compare(loss, by_position(graph, gradients), theirs)


def compare(loss: float, ours: list[Array], theirs: dict[str, Array]) -> None:
    wanted = [theirs[f"gradient{position}"] for position in range(len(ours))]
    assert [value.shape for value in ours] == [value.shape for value in wanted]
    assert abs(loss - float(theirs["loss"])) < TOLERANCE * loss
    whole = float(np.linalg.norm(np.concatenate([value.ravel() for value in wanted])))
    errors = [float(np.linalg.norm(mine - other)) for mine, other in zip(ours, wanted, strict=True)]
    print(f"FIGURE gradients against torch's, {len(ours)} tensors: {float(np.linalg.norm(errors)) / whole:.1e}")
    assert float(np.linalg.norm(errors)) < TOLERANCE * whole
    # of single tensors too; but keys' biases, for one, have no gradient at all, and rounding is not measured by that
    for error, other in zip(errors, wanted, strict=True):
        assert error < TOLERANCE * max(float(np.linalg.norm(other)), 1e-6 * whole)
