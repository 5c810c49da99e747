"""Ladders for every network of the zoo by every method, at resolutions at which a step takes a moment only."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Graph
from hedgerow_plans.methods.catalogue import (
    Adapter,
    Bias,
    Full,
    Last,
    LiteResidual,
    Lora,
    Method,
    MiniLearn,
    NormLast,
    Sparse,
    TinyOl,
)
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Plan, Program
from hedgerow_plans.planning.ladder import Task, build_ladder, plan_evaluation, training_problems
from hedgerow_plans.planning.problem import DeviceCosts, Measures
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify_program

BATCH = 4
COSTS = DeviceCosts(10**9, 1)
PLENTY = 2**40
SEED = 1

METHODS: tuple[Method, ...] = (
    Full(),
    Last(),
    Bias(),
    NormLast(),
    Lora(2),
    Adapter(4),
    LiteResidual(),
    Sparse(2),
    MiniLearn(4),
    TinyOl(),
)

REDUCED: dict[str, dict[str, Any]] = {
    "mlp": {},
    "mlp-wide": {},
    "cnn-plain": {"input_shape": (3, 16, 16)},
    "mobilenetv2-0.35-norms": {"input_shape": (3, 32, 32)},
    "cnn-small": {},
    "resnet8": {"input_shape": (3, 16, 16)},
    "ds-cnn": {"input_shape": (1, 20, 10)},
    "mobilenetv1-0.25": {"input_shape": (3, 32, 32)},
    "ad-autoencoder": {"input_shape": (64,)},
    "autoencoder": {},
    "minilearn-cifar": {},
    "minilearn-har": {"input_shape": (12, 3, 1)},
    "minilearn-kws": {},
    "mobilenetv2-0.35": {"input_shape": (3, 32, 32)},
    "mcunet-5fps": {"input_shape": (3, 32, 32)},
    "proxylessnas-0.3": {"input_shape": (3, 32, 32)},
    "squeezenet": {"input_shape": (3, 32, 32)},
    "mobilenetv1": {"input_shape": (3, 32, 32)},
    "mobilenetv2": {"input_shape": (3, 32, 32)},
    "proxylessnas-mobile": {"input_shape": (3, 32, 32)},
    "densenet121": {"input_shape": (3, 32, 32)},
    "inceptionv3": {"input_shape": (3, 75, 75)},
    "resnet18": {"input_shape": (3, 32, 32)},
    "resnet34": {"input_shape": (3, 32, 32)},
    "resnet50": {"input_shape": (3, 32, 32)},
    "vgg11": {"input_shape": (3, 32, 32)},
    "vgg16": {"input_shape": (3, 32, 32)},
    "vgg19": {"input_shape": (3, 32, 32)},
    "encoder-4x256": {"input_shape": (16,)},
    "bert-small": {"input_shape": (16,)},
    "bert-base": {"input_shape": (8,)},
}
"""Every network with its own width and depth; samples that are small where its own are large."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A network and a method."""

    model: str
    method: Method

    def __str__(self) -> str:
        return f"{self.model}-{self.method.name}"


PAIRS = tuple(Pair(model, method) for model in REDUCED for method in METHODS)


def graph_of(model: str) -> Graph:
    """Return a network with few classes, at its reduced resolution."""
    classes = 5 if zoo.entry(model).classifies else None
    return zoo.build(model, classes, **REDUCED[model])


def ladder(pair: Pair, moves: int = 2000) -> Program | str:
    """Return a verified program with a whole ladder, or why the method cannot train the network.

    `moves` bounds how often strategies ask whether to go on, so that the same ladder comes out on every machine.
    """
    graph = graph_of(pair.model)
    try:
        adapted = pair.method.apply(graph).graph
        graphs = differentiate(adapted, Sgd(0.9, 1e-4), BATCH, zoo.entry(pair.model).loss)
    except GraphError as problem:
        return str(problem)
    calls = iter(range(moves))
    limits = Limits(PLENTY, SEED, lambda: next(calls, None) is not None)
    residents = place_residents(graphs.all())
    task = Task(residents, COSTS, BATCH, Measures())
    rungs = build_ladder(training_problems(task, graphs.direct, graphs.in_pieces), limits)
    assert isinstance(rungs, tuple)
    evaluation = plan_evaluation(task, graphs.evaluate, Limits(rungs[-1].promise.peak_bytes, SEED))
    if not isinstance(evaluation, Plan):
        rungs, evaluation = _with_room_to_judge(task, graphs.evaluate, rungs)
    program = Program(
        model=pair.model,
        method=pair.method.name,
        device_class="test",
        batch_size=BATCH,
        graphs=graphs.all(),
        delta=graphs.delta,
        resident=residents.placements,
        resident_bytes=residents.bytes,
        mapped=(),
        rungs=rungs,
        evaluation=evaluation,
    )
    assert verify_program(program) == ()
    return program


def _with_room_to_judge(task: Task, graph: Graph, rungs: tuple[Plan, ...]) -> tuple[tuple[Plan, ...], Plan]:
    """Leave out the rungs below which no evaluation fits."""
    for count in range(len(rungs) - 1, 0, -1):
        evaluation = plan_evaluation(task, graph, Limits(rungs[count - 1].promise.peak_bytes, SEED))
        if isinstance(evaluation, Plan):
            return rungs[:count], evaluation
    raise AssertionError("No rung leaves room to evaluate.")


def weights_of(model: str) -> dict[str, Array]:
    """Return first values for all of a network's own parameters, as a weights file would."""
    return {tensor.name: initial_value(tensor, SEED) for tensor in graph_of(model).resident()}


def batch_of(model: str) -> tuple[Array, Array]:
    """Return samples and labels for one step."""
    rng, x = np.random.default_rng(3), graph_of(model).by_name()["x"]
    labels = rng.integers(0, 5, BATCH, dtype=np.int32)
    if x.dtype is DType.INT32:
        return rng.integers(0, 50, (BATCH, *x.shape), dtype=np.int32), labels
    return rng.standard_normal((BATCH, *x.shape)).astype(np.float32), labels
