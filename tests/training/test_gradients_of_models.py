"""Whole networks, every method: what an optimiser step subtracts is the gradient of the mean loss, in 64 bits."""

import numpy as np
import pytest

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory

BATCH = 4
STEP = 1e-6


def mean_loss(graphs: TrainingGraphs, arrays: dict[str, Array]) -> float:
    return float(Laboratory(BATCH).run_graph(graphs.evaluate, dict(arrays))["losses"].sum()) / BATCH


@pytest.mark.parametrize("variant", ["direct", "accumulating"])
@pytest.mark.parametrize("method", [Full(), Last(), Lora(2, 3.0)], ids=lambda method: method.name)
@pytest.mark.parametrize("model", ["cnn-small", "mlp"])
def test_a_step_subtracts_the_gradient(model: str, method: Method, variant: str) -> None:
    graphs = differentiate(method.apply(zoo.build(model)).graph, Sgd(), BATCH)
    rng = np.random.default_rng(5)
    arrays: dict[str, Array] = {
        tensor.name: 0.3 * rng.standard_normal(tensor.shape) for tensor in graphs.direct.resident()
    }
    arrays["x"] = rng.standard_normal((BATCH, *zoo.entry(model).input_shape))
    arrays["labels"] = rng.integers(0, zoo.entry(model).classes, BATCH, dtype=np.int32)
    after = {name: value.copy() for name, value in arrays.items()}
    Laboratory(BATCH).run_graph(getattr(graphs, variant), after)
    moved = {
        name for name in arrays if name in graphs.direct.by_name() and not np.array_equal(after[name], arrays[name])
    }
    assert moved == set(graphs.delta)
    for name in graphs.delta:
        gradient = arrays[name] - after[name]
        direction = rng.standard_normal(gradient.shape)
        sides = [mean_loss(graphs, {**arrays, name: arrays[name] + sign * STEP * direction}) for sign in (1.0, -1.0)]
        slope = (sides[0] - sides[1]) / (2 * STEP)
        scale = float(np.abs(gradient * direction).sum())
        assert scale > 0
        assert abs(float((gradient * direction).sum()) - slope) < 1e-6 * max(scale, 1e-2)
