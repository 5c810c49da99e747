"""The same network for other samples: same parameters, other shapes."""

import pytest

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.graph.resizing import resized
from hedgerow_plans.graph.validate import problems
from hedgerow_plans.models import zoo


def with_detour() -> Graph:
    build = Builder("detour")
    x = build.input((4, 12, 12))
    main = build.conv2d("main", x, 4)
    detour = build.conv2d("detour", build.avg_pool2d("pool", x), 4)
    y = build.add("sum", build.upsample_bilinear("up", detour, (12, 12)), main)
    return build.graph(build.linear("logits", build.flatten("flat", build.global_avg_pool("mean", y)), 3))


@pytest.mark.parametrize("name", ["proxylessnas-mobile", "resnet18", "mobilenetv2"])
def test_a_resized_model_is_the_one_the_zoo_builds_for_that_size(name: str) -> None:
    graph = resized(zoo.build(name), (3, 160, 160))
    assert graph == zoo.build(name, input_shape=(3, 160, 160))


@pytest.mark.parametrize("side", [5, 12, 31])
def test_a_detour_is_scaled_up_to_what_it_is_added_to(side: int) -> None:
    graph = resized(with_detour(), (4, side, side))
    assert list(problems(graph)) == []
    assert graph.by_name()["up"].shape == graph.by_name()["main"].shape == (4, side, side)
    assert graph.resident() == with_detour().resident()


def test_the_own_shape_changes_nothing() -> None:
    assert resized(with_detour(), (4, 12, 12)) == with_detour()


def test_parameters_that_depend_on_the_shape_are_refused_with_a_sentence() -> None:
    with pytest.raises(GraphError, match="cannot become"):
        resized(zoo.build("cnn-small"), (1, 16, 16))


def test_scaling_up_for_its_own_sake_is_refused_with_a_sentence() -> None:
    build = Builder("larger")
    graph = build.graph(build.upsample_bilinear("up", build.input((1, 4, 4)), (8, 8)))
    with pytest.raises(GraphError, match="cannot be resized: 'up' scales up to a size of its own"):
        resized(graph, (1, 6, 6))
