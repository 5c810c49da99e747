"""What a row of the operator table is made of: signature, shape rule, cost and backward rule.

A rule sees a `Call`: the node with its tensors looked up and its attributes checked, so that rules hold nothing but
their own arithmetic. Kernels are not here; the training core looks them up by the operator's name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, DType, Node, Order, Tensor

MAXIMUM_DIMENSION = 2**31 - 1
"""Longest axis and largest integer attribute; what an int32 index reaches."""

MAXIMUM_NUMBER = 3.4e38
"""Largest magnitude of a number attribute; what a float32 reaches."""

MAXIMUM_RANK = 8
"""Most axes of a tensor without its batch axis."""

Tensors = Mapping[str, Tensor]
Shape = tuple[int, ...]


class Kind(StrEnum):
    """What an attribute holds."""

    INTEGER = "an integer"
    NUMBER = "a finite number"
    PAIR = "an integer, or two for rows and columns"
    INTEGERS = "a list of integers"
    SHAPE = "a list of dimensions"
    FLAG = "true or false"
    TEXT = "a text"


@dataclass(frozen=True, slots=True)
class AttributeRule:
    """What an operator accepts under one attribute name."""

    kind: Kind
    default: Attribute | None = None  # None: it must be given
    minimum: int = 1  # of each integer; every dimension is at least 1
    choices: tuple[str, ...] = ()  # of a text


@dataclass(frozen=True, slots=True)
class Call:
    """One node with its tensors looked up; `outputs` is empty while shapes are being inferred."""

    node: Node
    inputs: tuple[Tensor, ...]
    updates: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    attributes: Mapping[str, Attribute]  # defaults filled in
    micro_batch: int = 1

    def integer(self, name: str) -> int:
        """Return an integer attribute."""
        return int(self._attribute(name))

    def number(self, name: str) -> float:
        """Return a floating point attribute."""
        return float(self._attribute(name))

    def pair(self, name: str) -> tuple[int, int]:
        """Return an attribute for rows and columns; one integer stands for both."""
        value = self.attributes[name]
        return as_pair(value if isinstance(value, tuple) else self.integer(name))

    def flag(self, name: str) -> bool:
        """Return an attribute that is true or false."""
        return self.attributes[name] is True

    def shape(self, name: str = "shape") -> Shape:
        """Return an attribute that is a shape."""
        value = self.attributes[name]
        if not isinstance(value, tuple):
            raise self.error(f"attribute {name!r} is {value!r}, not a list of dimensions")
        return value

    def error(self, problem: str) -> GraphError:
        """Return an error that begins with the node and its operator."""
        return GraphError(f"Node {self.node.name!r} ({self.node.op}): {problem}.")

    def require(self, condition: bool, problem: str) -> None:
        """Raise the problem unless the condition holds."""
        if not condition:
            raise self.error(problem)

    def output(self, index: int, shape: Shape, dtype: DType = DType.FLOAT32, batched: bool = True) -> Tensor:
        """Return an inferred output, named as the node names it."""
        return Tensor(self.node.outputs[index], shape, dtype, batched)

    def samples(self, tensor: Tensor) -> int:
        """Return the elements of all samples of a micro-batch."""
        return math.prod(tensor.full_shape(self.micro_batch))

    def _attribute(self, name: str) -> int | float:
        value = self.attributes[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"attribute {name!r} is {value!r}, not a number")
        return value


@dataclass(frozen=True, slots=True)
class Backward:
    """What a backward rule is asked: the gradient of one input of `node`, as a tensor called `result`."""

    node: Node
    tensors: Tensors
    gradient: str  # of the node's first output; empty for a loss
    result: str
    batch_size: int  # of the whole step, whatever the micro-batch
    gradients: tuple[str, ...] = ()  # of every output, empty where nobody reads it

    def input(self, position: int) -> Tensor:
        """Return one of the node's inputs."""
        return self.tensors[self.node.inputs[position]]

    def call(self, op: str, inputs: tuple[str, ...], attributes: Mapping[str, Attribute] | None = None) -> Node:
        """Return the node that makes the gradient."""
        return Node(self.result, op, inputs, (self.result,), attributes=attributes or {})


BackwardRule = Callable[[Backward], Node | None]
"""Makes the node that computes an input's gradient; None says that it equals the output's."""


def as_pair(value: int | tuple[int, ...]) -> tuple[int, int]:
    """Return the values for rows and columns of an attribute that may be one integer for both."""
    rows, columns = value if isinstance(value, tuple) else (value, value)
    return rows, columns


def no_cost(_call: Call) -> int:
    """Return 0: no arithmetic, or no scratch."""
    return 0


def in_order_of_samples(call: Call) -> None:
    """Raise a sentence unless everything lies as its shape says."""
    for tensor in (*call.inputs, *call.updates, *call.outputs):
        problem = f"{tensor.name!r} lies in the order of {tensor.order.value}, which it cannot work with; reorder it"
        call.require(tensor.order is Order.SAMPLES, problem)


def always(_node: Node) -> bool:
    """Return True: every node of the operator saves."""
    return True


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of the table."""

    name: str
    infer: Callable[[Call], tuple[Tensor, ...]]
    inputs: tuple[int, int] = (1, 1)  # fewest and most
    outputs: tuple[int, int] = (1, 1)
    updates: tuple[int, int] = (0, 0)
    attributes: Mapping[str, AttributeRule] = field(default_factory=dict)
    flops: Callable[[Call], int] = no_cost  # additions and multiplications count one each
    scratch_bytes: Callable[[Call], int] = no_cost
    backward: tuple[BackwardRule | None, ...] = ()  # one per input; None: no gradient there; empty: no backward at all
    saved: str = ""  # prefix of the second output, made only when the backward is wanted
    saves: Callable[[Node], bool] = always  # which nodes make it, if an attribute decides
    check_orders: Callable[[Call], None] = in_order_of_samples  # raises a sentence about how tensors lie
    as_stored: bool = False  # its kernel is given arrays as they lie in memory, whatever their shape says


def describe(shape: Shape) -> str:
    """Return a shape as people write it."""
    return "[" + ", ".join(map(str, shape)) + "]"
