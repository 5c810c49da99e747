"""Whole networks on the compiled backend: near to 64 bits, the same bits on every rung and on any number of threads."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench_core.core import samples
from bench_core.programs import encoded_program
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend, Segment
from hedgerow_plans import codec
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES, tuned
from support.kernel_calls import Laboratory
from support.programs import program_of, same_micro_batch
from support.small_models import MODELS, arrays_for

BATCH, RATE = 4, 0.05
FIVE = ("mlp", "cnn", "resnet", "mobilenet", "encoder")


def residual() -> Graph:
    """A net whose layers are computed in every way there is."""
    return zoo.build("resnet18", 3, (3, 32, 32), width=0.5)


def narrow() -> Graph:
    """A net whose images lie by channels."""
    return zoo.build("cnn-small", 3, (3, 12, 12))


NETWORKS: dict[str, Callable[[], Graph]] = {**MODELS, "residual": residual, "narrow": narrow}


def fast_graphs(build: Callable[[], Graph]) -> TrainingGraphs:
    plain = differentiate(Full().apply(build()).graph, Sgd(), BATCH, "cross_entropy")
    return tuned(plain, LEAST_BUDGET_BYTES, BATCH)


def where_possible(library: Library) -> Callable[[Call], Bound]:
    """Return what binds calls as a plan does: to the library, or to numpy where it has no kernel."""

    def either(call: Call) -> Bound:
        segment = Segment(NativeBackend(library), np.zeros(64, np.uint8))
        return segment.close()[0] if segment.take(call) else bind(call)

    return either


def step_of(lab: Laboratory, graph: Graph, seed: int) -> dict[str, Array]:
    """Take one step from the same numbers in any float type; return losses and parameters."""
    drawn = arrays_for(graph, BATCH, seed)
    arrays = {
        name: array.astype(np.float32).astype(lab.dtype) if array.dtype.kind == "f" else array
        for name, array in drawn.items()
    }
    lab.run_graph(graph, arrays)
    return {name: np.asarray(arrays[name], np.float64) for name in ("losses", *(t.name for t in graph.resident()))}


def distance(found: dict[str, Array], wanted: dict[str, Array]) -> float:
    """Return the norm-wise distance of everything but the losses."""
    names = [name for name in wanted if name != "losses"]
    apart = sum(float(((found[name] - wanted[name]) ** 2).sum()) for name in names)
    return float(np.sqrt(apart / sum(float((wanted[name] ** 2).sum()) for name in names)))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_is_as_near_to_64_bits_as_numpy_in_32(library: Library, name: str) -> None:
    graph = fast_graphs(NETWORKS[name]).direct
    exact = step_of(Laboratory(BATCH, "float64"), graph, 5)
    plain = step_of(Laboratory(BATCH, "float32"), graph, 5)
    found = step_of(Laboratory(BATCH, "float32", bind=where_possible(library)), graph, 5)
    assert np.isclose(found["losses"].mean(), exact["losses"].mean(), rtol=1e-5)
    print(f"FIGURE distance to 64 bits of {name}: {distance(found, exact):.2e}, numpy {distance(plain, exact):.2e}")
    assert distance(found, exact) <= max(1e-6, 2 * distance(plain, exact))


def executor_of(program: Program, library: Library, threads: int, parts: int, rung: int = 0) -> Executor:
    return Executor(program, {}, seed=1, rung=rung, backend=NativeBackend(library, threads, parts))


@pytest.fixture(scope="module")
def programs() -> dict[str, Program]:
    return {name: codec.decode(encoded_program(WORKLOADS[name])) for name in FIVE}


@pytest.mark.parametrize("name", FIVE)
def test_two_threads_give_the_bits_of_one(library: Library, programs: dict[str, Program], name: str) -> None:
    x, y = samples(WORKLOADS[name])
    states = []
    for threads in (1, 2):
        executor = executor_of(programs[name], library, threads, parts=2)
        for _ in range(3):
            executor.step(x, y, RATE)
        states.append(executor.resident_state())
        executor.close()
    assert states[0] == states[1]


@pytest.mark.parametrize("name", FIVE)
def test_a_step_is_one_segment_between_two_reads_of_the_batch(
    library: Library, programs: dict[str, Program], name: str
) -> None:
    executor = executor_of(programs[name], library, 1, 1)
    reads = [node for node in programs[name].graph("direct").nodes if node.op == "input"]
    calls = executor._training.body
    assert len(calls) <= 2 * len(reads)


@pytest.mark.parametrize("build", [residual, narrow], ids=lambda build: build.__name__)
def test_every_rung_has_the_bits_of_keep_all_within_its_promise(
    library: Library, build: Callable[[], Graph], tmp_path: Path
) -> None:
    program = program_of(build(), Full())
    rungs = same_micro_batch(program)
    assert len(rungs) > 1
    x = np.random.default_rng(3).standard_normal((program.batch_size, *build().by_name()["x"].shape))
    labels = np.arange(program.batch_size, dtype=np.int32) % 3
    states = set()
    for rung in rungs:
        executor = Executor(program, {}, seed=1, rung=rung, paging_folder=tmp_path, backend=NativeBackend(library, 2))
        for _ in range(2):
            result = executor.measure(x.astype(np.float32), labels, RATE)
            assert result.measured_peak_bytes is not None
            assert result.measured_peak_bytes <= program.rungs[rung].promise.peak_bytes
        states.add(executor.resident_state())
        executor.close()
    assert len(states) == 1
