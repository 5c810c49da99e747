"""A ladder as people read it: a table with what is proven of every rung, or JSON."""

import json

from hedgerow_operator.planning.worker import Planned
from hedgerow_operator.tables import table
from hedgerow_plans.plan import Infeasible
from hedgerow_plans.resources.columns import format_energy
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.execution_plan import Rung
from hedgerow_plans.resources.quantities import format_bytes

_HEADINGS = [
    "RUNG",
    "MICRO-BATCH",
    "STRATEGY",
    "PEAK",
    "BYTES",
    "MAX LIVE",
    "FLOOR",
    "STEP TIME",
    "STEP ENERGY",
    "LEAST",
    "GAP",
]
_LEGEND = (
    "Proven: no placement of a rung's tensors ends below MAX LIVE, nothing of its micro-batch runs below FLOOR, no\n"
    "plan of its graph and micro-batch within its memory takes less energy than LEAST. GAP is what may be left to gain."
)


def as_table(planned: Planned) -> str:
    """Return the rungs, most memory first, and the program's digest."""
    rows = [_row(number, rung) for number, rung in enumerate(planned.summary.rungs, start=1)]
    digest = f"program {planned.summary.digest[:16]}, {len(planned.encoded)} bytes"
    cut = "\nThe time was up before every search was done; give --time-limit for more." if planned.cut_short else ""
    return f"{table(_HEADINGS, rows)}\n\n{_LEGEND}\n{digest}{cut}"


def _row(number: int, rung: Rung) -> list[str]:
    return [
        str(number),
        str(rung.micro_batch),
        rung.strategy,
        format_bytes(rung.peak_bytes),
        str(rung.peak_bytes),
        str(rung.max_live_bytes),
        str(rung.working_set_bytes),
        f"{rung.step_microseconds / 1000:.2f} ms",
        format_energy(rung.step_microjoules),
        format_energy(rung.least_microjoules),
        rung.gap_percent if rung.gap_percent == "-" else f"{rung.gap_percent}%",
    ]


def as_json(planned: Planned) -> str:
    """Return the same as JSON."""
    summary = planned.summary
    document = {
        "feasible": True,
        "program": summary.digest,
        "programBytes": len(planned.encoded),
        "model": summary.model,
        "method": summary.method,
        "class": summary.device_class,
        "batchSize": summary.batch_size,
        "gapPercent": summary.gap_percent,
        "seconds": round(planned.seconds, 3),
        "cutShort": planned.cut_short,
        "rungs": [rung.to_yaml_form() for rung in summary.rungs],
    }
    return json.dumps(document, indent=2)


def refusal(answer: Infeasible, device_class: DeviceClass) -> str:
    """Return the sentence for a budget that nothing fits."""
    budget = f"{device_class.spec.memory.budget} ({answer.available_bytes} bytes)"
    return (
        f"Nothing fits {device_class.metadata.name}: {answer.needed_bytes} bytes are needed, the budget is {budget}; "
        f"nothing can run below {answer.floor_bytes} bytes."
    )


def refusal_as_json(answer: Infeasible) -> str:
    """Return the same as JSON."""
    document = {
        "feasible": False,
        "neededBytes": answer.needed_bytes,
        "availableBytes": answer.available_bytes,
        "floorBytes": answer.floor_bytes,
        "tensor": answer.tensor,
        "reason": answer.reason,
    }
    return json.dumps(document, indent=2)
