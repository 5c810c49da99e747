"""Single nodes on the compiled backend, beside the same nodes in numpy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend, Segment
from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Node, Order, Tensor
from hedgerow_plans.graph.ops.orders import is_image
from support.kernel_calls import Laboratory, Moment, gradient_node

NOWHERE = np.zeros(64, np.uint8)
"""An arena in which nothing lies: every array is a region of its own, so that steps outside are refused."""

RATE = 0.375
"""Of learning: a number that 32 bits have exactly, and that is not forgotten unnoticed as 1 would be."""

COMPARED: set[str] = set()
"""Operators that were compared since somebody emptied this."""


class UnsupportedError(Exception):
    """The library has no kernel for a call."""


def native_bind(library: Library, parts: int = 2) -> Callable[[Call], Bound]:
    """Return what binds a call to the library, cut into parts."""

    def bind(call: Call) -> Bound:
        segment = Segment(NativeBackend(library, threads=parts), NOWHERE)
        if not segment.take(call):
            raise UnsupportedError(call.node.op)
        (run,) = segment.close()
        return run

    return bind


@dataclass(frozen=True)
class Made:
    """What became of a node's outputs and updates: in numpy with 64 and with 32 bits, and in the library."""

    wanted: Mapping[str, Array]
    usual: Mapping[str, Array]
    found: Mapping[str, Array]

    def distance(self, name: str) -> float:
        """Return how much further than twice numpy's distance the library is from 64 bits."""
        wanted = self.wanted[name]
        return _distance(self.found[name], wanted) - 2 * _distance(self.usual[name], wanted)


@dataclass(frozen=True)
class Twins:
    """A node run by both backends on the same numbers: numpy in 64 bits, the library in 32."""

    library: Library
    micro_batch: int

    def compare(self, node: Node, tensors: Mapping[str, Tensor], arrays: Mapping[str, Array]) -> float:
        """Return how far the library is from 64 bits, of what is largest or of 1; bytes must be equal.

        Twice of what numpy itself is off in 32 bits is not counted: a norm over two numbers is mostly cancellation.
        """
        made = self.made(node, tensors, arrays)
        return max(made.distance(name) for name in made.wanted)

    def made(self, node: Node, tensors: Mapping[str, Tensor], arrays: Mapping[str, Array]) -> Made:
        """Run a node three times."""
        exact = Laboratory(self.micro_batch, "float64", learning_rate=RATE)
        fast = Laboratory(self.micro_batch, "float32", bind=native_bind(self.library), learning_rate=RATE)
        COMPARED.add(node.op)
        wide = {name: self._as(tensors[name], arrays[name], np.float64) for name in node.reads}
        narrow = {name: self._as(tensors[name], arrays[name], np.float32) for name in node.reads}
        plain = {name: array.copy() for name, array in narrow.items()}
        wanted = exact.run(node, tensors, wide) | {name: wide[name] for name in node.updates}
        lab = Laboratory(self.micro_batch, "float32", learning_rate=RATE)
        usual = lab.run(node, tensors, plain) | {name: plain[name] for name in node.updates}
        found = fast.run(node, tensors, narrow) | {name: narrow[name] for name in node.updates}
        assert fast.scratch_reached[node.name][0] <= fast.scratch_reached[node.name][1]
        return Made(wanted, usual, found)

    def differing(
        self, node: Node, tensors: Mapping[str, Tensor], arrays: Mapping[str, Array], now: Moment
    ) -> dict[str, tuple[Array, Array]]:
        """Return what numpy in 32 bits and the library made of a node where any bit differs."""
        usual = Laboratory(self.micro_batch, "float32", now=now, learning_rate=RATE)
        fast = replace(usual, bind=native_bind(self.library))
        COMPARED.add(node.op)
        made = []
        for lab in (usual, fast):
            own = {name: arrays[name].copy() for name in node.reads}
            made.append(lab.run(node, tensors, own) | {name: own[name] for name in node.updates})
        pairs = {name: (made[0][name], made[1][name]) for name in made[0]}
        return {name: (one, other) for name, (one, other) in pairs.items() if one.tobytes() != other.tobytes()}

    def _as(self, tensor: Tensor, array: Array, dtype: type[np.floating]) -> Array:
        return array.astype(dtype) if tensor.dtype is DType.FLOAT32 else array.copy()

    def check(
        self, node: Node, inputs: tuple[Tensor, ...], seed: int, given: Mapping[str, Array], order: Order
    ) -> dict[str, float]:
        """Compare a node and all its gradients, images or weights in an order; return the distances by operator."""
        rng = np.random.default_rng(seed)
        tensors = {tensor.name: _in_order(tensor, order) for tensor in inputs}
        drawn = {t.name: rng.standard_normal(t.full_shape(self.micro_batch)).astype(np.float32) for t in inputs}
        arrays: dict[str, Array] = {**drawn, **given}
        made = [_in_order(tensor, order) for tensor in table.infer(node, tensors)]
        tensors.update({tensor.name: tensor for tensor in made}, dy=replace(made[0], name="dy"))
        table.check_orders(node, tensors)
        distances = {node.op: self.compare(node, tensors, arrays)}
        outputs = Laboratory(self.micro_batch, "float32").run(node, tensors, arrays)
        arrays |= outputs
        arrays["dy"] = rng.standard_normal(outputs[node.outputs[0]].shape).astype(np.float32)
        rules = table.operator(node.op).backward
        for position in (at for at in range(len(inputs)) if at < len(rules) and rules[at] is not None):
            backward = gradient_node(node, tensors, position)
            if backward is None:
                continue
            known = dict(tensors)
            known.update({t.name: _in_order(t, order) for t in table.infer(backward, tensors)})
            try:
                table.check_orders(backward, known)
            except GraphError:
                continue
            distances[backward.op] = self.compare(backward, known, arrays)
        return distances


def _in_order(tensor: Tensor, order: Order) -> Tensor:
    of_layer = order is Order.INPUTS and not tensor.batched and len(tensor.shape) == 2
    return replace(tensor, order=order) if of_layer or (is_image(tensor) and order is not Order.INPUTS) else tensor


def _distance(found: Array, wanted: Array) -> float:
    if found.dtype.kind != "f":
        return 0.0 if np.array_equal(found, wanted) else np.inf
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    return float(np.abs(found - wanted).max(initial=0)) / scale if np.isfinite(found).all() else np.inf
