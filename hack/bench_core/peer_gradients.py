"""Torch's gradients for the weights and samples in files, in the bits that the weights have, written to others.

Run by the venv that has torch, as `python -m bench_core.peer_gradients NETWORK IN.npz OUT.npz [IN.npz OUT.npz ...]`.
"""

import sys

import numpy as np
import torch
from torch.nn import functional

from bench_core.networks import NETWORKS


def take_gradient(name: str, source: str, target: str) -> None:
    """Load weights by position, take the gradient of the mean loss, save it by position."""
    given = np.load(source)
    network = NETWORKS[name]().to(torch.from_numpy(given["parameter0"]).dtype).train()
    parameters = list(network.parameters())
    with torch.no_grad():
        for position, parameter in enumerate(parameters):
            parameter.copy_(torch.from_numpy(given[f"parameter{position}"]))
    labels = torch.from_numpy(given["labels"]).long()
    loss = functional.cross_entropy(network(torch.from_numpy(given["x"])), labels)
    loss.backward()
    gradients = {f"gradient{position}": parameter.grad.numpy() for position, parameter in enumerate(parameters)}
    np.savez(target, loss=loss.item(), **gradients)


def main() -> None:
    """Take the gradients of every pair of files."""
    name, *files = sys.argv[1:]
    for source, target in zip(files[::2], files[1::2], strict=True):
        take_gradient(name, source, target)


if __name__ == "__main__":
    main()
