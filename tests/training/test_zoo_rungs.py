"""Every network of the zoo by every method: each rung trains to the same bits in exactly the bytes it promised."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.plan import Program
from support.programs import with_keep_all
from support.sampling import THOROUGH, sample
from support.zoo_ladders import PAIRS, REDUCED, SEED, Pair, batch_of, ladder, weights_of

RATE = 0.01
ALLOWED_BYTES = 256 * 1024
LARGE = {
    *("vgg11", "vgg16", "vgg19", "resnet18", "resnet34", "resnet50", "densenet121", "inceptionv3", "mobilenetv1"),
    *("mobilenetv2", "proxylessnas-mobile", "bert-small", "bert-base", "encoder-4x256"),
}
"""Whose ladders take seconds, or whose parameters take more than a busy machine should be asked for in `make test`."""

CHOSEN = sample([pair for pair in PAIRS if THOROUGH or pair.model not in LARGE], 16)


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


@pytest.mark.parametrize("pair", CHOSEN, ids=str)
def test_every_rung_gives_the_bits_of_keep_all_in_its_promised_bytes(pair: Pair, tmp_path: Path) -> None:
    program = ladder(pair)
    if isinstance(program, str):
        assert program.endswith("."), "a method that cannot train a network says so in a sentence"
        return
    weights = weights_of(pair.model)
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


def test_every_network_of_the_zoo_is_there_and_most_methods_train_it() -> None:
    from hedgerow_plans.models import zoo  # noqa: PLC0415 - only here

    assert set(REDUCED) == set(zoo.names())
    assert len(PAIRS) == len(REDUCED) * 10


ALLOCATING = sample([Pair(pair.model, pair.method) for pair in CHOSEN], 6, seed=5)


@pytest.mark.parametrize("pair", ALLOCATING, ids=str)
def test_a_step_allocates_next_to_nothing_beyond_its_arena(pair: Pair, tmp_path: Path) -> None:
    program = ladder(pair)
    if isinstance(program, str):
        return
    executor = Executor(program, weights_of(pair.model), SEED, paging_folder=tmp_path)
    batch, worst = batch_of(pair.model), 0
    for rung, plan in enumerate(program.rungs):
        executor.switch(rung)
        executor.step(*batch, RATE)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            executor.step(*batch, RATE)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        worst = max(worst, peak - before)
        assert peak - before <= max(ALLOWED_BYTES, plan.promise.peak_bytes // 100), plan.strategy
    print(f"FIGURE most bytes allocated in a step of {pair}: {worst}")


def test_a_rung_that_trains_other_bits_would_be_seen(tmp_path: Path) -> None:
    """The comparison can fail: a graph with another weight decay gives other bits."""
    program = ladder(Pair("cnn-small", PAIRS[0].method))
    assert isinstance(program, Program)
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
