"""The base model: trained by our own core, reproducible, and never believed when its file was altered."""

from pathlib import Path

import numpy as np
import pytest

from sampledata import base_model
from sampledata.base_model import BaseModel, Recipe
from sampledata.images import Images, load_digits

QUICK = Recipe(epochs=6, batch_size=32, learning_rate=0.05)


@pytest.fixture(scope="module")
def images() -> Images:
    return load_digits()


@pytest.fixture(scope="module")
def trained(images: Images, tmp_path_factory: pytest.TempPathFactory) -> BaseModel:
    return base_model.train(images, QUICK, tmp_path_factory.mktemp("base") / "base.safetensors", lambda _: None)


def test_it_learns_digits_it_never_saw(trained: BaseModel) -> None:
    assert trained.accuracy >= 0.9


def test_training_again_gives_the_same_bits(trained: BaseModel, images: Images, tmp_path: Path) -> None:
    again = base_model.train(images, QUICK, tmp_path / "again.safetensors", lambda _: None)

    assert again.sha256 == trained.sha256
    assert again.accuracy == trained.accuracy


def test_a_model_trained_before_is_found_again(trained: BaseModel) -> None:
    assert base_model.load(trained.file) == trained


def test_an_altered_model_is_not_found(trained: BaseModel, tmp_path: Path) -> None:
    copy = tmp_path / "copy.safetensors"
    content = bytearray(trained.file.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    copy.with_suffix(".json").write_bytes(trained.file.with_suffix(".json").read_bytes())

    assert base_model.load(copy) is None


def test_other_images_give_another_model(trained: BaseModel, images: Images, tmp_path: Path) -> None:
    other = images.take(np.arange(len(images))[::-1].copy())

    assert base_model.train(other, QUICK, tmp_path / "other.safetensors", lambda _: None).sha256 != trained.sha256
