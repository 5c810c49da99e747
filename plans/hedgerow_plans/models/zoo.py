"""The zoo: forward graphs by the name a TrainingJob gives them.

Every model reads samples into `x` and ends in a tensor called `logits`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.convolutional import cnn_small
from hedgerow_plans.models.perceptron import mlp

DEFAULT_INPUT_SHAPE = (1, 8, 8)
"""One grey image of the handwritten digits that ship with scikit-learn."""

DEFAULT_CLASSES = 10

_ZOO: Mapping[str, Callable[[int, tuple[int, ...]], Graph]] = MappingProxyType({"mlp": mlp, "cnn-small": cnn_small})


class UnknownModelError(GraphError):
    """The zoo has no model of that name."""


def names() -> tuple[str, ...]:
    """Return what `build` knows, sorted."""
    return tuple(sorted(_ZOO))


def build(name: str, classes: int = DEFAULT_CLASSES, input_shape: tuple[int, ...] = DEFAULT_INPUT_SHAPE) -> Graph:
    """Return a model of the zoo for samples of a shape and a number of classes."""
    if name not in _ZOO:
        raise UnknownModelError(f"There is no model {name!r} in the zoo; known are {', '.join(names())}.")
    if classes < 2:
        raise GraphError(f"Model {name!r} cannot tell {classes} classes apart; give it at least 2.")
    return _ZOO[name](classes, input_shape)
