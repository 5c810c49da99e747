"""Compiled plans that are kept, so that going back to a rung binds nothing again.

Binding the calls of a small network outlasts one of its steps; binding those of a large one does not, but takes memory
that its arena should have. So what is kept is bounded: by a mebibyte, or by a small part of the arena if that is more.
"""

from collections import OrderedDict
from collections.abc import Callable

from hedgerow_agent.core.compilation import Compiled

_BYTES_PER_CALL = 2048
"""What a bound call and its views take up in Python, roughly; measured 1,700 on a MobileNetV2."""

_ALWAYS_KEPT_BYTES = 1 << 20
_PART_OF_ARENA = 20


class Bindings:
    """The compiled rungs of a program, the least recently used given up first; nobody else may hold on to one."""

    def __init__(self, compile_rung: Callable[[int], Compiled], arena_bytes: int) -> None:
        self._compile = compile_rung
        self._most_calls = max(_ALWAYS_KEPT_BYTES, arena_bytes // _PART_OF_ARENA) // _BYTES_PER_CALL
        self._kept: OrderedDict[int, Compiled] = OrderedDict()

    def take(self, rung: int) -> Compiled:
        """Return a rung, ready to be replayed."""
        if rung not in self._kept:
            # Before the new calls are bound: two large rungs at once would take up what a step should have.
            self._give_up(0, self._average())
            self._kept[rung] = self._compile(rung)
            self._give_up(1, 0)
        self._kept.move_to_end(rung)
        return self._kept[rung]

    def has(self, rung: int) -> bool:
        """Whether taking a rung is free."""
        return rung in self._kept

    def fill(self, rungs: range, current: int) -> None:
        """Bind as many rungs as may be kept besides the current one, which is bound already."""
        for rung in rungs:
            if self._calls() + self._average() <= self._most_calls:
                self.take(rung)
        self.take(current)

    def _give_up(self, fewest: int, expected_calls: float) -> None:
        """Forget rungs until as many calls more would fit, or only so few are left."""
        while len(self._kept) > fewest and self._calls() + expected_calls > self._most_calls:
            self._kept.popitem(last=False)

    def _average(self) -> float:
        """Return how many calls a rung has, as far as is known."""
        return self._calls() / max(1, len(self._kept))

    def _calls(self) -> int:
        return sum(len(one.begin) + len(one.body) + len(one.finish) for one in self._kept.values())
