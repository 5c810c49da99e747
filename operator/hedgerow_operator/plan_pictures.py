"""A plan's chart as a PNG or SVG: memory over steps, with matplotlib from the extra `plot`."""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow_operator.mistakes import BadInput
from hedgerow_plans.extras import explain_missing_extra
from hedgerow_plans.planning.charts import Chart, Kind, Mark
from hedgerow_plans.resources.quantities import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FILLS = {
    Kind.RESIDENT: "#9aa5b1",
    Kind.ACTIVATION: "#5b9bd5",
    Kind.RETURNED: "#f2b134",
    Kind.GRADIENT: "#e4737a",
    Kind.TOTAL: "#b279b4",
    Kind.SCRATCH: "#d9d4c7",
}
_STROKES = {Mark.RECOMPUTE: "#d98200", Mark.PAGE_OUT: "#1b7f5c", Mark.PAGE_IN: "#5a3fa0"}
_INK = "#333333"
_ALARM = "#c0392b"
_MOST_TICKS = 12
_MOST_NAMED = 12
"""Blocks that carry their name: the largest on paper; more would hide the picture."""


def write(chart: Chart, file: Path) -> None:
    """Draw a chart in the format that the file's ending names, or end with a sentence."""
    if file.suffix.lower() not in {".png", ".svg"}:
        raise BadInput(f"{file} has an ending that is no picture; write NAME.png or NAME.svg.")
    if find_spec("matplotlib") is None:
        raise BadInput(explain_missing_extra("--plot", "plot", "matplotlib"))
    # slow to import, and absent where only the operator is installed
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(13, 7.5), dpi=110)
    FigureCanvasAgg(figure)
    places = {"left": 0.09, "right": 0.985, "top": 0.94, "bottom": 0.12, "hspace": 0.06}
    memory, cost = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [9, 1], **places})
    _draw_memory(memory, chart)
    _draw_marks(cost, chart)
    handles, labels = memory.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=7, fontsize=8, frameon=False)
    try:
        figure.savefig(file, format=file.suffix.lower()[1:])
    except OSError as problem:
        raise BadInput(f"{file} cannot be written: {problem.strerror}.") from problem


def _draw_memory(axes: "Axes", chart: Chart) -> None:
    from matplotlib.collections import PatchCollection  # noqa: PLC0415 - see write
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    for kind, fill in _FILLS.items():
        blocks = [block for block in chart.blocks if block.kind is kind]
        shapes = [Rectangle((block.first, block.offset), block.end - block.first, block.bytes) for block in blocks]
        axes.add_collection(PatchCollection(shapes, facecolor=fill, edgecolor="white", linewidth=0.4))
        if blocks:
            axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=fill, label=str(kind)))
    live = chart.live_bytes()
    axes.step(range(chart.steps + 1), [*live, *live[-1:]], where="post", color=_INK, linewidth=1.1, label="in use")
    _draw_budget(axes, chart)
    _name_largest(axes, chart)
    axes.set_xlim(0, max(1, chart.steps))
    _draw_scale(axes, _top(chart))
    axes.set_ylabel("offset in the arena")
    axes.set_title(f"{chart.title}: peak {format_bytes(chart.peak_bytes)}", loc="left", fontsize=11, color=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _top(chart: Chart) -> float:
    """Return where the picture ends: above the budget, unless that is far above the plan."""
    in_sight = chart.budget_bytes if chart.budget_bytes <= 1.5 * chart.peak_bytes else 0
    return 1.08 * max(chart.peak_bytes, in_sight, 1)


def _draw_budget(axes: "Axes", chart: Chart) -> None:
    in_sight = chart.budget_bytes < _top(chart)
    label = f"budget {format_bytes(chart.budget_bytes)}{'' if in_sight else ', above this picture'}"
    height = chart.budget_bytes if in_sight else _top(chart)
    if in_sight:
        axes.axhline(height, color=_ALARM, linestyle="--", linewidth=1.4)
    axes.annotate(
        label,
        (1, height),
        xycoords=("axes fraction", "data"),
        xytext=(-4, 3 if in_sight else -11),
        textcoords="offset points",
        ha="right",
        color=_ALARM,
        fontsize=9,
    )


def _draw_scale(axes: "Axes", top: float) -> None:
    """Put the marks of the scale at round numbers of bytes as memory counts them."""
    spacing = 2 ** max(0, math.ceil(math.log2(top / _MOST_TICKS)))
    axes.set_ylim(0, top)
    axes.set_yticks(range(0, int(top) + 1, spacing))
    axes.yaxis.set_major_formatter(lambda value, _position: format_bytes(int(value)) if value > 0 else "0")


def _name_largest(axes: "Axes", chart: Chart) -> None:
    """Write names into the blocks with room for them."""
    height = max(chart.peak_bytes, 1)
    roomy = [
        block
        for block in chart.blocks
        if block.bytes > 0.022 * height and (block.end - block.first) > 0.012 * chart.steps * len(block.name)
    ]
    largest = sorted(roomy, key=lambda block: -block.bytes * (block.end - block.first))[:_MOST_NAMED]
    for block in largest:
        center = ((block.first + block.end) / 2, block.offset + block.bytes / 2)
        axes.text(*center, block.name, ha="center", va="center", fontsize=7, color="white", clip_on=True)


def _draw_marks(axes: "Axes", chart: Chart) -> None:
    rows = list(Mark)
    for row, mark in enumerate(rows):
        at = [step + 0.5 for step, what in chart.marks if what is mark]
        axes.eventplot([at], lineoffsets=[-row], linelengths=0.8, linewidths=1.2, colors=[_STROKES[mark]])
    counts = {mark: sum(what is mark for _, what in chart.marks) for mark in rows}
    axes.set_yticks([-row for row in range(len(rows))], [f"{mark} ({counts[mark]})" for mark in rows], fontsize=8)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.set_xlabel("step")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
