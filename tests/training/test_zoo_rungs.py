"""Every network of the zoo by every method: each rung trains to the same bits in exactly the bytes it promised."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.methods.adapted import MethodError
from hedgerow_plans.methods.catalogue import Full, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from support.programs import with_keep_all
from support.sampling import THOROUGH, sample
from support.zoo_ladders import METHODS, PAIRS, REDUCED, SEED, Pair, batch_of, graph_of, ladder, weights_of

RATE = 1e-4
ALLOWED_BYTES = 256 * 1024
LARGE = {
    *("vgg11", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "densenet121", "inceptionv3", "mobilenetv1"),
    *("mobilenetv2", "proxylessnas-mobile", "bert-small", "bert-base", "encoder-4x256"),
}
"""Whose ladders take seconds, or whose parameters take more than a busy machine should be asked for in `make test`."""

TRAINING = [pair for pair in PAIRS if pair.trains and (THOROUGH or pair.model not in LARGE)]
CHOSEN = [*sample(TRAINING, 6, seed=2), *(replace(pair, tuned=True) for pair in sample(TRAINING, 6, seed=1))]


@pytest.fixture(scope="module", params=CHOSEN, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    """The ladder of a pair, planned once for all that is asked of it."""
    return ladder(request.param)


def one_step(program: Program, rung: int, weights: dict[str, Array], folder: Path) -> tuple[bytes, int]:
    """Take a plain step and a measured one; return what survives and the highest byte."""
    executor = Executor(program, weights, SEED, rung, folder)
    batch = batch_of(program.model)
    executor.step(*batch, RATE)
    measured = executor.measure(*batch, RATE).measured_peak_bytes
    state = executor.resident_state()
    executor.close()
    assert measured is not None
    return state, measured


def test_every_rung_gives_the_bits_of_keep_all_in_its_promised_bytes(program: Program, tmp_path: Path) -> None:
    weights = weights_of(program.model)
    whole, _ = one_step(with_keep_all(program, program.rungs[0]), 0, weights, tmp_path)
    keep_all: dict[int, bytes] = {program.rungs[0].micro_batch: whole}
    for rung, plan in enumerate(program.rungs):
        state, measured = one_step(program, rung, weights, tmp_path)
        assert measured == plan.promise.peak_bytes, plan.strategy
        if plan.micro_batch not in keep_all:
            keep_all[plan.micro_batch], _ = one_step(with_keep_all(program, plan), 0, weights, tmp_path)
        assert state == keep_all[plan.micro_batch], plan.strategy
        assert_close(program, state, whole)


def assert_close(program: Program, state: bytes, wanted: bytes) -> None:
    """Compare what survives a step up to the order of sums, relative to each tensor's largest number."""
    tensors = {tensor.name: tensor for graph in program.graphs for tensor in graph.resident()}
    for place in program.resident:
        tensor = tensors[place.tensor]
        if tensor.dtype.value == "float32":
            part = slice(place.offset, place.offset + tensor.bytes(1))
            one, other = (np.frombuffer(content[part], np.float32) for content in (state, wanted))
            scale = float(np.abs(other).max(initial=0.0)) or 1.0
            assert np.allclose(one / scale, other / scale, rtol=1e-3, atol=2e-4), place.tensor


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


def test_a_rung_that_trains_other_bits_would_be_seen(tmp_path: Path) -> None:
    """The comparison can fail: a graph with another weight decay gives other bits."""
    program = ladder(Pair("cnn-small", Full()))
    graphs = tuple(
        replace(
            graph,
            nodes=tuple(
                replace(node, attributes={**node.attributes, "weight_decay": 0.5}) if node.op == "sgd" else node
                for node in graph.nodes
            ),
        )
        for graph in program.graphs
    )
    weights = weights_of("cnn-small")
    assert (
        one_step(replace(program, graphs=graphs), 0, weights, tmp_path)[0] != one_step(program, 0, weights, tmp_path)[0]
    )
