"""Methods that train some of the model's own parameters and add none: all, the last layer's, biases, norms.

Running statistics of a batch norm move only with `Full`; every other method leaves them, and so uses them, as they are.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods import anatomy
from hedgerow_plans.methods.adapted import Adapted, refuse, train_only


@dataclass(frozen=True, slots=True)
class Full:
    """Train every parameter."""

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "full"

    def apply(self, graph: Graph) -> Adapted:
        """Make all parameters trainable."""
        names = {tensor.name for tensor in graph.resident()}
        if not names:
            raise refuse(self.name, graph, "it has no parameters; choose another model")
        return train_only(graph, names)


@dataclass(frozen=True, slots=True)
class Last:
    """Train the weight and bias of the last layer, linear or conv2d."""

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "last"

    def apply(self, graph: Graph) -> Adapted:
        """Make the last layer's parameters trainable."""
        return train_only(graph, head(self.name, graph))


@dataclass(frozen=True, slots=True)
class Bias:
    """Train every bias: of layers, and the shift of norms."""

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "bias"

    def apply(self, graph: Graph) -> Adapted:
        """Make all biases trainable."""
        names = anatomy.biases(graph)
        if not names:
            raise refuse(self.name, graph, "no layer of it has a bias; choose last or lora")
        return train_only(graph, names)


@dataclass(frozen=True, slots=True)
class NormLast:
    """Train scale and shift of every norm, and the last layer."""

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "norm-last"

    def apply(self, graph: Graph) -> Adapted:
        """Make the norms' and the last layer's parameters trainable."""
        last = head(self.name, graph)
        norms = [node for node in anatomy.live_nodes(graph) if node.op in anatomy.NORMS]
        if not norms:
            raise refuse(self.name, graph, "it has no norm; choose last or bias")
        return train_only(graph, {*last, *(name for node in norms for name in anatomy.own_parameters(graph, node))})


def head(method: str, graph: Graph) -> tuple[str, ...]:
    """Return the parameters of the last layer, or raise a sentence."""
    return anatomy.own_parameters(graph, anatomy.last_layer(method, graph))
