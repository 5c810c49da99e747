"""Multi-layer perceptrons: fully connected layers with rectifiers between them."""

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph

DEFAULT_HIDDEN = (64, 32)


def mlp(classes: int, input_shape: tuple[int, ...], hidden: tuple[int, ...] = DEFAULT_HIDDEN) -> Graph:
    """Return a perceptron with the given widths between the samples and the classes."""
    build = Builder("mlp")
    x = build.flatten("flat", build.input(input_shape))
    for number, width in enumerate(hidden, start=1):
        x = build.relu(f"relu{number}", build.linear(f"fc{number}", x, width))
    return build.graph(build.linear("logits", x, classes, gain=1.0))
