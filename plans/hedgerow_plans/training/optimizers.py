"""Optimiser settings, and the nodes and state that an update with them needs.

The learning rate is not among them: the executor brings it at run time, so that it may change without a new plan.
Weight decay applies to every trained tensor alike, biases too. How many steps Adam's moments have seen is state like
the moments themselves, so that whoever keeps or drops one keeps or drops both.
"""

import math
from dataclasses import dataclass

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Init, Node, Role, Section, Tensor
from hedgerow_plans.graph.ops.adaptive import blocks_of

STATE_PREFIXES = ("velocity.", "moment1.", "moment2.", "scale1.", "scale2.", "steps.")
"""What the names of optimiser state begin with."""

UPDATE_PREFIXES = ("sgd.", "adam.", "adam8bit.", "count.")
"""What the names of update nodes begin with."""


def _state(
    prefix: str, parameter: Tensor, dtype: DType = DType.FLOAT32, shape: tuple[int, ...] | None = None
) -> Tensor:
    shape = parameter.shape if shape is None else shape
    return Tensor(f"{prefix}.{parameter.name}", shape, dtype, batched=False, role=Role.STATE, init=Init("zeros"))


@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent: v = momentum * v + (g + weight_decay * p); p -= learning_rate * v."""

    momentum: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise GraphError(f"sgd has momentum {self.momentum}; give it a number from 0 to below 1.")
        _check_decay("sgd", self.weight_decay)

    @property
    def name(self) -> str:
        """Return the optimiser's name in a TrainingJob."""
        return "sgd"

    def shared_state(self) -> tuple[Tensor, ...]:
        """Return what survives between steps and belongs to no parameter: nothing."""
        return ()

    def state(self, parameter: Tensor) -> tuple[Tensor, ...]:
        """Return what must survive between the updates of a parameter: nothing without momentum."""
        return (_state("velocity", parameter),) if self.momentum else ()

    def update(self, parameter: Tensor, gradient: str, section: Section) -> Node:
        """Return the node that changes a parameter in place."""
        updates = (parameter.name, *(tensor.name for tensor in self.state(parameter)))
        attributes = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        return Node(f"sgd.{parameter.name}", "sgd", (gradient,), (), updates, attributes, section)

    def after_updates(self, section: Section) -> tuple[Node, ...]:  # noqa: ARG002 - the same call for every optimiser
        """Return what runs once after the last update of a step: nothing."""
        return ()


_STEPS = Tensor("steps.adam", (), DType.INT32, batched=False, role=Role.STATE, init=Init("zeros"))


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam with decoupled weight decay: p -= learning_rate * (m / (sqrt(v) + epsilon) + weight_decay * p).

    m and v are means of the gradient and of its square that forget by beta1 and beta2, corrected for starting at zero.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise GraphError(f"{self.name} has {name} {getattr(self, name)}; give it a number from 0 to below 1.")
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise GraphError(f"{self.name} has epsilon {self.epsilon}; give it a finite number above 0.")
        _check_decay(self.name, self.weight_decay)

    @property
    def name(self) -> str:
        """Return the optimiser's name in a TrainingJob; it is that of its operator too."""
        return "adam"

    def shared_state(self) -> tuple[Tensor, ...]:
        """Return what survives between steps and belongs to no parameter: how many steps were taken."""
        return (_STEPS,)

    def state(self, parameter: Tensor) -> tuple[Tensor, ...]:
        """Return the two moments of a parameter's gradient."""
        return _state("moment1", parameter), _state("moment2", parameter)

    def update(self, parameter: Tensor, gradient: str, section: Section) -> Node:
        """Return the node that changes a parameter in place."""
        updates = (parameter.name, *(tensor.name for tensor in self.state(parameter)))
        attributes = {
            "beta1": self.beta1,
            "beta2": self.beta2,
            "epsilon": self.epsilon,
            "weight_decay": self.weight_decay,
        }
        inputs = (gradient, _STEPS.name)
        return Node(f"{self.name}.{parameter.name}", self.name, inputs, (), updates, attributes, section)

    def after_updates(self, section: Section) -> tuple[Node, ...]:
        """Return what runs once after the last update of a step: counting it."""
        return (Node(f"count.{_STEPS.name}", "count", (), (), (_STEPS.name,), section=section),)


@dataclass(frozen=True, slots=True)
class Adam8bit(Adam):
    """Adam whose moments are kept in eight bits each, with one scale for every block of 256 elements."""

    @property
    def name(self) -> str:
        """Return the optimiser's name in a TrainingJob; it is that of its operator too."""
        return "adam8bit"

    def state(self, parameter: Tensor) -> tuple[Tensor, ...]:
        """Return codes and scales of the two moments."""
        blocks = (blocks_of(parameter.elements),)
        return (
            _state("moment1", parameter, DType.INT8),
            _state("scale1", parameter, shape=blocks),
            _state("moment2", parameter, DType.UINT8),
            _state("scale2", parameter, shape=blocks),
        )


Optimizer = Sgd | Adam | Adam8bit
"""What a TrainingJob may ask for."""


def state_bytes(optimizer: Optimizer, parameters: tuple[Tensor, ...]) -> int:
    """Return the exact bytes of state that an optimiser keeps for parameters, without rounding."""
    own = sum(tensor.bytes(1) for parameter in parameters for tensor in optimizer.state(parameter))
    return own + sum(tensor.bytes(1) for tensor in optimizer.shared_state())


def _check_decay(name: str, weight_decay: float) -> None:
    if not (math.isfinite(weight_decay) and weight_decay >= 0):
        raise GraphError(f"{name} has weight decay {weight_decay}; give it a finite number of at least 0.")
