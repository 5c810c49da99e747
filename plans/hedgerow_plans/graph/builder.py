"""A short way to write a forward graph: each call adds a node, infers its shapes and returns its output's name.

A node's output is named like the node; a layer's parameters are `<layer>.weight` and `<layer>.bias`. Parameters start
frozen: what is trained is a method's decision.
"""

import math
import zlib

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, Graph, Init, Node, Role, Tensor
from hedgerow_plans.graph.operator import as_pair

Pair = int | tuple[int, int]
"""A size for rows and columns; one integer stands for both."""

RELU_GAIN = 2.0
"""Variance gain of a layer that is followed by a relu (He initialisation)."""


def fan_in_init(weight_shape: tuple[int, ...], gain: float) -> Init:
    """Return normal first values that keep the variance of what passes through a layer."""
    return Init("normal", math.sqrt(gain / math.prod(weight_shape[1:])))


class Builder:
    """Collects tensors and nodes; `graph` returns them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parameters: dict[str, Tensor] = {}
        self._tensors: dict[str, Tensor] = {}
        self._nodes: list[Node] = []

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor made so far."""
        return self._tensors[tensor].shape

    def parameter(self, name: str, shape: tuple[int, ...], init: Init) -> str:
        """Add a frozen parameter."""
        self._add(Tensor(name, shape, batched=False, role=Role.FROZEN, init=init))
        self._parameters[name] = self._tensors[name]
        return name

    def node(self, name: str, op: str, inputs: tuple[str, ...] = (), **attributes: Attribute) -> str:
        """Add any node with one output."""
        return self._node(Node(name, op, inputs, (name,), attributes=attributes))

    def input(self, shape: tuple[int, ...], name: str = "x") -> str:
        """Add the node that reads samples."""
        return self.node(name, "input", field="x", shape=shape)

    def tokens(self, count: int, name: str = "x") -> str:
        """Add the node that reads samples that are sequences of tokens."""
        return self.node(name, "input", field="x", shape=(count,), dtype="int32")

    def linear(self, name: str, x: str, outputs: int, gain: float = RELU_GAIN) -> str:
        """Add a fully connected layer with a bias, applied to each token of a sequence."""
        shape = (outputs, *self.shape(x)[-1:])
        return self.node(name, "linear", (x, *self._layer(name, shape, gain)))

    def conv2d(
        self, name: str, x: str, outputs: int, *, kernel: Pair = 3, stride: Pair = 1, padding: Pair = 1, groups: int = 1
    ) -> str:
        """Add a convolution with a bias; a pair is for rows and columns."""
        shape = (outputs, self.shape(x)[0] // groups, *as_pair(kernel))
        inputs = (x, *self._layer(name, shape, RELU_GAIN))
        return self.node(name, "conv2d", inputs, stride=stride, padding=padding, groups=groups)

    def relu(self, name: str, x: str) -> str:
        """Add a rectifier."""
        return self.node(name, "relu", (x,))

    def activation(self, name: str, x: str, op: str) -> str:
        """Add an activation by its operator: relu, relu6, hswish, sigmoid, tanh, gelu or silu."""
        return self.node(name, op, (x,))

    def batch_norm(
        self, name: str, x: str, *, epsilon: float = 1e-5, momentum: float = 0.1, statistics: str = "batch"
    ) -> str:
        """Add a batch norm; with statistics "running" its running ones are never trained, whatever the method."""
        shape = self.shape(x)[:1]
        mean = self.parameter(f"{name}.running_mean", shape, Init("zeros"))
        variance = self.parameter(f"{name}.running_var", shape, Init("ones"))
        inputs = (x, *self._norm(name, shape), mean, variance)
        return self.node(name, "batch_norm", inputs, epsilon=epsilon, momentum=momentum, statistics=statistics)

    def layer_norm(self, name: str, x: str, *, axes: int = 1, epsilon: float = 1e-5) -> str:
        """Add a layer norm over the last axes."""
        return self.node(name, "layer_norm", (x, *self._norm(name, self.shape(x)[-axes:])), epsilon=epsilon)

    def rms_norm(self, name: str, x: str, *, axes: int = 1, epsilon: float = 1e-6) -> str:
        """Add an RMS norm over the last axes; it has a weight alone."""
        weight = self.parameter(f"{name}.weight", self.shape(x)[-axes:], Init("ones"))
        return self.node(name, "rms_norm", (x, weight), epsilon=epsilon)

    def group_norm(self, name: str, x: str, groups: int, *, epsilon: float = 1e-5) -> str:
        """Add a group norm over channels."""
        return self.node(name, "group_norm", (x, *self._norm(name, self.shape(x)[:1])), groups=groups, epsilon=epsilon)

    def weight_standardisation(self, name: str, weight: str, *, epsilon: float = 1e-5) -> str:
        """Add the weight with mean 0 and deviation 1 for each of its outputs."""
        return self.node(name, "weight_standardisation", (weight,), epsilon=epsilon)

    def mul(self, name: str, first: str, second: str) -> str:
        """Add a product element by element."""
        return self.node(name, "mul", (first, second))

    def dropout(self, name: str, x: str, rate: float) -> str:
        """Add dropout, or nothing at rate 0; each layer draws from its own name."""
        if rate == 0:
            return x
        return self.node(name, "dropout", (x,), rate=rate, seed=zlib.crc32(name.encode()) >> 1)

    def max_pool2d(
        self,
        name: str,
        x: str,
        kernel: Pair = 2,
        *,
        stride: Pair | None = None,
        padding: Pair = 0,
        rounding: str = "down",
    ) -> str:
        """Add pooling that keeps the largest element, over windows that do not overlap unless a stride is given."""
        return self.node(name, "max_pool2d", (x,), kernel=kernel, **_window(stride or kernel, padding, rounding))

    def avg_pool2d(
        self,
        name: str,
        x: str,
        kernel: Pair = 2,
        *,
        stride: Pair | None = None,
        padding: Pair = 0,
        rounding: str = "down",
    ) -> str:
        """Add pooling that keeps the mean; padding counts as zeros."""
        return self.node(name, "avg_pool2d", (x,), kernel=kernel, **_window(stride or kernel, padding, rounding))

    def global_avg_pool(self, name: str, x: str) -> str:
        """Add the mean of each channel of an image."""
        return self.node(name, "global_avg_pool", (x,))

    def upsample_bilinear(self, name: str, x: str, size: tuple[int, int], corners: str = "halved") -> str:
        """Add an interpolation to so many rows and columns."""
        return self.node(name, "upsample_bilinear", (x,), size=size, corners=corners)

    def concat(self, name: str, *parts: str, axis: int = 0) -> str:
        """Add the join of tensors along an axis, counted without the batch axis."""
        return self.node(name, "concat", parts, axis=axis)

    def split(self, name: str, x: str, *sizes: int, axis: int = 0) -> tuple[str, ...]:
        """Add a cut into parts of the given lengths, called `<name>.0` and so on; every part must be used."""
        outputs = tuple(f"{name}.{number}" for number in range(len(sizes)))
        self._node(Node(name, "split", (x,), outputs, attributes={"axis": axis, "sizes": sizes}))
        return outputs

    def slice(self, name: str, x: str, start: tuple[int, ...], shape: tuple[int, ...]) -> str:
        """Add a part of a tensor or parameter, from `start` on along every axis."""
        return self.node(name, "slice", (x,), start=start, shape=shape)

    def select(self, name: str, x: str, index: int = 0) -> str:
        """Add one element of the first axis, such as the first token of a sequence."""
        rest = self.shape(x)[1:]
        part = self.slice(f"{name}.part", x, (index, *(0 for _ in rest)), (1, *rest))
        return self.node(name, "reshape", (part,), shape=rest)

    def pad(self, name: str, x: str, before: tuple[int, ...], after: tuple[int, ...], value: float = 0.0) -> str:
        """Add a border, so many elements before and after along every axis."""
        return self.node(name, "pad", (x,), before=before, after=after, value=value)

    def transpose(self, name: str, x: str, *axes: int) -> str:
        """Add another order of the axes, counted without the batch axis."""
        return self.node(name, "transpose", (x,), axes=axes)

    def softmax(self, name: str, x: str) -> str:
        """Add a softmax over the last axis."""
        return self.node(name, "softmax", (x,))

    def matmul(
        self, name: str, first: str, second: str, *, transpose_first: bool = False, transpose_second: bool = False
    ) -> str:
        """Add a product of two matrices of each sample."""
        flags = {"transpose_first": transpose_first, "transpose_second": transpose_second}
        return self.node(name, "matmul", (first, second), **flags)

    def embedding(self, name: str, tokens: str, rows: int, width: int, scale: float = 0.02) -> str:
        """Add a table with a row for each token of the vocabulary."""
        weight = self.parameter(f"{name}.weight", (rows, width), Init("normal", scale))
        return self.node(name, "embedding", (tokens, weight))

    def add_parameter(self, name: str, x: str, parameter: str) -> str:
        """Add the sum of every sample (or of its last axes) and a parameter, such as the positions of tokens."""
        return self.node(name, "add_parameter", (x, parameter))

    def attention(self, name: str, queries: str, keys: str, values: str, heads: int) -> str:
        """Add multi-head attention without its four projections."""
        return self.node(name, "multi_head_attention", (queries, keys, values), heads=heads)

    def flatten(self, name: str, x: str) -> str:
        """Add a reshape to one axis per sample, unless there is only one."""
        if len(self.shape(x)) == 1:
            return x
        return self.node(name, "reshape", (x,), shape=(math.prod(self.shape(x)),))

    def add(self, name: str, first: str, second: str, scale: float = 1.0) -> str:
        """Add a sum of two tensors, the second one scaled."""
        return self.node(name, "add", (first, second), scale=scale)

    def graph(self, *outputs: str) -> Graph:
        """Return the graph, parameters first."""
        transients = (tensor for name, tensor in self._tensors.items() if name not in self._parameters)
        return Graph(self._name, (*self._parameters.values(), *transients), tuple(self._nodes), outputs)

    def _node(self, node: Node) -> str:
        for tensor in table.infer(node, self._tensors):
            self._add(tensor)
        self._nodes.append(node)
        return node.name

    def _layer(self, name: str, weight_shape: tuple[int, ...], gain: float) -> tuple[str, str]:
        weight = self.parameter(f"{name}.weight", weight_shape, fan_in_init(weight_shape, gain))
        return weight, self.parameter(f"{name}.bias", weight_shape[:1], Init("zeros"))

    def _norm(self, name: str, shape: tuple[int, ...]) -> tuple[str, str]:
        return self.parameter(f"{name}.weight", shape, Init("ones")), self.parameter(
            f"{name}.bias", shape, Init("zeros")
        )

    def _add(self, tensor: Tensor) -> None:
        if tensor.name in self._tensors:
            raise GraphError(f"Graph {self._name!r} has two tensors called {tensor.name!r}; rename one of them.")
        self._tensors[tensor.name] = tensor


def _window(stride: Pair, padding: Pair, rounding: str) -> dict[str, Attribute]:
    """Return the attributes of pooling, without those that are at their default."""
    attributes: dict[str, Attribute] = {"stride": stride}
    if padding != 0:
        attributes["padding"] = padding
    if rounding != "down":
        attributes["rounding"] = rounding
    return attributes
