"""The programs our side runs: keep-all plans of the workloads, made before the clock starts, as a fleet gets them."""

from bench_core.workloads import Workload
from hedgerow_plans import codec
from hedgerow_plans.methods.catalogue import Bias, Full, Last, Method
from hedgerow_plans.plan import Infeasible
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd

METHODS: dict[str, Method] = {"full": Full(), "bias": Bias(), "last": Last()}
_COSTS = DeviceCosts(10**9, 1, 10**6, 10**6, 1, 1)
_PLENTY_BYTES = 2**40


def request(workload: Workload) -> ProgramRequest:
    """Return what a program of a workload depends on."""
    return ProgramRequest(
        model=workload.model,
        method=METHODS[workload.method],
        optimizer=Sgd(),
        batch_size=workload.batch_size,
        device_class="bench",
        costs=_COSTS,
        budget_bytes=_PLENTY_BYTES,
        floor_bytes=_PLENTY_BYTES,
        classes=workload.classes,
        input_shape=workload.shape,
    )


def encoded_program(workload: Workload) -> bytes:
    """Plan a workload with memory to spare, so that nothing is computed twice; the first offer is keep-all."""
    program = build_program(request(workload), keep_going=lambda: False)
    if isinstance(program, Infeasible):
        raise TypeError(f"{workload.name} cannot be planned: {program.reason}")
    return codec.encode(program)
