"""Which rung to run next: down at once, up after patience. Pure.

Rungs are sorted from the most memory to the least, so a larger number means less memory. Going down is immediate,
because the budget is a promise; going up waits, because a budget that flickers would otherwise switch at every batch.
"""

from collections.abc import Sequence

DEFAULT_HYSTERESIS_BATCHES = 10


def roomiest_fit(peaks: Sequence[int], budget_bytes: int | None) -> int | None:
    """Return the rung with the most memory that fits the budget, or None if none does."""
    if budget_bytes is None:
        return 0
    return next((rung for rung, peak in enumerate(peaks) if peak <= budget_bytes), None)


def choose_rung(
    peaks: Sequence[int],
    budget_bytes: int | None,
    current: int | None,
    batches_since_fit: int,
    hysteresis_batches: int = DEFAULT_HYSTERESIS_BATCHES,
) -> int | None:
    """Return the rung for the next batch; None means that nothing fits.

    `current` is None while nothing runs; `batches_since_fit` counts the batches for which a roomier rung has fitted.
    """
    best = roomiest_fit(peaks, budget_bytes)
    if best is None or current is None or best >= current:
        return best
    return best if batches_since_fit >= hysteresis_batches else current
