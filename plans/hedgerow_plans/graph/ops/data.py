"""How samples enter a graph: reading an array of the micro-batch is a node like any other."""

from hedgerow_plans.graph.ir import DType, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator


def _infer_input(call: Call) -> tuple[Tensor, ...]:
    if call.attributes["field"] == "x":
        return (call.output(0, call.shape()),)
    call.require(call.shape() == (), "labels are one number per sample; give it the shape []")
    return (call.output(0, (), DType.INT32),)


OPERATORS = (
    Operator(
        "input",
        _infer_input,
        inputs=(0, 0),
        attributes={
            "field": AttributeRule(Kind.TEXT, choices=("x", "y")),
            "shape": AttributeRule(Kind.SHAPE, default=()),
        },
    ),
)
