"""What arrays and nodes look like before they are given a place in the arena.

Rungs of a program differ in places alone, so this is found out once for all of them: it takes longer than binding.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow_agent.core.kernels.call import Array, stored
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Order, Tensor

_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class Form:
    """What an array in the arena looks like, wherever it lies; strides are None where they follow from the shape."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    bytes: int


def form_of(tensor: Tensor, micro_batch: int) -> Form:
    """Return the form of a tensor: its shape, with the strides of the order in which it lies."""
    shape, dtype = tensor.full_shape(micro_batch), np.dtype(tensor.dtype.value)
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in reversed(tensor.order.axes(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return Form(shape, dtype, tuple(strides), step)


@dataclass(frozen=True, slots=True)
class NodeForm:
    """What binding a node takes from the operator table: that takes as long as binding it."""

    scratch: Form
    as_stored: bool
    input_orders: tuple[Order, ...]
    output_orders: tuple[Order, ...]
    flops: int
    update_orders: tuple[Order, ...]


class Shapes:
    """What arrays and nodes of a graph look like at a micro-batch, found out once for all rungs.

    Layers of a network look alike, and so do a tensor and its gradient: what is equal is held once.
    """

    def __init__(self, graph: Graph, micro_batch: int) -> None:
        self._tensors, self._micro_batch = graph.by_name(), micro_batch
        self._nodes: dict[str, NodeForm] = {}
        self._forms: dict[str, Form] = {}
        self._equal_nodes: dict[NodeForm, NodeForm] = {}
        self._equal_forms: dict[Form, Form] = {}

    def tensor(self, name: str) -> Form:
        """Return the form of a tensor."""
        if name not in self._forms:
            form = form_of(self._tensors[name], self._micro_batch)
            self._forms[name] = self._equal_forms.setdefault(form, form)
        return self._forms[name]

    def node(self, node: Node) -> NodeForm:
        """Return the form of a node."""
        if node.name not in self._nodes:
            form = self._look_up(node)
            self._nodes[node.name] = self._equal_nodes.setdefault(form, form)
        return self._nodes[node.name]

    def stored(self, name: str, view: Array) -> Array:
        """Return a tensor's view with its axes as they lie in memory."""
        return stored(view, self._tensors[name].order)

    def _look_up(self, node: Node) -> NodeForm:
        count = table.scratch_bytes(node, self._tensors, self._micro_batch)
        flops = table.flops(node, self._tensors, self._micro_batch)
        inputs, outputs, updates = map(self._orders, (node.inputs, node.outputs, node.updates))
        scratch, as_stored = Form((count,), _BYTE, None, count), table.operator(node.op).as_stored
        return NodeForm(scratch, as_stored, inputs, outputs, flops, updates)

    def _orders(self, names: tuple[str, ...]) -> tuple[Order, ...]:
        return tuple(self._tensors[name].order for name in names)
