"""From a job and a device class to the request for a program, and the key under which the program is known.

The key covers everything the bytes depend on: the request, and the versions of planner, solver, kernel table and
encoding. The learning rate, the number of epochs and the class's allowance are not in it: they do not change the
program.
"""

import dataclasses
import hashlib
import json

from hedgerow_operator.planning import asked
from hedgerow_operator.planning.solver import solver
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.program import DeviceCosts, ProgramRequest
from hedgerow_plans.resources import training_job as jobs
from hedgerow_plans.resources.device_class import DeviceClassSpec, FrozenWeights
from hedgerow_plans.training.optimizers import Optimizer

PLANNER_VERSION = 3
"""Counted up whenever planning the same request may give other bytes."""


def program_request(spec: jobs.TrainingJobSpec, class_name: str, device_class: DeviceClassSpec) -> ProgramRequest:
    """Return what is to be planned; raise GraphError if the settings make no sense together."""
    model = zoo.entry(spec.model.zoo)
    return ProgramRequest(
        model=model.name,
        method=asked.method(spec.method),
        optimizer=asked.optimizer(spec.training.optimizer),
        batch_size=spec.training.batch_size,
        device_class=class_name,
        costs=device_costs(device_class),
        budget_bytes=device_class.budget_bytes,
        floor_bytes=device_class.floor_bytes,
        classes=spec.model.classes or model.classes,
        input_shape=spec.model.input_shape or model.input_shape,
        frozen_outside=device_class.memory.frozen_weights is FrozenWeights.MAPPED,
    )


def device_costs(device_class: DeviceClassSpec) -> DeviceCosts:
    """Return what devices of a class pay for computing and paging."""
    compute, storage = device_class.compute, device_class.storage
    if storage is None:
        return DeviceCosts(compute.flops_per_second, compute.picojoules_per_flop)
    return DeviceCosts(
        compute.flops_per_second,
        compute.picojoules_per_flop,
        storage.page_out_bytes_per_second,
        storage.page_in_bytes_per_second,
        storage.picojoules_per_byte_out or 0,
        storage.picojoules_per_byte_in or 0,
    )


def program_key(request: ProgramRequest, strategy: str | None = None) -> str:
    """Return the key of a program: equal keys give equal bytes. Without a strategy all of them are asked."""
    parts = {
        "request": dataclasses.asdict(request),
        "method": _described(request.method),
        "optimizer": _described(request.optimizer),
        "planner": PLANNER_VERSION,
        "solver": solver(),
        "strategy": strategy,
        "kernelTable": KERNEL_TABLE,
        "schema": PROGRAM_SCHEMA,
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _described(setting: Method | Optimizer) -> dict[str, object]:
    """Return settings with their name: those of two methods, or of two optimisers, may look alike."""
    return {"name": setting.name, **dataclasses.asdict(setting)}


def plan_name(request: ProgramRequest, key: str) -> str:
    """Return the name of the ExecutionPlan of a program."""
    return f"{request.model}-{request.method.name}-{request.device_class}-{key[:8]}"
