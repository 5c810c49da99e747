"""Run single nodes and whole graphs without an arena, in 32 or 64 bits, on arrays of their own.

Outputs and scratch start as rubbish, so that a kernel that leaves a hole is found out. This is a second, slow way
through the kernels: no plan, no offsets, every tensor kept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Bound, Call, Rows, Runtime, stored
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import DType, Graph, Node, Section, Tensor
from hedgerow_plans.graph.operator import Backward

GUARD_BYTES = 64
SAMPLES = ("x", "labels")
"""The names under which nodes find what they read of the data."""


@dataclass(frozen=True)
class Moment:
    """What a micro-batch is drawn from, and what chance depends on: seed, step, and which samples it has."""

    seed: int = 0
    step: int = 0
    rows: Rows | None = None  # None: the first ones
    data: Mapping[str, Array] | None = None  # None: the arrays that have the names of samples


@dataclass(frozen=True)
class Laboratory:
    """How nodes are run: micro-batch, float type, and what fills memory before."""

    micro_batch: int
    dtype: str = "float64"
    rubbish: int = 0xFF  # NaN in both float types
    scratch_reached: dict[str, tuple[int, int]] = field(default_factory=dict)  # by node: end of change, promise
    bind: Callable[[Call], Bound] = bind  # to numpy's kernels, unless another backend is tried
    now: Moment = Moment()
    learning_rate: float = 1.0

    def run(self, node: Node, tensors: Mapping[str, Tensor], arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Run one node and return its outputs by name."""
        known = {**{tensor.name: tensor for tensor in table.infer(node, tensors)}, **tensors}
        outputs = {name: self._rubbish(known[name]) for name in node.outputs}
        scratch = self.scratch(node, known)
        runtime = Runtime(self.learning_rate, _fields(arrays if self.now.data is None else self.now.data))
        runtime.rows = slice(0, self.micro_batch) if self.now.rows is None else self.now.rows
        runtime.seed, runtime.step = self.now.seed, self.now.step
        lying = {name: self._lying(known[name], arrays[name]) for name in node.reads}
        look = {name: _seen(node, known[name], array) for name, array in {**lying, **outputs}.items()}
        inputs, made, updates = (
            tuple(look[name] for name in names) for names in (node.inputs, node.outputs, node.updates)
        )
        inner = scratch[: scratch.size - GUARD_BYTES]
        before, after, changed = (
            tuple(known[name].order for name in names) for names in (node.inputs, node.outputs, node.updates)
        )
        self.bind(Call(node, inputs, made, updates, inner, runtime, before, after, update_orders=changed))()
        for name in node.updates:
            np.copyto(arrays[name], lying[name])
        written = np.flatnonzero(scratch != self.rubbish)
        self.scratch_reached[node.name] = (int(written[-1]) + 1 if written.size else 0, inner.size)
        return outputs

    def scratch(self, node: Node, tensors: Mapping[str, Tensor]) -> Array:
        """Return the promised scratch and a guard zone; twice the bytes for numbers of twice the size."""
        size = table.scratch_bytes(node, tensors, self.micro_batch) * (2 if self.dtype == "float64" else 1)
        return np.full(size + GUARD_BYTES, self.rubbish, np.uint8)

    def _rubbish(self, tensor: Tensor) -> Array:
        shape = tensor.full_shape(self.micro_batch)
        axes = tensor.order.axes(len(shape))
        array = np.empty(tuple(shape[axis] for axis in axes), self.array_type(tensor))
        array.reshape(-1).view(np.uint8).fill(self.rubbish)
        return array.transpose(tuple(axes.index(axis) for axis in range(len(axes))))

    def _lying(self, tensor: Tensor, array: Array) -> Array:
        """Return an array in the order of its tensor: itself, or a copy."""
        if stored(array, tensor.order).flags.c_contiguous:
            return array
        copy = self._rubbish(tensor)
        np.copyto(copy, array)
        return copy

    def array_type(self, tensor: Tensor) -> str:
        """Return the type of a tensor's array."""
        return self.dtype if tensor.dtype is DType.FLOAT32 else tensor.dtype.value

    def run_graph(self, graph: Graph, arrays: dict[str, Array]) -> dict[str, Array]:
        """Run every node of a graph of one micro-batch in order; residents in `arrays` are changed in place."""
        for section in Section:
            self._run_section(graph, section, arrays)
        return arrays

    def run_step(self, graph: Graph, arrays: dict[str, Array]) -> None:
        """Take one step on all samples in `arrays`, one micro-batch after the other; residents are changed in place."""
        data, work = {name: arrays[name] for name in SAMPLES}, dict(arrays)
        self._run_section(graph, Section.BEGIN, work)
        for first in range(0, len(data["x"]), self.micro_batch):
            rows = slice(first, min(first + self.micro_batch, len(data["x"])))
            replace(self, now=replace(self.now, rows=rows, data=data))._run_section(graph, Section.BODY, work)
        self._run_section(graph, Section.FINISH, work)

    def _run_section(self, graph: Graph, section: Section, arrays: dict[str, Array]) -> None:
        tensors = graph.by_name()
        for node in graph.nodes:
            if node.section is section:
                arrays.update(self.run(node, tensors, arrays))


def _fields(data: Mapping[str, Array]) -> dict[str, Array]:
    return {"x": data.get("x", np.zeros(0)), "y": data.get("labels", np.zeros(0))}


def _seen(node: Node, tensor: Tensor, array: Array) -> Array:
    return stored(array, tensor.order) if table.operator(node.op).as_stored else array


def gradient_node(node: Node, tensors: Mapping[str, Tensor], position: int, batch_size: int = 1) -> Node | None:
    """Return the node that makes the gradient of one input, by the table's own rule."""
    rule = table.operator(node.op).backward[position]
    assert rule is not None
    return rule(Backward(node, tensors, "dy", "result", batch_size))
