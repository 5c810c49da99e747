"""Records of real programs: what the encoders make of small networks, each operand's bytes known."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench_core.programs import request
from bench_core.workloads import WORKLOADS, Workload
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.native.layout import Record
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend, Segment
from hedgerow_agent.core.samples import Targets, sample_shape
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Init
from hedgerow_plans.methods.catalogue import Full, TinyOl
from hedgerow_plans.plan import Infeasible, Program
from hedgerow_plans.program import ProgramRequest, build_program
from hedgerow_plans.training.clipping import ByGlobalNorm, Clipping
from hedgerow_plans.training.forward_only import NAME
from hedgerow_plans.training.optimizers import Adam, Adam8bit, Optimizer, Sgd
from support.layer_networks import CASES
from support.programs import program_of
from support.small_budgets import programs_for_small_budgets

REDUCED: dict[str, Workload] = {
    name: replace(WORKLOADS[name], shape=shape, batch_size=4)
    for name, shape in {
        "mlp": (784,),
        "cnn": (3, 16, 16),
        "resnet": (3, 32, 32),
        "mobilenet": (3, 64, 64),
        "encoder": (16,),
    }.items()
}
"""The five workloads with every layer of their own, at sizes at which a step takes a moment."""


class Recorder(NativeBackend):
    """The compiled backend, which also keeps every record that it makes and the operators it leaves to numpy."""

    def __init__(self, library: Library, threads: int = 2) -> None:
        super().__init__(library, threads)
        self.records: list[Record] = []
        self.left_to_numpy: list[str] = []

    def bind(self, steps: Sequence[Call | Bound], arena: Array) -> tuple[Bound, ...]:
        """Encode the steps once more than needed, and keep what comes out."""
        segment = Segment(self, arena)
        for step in steps:
            if not isinstance(step, Call) or not segment.take(step):
                self.left_to_numpy.append(step.node.op if isinstance(step, Call) else "page")
        self.records += segment._records
        return super().bind(steps, arena)


def program_of_workload(
    workload: Workload, optimizer: Optimizer | None = None, clipping: Clipping | None = None
) -> Program:
    """Plan a workload with memory to spare, as the benchmark does; its optimiser is plain SGD unless one is given."""
    return _planned(replace(request(workload), optimizer=optimizer or Sgd(), clipping=clipping))


def small_programs() -> list[Program]:
    """Return programs that between them use every kernel, every one of them small."""
    return [*(program_of_workload(workload) for workload in REDUCED.values()), *layer_programs()]


def layer_programs() -> list[Program]:
    """Return programs of the layers, losses, methods and optimisers that no workload has."""
    programs = [program_of(case.build(), Full(), 6, loss=case.loss) for case in CASES]
    programs += [program_of(_smooth(), method, 6) for method in (Full(), TinyOl())]
    small = replace(request(REDUCED["mlp"]), model="cnn-small", input_shape=(1, 14, 14))
    clipped = replace(small, optimizer=Adam8bit(), clipping=ByGlobalNorm(1.0))
    return [
        *programs,
        program_of(_normed(), Full(), 6),
        _planned(replace(small, optimizer=Adam())),
        _planned(clipped),
        forward_only(small),
    ]


def _planned(asked: ProgramRequest) -> Program:
    program = build_program(asked, keep_going=lambda: False)
    assert isinstance(program, Program), program
    return program


def forward_only(asked: ProgramRequest) -> Program:
    """Return the program for the least memory that anything fits: it trains without a backward pass."""
    refused = build_program(replace(asked, budget_bytes=1, floor_bytes=None), keep_going=lambda: False)
    assert isinstance(refused, Infeasible)
    program = _planned(replace(asked, budget_bytes=refused.needed_bytes, floor_bytes=None))
    assert {rung.strategy for rung in program.rungs} == {NAME}
    return program


def batch_of(program: Program) -> tuple[Array, Array]:
    """Return a batch of random samples and targets."""
    shape, rng, count = sample_shape(program), np.random.default_rng(2), program.batch_size
    x = (
        rng.standard_normal((count, *shape.shape)).astype(np.float32)
        if shape.tokens is None
        else rng.integers(0, shape.tokens, (count, *shape.shape), dtype=np.int32)
    )
    if shape.targets is Targets.LABELS:
        return x, rng.integers(0, shape.classes, count, dtype=np.int32)
    return x, rng.random((count, *shape.output)).astype(np.float32)


def _normed() -> Graph:
    """Return a network of the norms that no workload has, with dropout behind them."""
    build = Builder("normed")
    x = build.conv2d("first", build.input((2, 7, 6)), 4)
    weight = build.weight_standardisation("standard", build.parameter("ws", (8, 4, 3, 3), Init("normal", 0.3)))
    x = build.group_norm("groups", build.node("second", "conv2d", (x, weight), padding=1), 2)
    x = build.rms_norm("rms", build.dropout("drop", build.relu("relu", x), 0.3))
    return build.graph(build.linear("logits", build.flatten("flat", x), 3))


def _smooth() -> Graph:
    """Return a network of the activations and pools that no workload has."""
    build = Builder("smooth")
    x = build.conv2d("first", build.input((3, 9, 8)), 10)
    for op in ("silu", "hswish", "sigmoid", "tanh", "gelu", "relu6"):
        x = build.node(op, op, (x,))
    x = build.avg_pool2d("mean", build.node("half", "scale", (x,), scale=0.5), 3, stride=2, padding=1)
    return build.graph(build.linear("logits", build.global_avg_pool("pooled", x), 4))


def records_of(library: Library, most_bytes: int) -> list[Record]:
    """Return the records of small programs, one of each operator and set of sizes with operands up to a size.

    Of an operator that has none so small, it is the smallest one.
    """
    found: dict[tuple[int, ...], Record] = {}
    for program in (*small_programs(), *programs_for_small_budgets()):
        recorder = Recorder(library)
        with tempfile.TemporaryDirectory() as folder:
            executor = Executor(program, {}, 0, paging_folder=Path(folder), backend=recorder)
            executor.prepare()
            executor.close()
        for record in recorder.records:
            found.setdefault((record.op, *record.sizes), record)
    smallest: dict[int, Record] = {}
    for record in sorted(found.values(), key=_operand_bytes):
        smallest.setdefault(record.op, record)
    small = [record for record in found.values() if _operand_bytes(record) <= most_bytes]
    return [*small, *(record for record in smallest.values() if _operand_bytes(record) > most_bytes)]


def _operand_bytes(record: Record) -> int:
    return sum(operand.bytes for operand in record.operands if operand.region >= 0)
