"""Where one token is read, only that one is computed; and what is computed stays what it was."""

import numpy as np
import pytest

from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Init
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.catalogue import Adapter, Full, Lora, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.training import graphs
from hedgerow_plans.training.narrowing import narrowed
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory

TOKENS, WIDTH, BATCH = 6, 8, 3


def encoder() -> Graph:
    return zoo.build("encoder-4x256", 3, (TOKENS,))


def whole(graph: Graph) -> set[str]:
    """Return the nodes of a graph that make all tokens."""
    tensors = graph.by_name()
    return {node.name for node in graph.nodes if tensors[node.outputs[0]].shape[:1] == (TOKENS,)}


def test_of_the_last_layer_only_keys_and_values_read_all_tokens() -> None:
    graph = narrowed(encoder())
    check(graph)
    last = "encoder.layer.3."
    assert {name for name in whole(graph) if name.startswith(last)} == {
        f"{last}attention.self.key",
        f"{last}attention.self.value",
    }
    assert {name for name in whole(graph) if not name.startswith(last)} == {
        name for name in whole(encoder()) if not name.startswith(last)
    }
    assert graph.resident() == encoder().resident()
    assert narrowed(graph) == graph


def step(graph: Graph, method: Method) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    direct = graphs.differentiate(method.apply(graph).graph, Sgd(), BATCH).direct
    arrays: dict[str, Array] = {
        tensor.name: initial_value(tensor, 1).astype(np.float64) + 0.1 * rng.standard_normal(tensor.shape)
        for tensor in direct.resident()
    }
    arrays["x"] = rng.integers(0, 50, (BATCH, TOKENS), dtype=np.int32)
    arrays["labels"] = rng.integers(0, 3, BATCH, dtype=np.int32)
    found = Laboratory(BATCH).run_graph(direct, arrays)
    return {name: found[name] for name in ("losses", *(tensor.name for tensor in direct.resident()))}


@pytest.mark.parametrize("method", [Full(), Lora(2), Adapter(4)], ids=lambda method: method.name)
def test_it_trains_to_the_same_parameters(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = step(encoder(), method)
    monkeypatch.setattr(graphs, "narrowed", lambda graph: graph)
    wide = step(encoder(), method)
    assert narrow.keys() == wide.keys()
    for name, value in wide.items():
        assert np.allclose(narrow[name], value, rtol=1e-10, atol=1e-12), name


def sequence(build: Builder) -> str:
    return build.linear("hidden", build.input((TOKENS, WIDTH)), WIDTH)


def cut(build: Builder, x: str, first: int) -> str:
    return build.linear(f"logits{first}", build.select(f"token{first}", x, first), 2)


def test_what_others_read_as_a_whole_stays_whole() -> None:
    build = Builder("both")
    x = sequence(build)
    mean = build.linear("all", build.node("flat", "reshape", (x,), shape=(TOKENS * WIDTH,)), 2)
    graph = build.graph(build.add("sum", mean, cut(build, x, 0)))
    assert narrowed(graph) == graph


def test_two_different_tokens_stay_a_whole() -> None:
    build = Builder("two")
    x = sequence(build)
    graph = build.graph(build.add("sum", cut(build, x, 0), cut(build, x, 3)))
    assert narrowed(graph) == graph


def test_a_norm_over_all_tokens_needs_all() -> None:
    build = Builder("norm")
    shape = (TOKENS, WIDTH)
    parameters = [build.parameter(f"norm.{part}", shape, Init("ones")) for part in ("weight", "bias")]
    x = build.node("norm", "layer_norm", (sequence(build), *parameters))
    graph = build.graph(cut(build, x, 2))
    assert narrowed(graph) == graph


def test_some_neighbouring_tokens_are_cut_out_as_one_is() -> None:
    build = Builder("some")
    x = build.slice("part", build.relu("relu", sequence(build)), (2, 0), (3, WIDTH))
    graph = narrowed(build.graph(build.linear("logits", build.flatten("flat", x), 2)))
    check(graph)
    assert whole(graph) == {"x"}
    assert graph.by_name()["hidden"].shape == (3, WIDTH)
