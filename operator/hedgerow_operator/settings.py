"""What the operator is told at start: environment variables in, one frozen `Settings` out.

Every mistake is a sentence that names the variable, its value and the remedy; nothing else reads the environment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FLEET = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


class SettingsError(ValueError):
    """An environment variable that cannot be used; the text says which, and what to write instead."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Where the MQTT broker is, and who we are to it."""

    host: str
    port: int
    username: str | None
    password: str | None
    certificate_authority: Path | None  # TLS is used when this is given
    client_id: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a person may decide about one operator."""

    namespaces: tuple[str, ...]  # fleets served; empty: all of them
    broker: BrokerSettings
    signing_key_file: Path
    approve_automatically: bool
    max_devices: int
    metrics_per_device: bool
    plan_workers: int
    plan_timeout_seconds: int
    memo_folder: Path
    metrics_port: int
    health_port: int
    listen_address: str
    health_grace_seconds: int  # how long broker or watch may be away before /healthz fails
    log_format: str  # full, plain or json


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings in an environment, or raise a `SettingsError` that says what to change."""
    return Settings(
        namespaces=_namespaces(environment),
        broker=_broker(environment),
        signing_key_file=_file(environment, "HEDGEROW_SIGNING_KEY_FILE", "make one with `hedgerow keys generate`"),
        approve_automatically=_boolean(environment, "HEDGEROW_AUTO_APPROVE"),
        max_devices=_integer(environment, "HEDGEROW_MAX_DEVICES", 10_000, 1, 1_000_000),
        metrics_per_device=_boolean(environment, "HEDGEROW_DEVICE_METRICS"),
        plan_workers=_integer(environment, "HEDGEROW_PLAN_WORKERS", 1, 1, 256),
        plan_timeout_seconds=_integer(environment, "HEDGEROW_PLAN_TIMEOUT_SECONDS", 600, 1, 86_400),
        memo_folder=Path(environment.get("HEDGEROW_MEMO_FOLDER") or "/var/cache/hedgerow/programs"),
        metrics_port=_integer(environment, "HEDGEROW_METRICS_PORT", 9464, 1, 65_535),
        health_port=_integer(environment, "HEDGEROW_HEALTH_PORT", 8080, 1, 65_535),
        listen_address=environment.get("HEDGEROW_LISTEN_ADDRESS") or "0.0.0.0",  # noqa: S104 - probes come from outside
        health_grace_seconds=_integer(environment, "HEDGEROW_HEALTH_GRACE_SECONDS", 60, 1, 3600),
        log_format=_choice(environment, "HEDGEROW_LOG_FORMAT", "plain", ("plain", "full", "json")),
    )


def _namespaces(environment: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in environment.get("HEDGEROW_NAMESPACES", "").split(",") if name.strip())
    for name in names:
        if not _FLEET.match(name):
            raise SettingsError(
                f"HEDGEROW_NAMESPACES names {name!r}, which is not a namespace; write names of lower-case letters, "
                "digits and dashes with commas between them, or leave it empty to serve every namespace."
            )
    return names


def _broker(environment: Mapping[str, str]) -> BrokerSettings:
    host = environment.get("HEDGEROW_BROKER_HOST", "").strip()
    if not host:
        raise SettingsError("HEDGEROW_BROKER_HOST is not set; give the host name or address of the MQTT broker.")
    password_file = environment.get("HEDGEROW_BROKER_PASSWORD_FILE")
    authority = environment.get("HEDGEROW_BROKER_CA_FILE")
    return BrokerSettings(
        host=host,
        port=_integer(environment, "HEDGEROW_BROKER_PORT", 1883, 1, 65_535),
        username=environment.get("HEDGEROW_BROKER_USERNAME") or None,
        password=_first_line(Path(password_file)) if password_file else None,
        certificate_authority=Path(authority) if authority else None,
        client_id=environment.get("HEDGEROW_BROKER_CLIENT_ID") or "hedgerow-operator",
    )


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as problem:
        raise SettingsError(
            f"HEDGEROW_BROKER_PASSWORD_FILE names {file}, which cannot be read ({problem}); "
            "mount the Secret with the broker's password there."
        ) from problem


def _file(environment: Mapping[str, str], variable: str, remedy: str) -> Path:
    value = environment.get(variable, "")
    if not value:
        raise SettingsError(f"{variable} is not set; give the path of a file ({remedy}).")
    if not Path(value).is_file():
        raise SettingsError(f"{variable} names {value}, where there is no file; {remedy} and mount it there.")
    return Path(value)


def _integer(environment: Mapping[str, str], variable: str, default: int, low: int, high: int) -> int:
    text = environment.get(variable, "").strip()
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not low <= int(text) <= high:
        raise SettingsError(f"{variable} is {text[:40]!r}; give a whole number from {low} to {high}.")
    return int(text)


def _boolean(environment: Mapping[str, str], variable: str) -> bool:
    text = environment.get(variable, "").strip().lower()
    if text not in _TRUE | _FALSE:
        raise SettingsError(f"{variable} is {text[:40]!r}; write true or false.")
    return text in _TRUE


def _choice(environment: Mapping[str, str], variable: str, default: str, choices: tuple[str, ...]) -> str:
    text = environment.get(variable, "").strip().lower() or default
    if text not in choices:
        raise SettingsError(f"{variable} is {text[:40]!r}; choose one of {', '.join(choices)}.")
    return text
