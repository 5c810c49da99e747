"""Which samples are for training, which for judging, and which come in which step: all from seed and step number."""

from dataclasses import dataclass

from hedgerow_agent.core.data.orders import Shuffled
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import RowNumbers
from hedgerow_agent.core.rows import Order

_FEWEST_SAMPLES = 7

_ROWS_AHEAD = 1024
"""Rows computed at a time, unless a batch has more: a thousand of them take little longer than thirty."""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows for training, for checkpoints and for the figures before and after; no row is in two of them."""

    train: Order
    validation: Order
    test: Order


def split(count: int, seed: int) -> Split:
    """Split rows 70/15/15: three stretches of one order given by the seed."""
    if count < _FEWEST_SAMPLES:
        raise BadInput(f"The dataset has {count} samples; a split needs at least {_FEWEST_SAMPLES}.")
    order = Shuffled.of(count, seed, "split")
    held = count * 15 // 100
    return Split(order.stretch(2 * held, count), order.stretch(0, held), order.stretch(held, 2 * held))


class Batches:
    """The batches of a run: a fresh order for every epoch; the rest that fills no batch waits for the next epoch."""

    def __init__(self, rows: Order, batch_size: int, seed: int) -> None:
        if len(rows) < batch_size:
            raise BadInput(f"There are {len(rows)} training samples and a batch is {batch_size}; lower the batch size.")
        self._rows, self._batch_size, self._seed = rows, batch_size, seed
        self.per_epoch = len(rows) // batch_size
        self._ahead = max(1, _ROWS_AHEAD // batch_size)
        self._known: tuple[int, int] | None = None
        self._known_rows = rows[0:0]

    def rows(self, step: int) -> RowNumbers:
        """Return the rows of a step, counted from 0 through all epochs."""
        epoch, number = divmod(step, self.per_epoch)
        block, position = divmod(number, self._ahead)
        if self._known != (epoch, block):
            self._known, self._known_rows = (epoch, block), self._block(epoch, block)
        return self._known_rows[position * self._batch_size : (position + 1) * self._batch_size]

    def _block(self, epoch: int, block: int) -> RowNumbers:
        """Return the rows of some steps that follow each other in an epoch."""
        order = Shuffled.of(len(self._rows), self._seed, "epoch", epoch)
        length = self._ahead * self._batch_size
        return self._rows[order[block * length : (block + 1) * length]]
