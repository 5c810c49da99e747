"""The search for a sparse update is exact, and reaches every published scheme in no time."""

import time
from itertools import accumulate, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.accounting.published import TTE_SCHEMES, TTE_SIDE, TteScheme
from hedgerow_plans.accounting.tte import SparseUpdate, partial_backward
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models import zoo
from hedgerow_plans.planning.sparse_update import Layer, Scheme, Share, best_scheme
from hedgerow_plans.planning.sparse_update_costs import RATIOS, tte_layers

SHARES = st.builds(Share, st.sampled_from([0.125, 0.5, 1.0]), st.integers(0, 40), st.integers(0, 30).map(float))
LAYERS = st.builds(Layer, st.integers(0, 15), st.integers(0, 10).map(float), st.lists(SHARES, max_size=3).map(tuple))


def tried_out(layers: list[Layer], room: int) -> float:
    """Return the highest contribution over every prefix and every choice of shares."""
    best = 0.0
    nothing = Share(0.0, 0, 0.0)
    for biases in range(len(layers) + 1):
        chosen = layers[len(layers) - biases :]
        for shares in product(*((nothing, *layer.shares) for layer in chosen)):
            if sum(layer.bias_bits for layer in chosen) + sum(share.bits for share in shares) <= room:
                gain = sum(layer.bias_contribution for layer in chosen) + sum(share.contribution for share in shares)
                best = max(best, gain)
    return best


def recounted(layers: list[Layer], scheme: Scheme) -> tuple[int, float]:
    chosen = layers[len(layers) - scheme.biases :]
    shares = [
        max((share for share in layers[at].shares if share.ratio == ratio), key=lambda share: share.contribution)
        for at, ratio in scheme.weights.items()
    ]
    bits = sum(layer.bias_bits for layer in chosen) + sum(share.bits for share in shares)
    return bits, sum(layer.bias_contribution for layer in chosen) + sum(share.contribution for share in shares)


@settings(deadline=None)
@given(st.lists(LAYERS, max_size=5), st.integers(0, 120))
def test_it_equals_trying_everything_out(layers: list[Layer], room: int) -> None:
    scheme = best_scheme(layers, room + 7, fixed_bits=7)
    assert scheme is not None
    assert scheme.contribution == tried_out(layers, room)
    assert scheme.bits <= room + 7
    assert all(at >= len(layers) - scheme.biases for at in scheme.weights)


@settings(deadline=None)
@given(st.lists(LAYERS, max_size=8), st.integers(0, 200), st.integers(0, 50))
def test_more_memory_never_contributes_less(layers: list[Layer], room: int, more: int) -> None:
    small, large = best_scheme(layers, room), best_scheme(layers, room + more)
    assert small is not None
    assert large is not None
    assert small.contribution <= large.contribution


def test_a_budget_below_what_is_fixed_has_no_scheme() -> None:
    assert best_scheme([], 6, fixed_bits=7) is None


def test_the_bits_of_a_scheme_are_those_of_its_parts() -> None:
    chance = Random(2)
    layers = [
        Layer(
            chance.randint(1, 9),
            chance.random(),
            tuple(Share(r, chance.randint(1, 99), chance.random()) for r in (0.5, 1)),
        )
        for _ in range(30)
    ]
    scheme = best_scheme(layers, 400)
    assert scheme is not None
    bits, contribution = recounted(layers, scheme)
    assert bits == scheme.bits <= 400
    assert contribution == pytest.approx(scheme.contribution)


def contributions(chance: Random, count: int) -> tuple[list[float], list[dict[float, float]]]:
    """Draw what biases add, and for each layer what its shares add: never less for more channels."""
    biases = [chance.random() for _ in range(count)]
    weights = []
    for _ in range(count):
        steps = accumulate(chance.random() * chance.choice((0.1, 1.0, 3.0)) for _ in RATIOS)
        weights.append(dict(zip(RATIOS, steps, strict=True)))
    return biases, weights


def published_contribution(update: SparseUpdate, biases: list[float], weights: list[dict[float, float]]) -> float:
    gain = sum(biases[len(biases) - update.biases :])
    return gain + sum(weights[at][ratio] for at, ratio in update.weights.items() if ratio)


def cases() -> list[tuple[str, TteScheme]]:
    return [(model, scheme) for model, schemes in TTE_SCHEMES.items() for scheme in schemes]


@pytest.mark.parametrize(("model", "scheme"), cases(), ids=lambda value: getattr(value, "kilobytes", value))
def test_every_published_scheme_is_reached_or_beaten(model: str, scheme: TteScheme) -> None:
    graph = zoo.build(model, 10, (3, TTE_SIDE, TTE_SIDE))
    spent = partial_backward(graph, scheme.update)
    budget_bits = spent.weight_bits + spent.activation_bits
    chance = Random(f"{model} {scheme.kilobytes}")
    for _ in range(3):
        found, biases, weights, seconds = search(graph, chance, budget_bits)
        assert found.contribution >= published_contribution(scheme.update, biases, weights) * (1 - 1e-9)
        assert found.bits <= budget_bits
        recount = partial_backward(graph, SparseUpdate(found.biases, found.weights))
        assert recount.weight_bits + recount.activation_bits == found.bits
        print(f"FIGURE sparse update of {model} at {scheme.kilobytes} KB: found in {1000 * seconds:.1f} ms")


def search(
    graph: Graph, chance: Random, budget_bits: int
) -> tuple[Scheme, list[float], list[dict[float, float]], float]:
    count = sum(node.op == "conv2d" for node in graph.nodes)
    biases, weights = contributions(chance, count)
    fixed_bits, layers = tte_layers(graph, biases, weights)
    spent = []
    for _ in range(3):  # the quickest counts: this machine may be busy with other things
        started = time.process_time()
        found = best_scheme(layers, budget_bits, fixed_bits)
        spent.append(time.process_time() - started)
    assert found is not None
    return found, biases, weights, min(spent)
