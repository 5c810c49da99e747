"""The best sparse update for a memory budget: TTE's equation 5, solved exactly instead of by evolution.

A scheme trains the biases of the last k layers, and of some of these layers a share of the weight. Each layer offers a
few shares with their bits and their contribution. That is a knapsack in which a layer gives at most one item, with a
prefix: going back one more layer means paying for its bias.

Layers are added from the last to the first. After each, those pairs of bits and contribution are kept that no other
pair beats, and that could still become the best: what is left of the budget, filled with fractions of the layers to
come, must reach beyond the best scheme known. So few pairs are left that the exact answer takes milliseconds.

What a layer costs is the caller's; `sparse_update_costs` counts as TTE does.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, NamedTuple


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
    """How many last layers train their biases, and by position the ratio of each weight that trains."""

    biases: int
    weights: dict[int, float]
    bits: int
    contribution: float


_Choice = tuple[int, float, int, Any]
"""Bits, minus the contribution (so that choices sort best first), biases, and weights as links ((layer, ratio), rest).

A plain tuple: there are tens of thousands of them, and they are sorted after every layer.
"""


class _Step(NamedTuple):
    """A layer's bias, or the next larger share of its weight: steps of one weight get ever less efficient."""

    waste: float  # minus the contribution of a bit; steps sort from the best to the worst
    layer: int
    bits: int
    contribution: float
    is_bias: bool


def best_scheme(layers: Sequence[Layer], budget_bits: int, fixed_bits: int = 0) -> Scheme | None:
    """Return the scheme of the highest contribution within a budget; None if the fixed bits alone exceed it."""
    room = budget_bits - fixed_bits
    if room < 0:
        return None
    steps = sorted(step for number, layer in enumerate(layers) for step in _steps(number, layer))
    least = _rounded(layers, steps, room)
    best: _Choice = (0, 0.0, 0, None)
    frontier = [best]
    for number in reversed(range(len(layers))):
        frontier = _undominated(_extended(frontier, layers[number], number, room))
        best = min((best, *frontier[-1:]), key=lambda choice: choice[1])
        least = max(least, -best[1])
        optimistic = _optimistic([step for step in steps if step.layer < number])
        wanted = least - 1e-9 * abs(least)
        frontier = [choice for choice in frontier if optimistic(room - choice[0]) - choice[1] >= wanted]
        if not frontier:
            break
    return Scheme(best[2], _weights(best), fixed_bits + best[0], -best[1])


def _extended(frontier: Sequence[_Choice], layer: Layer, number: int, room: int) -> list[_Choice]:
    """Return every choice with the next layer's bias, and with each share of its weight or none."""
    limit, gain = room - layer.bias_bits, layer.bias_contribution
    choices = [(b + layer.bias_bits, c - gain, n + 1, links) for b, c, n, links in frontier if b <= limit]
    longer = list(choices)
    for share in layer.shares:
        more, gain, link = share.bits, share.contribution, (number, share.ratio)
        choices += [(b + more, c - gain, n, (link, rest)) for b, c, n, rest in longer if b + more <= room]
    return choices


def _undominated(choices: list[_Choice]) -> list[_Choice]:
    """Return the choices that no other beats, by rising bits and rising contribution."""
    choices.sort(key=itemgetter(0, 1))
    kept: list[_Choice] = []
    lowest = float("inf")
    for choice in choices:
        if choice[1] < lowest:
            lowest = choice[1]
            kept.append(choice)
    return kept


def _weights(choice: _Choice) -> dict[int, float]:
    weights: dict[int, float] = {}
    links = choice[3]
    while links is not None:
        (layer, ratio), links = links
        weights[layer] = ratio
    return weights


def _steps(number: int, layer: Layer) -> Iterator[_Step]:
    """Yield a layer's bias, and the upper hull of its shares."""
    yield _step(number, layer.bias_bits, layer.bias_contribution, is_bias=True)
    hull = [(0, 0.0)]
    for share in sorted(layer.shares, key=lambda share: (share.bits, share.contribution)):
        point = (share.bits, share.contribution)
        if point[1] > hull[-1][1]:
            while len(hull) > 1 and _lies_below(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
    for low, high in pairwise(hull):
        yield _step(number, high[0] - low[0], high[1] - low[1], is_bias=False)


def _step(layer: int, bits: int, contribution: float, *, is_bias: bool) -> _Step:
    waste = -contribution / bits if bits else float("-inf")
    return _Step(waste, layer, bits, contribution, is_bias)


def _lies_below(first: tuple[int, float], middle: tuple[int, float], last: tuple[int, float]) -> bool:
    """Tell whether the middle point lies on or below the line from first to last."""
    return (middle[1] - first[1]) * (last[0] - first[0]) <= (last[1] - first[1]) * (middle[0] - first[0])


def _optimistic(steps: Sequence[_Step]) -> Callable[[int], float]:
    """Return how much steps could add within some bits at most, if they could be taken in fractions."""
    bits = list(accumulate((step.bits for step in steps), initial=0))
    gains = list(accumulate((step.contribution for step in steps), initial=0.0))

    def most(room: int) -> float:
        whole = bisect_right(bits, room) - 1
        return gains[whole] - (steps[whole].waste * (room - bits[whole]) if whole < len(steps) else 0.0)

    return most


def _rounded(layers: Sequence[Layer], steps: Sequence[_Step], room: int) -> float:
    """Return the contribution of the best scheme that is filled up by efficiency alone, over all prefixes."""
    best, bits, contribution = 0.0, 0, 0.0
    for number in reversed(range(len(layers))):
        bits += layers[number].bias_bits
        contribution += layers[number].bias_contribution
        if bits > room:
            break
        best = max(best, contribution + _filled(steps, number, room - bits))
    return best


def _filled(steps: Sequence[_Step], first: int, room: int) -> float:
    """Return what weights from a layer on add; one that has a step that does not fit takes none of its later ones."""
    closed: set[int] = set()
    gain = 0.0
    for step in steps:
        if step.layer >= first and not step.is_bias and step.layer not in closed:
            if step.bits > room:
                closed.add(step.layer)
            else:
                room -= step.bits
                gain += step.contribution
    return gain
