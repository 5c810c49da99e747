"""Predictions with what a device runs: whatever file or delta is bad, the answer is one sentence."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from hedgerow_agent.config import AgentConfig, load_config
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.machine.state import Adapter, JobKey
from hedgerow_agent.predict import CannotPredict, predict
from hedgerow_agent.store import Store
from hedgerow_plans import codec
from hedgerow_plans.protocol.messages import WeightsReference
from support.devices import Device, base_weights, digits, small_program

JOB = JobKey("job", 1)
COUNT = 4
X, Y = digits()[0][:COUNT], digits()[1][:COUNT]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> AgentConfig:
    """A device that was given a model."""
    device = Device(tmp_path_factory.mktemp("predicting") / "device", "alone", 1)
    device.write_files()
    config = load_config(device.config)
    Store(config.storage.folder).save_program(codec.encode(small_program()))
    return config


@pytest.fixture
def running(config: AgentConfig) -> Callable[[str | None], None]:
    def run(checkpoint: str | None) -> None:
        weights = WeightsReference(uri="file:base.safetensors", sha256=hashlib.sha256(base_weights()).hexdigest())
        store = Store(config.storage.folder)
        problem = store.swap_adapter(
            Adapter(
                job=JOB,
                checkpoint=checkpoint,
                program_digest=codec.digest(codec.encode(small_program())),
                weights=weights,
                seed=7,
            )
        )
        assert not problem

    run(None)
    return run


def refused(config: AgentConfig, file: Path, words: str) -> None:
    with pytest.raises(CannotPredict, match=words):
        predict(config, file)


@pytest.mark.usefixtures("running")
def test_samples_of_any_kind_of_number_are_answered(config: AgentConfig, tmp_path: Path) -> None:
    file = tmp_path / "probe.npz"
    for x in (X, X.astype(np.float64), X.astype(">f4"), np.asfortranarray(X)):
        np.savez(file, x=x, y=Y)
        found = predict(config, file)
        assert (found.running, found.classes, found.accuracy) == ("base", tuple(Y.tolist()), 1.0)
    np.savez_compressed(file, x=np.round(X * 16).astype(np.uint8))
    found = predict(config, file)
    assert (len(found.classes), found.accuracy) == (COUNT, None)


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"z": X}, "has no array x. It needs an array x"),
        ({"x": np.float32(3), "y": Y}, "The array x of .* is a single number; give it one row per sample"),
        ({"x": np.array(["a", "b"]), "y": Y[:2]}, "are <U1 and the model takes numbers"),
        ({"x": X.astype(complex)}, "are complex128 and the model takes numbers"),
        ({"x": X.astype("datetime64[s]")}, "and the model takes numbers"),
        ({"x": X[:0], "y": Y[:0]}, "has no samples; give it at least one"),
        ({"x": X[:, :, :5]}, r"The samples are float32 \[1, 5, 8\] and the model takes float32 \[1, 8, 8\]"),
        ({"x": X * np.float32(np.nan)}, "hold NaN, infinity, or more than float32 can"),
        ({"x": X.astype(np.float64) + 1e300}, "hold NaN, infinity, or more than float32 can"),
        ({"x": X * np.float32(3e38)}, "answers . of 4 samples with what is no number"),
        ({"x": X, "y": Y[:2]}, r"has 4 samples, and labels that are int32 \[2\]; give one whole number for each"),
        ({"x": X, "y": np.int32(1)}, "The array y of .* is a single number"),
        ({"x": X, "y": np.array(list("abcd"))}, r"labels that are <U1 \[4\]"),
        ({"x": X, "y": Y + 10}, "A label is 1. and the model has classes 0 to 9"),
    ],
)
def test_arrays_that_cannot_be_used_are_named_in_a_sentence(
    config: AgentConfig, tmp_path: Path, arrays: dict[str, Any], words: str
) -> None:
    np.savez(tmp_path / "odd.npz", **arrays)
    refused(config, tmp_path / "odd.npz", words)


@pytest.mark.usefixtures("running")
def test_files_that_cannot_be_read_are_named_in_a_sentence(config: AgentConfig, tmp_path: Path) -> None:
    file = tmp_path / "probe.npz"
    np.savez(file, x=X)
    intact = file.read_bytes()
    directory = intact.find(b"PK\x01\x02")
    for content, words in (
        (intact[:-40], "not a zip file"),
        (intact[:100] + b"\xff" * 40 + intact[140:], "cannot be used"),
        (intact[: directory + 8] + b"\x01" + intact[directory + 9 :], "cannot be used"),
        (intact[: directory + 10] + b"\x63" + intact[directory + 11 :], "compression method"),
        (b"hello", "not a zip file"),
    ):
        file.write_bytes(content)
        refused(config, file, words)
    refused(config, tmp_path, "Is a directory")
    refused(config, tmp_path / "nowhere.npz", "No such file")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 8)})
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    refused(config, file, "claims 32000000000000 bytes and has 0")


def test_a_delta_that_is_none_of_this_model_is_named_in_a_sentence(
    config: AgentConfig, running: Callable[[str | None], None], tmp_path: Path
) -> None:
    np.savez(tmp_path / "probe.npz", x=X)
    checkpoints = Store(config.storage.folder).checkpoints(JOB)
    delta = Executor(small_program(), load(base_weights()), 7).delta()
    loud = {name: np.full_like(tensor, 1e30) for name, tensor in delta.items()}
    for content, words in (
        (b"rubbish", "step-000020 is not a safetensors file"),
        (save({"a": X}), "do not name the same tensors"),
        (save({name: tensor[:1] for name, tensor in delta.items()}), "these are not this model's weights"),
        (save(loud), "answers 4 of 4 samples with what is no number; .* roll back"),
    ):
        checkpoints.add("step-000020", 20, content, None)
        running("step-000020")
        refused(config, tmp_path / "probe.npz", words)
    checkpoints.discard("step-000020")
    refused(config, tmp_path / "probe.npz", "step-000020 is missing or was altered; roll back")
