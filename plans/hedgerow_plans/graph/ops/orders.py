"""What operators ask of the order in which their tensors lie in memory."""

from hedgerow_plans.graph.ir import Order, Tensor
from hedgerow_plans.graph.operator import Call

IMAGE_AXES = 3


def is_image(tensor: Tensor) -> bool:
    """Tell whether a tensor holds a value for every channel and pixel of every sample."""
    return tensor.batched and len(tensor.shape) == IMAGE_AXES


def images_alike(call: Call) -> None:
    """Raise a sentence unless all images lie in one order, and everything else as its shape says."""
    tensors = (*call.inputs, *call.updates, *call.outputs)
    images = [tensor for tensor in tensors if is_image(tensor)]
    for image in images[1:]:
        same_order(call, images[0], image)
    for tensor in (tensor for tensor in tensors if not is_image(tensor)):
        lies_as(call, tensor, Order.SAMPLES)


def same_shape_same_order(call: Call) -> None:
    """Raise a sentence unless all tensors of one shape lie in one order: they are worked on as they lie."""
    first: dict[tuple[int, ...], Tensor] = {}
    for tensor in (*call.updates, *call.inputs, *call.outputs):
        same_order(call, first.setdefault(tensor.shape, tensor), tensor)


def any_order(_call: Call) -> None:
    """Take tensors as they are."""


def same_order(call: Call, first: Tensor, second: Tensor) -> None:
    """Raise a sentence unless two tensors lie in the same order."""
    problem = f"{first.name!r} lies in the order of {first.order.value} and {second.name!r} of {second.order.value}"
    call.require(first.order is second.order, f"{problem}; reorder one of them")


def lies_as(call: Call, tensor: Tensor, *orders: Order) -> None:
    """Raise a sentence unless a tensor lies in one of these orders."""
    wanted = " or ".join(order.value for order in orders)
    problem = f"{tensor.name!r} lies in the order of {tensor.order.value}; reorder it to that of {wanted}"
    call.require(tensor.order in orders, problem)
