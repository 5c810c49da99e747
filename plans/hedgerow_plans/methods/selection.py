"""Methods that train some of the model's own parameters and add none: all of them, or the last layer's."""

from dataclasses import dataclass

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import Adapted, MethodError, train_only


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
            raise MethodError(f"Method full cannot train {graph.name!r}: it has no parameters; choose another model.")
        return train_only(graph, names)


@dataclass(frozen=True, slots=True)
class Last:
    """Train the weight and bias of the last linear layer."""

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "last"

    def apply(self, graph: Graph) -> Adapted:
        """Make the last linear layer's parameters trainable."""
        layers = [node for node in graph.nodes if node.op == "linear"]
        if not layers:
            raise MethodError(f"Method last cannot train {graph.name!r}: it has no linear layer; choose full or lora.")
        return train_only(graph, layers[-1].inputs[1:])
