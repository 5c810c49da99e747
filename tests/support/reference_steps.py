"""One step of a workload in 64 bits, and how far steps in 32 bits are from it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench_core.core import samples
from bench_core.workloads import Workload
from hedgerow_agent.core.compilation import Backend
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from support.kernel_calls import Laboratory
from support.native_records import program_of_workload

RATE = 2.0**20
"""Large and a power of two, so that what a step subtracts is the gradient and not the rounding of the parameter."""


@dataclass(frozen=True)
class Reference:
    """A workload with its program and first values, and what a step gives in 64 bits."""

    workload: Workload
    program: Program
    values: dict[str, Array]
    loss: float
    gradients: dict[str, Array]

    def step(self, backend: Backend | None) -> tuple[float, dict[str, Array]]:
        """Take one plain step in 32 bits and return the loss and the gradients."""
        executor = Executor(self.program, self.values, 0, backend=backend)
        before = executor.delta()
        loss = executor.step(*samples(self.workload), RATE).loss
        after = executor.delta()
        executor.close()
        return loss, {name: (before[name].astype(np.float64) - after[name]) / RATE for name in before}

    def distance(self, gradients: Mapping[str, Array]) -> float:
        """Return how far gradients are from those in 64 bits, of their length."""
        errors = [np.linalg.norm(gradients[name] - wanted) for name, wanted in self.gradients.items()]
        return float(np.linalg.norm(errors) / np.linalg.norm([np.linalg.norm(v) for v in self.gradients.values()]))


def reference_of(workload: Workload, draw: int = 0) -> Reference:
    """Return a step from other first values for each draw."""
    rng = np.random.default_rng(1 + draw)
    program, model = program_of_workload(workload), zoo.build(workload.model, workload.classes, workload.shape)
    values = {tensor.name: initial_value(tensor, draw) for tensor in model.resident()}
    for value in (one for one in values.values() if one.ndim == 1):  # zeros and ones are moved: trivial is not right
        np.add(value, 0.1 * rng.standard_normal(value.shape), out=value, casting="same_kind")
    x, labels = samples(workload)
    wide: dict[str, Array] = {key: value.astype(np.float64) for key, value in values.items()}
    arrays = {**wide, "x": x if workload.vocabulary else x.astype(np.float64), "labels": labels}
    graph = program.graph(program.rungs[0].graph)
    found = Laboratory(workload.batch_size).run_graph(graph, {key: value.copy() for key, value in arrays.items()})
    learned = {node.updates[0] for node in graph.nodes if node.op.startswith("sgd")}  # running statistics are not
    gradients = {key: wide[key] - found[key] for key in wide if key in learned}
    return Reference(workload, program, values, float(found["losses"].mean()), gradients)
