"""The operator table: everything that is known about an operator apart from its kernel, looked up by name.

Rows live in `ops`, one module a family; adding an operator touches one of them and its kernel in the training core.
"""

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, Node, Tensor
from hedgerow_plans.graph.operator import (
    MAXIMUM_DIMENSION,
    MAXIMUM_NUMBER,
    MAXIMUM_RANK,
    AttributeRule,
    Call,
    Kind,
    Operator,
    Tensors,
)
from hedgerow_plans.graph.ops import (
    activation,
    adaptive,
    attention,
    batch_norm,
    clipping,
    convolution,
    data,
    dense,
    dropout,
    elementwise,
    embedding,
    layout,
    loss,
    matrix,
    norms,
    pooling,
    resampling,
    standardise,
    update,
    zeroth_order,
)

_FAMILIES = (
    data,
    dense,
    convolution,
    elementwise,
    activation,
    batch_norm,
    norms,
    dropout,
    pooling,
    resampling,
    layout,
    matrix,
    attention,
    embedding,
    loss,
    update,
    clipping,
    adaptive,
    standardise,
    zeroth_order,
)

OPERATORS: dict[str, Operator] = {row.name: row for family in _FAMILIES for row in family.OPERATORS}


def operator(name: str) -> Operator:
    """Return a row of the table."""
    if name not in OPERATORS:
        raise GraphError(f"There is no operator {name!r}; known are {', '.join(sorted(OPERATORS))}.")
    return OPERATORS[name]


def infer(node: Node, tensors: Tensors) -> tuple[Tensor, ...]:
    """Return the tensors a node makes, or raise a sentence about what does not fit."""
    row = operator(node.op)
    _check_counts(node, row)
    return row.infer(_call(node, row, tensors, (), 1))


def check_orders(node: Node, tensors: Tensors) -> None:
    """Raise a sentence if the tensors of a node of the right shapes lie in orders it cannot work with."""
    row = operator(node.op)
    row.check_orders(_call(node, row, tensors, node.outputs, 1))


def takes_orders(node: Node, tensors: Tensors) -> bool:
    """Tell whether a node of the right shapes can work with tensors that lie as they do."""
    try:
        check_orders(node, tensors)
    except GraphError:
        return False
    return True


def flops(node: Node, tensors: Tensors, micro_batch: int) -> int:
    """Return the arithmetic operations of one run of a valid node."""
    row = operator(node.op)
    return row.flops(_call(node, row, tensors, node.outputs, micro_batch))


def scratch_bytes(node: Node, tensors: Tensors, micro_batch: int) -> int:
    """Return the bytes a valid node's kernel needs while it runs, and only then."""
    row = operator(node.op)
    return row.scratch_bytes(_call(node, row, tensors, node.outputs, micro_batch))


def _call(node: Node, row: Operator, tensors: Tensors, outputs: tuple[str, ...], micro_batch: int) -> Call:
    return Call(
        node,
        tuple(_look_up(node, name, tensors) for name in node.inputs),
        tuple(_look_up(node, name, tensors) for name in node.updates),
        tuple(_look_up(node, name, tensors) for name in outputs),
        _attributes(node, row),
        micro_batch,
    )


def _look_up(node: Node, name: str, tensors: Tensors) -> Tensor:
    if name not in tensors:
        raise GraphError(f"Node {node.name!r} ({node.op}): there is no tensor {name!r}; declare it in the graph.")
    return tensors[name]


def _check_counts(node: Node, row: Operator) -> None:
    counts = (("inputs", node.inputs, row.inputs), ("outputs", node.outputs, row.outputs))
    for what, names, (fewest, most) in (*counts, ("updates", node.updates, row.updates)):
        if not fewest <= len(names) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            raise GraphError(f"Node {node.name!r} ({node.op}): it has {len(names)} {what}; give it {wanted}.")


def _attributes(node: Node, row: Operator) -> dict[str, Attribute]:
    unknown = sorted(set(node.attributes) - set(row.attributes))
    if unknown:
        known = ", ".join(row.attributes) or "none"
        raise GraphError(f"Node {node.name!r} ({node.op}): attribute {unknown[0]!r} is unknown; known are {known}.")
    return {name: _attribute(node, name, rule) for name, rule in row.attributes.items()}


def _attribute(node: Node, name: str, rule: AttributeRule) -> Attribute:
    value = node.attributes.get(name, rule.default)
    if value is None:
        raise GraphError(f"Node {node.name!r} ({node.op}): attribute {name!r} is missing; give it {rule.kind.value}.")
    if not _accepts(value, rule):
        wanted = " or ".join(rule.choices) or rule.kind.value
        if rule.kind in (Kind.INTEGER, Kind.PAIR, Kind.INTEGERS):
            wanted += f" of at least {rule.minimum}"
        raise GraphError(f"Node {node.name!r} ({node.op}): attribute {name!r} is {value!r}; give it {wanted}.")
    return value


def _accepts(value: Attribute, rule: AttributeRule) -> bool:
    match rule.kind:
        case Kind.NUMBER:
            # also false for NaN; a comparison takes any integer, a conversion to float would not
            return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAXIMUM_NUMBER
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.TEXT:
            return isinstance(value, str) and (not rule.choices or value in rule.choices)
        case _:
            return _accepts_integers(value, rule)


def _accepts_integers(value: Attribute, rule: AttributeRule) -> bool:
    match rule.kind:
        case Kind.INTEGER:
            return _is_integer(value, rule.minimum)
        case Kind.PAIR:
            both = value if isinstance(value, tuple) else (value, value)
            return len(both) == 2 and _are_integers(both, rule.minimum)
        case _:
            return _are_integers(value, rule.minimum)


def _is_integer(value: object, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= MAXIMUM_DIMENSION


def is_shape(value: object) -> bool:
    """Tell whether a value is a tuple of positive dimensions within the limits."""
    return _are_integers(value, 1)


def _are_integers(value: object, minimum: int) -> bool:
    return isinstance(value, tuple) and len(value) <= MAXIMUM_RANK and all(_is_integer(it, minimum) for it in value)
