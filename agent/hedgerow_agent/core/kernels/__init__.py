"""One kernel for each operator of the table, found by the operator's name.

A kernel is bound once per plan: it gets views of the arena and returns a call without arguments that closes over them,
so that a training step is a flat list of such calls. Kernels write into the views they are given, use the scratch bytes
the table promised, and work with whatever float type the views have (the tests use 64 bits).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hedgerow_agent.core.kernels import (
    activation,
    adaptive,
    attention,
    batch_norm,
    clipping,
    convolution,
    dense,
    dropout,
    elementwise,
    embedding,
    gelu,
    layout,
    loss,
    matrix,
    norms,
    pooling,
    resampling,
    smooth,
    standardise,
    update,
    zeroth_order,
)
from hedgerow_agent.core.kernels.call import Bound, Call

KERNELS: Mapping[str, Callable[[Call], Bound]] = MappingProxyType(
    {
        **elementwise.KERNELS,
        **dense.KERNELS,
        **convolution.KERNELS,
        **activation.KERNELS,
        **smooth.KERNELS,
        **gelu.KERNELS,
        **batch_norm.KERNELS,
        **norms.KERNELS,
        **dropout.KERNELS,
        **pooling.KERNELS,
        **resampling.KERNELS,
        **layout.KERNELS,
        **matrix.KERNELS,
        **attention.KERNELS,
        **embedding.KERNELS,
        **loss.KERNELS,
        **update.KERNELS,
        **clipping.KERNELS,
        **adaptive.KERNELS,
        **standardise.KERNELS,
        **zeroth_order.KERNELS,
    }
)


def bind(call: Call) -> Bound:
    """Return the call that runs this node on these views."""
    kernel = KERNELS.get(call.node.op)
    if kernel is None:
        raise ValueError(
            f"Node {call.node.name}: this agent has no kernel for the operator {call.node.op!r}; update the agent."
        )
    return kernel(call)
