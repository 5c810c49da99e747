"""Normalisation within a sample: layer, RMS and group norm; and of a weight itself.

Layer and RMS norm work on the trailing axes, as many as their weight has; group norm on groups of channels. What their
backward needs besides x is the mean and inverse deviation of each row or group (RMS norm: the inverse root alone).
Standardising a weight saves nothing: its statistics are found again from the weight, which lives anyway.
"""

from hedgerow_plans.graph.ir import Attribute, Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, Shape, describe
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.ops.batch_norm import EPSILON, channel_tile_elements, positive_epsilon
from hedgerow_plans.graph.ops.dense import grad_bias
from hedgerow_plans.graph.tiles import ROW_TILE_ELEMENTS, images_per_tile

_EPSILON = {"epsilon": EPSILON}
_GROUPS = {"groups": AttributeRule(Kind.INTEGER)}


def _leading(call: Call, x: Tensor, trailing: Shape) -> Shape:
    """Return the axes of a sample before the normalised ones."""
    count = len(x.shape) - len(trailing)
    problem = f"{x.name!r} has shape {describe(x.shape)}, which does not end in {describe(trailing)}"
    call.require(trailing != () and count >= 0 and x.shape[count:] == trailing, f"{problem}; give it such a weight")
    return x.shape[:count]


def _infer_rows(call: Call, statistics: int) -> tuple[Tensor, ...]:
    """Infer a norm over trailing axes that saves so many numbers per row."""
    positive_epsilon(call)
    x, weight = expect.samples(call, call.inputs[0]), call.inputs[1]
    for tensor in call.inputs[1:]:
        expect.shape(call, expect.parameter(call, tensor, rank=len(weight.shape)), weight.shape)
    leading = _leading(call, x, weight.shape)
    y = call.output(0, x.shape)
    return (y, call.output(1, (*leading, statistics))) if len(call.node.outputs) > 1 else (y,)


def _row_scratch(call: Call, statistics: int) -> int:
    """Return the statistics of every row, unless they are an output."""
    rows = call.samples(call.inputs[0]) // call.inputs[1].elements
    return 0 if len(call.outputs) > 1 else 4 * statistics * rows


def _infer_rows_grad_input(call: Call, statistics: int) -> tuple[Tensor, ...]:
    gradient, x, saved, weight = call.inputs
    expect.alike(call, expect.samples(call, gradient), expect.samples(call, x))
    leading = _leading(call, x, expect.parameter(call, weight, rank=len(weight.shape)).shape)
    expect.shape(call, expect.samples(call, saved), (*leading, statistics))
    return (call.output(0, x.shape),)


def _row_tile_elements(rows: int, width: int) -> int:
    return width * images_per_tile(rows, width, ROW_TILE_ELEMENTS)


