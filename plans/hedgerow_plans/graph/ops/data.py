"""How samples enter a graph: reading an array of the micro-batch is a node like any other.

A field may be read twice, with two nodes: an autoencoder compares its output with samples that need not stay in memory
between its first and its last layer.
"""

from hedgerow_plans.graph.ir import DType, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator
from hedgerow_plans.graph.ops import orders

_NATURAL = {"x": DType.FLOAT32, "y": DType.INT32}
"""What a field holds unless the node says otherwise: samples are floats, labels are the numbers of classes."""


def _infer_input(call: Call) -> tuple[Tensor, ...]:
    field, dtype = str(call.attributes["field"]), str(call.attributes["dtype"])
    wanted = _NATURAL[field] if dtype == "natural" else DType(dtype)
    if field == "y" and wanted is DType.INT32:
        call.require(call.shape() == (), "labels are one number per sample; give it the shape [] or the dtype float32")
    return (call.output(0, call.shape(), wanted),)


OPERATORS = (
    Operator(
        "input",
        _infer_input,
        inputs=(0, 0),
        attributes={
            "field": AttributeRule(Kind.TEXT, choices=("x", "y")),
            "shape": AttributeRule(Kind.SHAPE, default=()),
            "dtype": AttributeRule(Kind.TEXT, default="natural", choices=("natural", "float32", "int32")),
        },
        check_orders=orders.images_alike,
    ),
)
