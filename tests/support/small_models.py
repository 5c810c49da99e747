"""Small models with what methods care about: a CNN with norms, inverted residuals, a transformer block."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import DType, Graph

CLASSES = 3


def small_cnn() -> Graph:
    """Two convolutions with batch norms and a grouped one, then two linear layers."""
    build = Builder("small-cnn")
    x = build.input((2, 8, 7))
    x = build.relu("relu1", build.batch_norm("bn1", build.conv2d("conv1", x, 8)))
    x = build.max_pool2d("pool", x)
    x = build.relu("relu2", build.batch_norm("bn2", build.conv2d("conv2", x, 8, groups=2)))
    x = build.relu("relu3", build.linear("fc", build.flatten("flat", x), 10))
    return build.graph(build.linear("logits", x, CLASSES, gain=1.0))


def inverted_residual() -> Graph:
    """A stem, a block that keeps the shape and one that halves it, a mean and a linear layer."""
    build = Builder("inverted")
    x = build.relu("stem.relu", build.conv2d("stem", build.input((3, 9, 9)), 8))
    for number, stride in enumerate((1, 2)):
        name = f"block{number}"
        y = build.batch_norm(f"{name}.bn1", build.conv2d(f"{name}.expand", x, 16, kernel=1, padding=0))
        y = build.conv2d(
            f"{name}.depthwise", build.activation(f"{name}.act1", y, "relu6"), 16, stride=stride, groups=16
        )
        y = build.activation(f"{name}.act2", build.batch_norm(f"{name}.bn2", y), "hswish")
        y = build.batch_norm(f"{name}.bn3", build.conv2d(f"{name}.project", y, 8, kernel=1, padding=0))
        x = build.add(f"{name}.sum", x, y) if stride == 1 else y
    return build.graph(build.linear("logits", build.global_avg_pool("mean", x), CLASSES, gain=1.0))


def transformer_block() -> Graph:
    """Self-attention and a feed-forward pair, each with its sum and norm, over five tokens of eight numbers."""
    build = Builder("transformer")
    x = build.input((5, 8))
    queries, keys, values = (build.linear(f"attention.{part}", x, 8) for part in ("query", "key", "value"))
    y = build.linear("attention.output", build.attention("attention", queries, keys, values, heads=2), 8)
    x = build.layer_norm("norm1", build.add("sum1", x, y))
    y = build.activation("gelu", build.linear("feed.up", x, 12), "gelu")
    x = build.layer_norm("norm2", build.add("sum2", x, build.linear("feed.down", y, 8)))
    return build.graph(build.linear("logits", build.select("first", x), CLASSES, gain=1.0))


MODELS = {"cnn": small_cnn, "inverted": inverted_residual, "transformer": transformer_block}


def arrays_for(graph: Graph, batch_size: int, seed: int) -> dict[str, Array]:
    """Return numbers for all residents, variances above zero, and a batch of samples with labels."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for tensor in graph.resident():
        values = 0.5 * rng.standard_normal(tensor.shape)
        arrays[tensor.name] = np.abs(values) + 0.5 if "running_var" in tensor.name else values
    entry = next(node for node in graph.nodes if node.op == "input" and node.attributes["field"] == "x")
    tensor = graph.by_name()[entry.outputs[0]]
    assert tensor.dtype is DType.FLOAT32
    arrays["x"] = rng.standard_normal((batch_size, *tensor.shape))
    arrays["labels"] = rng.integers(0, CLASSES, batch_size, dtype=np.int32)
    return arrays
