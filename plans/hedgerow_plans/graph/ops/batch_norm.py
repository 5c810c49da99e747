"""Batch normalisation per channel, with the statistics of the batch or with the running ones.

Inputs are x, weight, bias and, for running statistics, their mean and variance. A model names all five and says
"batch" if its statistics may be trained; differentiating decides what each graph uses: a training graph that trains the
running statistics reads x, weight and bias alone, saves the batch's mean and variance, and has one node of its own that
moves the running ones, so that recomputing a layer never moves them twice. Every other graph uses the running ones.
"""

from hedgerow_plans.graph.ir import Node, Order, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.ops.channel_sums import rows_of_tensor
from hedgerow_plans.graph.ops.dense import grad_bias
from hedgerow_plans.graph.tiles import NORM_TILE_ELEMENTS, channels_per_tile

BATCH, RUNNING = "batch", "running"

EPSILON = AttributeRule(Kind.NUMBER, default=1e-5)
_EPSILON = {"epsilon": EPSILON}
_STATISTICS = {"statistics": AttributeRule(Kind.TEXT, choices=(BATCH, RUNNING))}
_MOMENTUM = {"momentum": AttributeRule(Kind.NUMBER, default=0.1)}


def positive_epsilon(call: Call) -> None:
    """Raise a sentence unless epsilon keeps a deviation of zero from being divided by."""
    epsilon = call.number("epsilon")
    call.require(epsilon > 0, f"epsilon is {epsilon}; give it a number above 0, such as 1e-5")


def is_batch(node: Node) -> bool:
    """Tell whether a node works with the statistics of its batch."""
    return node.attributes.get("statistics") == BATCH


def _infer(call: Call) -> tuple[Tensor, ...]:
    positive_epsilon(call)
    _check_momentum(call)
    x = _channels(call, call.inputs[0])
    for tensor in call.inputs[1:]:
        expect.shape(call, expect.parameter(call, tensor, rank=1), x.shape[:1])
    count = len(call.inputs)
    if is_batch(call.node):
        call.require(count in (3, 5), f"it has {count} inputs; give it x, weight, bias, and both running ones or none")
    else:
        call.require(count == 5, f"it has {count} inputs; running statistics need x, weight, bias, mean and variance")
        call.require(len(call.node.outputs) == 1, "it has 2 outputs; only statistics of the batch are saved")
    y = call.output(0, x.shape)
    if len(call.node.outputs) == 1:
        return (y,)
    return y, call.output(1, (2, x.shape[0]), batched=False)


def _channels(call: Call, tensor: Tensor) -> Tensor:
    problem = f"{tensor.name!r} is one number per sample; give it a tensor with channels"
    call.require(expect.samples(call, tensor).shape != (), problem)
    return tensor


def _check_momentum(call: Call) -> None:
    momentum = call.number("momentum")
    call.require(0 <= momentum <= 1, f"momentum is {momentum}; give it a number from 0 to 1")


def _flops(call: Call) -> int:
    """Return scale and shift; with the batch's statistics also sum, difference, square and its sum."""
    return call.samples(call.inputs[0]) * (6 if is_batch(call.node) else 2)


def _scratch(call: Call) -> int:
    """Return factor and shift of each channel; for the batch's sums, also one number per channel of each sample."""
    channels = call.inputs[0].shape[0]
    if call.inputs[0].order is Order.PIXELS:
        return _scratch_by_pixels(call)
    if not is_batch(call.node):
        return 4 * 2 * channels
    statistics = 0 if len(call.outputs) > 1 else 2
    return 4 * channels * (call.micro_batch + 1 + statistics)


def _scratch_by_pixels(call: Call) -> int:
    """Return two rows of numbers by channel; for the batch's sums also ones, a row of sums and a tile of squares."""
    rows, channels = rows_of_tensor(call, call.inputs[0]), call.inputs[0].shape[0]
    if not is_batch(call.node):
        return 4 * (2 * channels + 2 * rows.length)
    statistics = channels if len(call.outputs) > 1 else 3 * channels
    return 4 * (statistics + 3 * rows.length + rows.count + rows.tile_elements)


def _infer_grad_input(call: Call) -> tuple[Tensor, ...]:
    positive_epsilon(call)
    gradient = _channels(call, call.inputs[0])
    if is_batch(call.node):
        given = "dy, x, statistics and weight, and with both sums over dy or none"
        call.require(len(call.inputs) in (4, 6), f"statistics of the batch go with {given}")
        _check_saved(call, gradient)
    else:
        call.require(len(call.inputs) == 3, "running statistics go with dy, the running variance and weight")
        expect.shape(call, expect.parameter(call, call.inputs[1], rank=1), gradient.shape[:1])
    for tensor in call.inputs[3:] if is_batch(call.node) else call.inputs[2:]:
        expect.shape(call, expect.parameter(call, tensor, rank=1), gradient.shape[:1])
    return (call.output(0, gradient.shape),)


def _check_saved(call: Call, gradient: Tensor) -> None:
    expect.alike(call, gradient, expect.samples(call, call.inputs[1]))
    expect.shape(call, expect.parameter(call, call.inputs[2], rank=2), (2, gradient.shape[0]))


