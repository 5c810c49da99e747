"""Deltas as safetensors bytes with their manifest, and back. The same training gives the same bytes."""

import json
from collections.abc import Mapping

import numpy as np
from safetensors.numpy import save

from hedgerow_agent.trainer.protocol import Start
from hedgerow_agent.weights import Array, tensors_in

MANIFEST_KEY = "hedgerow"
"""One entry only: the writer puts several in any order, and a checkpoint written again must have the same sha256."""


def encode_delta(tensors: Mapping[str, Array], start: Start, step: int, accuracy: float | None) -> bytes:
    """Return the file of a checkpoint."""
    manifest = {
        "jobUid": start.job_uid,
        "generation": start.generation,
        "step": step,
        "baseSha256": start.weights_sha256,
        "programDigest": start.program_digest,
        "accuracy": accuracy,
    }
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, {MANIFEST_KEY: text})


def decode_delta(content: bytes, name: str) -> dict[str, Array]:
    """Return the tensors of a checkpoint's file."""
    return tensors_in(np.frombuffer(content, np.uint8), name)
