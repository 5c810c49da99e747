"""A graph's picture as a file: SVG by ourselves, PNG with matplotlib if the extra `plot` is installed."""

from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

from hedgerow_operator.mistakes import BadInput
from hedgerow_plans.graph.drawing import BOX_HEIGHT, BOX_WIDTH, Box, Picture, Shade

_FILLS = {Shade.PLAIN: "#f4f4f2", Shade.FROZEN: "#cfe3f3", Shade.TRAINED: "#fbd9a8"}
_INK = "#333333"
_LINE = "#8a8a8a"
_DOTS_PER_INCH = 100
_MOST_DOTS = 30_000
"""Longest side of a PNG; the painter refuses more than 65,535."""


def write(picture: Picture, file: Path) -> None:
    """Write a picture in the format that the file's ending names, or end with a sentence."""
    writers = {".svg": _write_svg, ".png": _write_png}
    if file.suffix.lower() not in writers:
        raise BadInput(f"{file} has an ending that is no picture; write NAME.svg or NAME.png.")
    try:
        writers[file.suffix.lower()](picture, file)
    except OSError as problem:
        raise BadInput(f"{file} cannot be written: {problem.strerror}.") from problem


def svg(picture: Picture) -> str:
    """Return the picture as an SVG document."""
    size = f'width="{picture.width}" height="{picture.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<rect {size} fill="white"/>',
        f'<text x="20" y="32" font-size="16" fill="{_INK}">{escape(picture.title)}</text>',
    ]
    lines += [f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="{_LINE}"/>' for a, b, c, d in picture.lines]
    lines += [_svg_box(box) for box in picture.boxes]
    return "\n".join([*lines, "</svg>", ""])


def _svg_box(box: Box) -> str:
    outline = f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="4" fill="{_FILLS[box.shade]}" stroke="{_INK}"'
    title = f'<text x="{box.x + 6}" y="{box.y + 14}" fill="{_INK}">{escape(box.title)}</text>'
    detail = f'<text x="{box.x + 6}" y="{box.y + 28}" fill="{_INK}" font-size="10">{escape(box.detail)}</text>'
    return f'<rect x="{box.x}" y="{box.y}" {outline}/>{title}{detail}'


def _write_svg(picture: Picture, file: Path) -> None:
    file.write_text(svg(picture), encoding="utf-8")


def _write_png(picture: Picture, file: Path) -> None:
    if find_spec("matplotlib") is None:
        raise BadInput("A PNG needs matplotlib; install hedgerow[plot], or write NAME.svg instead.")
    # slow to import, and absent where only the operator is installed
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.collections import LineCollection  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    dots = min(_DOTS_PER_INCH, _DOTS_PER_INCH * _MOST_DOTS / max(picture.width, picture.height))
    figure = Figure(figsize=(picture.width / _DOTS_PER_INCH, picture.height / _DOTS_PER_INCH), dpi=dots)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    axes.text(20, 32, picture.title, fontsize=12, color=_INK)
    axes.add_collection(LineCollection([((a, b), (c, d)) for a, b, c, d in picture.lines], colors=_LINE, zorder=1))
    for box in picture.boxes:
        fill = _FILLS[box.shade]
        axes.add_patch(Rectangle((box.x, box.y), BOX_WIDTH, BOX_HEIGHT, facecolor=fill, edgecolor=_INK, zorder=2))
        axes.text(box.x + 6, box.y + 14, box.title, fontsize=7, color=_INK, zorder=3)
        axes.text(box.x + 6, box.y + 28, box.detail, fontsize=6, color=_INK, zorder=3)
    figure.savefig(file, format="png")
