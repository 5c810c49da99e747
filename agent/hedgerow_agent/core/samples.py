"""What samples and targets a program takes, and the sentences for those it does not."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array, Rows
from hedgerow_agent.core.rows import in_turn
from hedgerow_plans.graph.ir import DType, Graph, Node, Tensor
from hedgerow_plans.graph.ops.loss import LOSSES
from hedgerow_plans.plan import Program

_LOOKED_AT_BYTES = 64 * 1024


class Targets(StrEnum):
    """What an output is compared with."""

    LABELS = "labels"  # the number of a class, one for each sample
    NUMBERS = "numbers"  # one for each element of the output
    SAMPLES = "samples"  # the samples themselves; labels may come along and go unread


@dataclass(frozen=True, slots=True)
class SampleShape:
    """Shape and type of one sample, shape of the output made of it, and what that is compared with."""

    shape: tuple[int, ...]
    dtype: str
    output: tuple[int, ...]
    targets: Targets
    tokens: int | None = None  # how many kinds of token there are, if samples are sequences of tokens

    @property
    def classes(self) -> int:
        """How many classes labels may name."""
        return self.output[-1]

    def check_arrays(self, x: Array, y: Array) -> None:
        """Raise a sentence unless x and y are arrays of such samples; labels and tokens are looked at elsewhere."""
        if x.dtype != self.dtype or x.shape[1:] != self.shape:
            raise BadInput(
                f"The samples are {x.dtype} {list(x.shape[1:])} and the model takes {self.dtype} {list(self.shape)}; "
                "prepare the data for this model."
            )
        if self.targets is Targets.LABELS and (y.dtype.kind not in "iu" or y.shape != (len(x),)):
            raise BadInput(
                f"The labels are {y.dtype} {list(y.shape)}; give one whole number for each of the {len(x)} samples."
            )
        if self.targets is Targets.NUMBERS and (y.dtype != np.float32 or y.shape != (len(x), *self.output)):
            raise BadInput(
                f"The targets are {y.dtype} {list(y.shape)}; give float32 {list(self.output)} for each of the "
                f"{len(x)} samples."
            )

    def no_targets(self, count: int) -> Array:
        """Return targets for samples that are only looked at, so that the loss means nothing."""
        if self.targets is Targets.NUMBERS:
            return np.broadcast_to(np.float32(0), (count, *self.output))
        return np.broadcast_to(np.int32(0), (count,))

    def check_rows(self, x: Array, y: Array, rows: Rows) -> None:
        """Raise a sentence if a row is none, a label no class, or a token without a row in the model's table.

        Targets of other kinds may be anything. A little is looked at at once, however many rows there are.
        """
        if not isinstance(rows, slice) and rows.size and (rows.min() < 0 or rows.max() >= len(x)):
            raise BadInput(f"Samples {rows.min()} to {rows.max()} were asked for; there are 0 to {len(x) - 1}.")
        if self.targets is Targets.LABELS:
            for piece in in_turn(rows, _LOOKED_AT_BYTES // y.itemsize):
                self.check_labels(y[piece])
        if self.tokens is not None:
            for piece in in_turn(rows, max(1, _LOOKED_AT_BYTES // (x.itemsize * math.prod(self.shape)))):
                self.check_tokens(x[piece])

    def check_labels(self, labels: Array) -> None:
        """Raise a sentence if a label is not a class; targets of other kinds may be anything."""
        if self.targets is Targets.LABELS:
            self._check_below(labels, self.classes, "A label is {} and the model has classes 0 to {}")

    def check_tokens(self, samples: Array) -> None:
        """Raise a sentence if a token has no row in the model's table."""
        if self.tokens is not None:
            self._check_below(samples, self.tokens, "A token is {} and the model knows 0 to {}")

    def taken(self, numbers: Array) -> Array:
        """Return some numbers of one sample in the model's type; raise a sentence if it cannot learn from them."""
        found = as_type(numbers, np.dtype(self.dtype), "A token", "tokens are whole numbers of 32 bits")
        finite = np.isfinite(found)
        if not finite.all():
            raise BadInput(f"A number is {numbers[~finite][0]:.15g} and {self.dtype} has no such; repair the sensor.")
        self.check_tokens(found)
        return found

    @staticmethod
    def _check_below(numbers: Array, limit: int, problem: str) -> None:
        if numbers.size and (numbers.min() < 0 or numbers.max() >= limit):
            odd = numbers.min() if numbers.min() < 0 else numbers.max()
            raise BadInput(f"{problem.format(odd, limit - 1)}; check the dataset.")


def as_type(numbers: Array, dtype: "np.dtype[np.generic]", name: str, rule: str) -> Array:
    """Return numbers in another type; raise a sentence if that one is whole and would change them.

    What is too large for a narrower float becomes infinity, for whoever looks for it afterwards.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = numbers.astype(dtype)
    if dtype.kind in "iu" and (changed := found != numbers).any():
        raise BadInput(f"{name} is {numbers[changed][0]:.15g}; {rule}.")
    return found


def loss_node(graph: Graph) -> Node:
    """Return the node that makes the loss of each sample."""
    return next(node for node in graph.nodes if node.op in LOSSES)


def sample_shape(program: Program) -> SampleShape:
    """Read what samples look like off the evaluation graph."""
    graph = program.graph(program.evaluation.graph)
    tensors, loss = graph.by_name(), loss_node(graph)
    entry = next(node for node in graph.nodes if node.op == "input" and node.attributes["field"] == "x")
    x, output = tensors[entry.outputs[0]], tensors[loss.inputs[0]]
    return SampleShape(
        x.shape, x.dtype.value, output.shape, _targets(graph, tensors[loss.inputs[1]]), _tokens(graph, x)
    )


def _targets(graph: Graph, tensor: Tensor) -> Targets:
    maker = next(node for node in graph.nodes if tensor.name in node.outputs)
    if maker.attributes["field"] == "x":
        return Targets.SAMPLES
    return Targets.LABELS if tensor.dtype is DType.INT32 else Targets.NUMBERS


def _tokens(graph: Graph, x: Tensor) -> int | None:
    tensors = graph.by_name()
    tables = [tensors[node.inputs[1]] for node in graph.nodes if node.op == "embedding" and node.inputs[0] == x.name]
    return min((table.shape[0] for table in tables), default=None)
