"""Optimiser settings, and the nodes and state that an update with them needs.

The learning rate is not among them: the executor brings it at run time, so that it may change without a new plan.
Weight decay applies to every trained tensor alike, biases too.
"""

import math
from dataclasses import dataclass

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Init, Node, Role, Section, Tensor


@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent: v = momentum * v + (g + weight_decay * p); p -= learning_rate * v."""

    momentum: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise GraphError(f"sgd has momentum {self.momentum}; give it a number from 0 to below 1.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise GraphError(f"sgd has weight decay {self.weight_decay}; give it a finite number of at least 0.")

    def state(self, parameter: Tensor) -> tuple[Tensor, ...]:
        """Return what must survive between the updates of a parameter: nothing without momentum."""
        if not self.momentum:
            return ()
        name = f"velocity.{parameter.name}"
        return (Tensor(name, parameter.shape, batched=False, role=Role.STATE, init=Init("zeros")),)

    def update(self, parameter: Tensor, gradient: str, section: Section) -> Node:
        """Return the node that changes a parameter in place."""
        updates = (parameter.name, *(tensor.name for tensor in self.state(parameter)))
        attributes = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        return Node(f"sgd.{parameter.name}", "sgd", (gradient,), (), updates, attributes, section)
