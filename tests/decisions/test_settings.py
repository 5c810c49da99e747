"""Settings come from the environment; every mistake is a sentence that says what to write instead."""

from pathlib import Path

import pytest

from hedgerow_operator.settings import SettingsError, read_settings


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    key = tmp_path / "key"
    key.write_text("x")
    return {"HEDGEROW_BROKER_HOST": "broker", "HEDGEROW_SIGNING_KEY_FILE": str(key)}


def test_the_defaults_are_careful(environment: dict[str, str]) -> None:
    settings = read_settings(environment)
    assert not settings.approve_automatically
    assert not settings.metrics_per_device
    assert settings.namespaces == ()
    assert (settings.broker.port, settings.max_devices) == (1883, 10_000)


def test_everything_can_be_set(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    settings = read_settings(
        environment
        | {
            "HEDGEROW_NAMESPACES": "north, south",
            "HEDGEROW_AUTO_APPROVE": "True",
            "HEDGEROW_BROKER_PASSWORD_FILE": str(tmp_path / "password"),
            "HEDGEROW_MAX_DEVICES": "7",
        }
    )
    assert settings.namespaces == ("north", "south")
    assert settings.approve_automatically
    assert settings.broker.password == "secret"
    assert settings.max_devices == 7


MISTAKES = {
    "HEDGEROW_BROKER_HOST": ("", "HEDGEROW_BROKER_HOST is not set; give the host name or address of the MQTT broker."),
    "HEDGEROW_BROKER_PORT": ("70000", "HEDGEROW_BROKER_PORT is '70000'; give a whole number from 1 to 65535."),
    "HEDGEROW_PLAN_WORKERS": ("-1", "HEDGEROW_PLAN_WORKERS is '-1'; give a whole number from 1 to 256."),
    "HEDGEROW_AUTO_APPROVE": ("maybe", "HEDGEROW_AUTO_APPROVE is 'maybe'; write true or false."),
    "HEDGEROW_LOG_FORMAT": ("xml", "HEDGEROW_LOG_FORMAT is 'xml'; choose one of plain, full, json."),
    "HEDGEROW_NAMESPACES": ("North", "HEDGEROW_NAMESPACES names 'North', which is not a namespace; "),
    "HEDGEROW_SIGNING_KEY_FILE": (
        "/nowhere/key",
        "HEDGEROW_SIGNING_KEY_FILE names /nowhere/key, where there is no file; ",
    ),
    "HEDGEROW_BROKER_PASSWORD_FILE": ("/nowhere/x", "HEDGEROW_BROKER_PASSWORD_FILE names /nowhere/x, which cannot be "),
}


@pytest.mark.parametrize("variable", MISTAKES)
def test_a_mistake_is_a_sentence(environment: dict[str, str], variable: str) -> None:
    value, sentence = MISTAKES[variable]
    with pytest.raises(SettingsError) as raised:
        read_settings(environment | {variable: value})
    assert str(raised.value).startswith(sentence)
