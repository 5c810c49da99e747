"""Reading safetensors files as numpy arrays that stay in the file until they are used.

Mapped rather than loaded, because frozen parameters of a class with `frozenWeights: Mapped` live in the file. Every
number of the header is checked against the file before it is used. Imports numpy: not for the idle agent.
"""

import json
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

HEADER_LIMIT_BYTES = 16 << 20
_DTYPES = {"F32": "<f4", "I32": "<i4", "U8": "|u1", "I8": "|i1"}
Array = npt.NDArray[np.generic]


class UnreadableTensors(ValueError):  # noqa: N818 - reads as what it says of the file
    """The file is not a safetensors file that can be used here; the text is a sentence."""


def map_tensors(file: Path) -> dict[str, Array]:
    """Return the tensors of a file by name."""
    try:
        content = np.memmap(file, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise UnreadableTensors(f"{file} cannot be mapped: {error}.") from None
    return tensors_in(content, str(file))


def tensors_in(content: npt.NDArray[np.uint8], name: str) -> dict[str, Array]:
    """Return the tensors in the bytes of a safetensors file."""
    header, data = _split(content, name)
    found = {}
    for tensor, entry in header.items():
        if tensor != "__metadata__":
            found[tensor] = _view(data, entry, f"{tensor} in {name}")
    return found


def _split(content: npt.NDArray[np.uint8], name: str) -> tuple[dict[str, object], npt.NDArray[np.uint8]]:
    length = int.from_bytes(content[:8].tobytes(), "little")
    if len(content) < 8 or length > min(HEADER_LIMIT_BYTES, len(content) - 8):
        raise UnreadableTensors(f"{name} is not a safetensors file: its header does not fit in it.")
    try:
        header = json.loads(content[8 : 8 + length].tobytes())
    except ValueError as error:
        raise UnreadableTensors(f"{name} is not a safetensors file: {error}.") from None
    if not isinstance(header, dict):
        raise UnreadableTensors(f"{name} is not a safetensors file: its header is no object.")
    return header, content[8 + length :]


def _view(data: npt.NDArray[np.uint8], entry: object, what: str) -> Array:
    try:
        dtype = np.dtype(_DTYPES[entry["dtype"]])  # type: ignore[index]
        shape = tuple(int(size) for size in entry["shape"])  # type: ignore[index]
        begin, end = (int(offset) for offset in entry["data_offsets"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableTensors(f"The tensor {what} is not described as one: {error!r}.") from None
    fits = 0 <= begin <= end <= len(data) and all(size >= 0 for size in shape)
    if not fits or math.prod(shape) * dtype.itemsize != end - begin:
        raise UnreadableTensors(f"The tensor {what} does not lie where its header says.")
    return data[begin:end].view(dtype).reshape(shape)
