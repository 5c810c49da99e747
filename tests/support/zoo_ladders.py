"""Ladders for every network of the zoo by every method, at resolutions at which a step takes a moment only."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_operator.method_words import parse_method
from hedgerow_plans.graph.ir import DType, Graph
from hedgerow_plans.methods.catalogue import Method, TinyOl
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Plan, Program
from hedgerow_plans.planning.ladder import Task, build_ladder, plan_evaluation, training_problems
from hedgerow_plans.planning.problem import DeviceCosts, Measures
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.tuning import tuned
from hedgerow_plans.verify import verify_program

BATCH = 4
COSTS = DeviceCosts(10**9, 1)
PLENTY = 2**40
SEED = 1

_WORDS = ("full", "last", "bias", "norm-last", "lora:2", "adapter:4", "lite-residual", "sparse:2", "minilearn:4")
METHODS: tuple[Method, ...] = (*map(parse_method, _WORDS), TinyOl())
"""One of each kind, small; TinyOL's has no word on the command line."""

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


CANNOT_TRAIN: dict[str, frozenset[str]] = {
    # no norm
    "norm-last": frozenset(
        {
            *("mlp", "mlp-wide", "cnn-plain", "cnn-small", "autoencoder", "minilearn-cifar", "minilearn-har"),
            *("minilearn-kws", "mobilenetv2-0.35", "mcunet-5fps", "proxylessnas-0.3", "squeezenet"),
            *("vgg11", "vgg16", "vgg19"),
        }
    ),
    # no convolution of images
    "lite-residual": frozenset(
        {"mlp", "mlp-wide", "ad-autoencoder", "autoencoder", "encoder-4x256", "bert-small", "bert-base"}
    ),
    # no convolution before the last layer, or one whose filters go into a sum or a concatenation
    "minilearn": frozenset(
        {
            *("mlp", "mlp-wide", "ad-autoencoder", "autoencoder", "encoder-4x256", "bert-small", "bert-base"),
            *("cnn-small", "resnet8", "resnet18", "resnet34", "resnet50", "squeezenet", "densenet121", "inceptionv3"),
        }
    ),
    # a convolution as the last layer
    "tinyol": frozenset({"squeezenet"}),
}
"""The networks that a method must refuse, by its name; every other pair trains."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A network and a method, its graphs as they are or tuned for speed as devices with memory to spare run them."""

    model: str
    method: Method
    tuned: bool = False

    def __str__(self) -> str:
        return f"{self.model}-{self.method.name}{'-tuned' if self.tuned else ''}"

    @property
    def trains(self) -> bool:
        """Whether the method can train the network."""
        return self.model not in CANNOT_TRAIN.get(self.method.name, ())


PAIRS = tuple(Pair(model, method) for model in REDUCED for method in METHODS)


def graph_of(model: str) -> Graph:
    """Return a network with few classes, at its reduced resolution."""
    classes = 5 if zoo.entry(model).classifies else None
    return zoo.build(model, classes, **REDUCED[model])


def ladder(pair: Pair, moves: int = 60) -> Program:
    """Return a verified program with a whole ladder; raise GraphError if the method cannot train the network.

    `moves` bounds how often strategies ask whether to go on, so that the same ladder comes out on every machine.
    """
    adapted = pair.method.apply(graph_of(pair.model)).graph
    plain = differentiate(adapted, Sgd(0.9, 1e-4), BATCH, zoo.entry(pair.model).loss)
    graphs = tuned(plain, PLENTY, BATCH) if pair.tuned else plain
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
