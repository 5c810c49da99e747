"""The best sparse update for a memory budget: TTE's equation 5, solved exactly instead of by evolution.

A scheme trains the biases of the last k layers, and of some layers a share of the weight. Every layer offers a few
shares, each with its bits and its contribution; the biases are a prefix counted from the end. For a fixed k that is a
knapsack in which each layer gives at most one item. Its exact answer is kept as a frontier: all pairs of bits and
contribution that no other pair beats. The frontier over the layers is the same for every k, because a layer's weight
may train without its bias; so one pass over the layers answers all k at once.

What a layer costs is the caller's: this module knows nothing of networks.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """A part of one layer's weight that may train."""

    ratio: float  # of the input channels
    bits: int
    contribution: float


@dataclass(frozen=True, slots=True)
class Layer:
    """What training a layer costs and brings."""

    bias_bits: int
    bias_contribution: float  # what this bias adds when all later ones train already
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Scheme:
    """The last layers whose biases train, and by position the ratio of each weight that trains."""

    biases: int
    weights: dict[int, float]
    bits: int
    contribution: float


@dataclass(frozen=True, slots=True)
class _Choice:
    """One point of the frontier, and how it was reached."""

    bits: int
    contribution: float
    layer: int = -1
    ratio: float = 0.0
    before: "_Choice | None" = None


def best_scheme(layers: Sequence[Layer], budget_bits: int, fixed_bits: int = 0) -> Scheme | None:
    """Return the scheme of the highest contribution within a budget; None if not even nothing fits."""
    room = budget_bits - fixed_bits
    if room < 0:
        return None
    frontier = _weights_frontier(layers, room)
    reached = [choice.bits for choice in frontier]
    best: tuple[float, int, int, _Choice] | None = None
    bits, contribution = 0, 0.0
    for biases in range(len(layers) + 1):
        if biases:
            bits += layers[-biases].bias_bits
            contribution += layers[-biases].bias_contribution
        if bits > room:
            break
        choice = frontier[bisect_right(reached, room - bits) - 1]
        candidate = (contribution + choice.contribution, biases, bits, choice)
        if best is None or candidate[0] > best[0]:
            best = candidate
    return None if best is None else _scheme(best, fixed_bits)


def _scheme(best: tuple[float, int, int, _Choice], fixed_bits: int) -> Scheme:
    contribution, biases, bias_bits, choice = best
    weights: dict[int, float] = {}
    at: _Choice | None = choice
    while at is not None and at.layer >= 0:
        weights[at.layer] = at.ratio
        at = at.before
    return Scheme(biases, dict(sorted(weights.items())), fixed_bits + bias_bits + choice.bits, contribution)


def _weights_frontier(layers: Sequence[Layer], room: int) -> list[_Choice]:
    """Return all choices of weights that no other beats, by rising bits."""
    frontier = [_Choice(0, 0.0)]
    for number, layer in enumerate(layers):
        rows = [frontier]
        for share in layer.shares:
            end = bisect_right(frontier, room - share.bits, key=lambda choice: choice.bits)
            rows.append(
                [
                    _Choice(at.bits + share.bits, at.contribution + share.contribution, number, share.ratio, at)
                    for at in frontier[:end]
                ]
            )
        frontier = _undominated(sorted((c for row in rows for c in row), key=lambda c: (c.bits, -c.contribution)))
    return frontier


def _undominated(choices: Sequence[_Choice]) -> list[_Choice]:
    kept: list[_Choice] = []
    for choice in choices:
        if not kept or choice.contribution > kept[-1].contribution:
            kept.append(choice)
    return kept
