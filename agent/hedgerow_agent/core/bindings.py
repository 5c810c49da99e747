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
    """The compiled rungs of a program, the least recently used given up first."""

    def __init__(self, compile_rung: Callable[[int], Compiled], arena_bytes: int) -> None:
        self._compile = compile_rung
        self._most_calls = max(_ALWAYS_KEPT_BYTES, arena_bytes // _PART_OF_ARENA) // _BYTES_PER_CALL
        self._kept: OrderedDict[int, Compiled] = OrderedDict()

    def take(self, rung: int) -> Compiled:
        """Return a rung, ready to be replayed."""
        if rung not in self._kept:
            self._kept[rung] = self._compile(rung)
        self._kept.move_to_end(rung)
        while len(self._kept) > 1 and self._calls() > self._most_calls:
            self._kept.popitem(last=False)
        return self._kept[rung]

    def has(self, rung: int) -> bool:
        """Whether taking a rung is free."""
        return rung in self._kept

    def fill(self, rungs: range, current: int) -> None:
        """Bind as many rungs as may be kept besides the current one, which is bound already."""
        for rung in rungs:
            average = self._calls() / len(self._kept)
            if self._calls() + average <= self._most_calls:
                self.take(rung)
        self.take(current)

    def _calls(self) -> int:
        return sum(len(one.begin) + len(one.body) + len(one.finish) for one in self._kept.values())
