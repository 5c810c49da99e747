"""Hypothesis strategies for forward graphs: chains with residual sums, shared weights and branches nobody reads."""

from hypothesis import strategies as st

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import Adapted, train_only
from hedgerow_plans.methods.catalogue import Full, Last, Lora, Method

_VECTOR_LAYERS = ("linear", "relu", "scale", "sum", "shared", "dead")
_IMAGE_LAYERS = ("conv2d", "grouped", "strided", "relu", "pool", "scale", "sum", "dead")


@st.composite
def forward_graphs(draw: st.DrawFn) -> Graph:
    """Return a valid forward graph of up to nine layers with all parameters frozen."""
    build = Builder("random")
    image = draw(st.booleans())
    shape = (2, draw(st.integers(2, 6)), draw(st.integers(2, 6))) if image else (draw(st.integers(1, 6)),)
    x = build.input(shape)
    made = [x]
    for number in range(draw(st.integers(0, 8))):
        layer = draw(st.sampled_from(_IMAGE_LAYERS if image else _VECTOR_LAYERS))
        x = _layer(draw, build, layer, f"n{number}", x, made)
        made.append(x)
        if image and draw(st.integers(0, 5)) == 0:
            x, image = build.flatten(f"flat{number}", x), False
    x = build.flatten("flat", x)
    return build.graph(build.linear("logits", x, draw(st.integers(2, 4))))


def _layer(draw: st.DrawFn, build: Builder, layer: str, name: str, x: str, made: list[str]) -> str:
    small = min(build.shape(x)[1:], default=0) < 2
    match layer:
        case "linear":
            return build.linear(name, x, draw(st.integers(1, 6)))
        case "shared":
            return _shared(build, name, x)
        case "conv2d":
            return build.conv2d(name, x, 2 * draw(st.integers(1, 2)))
        case "grouped":
            return build.conv2d(name, x, 4, groups=2)
        case "strided":
            return build.conv2d(name, x, 2, kernel=1, stride=2, padding=0)
        case "pool" if not small:
            return build.max_pool2d(name, x)
        case "scale":
            return build.node(name, "scale", (x,), scale=draw(st.sampled_from([1.0, 0.5])))
        case "sum":
            other = draw(st.sampled_from([x, *(tensor for tensor in made if build.shape(tensor) == build.shape(x))]))
            return build.add(name, other, x, scale=draw(st.sampled_from([1.0, 0.5])))
        case "dead":
            build.relu(name, x)
            return x
        case _:
            return build.relu(name, x)


def _shared(build: Builder, name: str, x: str) -> str:
    """Use one layer twice in a row."""
    width = build.shape(x)[0]
    first = build.linear(name, x, width)
    return build.node(f"{name}.again", "linear", (first, f"{name}.weight", f"{name}.bias"))


METHODS: st.SearchStrategy[Method] = st.one_of(
    st.just(Full()),
    st.just(Last()),
    st.builds(Lora, rank=st.integers(1, 5), alpha=st.sampled_from([None, 2.0, 7.0])),
)


@st.composite
def adapted_graphs(draw: st.DrawFn) -> Adapted:
    """Return a forward graph under a method, or with any selection of its parameters trained."""
    graph = draw(forward_graphs())
    if draw(st.booleans()):
        return draw(METHODS).apply(graph)
    names = [tensor.name for tensor in graph.resident()]
    return train_only(graph, draw(st.sets(st.sampled_from(names), min_size=1)))
