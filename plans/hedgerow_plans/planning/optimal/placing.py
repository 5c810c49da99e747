"""Where a repeat happens: anywhere between the birth of what it reads and its first reader, for the same cost.

Early, what it reads may end sooner; late, what it makes begins later. `settle` puts every repeat where the sequence
overflows least, one after the other, as long as that helps.
"""

from hedgerow_plans.planning.optimal.repair import KeepGoing, overflow
from hedgerow_plans.planning.optimal.timeline import Timeline

_PASSES = 3


def settle(line: Timeline, budget: int, keep_going: KeepGoing) -> None:
    """Move repeats to where they make a sequence overflow least."""
    for _ in range(_PASSES):
        before = overflow(line, budget)
        for operation in [line.operation(position) for position in reversed(line.repeats())]:
            position = line.position(operation)
            if overflow(line, budget) == 0 or not keep_going():
                return
            if position >= 0:
                _place(line, position, budget)
        if overflow(line, budget) == before:
            return


def _place(line: Timeline, position: int, budget: int) -> None:
    """Move one repeat to the best place for it."""
    code, low, high = line.codes[position], *line.leeway(position)
    if high - low < 1 or not (line.memory[low : high + 1] > budget).any():
        return
    best, least = position, overflow(line, budget)
    mark = line.mark()
    line.delete(position)
    for place in range(low, high + 1):
        here = line.mark()
        line.insert(place, [code])
        if (over := overflow(line, budget)) < least:
            best, least = place, over
        line.rollback(here)
    if best == position:
        line.rollback(mark)
    else:
        line.insert(best, [code])
