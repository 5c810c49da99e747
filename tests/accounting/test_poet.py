"""POET's networks by its own rules: its recorded facts always, and its graphs node by node where they are at hand."""

import json
from pathlib import Path

import pytest

from hedgerow_operator.planning import flip
from hedgerow_plans.accounting.comparison import Comparison
from hedgerow_plans.accounting.poet.chips import CHIPS
from hedgerow_plans.accounting.poet.comparison import joules, poet
from hedgerow_plans.accounting.poet.networks import NETWORKS, problem
from hedgerow_plans.accounting.published import POET_NETWORKS
from hedgerow_plans.bare import Step
from hedgerow_plans.verify_bare import verify_bare
from support.repository import ROOT
from support.sampling import THOROUGH

BESIDE = [parent / "shared" / "data" / "poet" for parent in (ROOT.parent, ROOT.parent.parent)]  # or beside a worktree
FILES = sorted(file for folder in BESIDE if folder.is_dir() for file in folder.glob("*.json"))
JOULES_TO_SIX_DECIMALS = {
    ("linear", "m0"): 0.104679,
    ("transformer", "m4"): 8.256776,
    ("resnet18_cifar", "m4"): 0.545669,
    ("resnet18_cifar", "a72"): 7.889510,
}


def test_every_network_and_chip_is_compared() -> None:
    assert set(NETWORKS) == set(POET_NETWORKS)
    assert len(poet()) == len(NETWORKS) * (4 + len(CHIPS))


@pytest.mark.parametrize("row", poet(), ids=lambda row: row.name)
def test_our_figures_are_those_recorded(row: Comparison) -> None:
    if row.unit != "J":
        assert row.ours == row.published
        return
    recorded = next(
        text
        for name, facts in POET_NETWORKS.items()
        for chip, text in facts.joules.items()
        if row.name == f"{name} on {chip}"
    )
    digits = len(recorded.partition(".")[2])
    assert round(row.ours, digits) == float(recorded)


@pytest.mark.parametrize(("name", "chip"), JOULES_TO_SIX_DECIMALS)
def test_joules_to_six_decimals(name: str, chip: str) -> None:
    assert round(joules(problem(name, chip)), 6) == JOULES_TO_SIX_DECIMALS[name, chip]


@pytest.mark.parametrize("network", NETWORKS)
def test_every_problem_can_be_run(network: str) -> None:
    posed = problem(network, "m0")
    last = {source: node for node, sources in enumerate(posed.inputs) for source in sources}
    steps: list[Step] = []
    for node in range(len(posed.bytes)):
        steps.append(("compute", node))
        steps += [("free", source) for source in (*posed.inputs[node], node) if last.get(source, source) == node]
    replayed = verify_bare(posed, steps, budget_bytes=POET_NETWORKS[network].keep_all_bytes)
    assert replayed.cost == sum(posed.cost)


def test_the_graphs_are_poets_node_by_node_where_its_files_are_beside_the_repository() -> None:
    for file in FILES:
        compare(file)


def compare(file: Path) -> None:
    """Nodes carry their number in their name; files may list them in another working order than ours."""
    theirs = json.loads(file.read_text())
    ours = problem(*file.stem.split("-"))
    numbers = [int(node["name"].split("_")[0].removeprefix("layer")) for node in theirs["nodes"]]
    assert sorted(numbers) == list(range(len(ours.bytes)))
    for number, node in zip(numbers, theirs["nodes"], strict=True):
        assert (node["bytes"], node["cost"], node["time"]) == (
            ours.bytes[number],
            ours.cost[number],
            ours.time[number],
        )
        assert (node["page_out"], node["page_in"]) == ours.pages[number]
    edges = {(numbers[producer], numbers[consumer]) for producer, consumer in theirs["edges"]}
    assert edges == {(source, node) for node, sources in enumerate(ours.inputs) for source in sources}


def test_the_same_graph_and_budget_are_recomputed_on_one_chip_and_paged_on_others() -> None:
    instances = flip.INSTANCES if THOROUGH else flip.INSTANCES[:2]
    found = {(row.network, row.chip): row for row in flip.policies(instances)}
    assert len(found) == len(instances) * len(flip.CHIPS)
    for network in {"linear", "resnet18_cifar", "resnet18", "bert"} & {name for name, _ in instances}:
        assert found[network, "m4"].word == "recomputes"
        assert found[network, "m0"].word == found[network, "a72"].word == "pages"