def _infer_grad_weight(call: Call) -> tuple[Tensor, ...]:
    positive_epsilon(call)
    gradient = _channels(call, call.inputs[0])
    if is_batch(call.node):
        call.require(len(call.inputs) == 3, "statistics of the batch go with dy, x and statistics")
        _check_saved(call, gradient)
    else:
        call.require(len(call.inputs) == 4, "running statistics go with dy, x, the running mean and variance")
        expect.alike(call, gradient, expect.samples(call, call.inputs[1]))
        for tensor in call.inputs[2:]:
            expect.shape(call, expect.parameter(call, tensor, rank=1), gradient.shape[:1])
    return (call.output(0, gradient.shape[:1], batched=False),)


def _grad_input_scratch(call: Call) -> int:
    """Return one factor per channel; for the batch's statistics two sums more, and a number per sample and channel."""
    channels = call.inputs[0].shape[0]
    if call.inputs[0].order is Order.PIXELS:
        return _grad_input_scratch_by_pixels(call)
    if len(call.inputs) == 6:
        return 4 * channels * 3
    return 4 * channels * (call.micro_batch + 3 if is_batch(call.node) else 1)


def _grad_input_scratch_by_pixels(call: Call) -> int:
    """Return one row of factors; for the batch's statistics two rows more, a tile, and what sums need unless given."""
    rows, channels = rows_of_tensor(call, call.inputs[0]), call.inputs[0].shape[0]
    if not is_batch(call.node):
        return 4 * (channels + rows.length)
    sums = rows.length + rows.count + 2 * channels if len(call.inputs) == 4 else 0
    return 4 * (3 * channels + 3 * rows.length + rows.tile_elements + sums)


def _grad_input_flops(call: Call) -> int:
    """Return four terms per element; without the sums also centre, product and both sums; or one factor."""
    batch = 8 if len(call.inputs) == 4 else 4
    return call.samples(call.inputs[0]) * (batch if is_batch(call.node) else 1)


def _check_orders(call: Call) -> None:
    orders.images_alike(call)
    orders.lies_as(call, call.inputs[0], Order.SAMPLES, Order.PIXELS)


def channel_tile_elements(x: Tensor, groups: int) -> int:
    """Return the elements of as many channels of one sample as are worked on at once."""
    channels = x.shape[0]
    pixels = x.elements // channels
    whole, part = channels_per_tile(groups, channels // groups, pixels, NORM_TILE_ELEMENTS)
    return whole * part * pixels


def _grad_weight_scratch(call: Call) -> int:
    """Return one number per sample and channel, one per channel, and a tile of centred values."""
    x = call.inputs[1]
    if x.order is Order.PIXELS:
        rows = rows_of_tensor(call, x)
        return 4 * (x.shape[0] + 3 * rows.length + rows.count + rows.tile_elements)
    return 4 * (x.shape[0] * (call.micro_batch + 1) + channel_tile_elements(x, x.shape[0]))


def _infer_update(call: Call) -> tuple[Tensor, ...]:
    _check_momentum(call)
    call.require(call.integer("samples") > 1, "one value per channel has no variance; train with a larger batch")
    statistics = expect.parameter(call, call.inputs[0], rank=2)
    call.require(statistics.shape[0] == 2, f"{statistics.name!r} must hold a row of means and a row of variances")
    for tensor in call.updates:
        expect.shape(call, expect.parameter(call, expect.trainable(call, tensor), rank=1), statistics.shape[1:])
    return ()


def _kept(ask: Backward) -> dict[str, float | str]:
    epsilon = ask.node.attributes.get("epsilon", 1e-5)
    return {"epsilon": float(str(epsilon)), "statistics": str(ask.node.attributes["statistics"])}


def _grad_input(ask: Backward) -> Node:
    x, weight, *others = (ask.node.inputs[at] for at in (0, 1, *range(3, len(ask.node.inputs))))
    sources = (x, ask.node.outputs[1]) if is_batch(ask.node) else (others[1],)
    return ask.call("batch_norm_grad_input", (ask.gradient, *sources, weight), _kept(ask))


def _grad_weight(ask: Backward) -> Node:
    sources = ask.node.outputs[1:] if is_batch(ask.node) else ask.node.inputs[3:]
    return ask.call("batch_norm_grad_weight", (ask.gradient, ask.node.inputs[0], *sources), _kept(ask))


OPERATORS = (
    Operator(
        "batch_norm",
        _infer,
        inputs=(3, 5),
        outputs=(1, 2),
        attributes={**_STATISTICS, **_EPSILON, **_MOMENTUM},
        flops=_flops,
        scratch_bytes=_scratch,
        backward=(_grad_input, _grad_weight, grad_bias, None, None),
        saved="statistics",
        saves=is_batch,
        check_orders=_check_orders,
    ),
    Operator(
        "batch_norm_grad_input",
        _infer_grad_input,
        inputs=(3, 6),
        attributes={**_STATISTICS, **_EPSILON},
        flops=_grad_input_flops,
        scratch_bytes=_grad_input_scratch,
        check_orders=_check_orders,
    ),
    Operator(
        "batch_norm_grad_weight",
        _infer_grad_weight,
        inputs=(3, 4),
        attributes={**_STATISTICS, **_EPSILON},
        flops=lambda call: 3 * call.samples(call.inputs[0]),
        scratch_bytes=_grad_weight_scratch,
        check_orders=_check_orders,
    ),
    Operator(
        "update_running_statistics",
        _infer_update,
        outputs=(0, 0),
        updates=(2, 2),
        attributes={**_MOMENTUM, "samples": AttributeRule(Kind.INTEGER)},
        flops=lambda call: 3 * call.inputs[0].elements,
        scratch_bytes=lambda call: 4 * call.updates[0].elements,
    ),
)
