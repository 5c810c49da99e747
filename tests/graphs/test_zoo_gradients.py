"""Networks of the zoo, shrunk, run through the real kernels in 64 bits: what a step subtracts is their gradient."""

from typing import Any

import numpy as np
import pytest

from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import DType, Graph
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.models.bert import Encoder, bert
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory

BATCH = 3
STEP = 1e-8  # deep rectified networks have kinks close by, and 64 bits leave room
CLASSES = 5

SHRUNK: dict[str, dict[str, Any]] = {
    "vgg11": {"input_shape": (3, 32, 32), "width": 1 / 16},
    "resnet18": {"input_shape": (3, 64, 48), "width": 1 / 16},
    "resnet50": {"input_shape": (3, 64, 48), "width": 1 / 16},
    "densenet121": {"input_shape": (3, 64, 64), "growth": 2},
    "inceptionv3": {"input_shape": (3, 107, 107), "width": 1 / 32},
    "squeezenet": {"input_shape": (3, 48, 48), "width": 1 / 8},
    "mobilenetv1": {"input_shape": (3, 64, 64), "width": 1 / 16},
    "mobilenetv2": {"input_shape": (3, 64, 64), "width": 1 / 8},
    "proxylessnas-mobile": {"input_shape": (3, 64, 64), "width": 1 / 8},
    "mobilenetv2-0.35": {"input_shape": (3, 32, 32)},
    "proxylessnas-0.3": {"input_shape": (3, 32, 32)},
    "mcunet-5fps": {"input_shape": (3, 32, 32)},
    "resnet8": {"input_shape": (3, 16, 16), "width": 0.5},
    "ds-cnn": {"input_shape": (1, 20, 10), "width": 0.25},
    "mobilenetv1-0.25": {"input_shape": (3, 64, 64)},
    "ad-autoencoder": {"input_shape": (24,)},
    "autoencoder": {"input_shape": (3, 8)},
    "minilearn-cifar": {"input_shape": (3, 32, 32)},
    "minilearn-har": {"input_shape": (9, 3, 1)},
    "minilearn-kws": {"input_shape": (1, 62, 12)},
}


def arrays_for(graph: Graph, rng: np.random.Generator) -> dict[str, Array]:
    """Return samples, labels and first values, a little off: a rectifier of a bias that is 0 stands on its kink."""
    arrays: dict[str, Array] = {
        tensor.name: initial_value(tensor, seed=1) + 0.05 * rng.standard_normal(tensor.shape)
        for tensor in graph.resident()
    }
    x = graph.by_name()["x"]
    if x.dtype is DType.INT32:
        arrays["x"] = rng.integers(0, 50, (BATCH, *x.shape), dtype=np.int32)
    else:
        arrays["x"] = rng.standard_normal((BATCH, *x.shape))
    arrays["labels"] = rng.integers(0, CLASSES, BATCH, dtype=np.int32)
    return arrays


def mean_loss(graphs: TrainingGraphs, arrays: dict[str, Array], changes: dict[str, Array]) -> float:
    """Return the loss in training, with parameters changed; nothing given is changed itself."""
    moved = {name: value + changes[name] if name in changes else value.copy() for name, value in arrays.items()}
    return float(Laboratory(BATCH).run_graph(graphs.direct, moved)["losses"].mean())


@pytest.mark.parametrize("name", SHRUNK)
def test_a_step_subtracts_the_gradient_of_a_shrunken_network(name: str) -> None:
    check_step(zoo.build(name, CLASSES, **SHRUNK[name]), zoo.entry(name).loss)


def test_a_step_subtracts_the_gradient_of_a_small_encoder() -> None:
    check_step(bert(CLASSES, (6,), Encoder(layers=2, width=16, heads=2, vocabulary=50, positions=8)), "cross_entropy")


def check_step(graph: Graph, loss: str) -> None:
    """Compare the slope of the loss along the step, over all parameters at once, with minus the square of the step."""
    graphs = differentiate(Full().apply(graph).graph, Sgd(), BATCH, loss)
    arrays = arrays_for(graphs.direct, np.random.default_rng(3))
    after = {key: value.copy() for key, value in arrays.items()}
    Laboratory(BATCH).run_graph(graphs.direct, after)
    updated = [key for node in graphs.direct.nodes if node.op == "sgd" for key in node.updates]
    step = {key: after[key] - arrays[key] for key in updated}
    square = sum(float((change**2).sum()) for change in step.values())
    assert square > 0
    scale = STEP / square**0.5
    ahead, behind = (
        mean_loss(graphs, arrays, {key: sign * scale * change for key, change in step.items()}) for sign in (1, -1)
    )
    assert (ahead - behind) / (2 * scale) == pytest.approx(-square, rel=1e-6)
