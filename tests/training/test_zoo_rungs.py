"""Every network of the zoo by every method: each rung trains to the same bits in exactly the bytes it promised."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_plans.graph.ir import Node, Section
from hedgerow_plans.methods.adapted import MethodError
from hedgerow_plans.methods.catalogue import Full, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from support.programs import with_keep_all
from support.sampling import THOROUGH, sample
from support.wide_steps import distances, too_far
from support.zoo_ladders import BATCH, METHODS, PAIRS, REDUCED, SEED, Pair, batch_of, graph_of, ladder, weights_of
from support.zoo_steps import Run, assert_close, by_micro_batch, second_step, two_steps, wide_training

STEPS = 2
ALLOWED_BYTES = 256 * 1024
LARGE = {
    *("vgg11", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "densenet121", "inceptionv3", "mobilenetv1"),
    *("mobilenetv2", "proxylessnas-mobile", "bert-small", "bert-base", "encoder-4x256"),
}
"""Whose ladders take seconds, or whose parameters take more than a busy machine should be asked for in `make test`."""

TRAINING = [pair for pair in PAIRS if pair.trains and (THOROUGH or pair.model not in LARGE)]
ITS_OWN_TARGET = next(pair for pair in TRAINING if (pair.model, pair.method.name) == ("autoencoder", "bias"))
"""A network that learns to give back its samples, in micro-batches."""

CHOSEN = [
    *dict.fromkeys([ITS_OWN_TARGET, *sample(TRAINING, 6, seed=2)]),
    *(replace(pair, tuned=True) for pair in sample(TRAINING, 6, seed=1)),
]


@pytest.fixture(scope="module", params=CHOSEN, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    """The ladder of a pair, planned once for all that is asked of it."""
    return ladder(request.param)


def test_every_rung_gives_the_bits_of_keep_all_in_its_promised_bytes(program: Program, tmp_path: Path) -> None:
    whole = two_steps(with_keep_all(program, program.rungs[0]), 0, tmp_path)
    keep_all: dict[int, Run] = {program.rungs[0].micro_batch: whole}
    for rung, plan in enumerate(program.rungs):
        run = two_steps(program, rung, tmp_path)
        assert run.measured_peak_bytes == plan.promise.peak_bytes, plan.strategy
        if plan.micro_batch not in keep_all:
            keep_all[plan.micro_batch] = two_steps(with_keep_all(program, plan), 0, tmp_path)
        assert run.second == keep_all[plan.micro_batch].second, plan.strategy
        assert_close(program, run.first, whole.first)
        if plan.micro_batches > 1:  # from the same start: a rectifier on the edge makes much of the first step's bits
            assert_close(program, second_step(program, rung, whole.first, tmp_path), whole.second)


def test_micro_batches_train_what_the_whole_batch_trains_in_64_bits(program: Program) -> None:
    plans, training = by_micro_batch(program), wide_training(program)
    whole = plans.pop(BATCH)
    if not plans:
        return  # every rung takes the whole batch at once
    wanted = training.after(whole, STEPS)
    for micro_batch, plan in plans.items():
        found = training.after(plan, STEPS)
        assert too_far(found, wanted) == {}, f"micro-batches of {micro_batch}"
        name = f"{program.model} by {program.method} in micro-batches of {micro_batch}"
        print(f"FIGURE largest distance in 64 bits of {name}: {max(distances(found, wanted).values()):.1e}")


def test_every_network_of_the_zoo_is_there_by_every_kind_of_method() -> None:
    assert set(REDUCED) == set(zoo.names())
    assert {type(method) for method in METHODS} == set(get_args(Method))
    assert len(PAIRS) == len(REDUCED) * len(METHODS)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if not pair.trains], ids=str)
def test_a_method_that_cannot_train_a_network_says_so_in_a_sentence(pair: Pair) -> None:
    with pytest.raises(MethodError, match=rf"^Method {pair.method.name} cannot train '{pair.model}': .*\.$"):
        pair.method.apply(graph_of(pair.model))


def test_a_step_allocates_next_to_nothing_beyond_its_arena(program: Program, tmp_path: Path) -> None:
    executor = Executor(program, weights_of(program.model), SEED, paging_folder=tmp_path)
    batch, worst, rate = batch_of(program.model), 0, 0.0  # a network that nobody trained would diverge in so many steps
    for rung, plan in enumerate(program.rungs):
        executor.switch(rung)
        executor.step(*batch, rate)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            executor.step(*batch, rate)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        worst = max(worst, peak - before)
        assert peak - before <= max(ALLOWED_BYTES, plan.promise.peak_bytes // 100), plan.strategy
    executor.close()
    print(f"FIGURE most bytes allocated in a step of {program.model} by {program.method}: {worst}")


def with_other_nodes(program: Program, change: Callable[[Node], Node]) -> Program:
    """Return a program whose graphs have changed nodes."""
    graphs = (replace(graph, nodes=tuple(map(change, graph.nodes))) for graph in program.graphs)
    return replace(program, graphs=tuple(graphs))


def with_decay(decay: float) -> Callable[[Node], Node]:
    """Return what gives the optimiser another weight decay."""
    return lambda node: (
        replace(node, attributes={**node.attributes, "weight_decay": decay}) if node.op == "sgd" else node
    )


def starting_anew(node: Node) -> Node:
    """Let sums of gradients start at zero in every micro-batch, so that only the last one counts."""
    return replace(node, section=Section.BODY) if node.op == "zero" else node


def test_a_rung_that_trains_other_bits_would_be_seen(tmp_path: Path) -> None:
    """The comparison can fail: a graph with another weight decay gives other bits."""
    program = ladder(Pair("cnn-small", Full()))
    other = with_other_nodes(program, with_decay(0.5))
    assert two_steps(other, 0, tmp_path).second != two_steps(program, 0, tmp_path).second


@pytest.mark.parametrize("mistake", [starting_anew, with_decay(1.001e-4)], ids=["sums", "decay"])
def test_micro_batches_that_train_something_else_would_be_seen(mistake: Callable[[Node], Node]) -> None:
    """The comparison in 64 bits can fail: sums that forget, or a weight decay that is off by a thousandth."""
    program = ladder(Pair("cnn-small", Full()))
    plans, spoiled = by_micro_batch(program), with_other_nodes(program, mistake)
    wanted = wide_training(program).after(plans.pop(BATCH), STEPS)
    assert plans
    for plan in plans.values():
        assert too_far(wide_training(program).after(plan, STEPS), wanted) == {}
        assert too_far(wide_training(spoiled).after(plan, STEPS), wanted) != {}
