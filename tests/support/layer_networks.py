"""Small networks that between them use every layer of the operator table that samples pass through."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Init

TOKENS, VOCABULARY, WIDTH = 5, 11, 8


@dataclass(frozen=True, slots=True)
class Case:
    """A network, the loss it is trained with, and how its samples and targets are drawn."""

    name: str
    build: Callable[[], Graph]
    loss: str = "cross_entropy"

    def draw(self, count: int, seed: int, dtype: str = "float32") -> tuple[Array, Array]:
        """Return samples and targets."""
        rng, graph = np.random.default_rng(seed), self.build()
        tensors = graph.by_name()
        x, output = tensors["x"], tensors[graph.outputs[0]]
        samples = (
            rng.integers(0, VOCABULARY, (count, *x.shape), dtype=np.int32)
            if x.dtype.value == "int32"
            else rng.standard_normal((count, *x.shape)).astype(dtype)
        )
        if self.loss in ("cross_entropy", "reconstruction"):
            return samples, rng.integers(0, output.shape[-1], count, dtype=np.int32)
        return samples, rng.random((count, *output.shape)).astype(dtype)


def patchwork() -> Graph:
    """Images through everything that cuts, joins, pools and resizes them."""
    build = Builder("patchwork")
    x = build.pad("border", build.input((3, 9, 8)), (0, 0, 1), (0, 1, 0))
    x = build.conv2d("tall", x, 6, kernel=(3, 1), padding=(1, 0), stride=(1, 2))
    left, right = build.split("halves", x, 2, 4)
    left = build.max_pool2d("largest", left, 3, stride=2, padding=1)
    right = build.avg_pool2d("mean", build.relu("relu", right), 3, stride=2, padding=1)
    x = build.concat("joined", left, right)
    x = build.conv2d("depthwise", x, 12, groups=6)
    x = build.upsample_bilinear("larger", x, (7, 5))
    x = build.max_pool2d("rounded", x, 2, rounding="up")
    x = build.slice("cut", build.transpose("turned", x, 0, 2, 1), (1, 0, 1), (11, 3, 3))
    return build.graph(build.linear("logits", build.global_avg_pool("pooled", x), 4))


def images() -> Graph:
    """Images to larger images."""
    build = Builder("images")
    x = build.relu("relu", build.conv2d("first", build.input((2, 4, 3)), 3))
    return build.graph(build.conv2d("second", build.upsample_bilinear("larger", x, (8, 6), corners="aligned"), 1))


def autoencoder() -> Graph:
    """Vectors through a narrow place and back."""
    build = Builder("autoencoder")
    x = build.relu("narrow", build.linear("encode", build.input((10,)), 4))
    return build.graph(build.linear("decode", x, 10))


def transformer() -> Graph:
    """Tokens through one encoder block, then the first of them through a pooler, as BERT does."""
    build = Builder("transformer")
    x = _embedded(build)
    q, k, v = (build.linear(name, x, WIDTH) for name in ("query", "key", "value"))
    mixed = build.linear("output", build.attention("attention", q, k, v, heads=2), WIDTH)
    x = build.layer_norm("norm", build.add("residual", x, mixed))
    hidden = build.node("gelu", "gelu", (build.linear("grow", x, 2 * WIDTH),))
    x = build.layer_norm("last_norm", build.add("last_residual", x, build.linear("shrink", hidden, WIDTH)))
    pooled = build.node("tanh", "tanh", (build.linear("pooler", build.select("first", x), WIDTH),))
    return build.graph(build.linear("logits", pooled, 3))


def composed_attention() -> Graph:
    """The same attention from matmul, softmax and transposes."""
    build, heads = Builder("composed"), 2
    x = _embedded(build)
    q, k, v = (_heads(build, build.linear(name, x, WIDTH), heads) for name in ("query", "key", "value"))
    scores = build.node("scaled", "scale", (build.matmul("scores", q, k, transpose_second=True),), scale=0.5)
    mixed = build.matmul("mixed", build.softmax("chances", scores), v)
    x = build.node("joined", "reshape", (build.transpose("back", mixed, 1, 0, 2),), shape=(TOKENS, WIDTH))
    return build.graph(build.linear("logits", build.select("first", x), 3))


def _embedded(build: Builder) -> str:
    words = build.embedding("words", build.tokens(TOKENS), VOCABULARY, WIDTH)
    table = build.parameter("positions.weight", (2 * TOKENS, WIDTH), Init("normal", 0.02))
    return build.add_parameter("placed", words, build.slice("positions", table, (0, 0), (TOKENS, WIDTH)))


def _heads(build: Builder, x: str, heads: int) -> str:
    apart = build.node(f"{x}.apart", "reshape", (x,), shape=(TOKENS, heads, WIDTH // heads))
    return build.transpose(f"{x}.heads", apart, 1, 0, 2)


CASES = (
    Case("patchwork", patchwork),
    Case("images-mse", images, "mse"),
    Case("images-bce", images, "bce"),
    Case("autoencoder", autoencoder, "reconstruction"),
    Case("transformer", transformer),
    Case("composed-attention", composed_attention),
)
