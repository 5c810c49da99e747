"""Torch's side of a measurement: the same step as a user would write it, printed as one line of JSON.

Run by the venv that has torch, as `python -m bench_core.peer WORKLOAD SECONDS THREADS [tuned]`. "tuned" keeps channels
last where that is faster; what glibc is told besides stands in the environment.
"""

import json
import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from bench_core.networks import NETWORKS
from bench_core.timing import Settings, measure, resident_bytes
from bench_core.workloads import WORKLOADS, Workload

AFTER_IMPORT_BYTES = resident_bytes()
LEARNING_RATE = 0.01


def prepared(workload: Workload) -> nn.Module:
    """Return the network with what the method trains set to train; only full training uses batch statistics."""
    network = NETWORKS[workload.network]()
    if workload.method == "full":
        return network.train()
    head = len(list(network.parameters())) - 2
    for position, (name, parameter) in enumerate(network.named_parameters()):
        bias = workload.method == "bias" and name.endswith("bias")
        parameter.requires_grad_(bias or (workload.method == "last" and position >= head))
    return network.eval()


def samples(workload: Workload) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one batch of random samples and labels."""
    torch.manual_seed(0)
    shape = (workload.batch_size, *workload.shape)
    labels = torch.randint(0, workload.classes, (workload.batch_size,))
    return (torch.randint(0, workload.vocabulary, shape) if workload.vocabulary else torch.randn(shape)), labels


def training_step(network: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], float]:
    """Return a call that takes one step of plain SGD and returns the loss."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=LEARNING_RATE)

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def main() -> None:
    """Measure one workload in this process."""
    name, seconds, threads, *options = sys.argv[1:]
    workload = WORKLOADS[name]
    torch.set_num_threads(int(threads))
    network, (x, y) = prepared(workload), samples(workload)
    if "tuned" in options and workload.channels_last:
        network = network.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    sample = measure(training_step(network, x, y), Settings(seconds=float(seconds)), AFTER_IMPORT_BYTES)
    print(json.dumps(sample.as_json()))


if __name__ == "__main__":
    main()
