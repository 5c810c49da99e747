"""Records of real programs: what the encoders make of small networks, each operand's bytes known."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench_core.programs import request
from bench_core.workloads import WORKLOADS, Workload
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.native.layout import Record
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend, Segment
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.plan import Program
from hedgerow_plans.program import build_program
from hedgerow_plans.training.optimizers import Adam, Optimizer, Sgd
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


def program_of_workload(workload: Workload, optimizer: Optimizer | None = None) -> Program:
    """Plan a workload with memory to spare, as the benchmark does; its optimiser is plain SGD unless one is given."""
    program = build_program(replace(request(workload), optimizer=optimizer or Sgd()), keep_going=lambda: False)
    assert isinstance(program, Program)
    return program


def small_programs() -> list[Program]:
    """Return programs that between them use most kernels, every one of them small."""
    programs = [program_of_workload(workload) for workload in REDUCED.values()]
    programs += [program_of(case.build(), Full(), 6, loss=case.loss) for case in CASES]
    adam = replace(request(REDUCED["mlp"]), model="cnn-small", input_shape=None, optimizer=Adam())
    trained = build_program(adam, keep_going=lambda: False)
    assert isinstance(trained, Program)
    return [*programs, program_of(_smooth(), Full(), 6), trained]


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
