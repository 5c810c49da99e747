"""Checks that several families make on the tensors of a call."""

from hedgerow_plans.graph.ir import DType, Role, Tensor
from hedgerow_plans.graph.operator import Call, Shape, describe


def values(call: Call, tensor: Tensor, dtype: DType = DType.FLOAT32) -> Tensor:
    """Return the tensor if it has the element type."""
    problem = f"{tensor.name!r} holds {tensor.dtype.value}; give it a tensor of {dtype.value}"
    call.require(tensor.dtype is dtype, problem)
    return tensor


def samples(call: Call, tensor: Tensor, rank: int | None = None, dtype: DType = DType.FLOAT32) -> Tensor:
    """Return the tensor if it has a batch axis, the element type and, without the batch axis, the number of axes."""
    call.require(tensor.batched, f"{tensor.name!r} has no batch axis; give it a tensor that has one")
    if rank is not None:
        problem = f"{tensor.name!r} has shape {describe(tensor.shape)}; give it a tensor with {rank} axes per sample"
        call.require(len(tensor.shape) == rank, problem)
    return values(call, tensor, dtype)


def parameter(call: Call, tensor: Tensor, rank: int) -> Tensor:
    """Return the tensor if it has no batch axis and the number of axes."""
    call.require(not tensor.batched, f"{tensor.name!r} has a batch axis; give it a parameter")
    problem = f"{tensor.name!r} has shape {describe(tensor.shape)}; give it a parameter with {rank} axes"
    call.require(len(tensor.shape) == rank, problem)
    return values(call, tensor)


def trainable(call: Call, tensor: Tensor) -> Tensor:
    """Return the tensor if it is one that training changes."""
    problem = f"{tensor.name!r} is {tensor.role.value}; it can only update a {Role.TRAINABLE.value} tensor"
    call.require(tensor.role is Role.TRAINABLE, problem)
    return tensor


def shape(call: Call, tensor: Tensor, wanted: Shape) -> None:
    """Raise a sentence unless the tensor has the shape."""
    problem = f"{tensor.name!r} has shape {describe(tensor.shape)}; give it shape {describe(wanted)}"
    call.require(tensor.shape == wanted, problem)


def alike(call: Call, first: Tensor, second: Tensor) -> None:
    """Raise a sentence unless both tensors have the same shape, batch axis included."""
    shape(call, second, first.shape)
    problem = f"only one of {first.name!r} and {second.name!r} has a batch axis; give it two tensors of one kind"
    call.require(first.batched == second.batched, problem)
