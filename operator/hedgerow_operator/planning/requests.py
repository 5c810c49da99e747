"""The key under which a program is known, and the name of its ExecutionPlan.

The key covers everything the bytes depend on: the request, and the versions of planner, solver, kernel table and
encoding. The learning rate, the number of epochs and the class's allowance are not in it: they do not change the
program.
"""

import dataclasses
import hashlib
import json

from hedgerow_operator.planning.solver import solver
from hedgerow_plans.asked import device_costs, program_request
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.program import ProgramRequest
from hedgerow_plans.training.clipping import Clipping
from hedgerow_plans.training.optimizers import Optimizer

__all__ = ["PLANNER_VERSION", "device_costs", "plan_name", "program_key", "program_request"]

PLANNER_VERSION = 5
"""Counted up whenever planning the same request may give other bytes."""


def program_key(request: ProgramRequest, strategy: str | None = None) -> str:
    """Return the key of a program: equal keys give equal bytes. Without a strategy all of them are asked."""
    parts = {
        "request": dataclasses.asdict(request),
        "method": _described(request.method),
        "optimizer": _described(request.optimizer),
        "clipping": None if request.clipping is None else _described(request.clipping),
        "planner": PLANNER_VERSION,
        "solver": solver(),
        "strategy": strategy,
        "kernelTable": KERNEL_TABLE,
        "schema": PROGRAM_SCHEMA,
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _described(setting: Method | Optimizer | Clipping) -> dict[str, object]:
    """Return settings with their name: those of two methods, of two optimisers or of both clippings may look alike."""
    return {"name": setting.name, **dataclasses.asdict(setting)}


def plan_name(request: ProgramRequest, key: str) -> str:
    """Return the name of the ExecutionPlan of a program."""
    return f"{request.model}-{request.method.name}-{request.device_class}-{key[:8]}"
