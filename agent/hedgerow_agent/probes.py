"""The samples somebody wants predictions for: an npz file with x, and y if known. Imports numpy."""

import lzma
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.data import npy
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.initial import all_finite
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import SampleShape

# What a torn, altered, encrypted or hostile archive makes the standard library raise.
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


@dataclass(frozen=True, slots=True)
class Probe:
    """Samples as they lie in a file, and their labels if it has any."""

    file: Path
    x: Array
    y: Array | None

    def samples_for(self, model: SampleShape) -> Array:
        """Return the samples as the model takes them."""
        whole = model.dtype.startswith("int")
        if self.x.dtype.kind not in ("iu" if whole else "iufb"):
            what = "whole numbers" if whole else "numbers"
            raise BadInput(f"The samples in {self.file} are {self.x.dtype} and the model takes {what}; give it those.")
        if not len(self.x):
            raise BadInput(f"The input {self.file} has no samples; give it at least one.")
        model.check_tokens(self.x)
        with np.errstate(over="ignore"):  # what is too large becomes infinite
            samples = np.ascontiguousarray(self.x, dtype=model.dtype)
        if not all_finite(samples):
            raise BadInput(f"The samples in {self.file} hold NaN, infinity, or more than {model.dtype} can; mend them.")
        return samples

    def labels_for(self, model: SampleShape) -> npt.NDArray[np.integer] | None:
        """Return the classes that the samples have, if that is known."""
        if self.y is None:
            return None
        if self.y.dtype.kind not in "iu" or self.y.shape != (len(self.x),):
            raise BadInput(
                f"The input {self.file} has {len(self.x)} samples, and labels that are {self.y.dtype} "
                f"{list(self.y.shape)}; give one whole number for each, or leave y out."
            )
        model.check_labels(self.y)
        return self.y.astype(np.int64)


def read_probe(file: Path) -> Probe:
    """Return what a file holds; raise a sentence if it cannot be used."""
    try:
        with zipfile.ZipFile(file) as archive:
            x, y = _array(file, archive, "x"), _array(file, archive, "y")
    except _UNREADABLE as error:
        raise BadInput(f"The input {file} cannot be used: {error}. It needs an array x, and may have y.") from None
    if x is None:
        raise BadInput(f"The input {file} has no array x. It needs an array x, and may have y.")
    return Probe(file, x, y)


def _array(file: Path, archive: zipfile.ZipFile, name: str) -> Array | None:
    """Return an array whose header was checked before memory is taken for its numbers."""
    member = next((one for one in archive.infolist() if one.filename == f"{name}.npy"), None)
    if member is None:
        return None
    with archive.open(member) as stream:
        header = npy.read_header(stream, f"{name} of {file}", member.file_size)
        numbers: Array = np.frombuffer(stream.read(), header.dtype)
    return numbers.reshape(header.shape, order="F" if header.fortran_order else "C")
