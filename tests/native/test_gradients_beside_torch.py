"""Whole networks in 32 bits: the compiled backend's gradients are no further from 64 bits than PyTorch's are."""

from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
import pytest

from bench_core.core import samples
from bench_core.exchange import by_position
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans.models import zoo
from support.reference_steps import reference_of
from support.torchs_gradients import NO_TORCH, PYTHON, torchs_steps

DRAWS = {"resnet": 7, "mobilenet": 75, "encoder": 7}
"""How many first values each of the benchmark's networks is tried with, at the benchmark's size.

Distances are compared as the geometric mean of ours / torch's over all draws. A rectifier that flips in 32 bits moves a
gradient a thousand times as far as all rounding, and MobileNetV2 has one or two of them in most steps, ours in other
draws than torch's: a mean would be that of the worst flip, a median would jump between draws with and without one.
Even so the logarithm of one such ratio has a deviation of about 3.4, that of the mean of 75 one of 0.4.
"""


def length(values: list[Array]) -> float:
    return float(np.linalg.norm([np.linalg.norm(value) for value in values]))


def distance(found: list[Array], wanted: list[Array]) -> float:
    """Return the length of the difference, of that of what is wanted."""
    return length([one - other for one, other in zip(found, wanted, strict=True)]) / length(wanted)


@pytest.mark.skipif(PYTHON is None, reason=NO_TORCH)
@pytest.mark.parametrize("name", DRAWS)
def test_gradients_are_as_near_to_64_bits_as_torchs(library: Library, name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name]
    graph = zoo.build(workload.model, workload.classes, workload.shape)
    wanted, native, parameters = [], [], []
    for draw in range(DRAWS[name]):
        reference = reference_of(workload, draw)
        wanted.append(by_position(graph, reference.gradients))
        native.append(distance(by_position(graph, reference.step(NativeBackend(library))[1]), wanted[-1]))
        parameters.append(by_position(graph, reference.values))
    x, labels = samples(workload)
    theirs = torchs_steps(workload, parameters, {"x": x, "labels": labels}, tmp_path)
    torch = [
        distance([found[f"gradient{position}"] for position in range(len(exact))], exact)
        for found, exact in zip(theirs, wanted, strict=True)
    ]
    ratio = geometric_mean(mine / other for mine, other in zip(native, torch, strict=True))
    print(
        f"FIGURE gradients of {name} against 64 bits, {DRAWS[name]} draws: {ratio:.2f} of torch's distance (geometric "
        f"mean), medians native {median(native):.2e}, torch {median(torch):.2e}"
    )
    assert min(native) > 0
    assert ratio <= 1
