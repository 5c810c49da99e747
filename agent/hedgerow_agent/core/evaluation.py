"""How good a model is on some samples, counted as their outputs come."""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How good the model is on some samples."""

    accuracy: float | None  # None: the model has no classes
    loss: float
    count: int
    f1_macro: float | None = None  # mean over the classes that occur, in labels or in answers


class Scores:
    """Counts answers by class and sums losses; three numbers a class is all it keeps."""

    def __init__(self, classes: int | None) -> None:
        self._classes = classes
        self._by_class = np.zeros((3, classes or 0), np.int64)  # right answers, answers, labels
        self._loss, self._count = 0.0, 0

    def add(self, logits: Array, losses: Array, labels: Array) -> None:
        """Count some samples."""
        self._loss += float(losses.sum(dtype=np.float64))
        self._count += len(losses)
        if self._classes is not None:
            answers = logits.argmax(axis=1)
            # Labels may be of any whole type, and bincount takes no unsigned one of 64 bits.
            for row, seen in enumerate((answers[answers == labels], answers, labels.astype(np.intp))):
                self._by_class[row] += np.bincount(seen, minlength=self._classes)

    def result(self) -> Evaluation:
        """Return the figures over all samples counted."""
        if self._count == 0:
            raise BadInput("There are no samples to evaluate; give at least one.")
        loss = self._loss / self._count
        if self._classes is None:
            return Evaluation(None, loss, self._count)
        right, answered, labelled = self._by_class
        occurring = (answered + labelled) > 0
        f1 = 2 * right[occurring] / (answered + labelled)[occurring]
        return Evaluation(int(right.sum()) / self._count, loss, self._count, float(f1.mean()))
