"""What is computed: tensors, nodes and graphs as plain values.

A graph is a list of nodes in an order that works. Every tensor is made by exactly one node, except the resident ones
(parameters and optimiser state), which survive from step to step. Shapes are static apart from the batch: a `batched`
tensor has one more axis in front, whose length is the micro-batch of the plan that runs the graph.

Data enters through nodes with op "input" (attribute "field" names the array), so that reading a sample is a step like
any other. A node that changes a tensor in place names it in `updates`. `section` says when a node runs: once before the
micro-batches of a step, in each of them, or once after the last.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

ALIGNMENT_BYTES = 64
"""Every offset in an arena is a multiple of this; a cache line, and wide enough for any vector unit."""

Attribute = int | float | str | bool | tuple[int, ...]
"""What a node may be told at plan time; floats must be finite."""


class DType(StrEnum):
    """Element types; a 1-bit mask is stored as bytes that hold eight elements each."""

    FLOAT32 = "float32"
    INT32 = "int32"
    UINT8 = "uint8"
    INT8 = "int8"

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return 4 if self in (DType.FLOAT32, DType.INT32) else 1


class Role(StrEnum):
    """How long a tensor lives, and whether training changes it."""

    TRANSIENT = "transient"  # made and freed within a step
    FROZEN = "frozen"  # a parameter that never changes
    TRAINABLE = "trainable"  # a parameter of the delta
    STATE = "state"  # the optimiser's memory of a trainable parameter


class Order(StrEnum):
    """How the axes of an array lie in memory; its shape, and what it means, are the same in every order.

    Images (samples, channels, rows, columns) may lie in the first three; a convolution's weight by samples or by taps,
    a fully connected layer's by samples or by inputs.
    """

    SAMPLES = "samples"  # as the shape says: one sample after the other
    PIXELS = "pixels"  # rows, columns, samples, channels: a pixel of all samples and channels is one run
    CHANNELS = "channels"  # channels, rows, columns, samples: a row of one channel of all samples is one run
    TAPS = "taps"  # kernel rows, kernel columns, inputs, outputs: each position of a window is one matrix
    INPUTS = "inputs"  # inputs, outputs: what all outputs take of one input is one run

    def axes(self, count: int) -> tuple[int, ...]:
        """Return the axes of an array of so many, outermost first."""
        return tuple(range(count)) if self is Order.SAMPLES else ORDERED_AXES[self]


ORDERED_AXES = {
    Order.PIXELS: (2, 3, 0, 1),
    Order.CHANNELS: (1, 2, 3, 0),
    Order.TAPS: (2, 3, 1, 0),
    Order.INPUTS: (1, 0),
}
"""Axes of arrays that lie in another order than their shape says, outermost first, those of the samples included."""


class Section(StrEnum):
    """When a node runs within one optimiser step."""

    BEGIN = "begin"  # once, before the first micro-batch
    BODY = "body"  # in every micro-batch
    FINISH = "finish"  # once, after the last micro-batch


@dataclass(frozen=True, slots=True)
class Init:
    """First values of a parameter that the weights file does not bring, drawn from the job's seed and the name.

    "kept" takes part of another parameter that the file brings: along `axis`, what belongs to the strongest filters of
    the weight `ranking`.
    """

    kind: str = "zeros"  # zeros, ones, normal, kept
    scale: float = 0.0  # standard deviation of "normal"
    source: str = ""
    ranking: str = ""
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array with a static shape, without its batch axis."""

    name: str
    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32
    batched: bool = True
    role: Role = Role.TRANSIENT
    init: Init | None = None  # None: transient, or always loaded
    order: Order = Order.SAMPLES

    @property
    def elements(self) -> int:
        """Elements of one sample, or of the whole tensor if it has no batch axis."""
        return math.prod(self.shape)

    @property
    def resident(self) -> bool:
        """Whether it survives a step."""
        return self.role is not Role.TRANSIENT

    def full_shape(self, micro_batch: int) -> tuple[int, ...]:
        """Return the shape of the array that a kernel sees."""
        return (micro_batch, *self.shape) if self.batched else self.shape

    def bytes(self, micro_batch: int) -> int:
        """Return the exact bytes, without rounding."""
        return math.prod(self.full_shape(micro_batch)) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Node:
    """One call of one operator."""

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()  # tensors changed in place; they are read as well
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    section: Section = Section.BODY

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def __reduce__(self) -> tuple[object, ...]:
        # a read-only mapping cannot be copied or sent to another process as it is
        values = (self.name, self.op, self.inputs, self.outputs, self.updates, dict(self.attributes), self.section)
        return Node, values

    @property
    def reads(self) -> tuple[str, ...]:
        """Everything that must be live when the node runs, apart from its outputs."""
        return self.inputs + self.updates


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in execution order, the tensors they speak of, and the tensors somebody outside reads at the end."""

    name: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...] = ()  # stay live until the end of the micro-batch

    def by_name(self) -> dict[str, Tensor]:
        """Return the tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    def resident(self) -> tuple[Tensor, ...]:
        """Return the tensors that survive a step, in the graph's order."""
        return tuple(tensor for tensor in self.tensors if tensor.resident)


def round_up(byte_count: int) -> int:
    """Round up to the arena's alignment."""
    return -(-byte_count // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
