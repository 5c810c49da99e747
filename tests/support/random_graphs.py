"""Hypothesis strategies for forward graphs: chains with residual sums, shared weights and branches nobody reads."""

from dataclasses import dataclass

from hypothesis import reject
from hypothesis import strategies as st

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import Adapted, MethodError, train_only
from hedgerow_plans.methods.catalogue import Adapter, Bias, Full, Last, LayerShare, LiteResidual, Lora, Method, Sparse


@dataclass(slots=True)
class _Chain:
    """A graph under construction: `x` is its end, `made` what a sum may reach back to."""

    draw: st.DrawFn
    build: Builder
    x: str
    made: list[str]

    def grow(self, name: str) -> None:
        """Add one layer that fits the end."""
        layers = _IMAGE_LAYERS if len(self.build.shape(self.x)) == 3 else _VECTOR_LAYERS
        self.x = self.draw(st.sampled_from(layers))(self, name)
        self.made.append(self.x)


def _linear(chain: _Chain, name: str) -> str:
    return chain.build.linear(name, chain.x, chain.draw(st.integers(1, 6)))


def _used_twice(chain: _Chain, name: str) -> str:
    first = chain.build.linear(name, chain.x, chain.build.shape(chain.x)[0])
    return chain.build.node(f"{name}.again", "linear", (first, f"{name}.weight", f"{name}.bias"))


def _conv2d(chain: _Chain, name: str) -> str:
    return chain.build.conv2d(name, chain.x, 2 * chain.draw(st.integers(1, 2)))


def _grouped(chain: _Chain, name: str) -> str:
    return chain.build.conv2d(name, chain.x, 4, groups=2)


def _strided(chain: _Chain, name: str) -> str:
    return chain.build.conv2d(name, chain.x, 2, kernel=1, stride=2, padding=0)


def _pool(chain: _Chain, name: str) -> str:
    kernel = min(2, *chain.build.shape(chain.x)[1:])
    return chain.build.max_pool2d(name, chain.x, kernel)


def _flatten(chain: _Chain, name: str) -> str:
    return chain.build.flatten(name, chain.x)


def _relu(chain: _Chain, name: str) -> str:
    return chain.build.relu(name, chain.x)


def _scale(chain: _Chain, name: str) -> str:
    return chain.build.node(name, "scale", (chain.x,), scale=chain.draw(_SCALES))


def _sum(chain: _Chain, name: str) -> str:
    shape = chain.build.shape
    alike = [tensor for tensor in chain.made if shape(tensor) == shape(chain.x)]
    return chain.build.add(name, chain.draw(st.sampled_from(alike)), chain.x, scale=chain.draw(_SCALES))


def _unread(chain: _Chain, name: str) -> str:
    chain.build.relu(name, chain.x)
    return chain.x


_SCALES = st.sampled_from([1.0, 0.5])
_VECTOR_LAYERS = (_linear, _used_twice, _relu, _scale, _sum, _unread)
_IMAGE_LAYERS = (_conv2d, _grouped, _strided, _relu, _pool, _scale, _sum, _unread, _flatten)


@st.composite
def forward_graphs(draw: st.DrawFn) -> Graph:
    """Return a valid forward graph of up to nine layers with all parameters frozen."""
    build = Builder("random")
    sides = st.integers(2, 6)
    x = build.input(draw(st.one_of(st.tuples(st.just(2), sides, sides), st.tuples(sides))))
    chain = _Chain(draw, build, x, [x])
    for number in range(draw(st.integers(0, 8))):
        chain.grow(f"n{number}")
    x = build.flatten("flat", chain.x)
    return build.graph(build.linear("logits", x, draw(st.integers(2, 4))))


METHODS: st.SearchStrategy[Method] = st.one_of(
    st.just(Full()),
    st.just(Last()),
    st.just(Bias()),
    st.builds(Lora, rank=st.integers(1, 5), alpha=st.sampled_from([None, 2.0, 7.0])),
    st.builds(Adapter, width=st.integers(1, 3)),
    st.sampled_from([LiteResidual(), LiteResidual(biases=False), LiteResidual(residuals=False)]),
    st.builds(
        Sparse,
        last_biases=st.integers(0, 2),
        layers=st.lists(
            st.builds(LayerShare, st.sampled_from(["n0", "n1", "n2", "logits"]), st.integers(1, 8)),
            max_size=2,
            unique_by=lambda share: share.layer,
        ).map(tuple),
    ),
)


def applied(method: Method, graph: Graph) -> Adapted:
    """Apply a method, or drop the example if the method says that it cannot."""
    try:
        return method.apply(graph)
    except MethodError:
        reject()


@st.composite
def adapted_graphs(draw: st.DrawFn) -> Adapted:
    """Return a forward graph under a method, or with any selection of its parameters trained."""
    graph = draw(forward_graphs())
    if draw(st.booleans()):
        return applied(draw(METHODS), graph)
    names = [tensor.name for tensor in graph.resident()]
    return train_only(graph, draw(st.sets(st.sampled_from(names), min_size=1)))
