"""Where the boxes and lines of a graph's picture go; who paints them is not decided here.

A node's row is its distance from the inputs, so arrows point down; nodes of one row stand side by side. Long networks
are folded into strips of equal height from left to right, because a hundred rows in one strip cannot be looked at.
"""

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from hedgerow_plans.graph.ir import Graph, Node, Role
from hedgerow_plans.graph.operator import Tensors

BOX_WIDTH = 170
BOX_HEIGHT = 34
_GAP_ACROSS = 16
_GAP_DOWN = 16
_STRIP_GAP = 46
_MARGIN = 20
_TITLE_HEIGHT = 34
_HEIGHT_OVER_WIDTH = 0.75
_LONGEST_LINE = 28


class Shade(StrEnum):
    """What a box is coloured by: what its node learns."""

    PLAIN = "plain"  # it has no parameters
    FROZEN = "frozen"
    TRAINED = "trained"


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its upper left corner, two lines of text, and its shade."""

    x: int
    y: int
    title: str
    detail: str
    shade: Shade


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes, lines between points, and the size of it all."""

    title: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[tuple[int, int, int, int], ...]


def draw(graph: Graph) -> Picture:
    """Return the picture of a valid graph."""
    rows = _rows(graph)
    places = _Places.fold(rows)
    tensors = graph.by_name()
    boxes = [_box(node, tensors, places.corner(at)) for at, node in enumerate(graph.nodes)]
    maker = {name: at for at, node in enumerate(graph.nodes) for name in node.outputs}
    edges = {(maker[name], at) for at, node in enumerate(graph.nodes) for name in node.reads if name in maker}
    lines = tuple(_line(boxes[first], boxes[second]) for first, second in sorted(edges))
    title = f"{graph.name}: {len(graph.nodes)} nodes"
    return Picture(title, places.width, places.height, tuple(boxes), lines)


def _rows(graph: Graph) -> list[int]:
    """Return for each node how many nodes lie between it and the inputs on the longest way."""
    depth: dict[str, int] = {}
    rows = []
    for node in graph.nodes:
        rows.append(1 + max((depth[name] for name in node.reads if name in depth), default=-1))
        depth.update(dict.fromkeys(node.outputs, rows[-1]))
    return rows


@dataclass(frozen=True, slots=True)
class _Places:
    """The fold: rows per strip, the left edge of each strip, and the row and column of each node."""

    rows_per_strip: int
    lefts: tuple[int, ...]
    cells: tuple[tuple[int, int], ...]  # by node
    width: int
    height: int

    @classmethod
    def fold(cls, rows: list[int]) -> "_Places":
        """Choose the strips so that the picture is about as wide as it is high."""
        in_row = Counter(rows)
        count, widest = max(rows, default=0) + 1, max(in_row.values(), default=1)
        area = count * (BOX_HEIGHT + _GAP_DOWN) * widest * (BOX_WIDTH + _GAP_ACROSS)
        per_strip = min(count, max(1, math.ceil(math.sqrt(area * _HEIGHT_OVER_WIDTH) / (BOX_HEIGHT + _GAP_DOWN))))
        lefts, left = [], _MARGIN
        for first in range(0, count, per_strip):
            lefts.append(left)
            columns = max(in_row[row] for row in range(first, min(first + per_strip, count)))
            left += columns * (BOX_WIDTH + _GAP_ACROSS) + _STRIP_GAP
        height = 2 * _MARGIN + _TITLE_HEIGHT + per_strip * (BOX_HEIGHT + _GAP_DOWN)
        return cls(per_strip, tuple(lefts), _cells(rows), left - _STRIP_GAP + _MARGIN, height)

    def corner(self, node: int) -> tuple[int, int]:
        """Return the upper left corner of a node's box."""
        row, column = self.cells[node]
        strip, row = divmod(row, self.rows_per_strip)
        down = _MARGIN + _TITLE_HEIGHT + row * (BOX_HEIGHT + _GAP_DOWN)
        return self.lefts[strip] + column * (BOX_WIDTH + _GAP_ACROSS), down


def _cells(rows: list[int]) -> tuple[tuple[int, int], ...]:
    filled: Counter[int] = Counter()
    cells = []
    for row in rows:
        cells.append((row, filled[row]))
        filled[row] += 1
    return tuple(cells)


def _box(node: Node, tensors: Tensors, corner: tuple[int, int]) -> Box:
    made = tensors[node.outputs[0]].shape if node.outputs else ()
    shape = "x".join(map(str, made))
    return Box(*corner, _shortened(node.name), _shortened(f"{node.op} {shape}".strip()), _shade(node, tensors))


def _shade(node: Node, tensors: Tensors) -> Shade:
    roles = {tensors[name].role for name in node.reads}
    if Role.TRAINABLE in roles:
        return Shade.TRAINED
    return Shade.FROZEN if Role.FROZEN in roles else Shade.PLAIN


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 10]}…{text[-9:]}"


def _line(upper: Box, lower: Box) -> tuple[int, int, int, int]:
    """Return a line from the bottom of one box to the top of the other, or sideways into the next strip."""
    if lower.y > upper.y:
        return upper.x + BOX_WIDTH // 2, upper.y + BOX_HEIGHT, lower.x + BOX_WIDTH // 2, lower.y
    return upper.x + BOX_WIDTH, upper.y + BOX_HEIGHT // 2, lower.x, lower.y + BOX_HEIGHT // 2
