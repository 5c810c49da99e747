"""Pictures of graphs: every node has a box, no two overlap, arrows join makers and readers, and files are real."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest
from hypothesis import given, settings

from hedgerow_operator.pictures import svg, write
from hedgerow_plans.graph.drawing import BOX_HEIGHT, BOX_WIDTH, Shade, draw
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import Adapted
from hedgerow_plans.methods.selection import Last
from hedgerow_plans.models import zoo
from support.random_graphs import adapted_graphs, forward_graphs

SVG = "{http://www.w3.org/2000/svg}"


@settings(max_examples=60, deadline=None)
@given(forward_graphs())
def test_every_node_has_a_box_of_its_own_inside_the_picture(graph: Graph) -> None:
    picture = draw(graph)
    assert len(picture.boxes) == len(graph.nodes)
    for number, box in enumerate(picture.boxes):
        assert 0 <= box.x <= picture.width - BOX_WIDTH
        assert 0 <= box.y <= picture.height - BOX_HEIGHT
        for other in picture.boxes[:number]:
            assert abs(box.x - other.x) >= BOX_WIDTH or abs(box.y - other.y) >= BOX_HEIGHT


@settings(max_examples=60, deadline=None)
@given(adapted_graphs())
def test_lines_join_makers_and_readers_and_colours_tell_what_is_trained(adapted: Adapted) -> None:
    graph, picture = adapted.graph, draw(adapted.graph)
    maker = {name: at for at, node in enumerate(graph.nodes) for name in node.outputs}
    pairs = {(maker[name], at) for at, node in enumerate(graph.nodes) for name in node.inputs if name in maker}
    assert len(picture.lines) == len(pairs)
    trained = [box.shade is Shade.TRAINED for box in picture.boxes]
    assert trained == [bool(set(node.inputs) & set(adapted.delta)) for node in graph.nodes]


def test_a_long_network_is_about_as_wide_as_it_is_high() -> None:
    picture = draw(zoo.build("resnet50"))
    assert 0.4 < picture.height / picture.width < 2.5


def test_an_svg_is_a_document_with_every_node_in_it(tmp_path: Path) -> None:
    graph = Last().apply(zoo.build("cnn-small")).graph
    write(draw(graph), tmp_path / "net.svg")
    root = ET.fromstring((tmp_path / "net.svg").read_text(encoding="utf-8"))
    assert root.tag == f"{SVG}svg"
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts[0] == "cnn-small: 14 nodes"
    assert {node.name for node in graph.nodes} <= set(texts)


def test_names_that_mean_something_in_xml_are_written_as_text() -> None:
    picture = replace(draw(zoo.build("mlp")), title="a <b> & c")
    assert ET.fromstring(svg(picture)).find(f"{SVG}text").text == "a <b> & c"  # type: ignore[union-attr]


def test_a_png_is_written_where_matplotlib_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = draw(zoo.build("cnn-small"))
    write(picture, tmp_path / "net.PNG")
    content = (tmp_path / "net.PNG").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    assert (width, height) == (picture.width, picture.height)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("net.gif", "has an ending that is no picture; write NAME.svg or NAME.png"), ("no/net.svg", "cannot be written")],
)
def test_a_picture_that_cannot_be_written_is_refused_with_a_sentence(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(click.ClickException) as refusal:
        write(draw(zoo.build("mlp")), tmp_path / name)
    assert sentence in refusal.value.message
