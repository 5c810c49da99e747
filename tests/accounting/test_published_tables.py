"""Published tables, figure by figure, from our own graphs."""

import pytest

from hedgerow_plans.accounting import comparison
from hedgerow_plans.accounting.comparison import Comparison
from hedgerow_plans.accounting.published import TINYTL_METHODS, TTE_SCHEMES
from hedgerow_plans.accounting.tinytl import profile
from hedgerow_plans.accounting.tte import SparseUpdate, last_layers, partial_backward
from hedgerow_plans.methods.selection import Full, Last, NormLast
from hedgerow_plans.models import zoo
from hedgerow_plans.models.counting import count_macs, count_parameters, head_size

TINYTL = comparison.tinytl()
TTE = comparison.tte()


def test_the_tinytl_table_is_complete() -> None:
    figures = sum(len(method.training_megabytes) for method in TINYTL_METHODS)
    assert figures == 33
    assert len(TINYTL) == figures + len(TINYTL_METHODS) == len({row.name for row in TINYTL})


@pytest.mark.parametrize("row", [row for row in TINYTL if "@" in row.name], ids=lambda row: row.name)
def test_tinytl_training_memory_is_the_papers(row: Comparison) -> None:
    assert abs(row.ours - row.published) <= 0.05


@pytest.mark.parametrize("row", [row for row in TINYTL if "@" not in row.name], ids=lambda row: row.name)
def test_tinytl_model_sizes_are_equal_to_the_byte(row: Comparison) -> None:
    assert f"{row.ours:.6f}" == f"{row.published:.6f}"


def test_table_2_of_tinytl_in_whole_megabytes() -> None:
    ours = {row.name: round(row.ours) for row in TINYTL}
    wanted = {"FT-Full": 391, "FT-Norm+Last": 192, "FT-Last": 31, "TinyTL-B": 32, "TinyTL-L": 37, "TinyTL-L+B": 37}
    assert {name: ours[f"{name}@224"] for name in wanted} == wanted
    assert ours["TinyTL-L+B@320"] == 65


def test_without_lite_residuals_the_baselines_come_out_lower_than_published() -> None:
    """The authors measure every method on the network with the modules in it."""
    graph = zoo.build("proxylessnas-mobile", 102)
    for method, megabytes in ((Full(), 367), (NormLast(), 183), (Last(), 29)):
        assert round(profile(method.apply(graph).graph).total_bytes(8) / 1e6) == megabytes


@pytest.mark.parametrize("row", TTE, ids=lambda row: row.name)
def test_tte_kilobytes_are_the_label(row: Comparison) -> None:
    assert int(row.ours) == row.published


def test_the_tte_table_is_complete() -> None:
    assert len(TTE) == 16
    assert [len(schemes) for schemes in TTE_SCHEMES.values()] == [5, 5, 5]


@pytest.mark.parametrize(
    ("model", "convolutions", "parameters", "millions_of_macs", "whole", "bias_only"),
    [
        ("mobilenetv2-0.35", 51, 244_448, 16.65, (42.8, 74.2, 129.5, 223.7, 1306.4), (0.8, 4.7, 9.0, 16.9, 134.2)),
        ("mcunet-5fps", 42, 469_224, 22.45, (100.1, 176.4, 276.3, 448.0, 1400.4), (1.1, 7.8, 12.9, 22.8, 121.3)),
        ("proxylessnas-0.3", 60, 326_232, 18.62, (42.7, 96.5, 139.3, 266.4, 1210.7), (0.7, 5.2, 7.8, 15.3, 113.4)),
    ],
)
def test_other_figures_of_the_three_networks(  # noqa: PLR0917 - one argument per figure
    model: str,
    convolutions: int,
    parameters: int,
    millions_of_macs: float,
    whole: tuple[float, ...],
    bias_only: tuple[float, ...],
) -> None:
    graph = zoo.build(model)
    head = head_size(graph)
    assert sum(node.op == "conv2d" for node in graph.nodes) == convolutions
    assert count_parameters(graph) - head.parameters == parameters
    assert round((count_macs(graph) - head.macs) / 1e6, 2) == millions_of_macs
    counts = (1, 3, 6, 12, convolutions)
    assert tuple(round(partial_backward(graph, last_layers(graph, n)).total_kib, 1) for n in counts) == whole
    assert tuple(round(partial_backward(graph, SparseUpdate(n)).total_kib, 1) for n in counts) == bias_only
