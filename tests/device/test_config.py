"""The device's configuration, and the sentences about mistakes in it."""

from pathlib import Path

import pytest

from hedgerow_agent.config import ConfigError, load_config
from hedgerow_plans.protocol.keys import generate_private_key, key_id, public_key_text

PUBLIC = generate_private_key().public_key()
GOOD = f"""
fleet = "north"
device = "pump-07"
class = "raspberry-pi-4"
[broker]
host = "localhost"
[keys]
trusted = {{ {key_id(PUBLIC)} = "{public_key_text(PUBLIC)}" }}
[storage]
folder = "store"
[models]
folder = "/srv/models"
[datasets]
digits = "data/digits.npz"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "agent.toml"
    file.write_text(text)
    return file


def test_paths_are_taken_from_the_folder_of_the_file(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, GOOD))
    assert config.device_class == "raspberry-pi-4"
    assert config.storage.folder == tmp_path / "store"
    assert config.models.folder == Path("/srv/models")
    assert config.datasets["digits"] == tmp_path / "data/digits.npz"
    assert config.metrics is None
    assert config.broker.port == 1883


@pytest.mark.parametrize(
    ("good", "bad", "sentence"),
    [
        ('fleet = "north"', "", "fleet is missing: add it."),
        ('fleet = "north"', 'fleet = "north"\ncolour = "red"', "colour is not a setting of the agent: remove it"),
        ('device = "pump-07"', 'device = "Pump 07"', "device = 'Pump 07': String should match pattern"),
        ('host = "localhost"', 'host = "localhost"\nport = 99999', "broker.port = 99999: Input should be less than"),
        ('host = "localhost"', 'host = "localhost"\nport = "x"', "broker.port = 'x': Input should be a valid integer"),
        pytest.param(public_key_text(PUBLIC), "AAAA", "an Ed25519 key has 32", id="short key"),
        pytest.param(key_id(PUBLIC), "0" * 16, "write it under that name", id="key under another name"),
        ("[storage]", "[storage", "is not TOML"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, good: str, bad: str, sentence: str) -> None:
    assert good in GOOD
    with pytest.raises(ConfigError, match=r"agent\.toml") as caught:
        load_config(written(tmp_path, GOOD.replace(good, bad)))
    assert sentence in str(caught.value)


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(written(tmp_path, "[broker]\n"))
    for name in ("fleet", "device", "class", "broker.host", "keys", "storage", "models"):
        assert f"{name} is missing" in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml cannot be read: No such file"):
        load_config(tmp_path / "nowhere.toml")
