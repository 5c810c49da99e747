"""What a dataset is to whoever trains: samples, targets, and what reading them takes."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a dataset takes, in bytes; once it is open it holds none, for all of it stays in storage."""

    at_once_bytes: int = 0  # the largest piece while it was opened
    copied_bytes: int = 0  # to storage, because it could not be mapped as it was
    files: int = 0


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples (numbers, or whole numbers that stand for tokens) and their labels of any whole type, or targets."""

    x: npt.NDArray[np.float32] | npt.NDArray[np.int32]
    y: npt.NDArray[np.integer[Any]] | npt.NDArray[np.float32]
    reading: Reading = field(default=Reading(), compare=False)
