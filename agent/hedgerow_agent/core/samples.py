"""What samples a program takes, and the sentences for those it does not."""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.plan import Program


@dataclass(frozen=True, slots=True)
class SampleShape:
    """Shape of one sample and number of classes."""

    shape: tuple[int, ...]
    classes: int

    def check_arrays(self, x: Array, y: Array) -> None:
        """Raise a sentence unless x and y are arrays of such samples; labels are looked at elsewhere."""
        if x.dtype != np.float32 or x.shape[1:] != self.shape:
            raise BadInput(
                f"The samples are {x.dtype} {list(x.shape[1:])} and the model takes float32 {list(self.shape)}; "
                "prepare the data for this model."
            )
        if y.dtype.kind not in "iu" or y.shape != (len(x),):
            raise BadInput(
                f"The labels are {y.dtype} {list(y.shape)}; give one whole number for each of the {len(x)} samples."
            )

    def check_labels(self, labels: Array) -> None:
        """Raise a sentence if a label is not a class."""
        if labels.size and (labels.min() < 0 or labels.max() >= self.classes):
            odd = labels.min() if labels.min() < 0 else labels.max()
            raise BadInput(f"A label is {odd} and the model has classes 0 to {self.classes - 1}; check the dataset.")


def sample_shape(program: Program) -> SampleShape:
    """Read the sample's shape and the classes off the evaluation graph."""
    graph = program.graph(program.evaluation.graph)
    tensors = graph.by_name()
    entry = next(node for node in graph.nodes if node.op == "input" and node.attributes["field"] == "x")
    loss = next(node for node in graph.nodes if node.op == "cross_entropy")
    return SampleShape(tensors[entry.outputs[0]].shape, tensors[loss.inputs[0]].shape[-1])
