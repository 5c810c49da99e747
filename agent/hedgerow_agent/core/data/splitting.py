"""Which samples are for training, which for judging, and which come in which step: all from seed and step number."""

from dataclasses import dataclass

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import RowNumbers
from hedgerow_agent.core.random_bits import permutation

_FEWEST_SAMPLES = 7


@dataclass(frozen=True, slots=True)
class Split:
    """Row numbers for training, for checkpoints and for the figures before and after; no row is in two of them."""

    train: RowNumbers
    validation: RowNumbers
    test: RowNumbers


def split(count: int, seed: int) -> Split:
    """Split rows 70/15/15 in an order given by the seed."""
    if count < _FEWEST_SAMPLES:
        raise BadInput(f"The dataset has {count} samples; a split needs at least {_FEWEST_SAMPLES}.")
    order = permutation(count, seed, "split")
    held = count * 15 // 100
    return Split(order[2 * held :], order[:held], order[held : 2 * held])


class Batches:
    """The batches of a run: a fresh order for every epoch; the rest that fills no batch waits for the next epoch."""

    def __init__(self, rows: RowNumbers, batch_size: int, seed: int) -> None:
        if len(rows) < batch_size:
            raise BadInput(f"There are {len(rows)} training samples and a batch is {batch_size}; lower the batch size.")
        self._rows, self._batch_size, self._seed = rows, batch_size, seed
        self.per_epoch = len(rows) // batch_size
        self._epoch = -1
        self._order = rows

    def rows(self, step: int) -> RowNumbers:
        """Return the rows of a step, counted from 0 through all epochs."""
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._order = self._rows[permutation(len(self._rows), self._seed, "epoch", epoch)]
            self._epoch = epoch
        return self._order[position * self._batch_size : (position + 1) * self._batch_size]
