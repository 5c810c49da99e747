"""Datasets: files and folders as arrays that stay in storage, splits that never overlap, batches, streams.

What can be mapped as it lies in its file is mapped, so that only the pages of the samples in use are in memory. What
cannot (text, compressed arrays, several files) is copied once, piece by piece, into a file without a name, and mapped
from there. Nothing is held in memory, orders of rows included; how much is read at once is bounded, and every dataset
says it.
"""

from hedgerow_agent.core.data.dataset import Dataset, Reading
from hedgerow_agent.core.data.loading import load_dataset
from hedgerow_agent.core.data.splitting import Batches, Split, split

__all__ = ["Batches", "Dataset", "Reading", "Split", "load_dataset", "split"]
