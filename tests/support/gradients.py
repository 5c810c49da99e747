"""Gradients by the table's own backward rules against finite differences, in 64 bits."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Node, Role, Tensor
from support.kernel_calls import Laboratory, gradient_node

seeds = st.integers(0, 2**32 - 1)
batches = st.integers(1, 6)

STEP = 1e-6


def sample(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape)


def parameter(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, batched=False, role=Role.FROZEN)


def check_gradients(
    node: Node, inputs: tuple[Tensor, ...], micro_batch: int, seed: int, given: Mapping[str, Array] | None = None
) -> None:
    """Compare <gradient, direction> with the slope of <dy, f> along that direction, for each input that has one.

    Inputs are drawn from a normal distribution unless they are given.
    """
    lab, rng = Laboratory(micro_batch), np.random.default_rng(seed)
    tensors = {tensor.name: tensor for tensor in inputs}
    arrays: dict[str, Array] = {tensor.name: rng.standard_normal(tensor.full_shape(micro_batch)) for tensor in inputs}
    arrays.update(given or {})
    made = table.infer(node, tensors)
    tensors.update({tensor.name: tensor for tensor in made}, dy=replace(made[0], name="dy"))
    outputs = lab.run(node, tensors, arrays)
    arrays["dy"] = rng.standard_normal(outputs[node.outputs[0]].shape)
    rules = table.operator(node.op).backward
    for position, tensor in ((at, tensor) for at, tensor in enumerate(inputs) if rules[at] is not None):
        backward = gradient_node(node, tensors, position)
        found = (
            arrays["dy"] if backward is None else lab.run(backward, tensors, {**arrays, **outputs})[backward.outputs[0]]
        )
        assert found.shape == arrays[tensor.name].shape
        direction = rng.standard_normal(found.shape)
        wanted = slope(lab, node, tensors, arrays, (tensor.name, direction))
        scale = float(np.abs(found * direction).sum()) + 1.0
        assert abs(float((found * direction).sum()) - wanted) / scale < 1e-7


def slope(
    lab: Laboratory, node: Node, tensors: Mapping[str, Tensor], arrays: Mapping[str, Array], move: tuple[str, Array]
) -> float:
    (name, direction), sides = move, []
    for sign in (1, -1):
        moved = {**arrays, name: arrays[name] + sign * STEP * direction}
        sides.append(float((arrays["dy"] * lab.run(node, tensors, moved)[node.outputs[0]]).sum()))
    return (sides[0] - sides[1]) / (2 * STEP)