def _rows_grad_input_scratch(call: Call) -> int:
    """Return a tile of weighted gradients and, for each of its rows, as many sums as there are statistics."""
    width, sums = call.inputs[3].elements, call.inputs[2].shape[-1]
    elements = _row_tile_elements(call.samples(call.inputs[0]) // width, width)
    return 4 * (elements + sums * (elements // width))


def _infer_rows_grad_weight(call: Call, statistics: int) -> tuple[Tensor, ...]:
    gradient, x, saved = call.inputs
    expect.alike(call, expect.samples(call, gradient), expect.samples(call, x))
    leading = _leading(call, x, call.shape())
    expect.shape(call, expect.samples(call, saved), (*leading, statistics))
    return (call.output(0, call.shape(), batched=False),)


def _rows_grad_weight_scratch(call: Call) -> int:
    """Return a tile of centred rows with their inverse deviations, and one sum over a tile if there are several."""
    width, elements = call.outputs[0].elements, call.samples(call.inputs[0])
    tile = _row_tile_elements(elements // width, width)
    return 4 * (tile + tile // width + (width if tile < elements else 0))


def _infer_rows_grad_bias(call: Call) -> tuple[Tensor, ...]:
    _leading(call, expect.samples(call, call.inputs[0]), call.shape())
    return (call.output(0, call.shape(), batched=False),)


def _check_groups(call: Call, x: Tensor) -> int:
    call.require(x.shape != (), f"{x.name!r} is one number per sample; give it a tensor with channels")
    groups = call.integer("groups")
    problem = f"{x.shape[0]} channels do not go into {groups} groups; choose a number that divides them"
    call.require(x.shape[0] % groups == 0, problem)
    return groups


def _infer_group_norm(call: Call) -> tuple[Tensor, ...]:
    positive_epsilon(call)
    x = expect.samples(call, call.inputs[0])
    groups = _check_groups(call, x)
    for tensor in call.inputs[1:]:
        expect.shape(call, expect.parameter(call, tensor, rank=1), x.shape[:1])
    y = call.output(0, x.shape)
    return (y, call.output(1, (groups, 2))) if len(call.node.outputs) > 1 else (y,)


def _group_norm_scratch(call: Call) -> int:
    return 0 if len(call.outputs) > 1 else 4 * 2 * call.micro_batch * call.integer("groups")


def _check_group_grad(call: Call) -> Tensor:
    gradient, x, saved = call.inputs[:3]
    expect.alike(call, expect.samples(call, gradient), expect.samples(call, x))
    expect.shape(call, expect.samples(call, saved), (_check_groups(call, x), 2))
    return x


def _infer_group_grad_input(call: Call) -> tuple[Tensor, ...]:
    x = _check_group_grad(call)
    expect.shape(call, expect.parameter(call, call.inputs[3], rank=1), x.shape[:1])
    return (call.output(0, x.shape),)


def _group_grad_input_scratch(call: Call) -> int:
    """Return, for each sample, two sums per channel and two per group; and a tile of weighted gradients."""
    x, groups = call.inputs[1], call.integer("groups")
    return 4 * (2 * call.micro_batch * (x.shape[0] + groups) + channel_tile_elements(x, groups))


def _infer_group_grad_weight(call: Call) -> tuple[Tensor, ...]:
    return (call.output(0, _check_group_grad(call).shape[:1], batched=False),)


def _group_grad_weight_scratch(call: Call) -> int:
    """Return one number per sample and channel, and a tile of centred values."""
    x = call.inputs[1]
    return 4 * (call.micro_batch * x.shape[0] + channel_tile_elements(x, call.integer("groups")))


def _infer_standardise(call: Call) -> tuple[Tensor, ...]:
    positive_epsilon(call)
    for tensor in call.inputs:
        call.require(not tensor.batched, f"{tensor.name!r} has a batch axis; give it a layer's weight")
        shape = describe(tensor.shape)
        call.require(len(expect.values(call, tensor).shape) > 1, f"{tensor.name!r} has shape {shape}; give it a weight")
        expect.alike(call, call.inputs[0], tensor)
    return (call.output(0, call.inputs[0].shape, batched=False),)


def _kept(ask: Backward, *names: str) -> dict[str, Attribute]:
    return {name: ask.node.attributes[name] for name in names if name in ask.node.attributes}


def _rows_grad_input(ask: Backward) -> Node:
    x, weight = ask.node.inputs[:2]
    return ask.call(f"{ask.node.op}_grad_input", (ask.gradient, x, ask.node.outputs[1], weight), _kept(ask, "groups"))


def _rows_grad_weight(ask: Backward) -> Node:
    inputs = (ask.gradient, ask.node.inputs[0], ask.node.outputs[1])
    return ask.call(f"{ask.node.op}_grad_weight", inputs, {"shape": ask.input(1).shape})


def _rows_grad_bias(ask: Backward) -> Node:
    return ask.call("layer_norm_grad_bias", (ask.gradient,), {"shape": ask.input(2).shape})


def _group_grad_weight(ask: Backward) -> Node:
    inputs = (ask.gradient, ask.node.inputs[0], ask.node.outputs[1])
    return ask.call("group_norm_grad_weight", inputs, _kept(ask, "groups"))


def _grad_standardise(ask: Backward) -> Node:
    return ask.call("weight_standardisation_grad", (ask.gradient, ask.node.inputs[0]), _kept(ask, "epsilon"))


def _rows_operators(name: str, parameters: int, statistics: int) -> tuple[Operator, ...]:
    """Return the rows of a norm over trailing axes: layer norm, or RMS norm that has neither mean nor bias."""
    return (
        Operator(
            name,
            lambda call: _infer_rows(call, statistics),
            inputs=(1 + parameters, 1 + parameters),
            outputs=(1, 2),
            attributes=_EPSILON,
            # square, its sum, inverse deviation and weight; with a mean also sum, difference and bias
            flops=lambda call: call.samples(call.inputs[0]) * (1 + 3 * statistics),
            scratch_bytes=lambda call: _row_scratch(call, statistics),
            backward=(_rows_grad_input, _rows_grad_weight, _rows_grad_bias)[: 1 + parameters],
            saved="statistics",
        ),
        Operator(
            f"{name}_grad_input",
            lambda call: _infer_rows_grad_input(call, statistics),
            inputs=(4, 4),
            flops=lambda call: call.samples(call.inputs[0]) * (5 + 3 * statistics),
            scratch_bytes=_rows_grad_input_scratch,
        ),
        Operator(
            f"{name}_grad_weight",
            lambda call: _infer_rows_grad_weight(call, statistics),
            inputs=(3, 3),
            attributes={"shape": AttributeRule(Kind.SHAPE)},
            flops=lambda call: call.samples(call.inputs[0]) * (2 + statistics),
            scratch_bytes=_rows_grad_weight_scratch,
        ),
    )


OPERATORS = (
    *_rows_operators("layer_norm", parameters=2, statistics=2),
    *_rows_operators("rms_norm", parameters=1, statistics=1),
    Operator(
        "layer_norm_grad_bias",
        _infer_rows_grad_bias,
        attributes={"shape": AttributeRule(Kind.SHAPE)},
        flops=lambda call: call.samples(call.inputs[0]),
    ),
    Operator(
        "group_norm",
        _infer_group_norm,
        inputs=(3, 3),
        outputs=(1, 2),
        attributes={**_GROUPS, **_EPSILON},
        flops=lambda call: 7 * call.samples(call.inputs[0]),
        scratch_bytes=_group_norm_scratch,
        backward=(_rows_grad_input, _group_grad_weight, grad_bias),
        saved="statistics",
    ),
    Operator(
        "group_norm_grad_input",
        _infer_group_grad_input,
        inputs=(4, 4),
        attributes=_GROUPS,
        flops=lambda call: 11 * call.samples(call.inputs[0]),
        scratch_bytes=_group_grad_input_scratch,
    ),
    Operator(
        "group_norm_grad_weight",
        _infer_group_grad_weight,
        inputs=(3, 3),
        attributes=_GROUPS,
        flops=lambda call: 3 * call.samples(call.inputs[0]),
        scratch_bytes=_group_grad_weight_scratch,
    ),
    Operator(
        "weight_standardisation",
        _infer_standardise,
        attributes=_EPSILON,
        flops=lambda call: 5 * call.inputs[0].elements,
        scratch_bytes=lambda call: 4 * call.inputs[0].shape[0],
        backward=(_grad_standardise,),
    ),
    Operator(
        "weight_standardisation_grad",
        _infer_standardise,
        inputs=(2, 2),
        attributes=_EPSILON,
        flops=lambda call: 10 * call.inputs[0].elements,
        scratch_bytes=lambda call: 4 * 3 * call.inputs[0].shape[0],
    ),
)
