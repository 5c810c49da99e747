"""BERT encoders (Devlin and others) with embeddings and pooler, as Hugging Face lays them out, without dropout.

A sample is a sequence of token numbers, all of one kind (sentence A) and without padding. Every layer normalises after
its sum. The classifier reads the pooler's output, which comes from the first token.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Init

_EPSILON = 1e-12
_PROJECTIONS = ("query", "key", "value")
_SCALE = 0.02
"""Standard deviation of first values, as BERT was published."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """Sizes of an encoder; the inner width of a layer is four times its width."""

    layers: int
    width: int
    heads: int
    vocabulary: int = 30_522
    positions: int = 512
    kinds: int = 2  # of tokens: sentence A or B


def bert(classes: int, input_shape: tuple[int, ...], encoder: Encoder, name: str = "bert") -> Graph:
    """Return an encoder for sequences of a length, with a classifier on its pooled output."""
    build = Builder(name)
    x = _embeddings(build, _length(name, input_shape, encoder), encoder)
    for number in range(encoder.layers):
        x = _layer(build, f"encoder.layer.{number}", x, encoder)
    first = build.select("first", x)
    pooled = build.activation("pooler.tanh", build.linear("pooler.dense", first, encoder.width, gain=1.0), "tanh")
    return build.graph(build.linear("logits", pooled, classes, gain=1.0))


def _length(name: str, input_shape: tuple[int, ...], encoder: Encoder) -> int:
    if len(input_shape) != 1 or not 1 <= input_shape[0] <= encoder.positions:
        wanted = f"give it one axis of 1 to {encoder.positions} tokens"
        raise GraphError(f"Model {name!r} cannot read samples of shape {list(input_shape)}; {wanted}.")
    return input_shape[0]


def _embeddings(build: Builder, length: int, encoder: Encoder) -> str:
    """Add the sum of what is known of a token: its word, its kind and its position."""
    x = build.embedding("embeddings.word_embeddings", build.tokens(length), encoder.vocabulary, encoder.width, _SCALE)
    if encoder.kinds:
        kinds = _table(build, "embeddings.token_type_embeddings", encoder.kinds, encoder.width)
        kind = build.slice("embeddings.kind", kinds, (0, 0), (1, encoder.width))
        row = build.node("embeddings.kind.row", "reshape", (kind,), shape=(encoder.width,))
        x = build.add_parameter("embeddings.kinds", x, row)
    positions = _table(build, "embeddings.position_embeddings", encoder.positions, encoder.width)
    if length < encoder.positions:
        positions = build.slice("embeddings.position", positions, (0, 0), (length, encoder.width))
    x = build.add_parameter("embeddings.positions", x, positions)
    return build.layer_norm("embeddings.LayerNorm", x, epsilon=_EPSILON)


def _table(build: Builder, name: str, rows: int, width: int) -> str:
    return build.parameter(f"{name}.weight", (rows, width), Init("normal", _SCALE))


def _layer(build: Builder, name: str, x: str, encoder: Encoder) -> str:
    own = f"{name}.attention.self"
    query, key, value = (build.linear(f"{own}.{part}", x, encoder.width, gain=1.0) for part in _PROJECTIONS)
    mixed = build.attention(own, query, key, value, encoder.heads)
    y = build.linear(f"{name}.attention.output.dense", mixed, encoder.width, gain=1.0)
    x = _closed(build, f"{name}.attention.output", x, y)
    y = build.linear(f"{name}.intermediate.dense", x, 4 * encoder.width)
    y = build.activation(f"{name}.intermediate.gelu", y, "gelu")
    return _closed(build, f"{name}.output", x, build.linear(f"{name}.output.dense", y, encoder.width, gain=1.0))


def _closed(build: Builder, name: str, x: str, y: str) -> str:
    """Add the sum with what came in, and its norm."""
    return build.layer_norm(f"{name}.LayerNorm", build.add(f"{name}.sum", y, x), epsilon=_EPSILON)
