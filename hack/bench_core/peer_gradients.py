"""Torch's gradients in 64 bits, for the weights and samples in a file, written to another.

Run by the venv that has torch, as `python -m bench_core.peer_gradients NETWORK IN.npz OUT.npz`.
"""

import sys

import numpy as np
import torch
from torch.nn import functional

from bench_core.networks import NETWORKS


def main() -> None:
    """Load weights by position, take the gradient of the mean loss, save it by position."""
    name, source, target = sys.argv[1:]
    given = np.load(source)
    network = NETWORKS[name]().double().train()
    parameters = list(network.parameters())
    with torch.no_grad():
        for position, parameter in enumerate(parameters):
            parameter.copy_(torch.from_numpy(given[f"parameter{position}"]))
    labels = torch.from_numpy(given["labels"]).long()
    loss = functional.cross_entropy(network(torch.from_numpy(given["x"])), labels)
    loss.backward()
    gradients = {f"gradient{position}": parameter.grad.numpy() for position, parameter in enumerate(parameters)}
    np.savez(target, loss=loss.item(), **gradients)


if __name__ == "__main__":
    main()
