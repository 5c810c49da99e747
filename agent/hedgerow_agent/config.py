"""The device's configuration: one TOML file, checked when it is read, with errors that say what to write instead.

Paths in the file are taken relative to the folder it lies in.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from hedgerow_agent.trainer.rung import DEFAULT_HYSTERESIS_BATCHES
from hedgerow_plans.protocol.keys import parse_trusted_keys
from hedgerow_plans.protocol.messages import LabelMap, Name

CONFIG_LIMIT_BYTES = 1 << 20
DnsName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class ConfigError(Exception):
    """The configuration cannot be used; the text says where and what to do."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Tls(_Section):
    """How the connection is protected; files in PEM form."""

    ca_file: Path | None = None  # None: what the system trusts
    certificate_file: Path | None = None
    key_file: Path | None = None


class Broker(_Section):
    """Where the broker is and who this device is to it."""

    host: Annotated[str, StringConstraints(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65_535)] = 1883
    username: str | None = None
    password: str | None = None
    client_id: str | None = None  # None: the device's name
    tls: Tls | None = None
    keepalive_seconds: Annotated[int, Field(ge=1, le=65_535)] = 30
    first_retry_seconds: Seconds = 1.0
    longest_retry_seconds: Seconds = 60.0


class Keys(_Section):
    """Whose documents are obeyed: key id to base64 of the raw Ed25519 public key."""

    trusted: Annotated[dict[str, str], Field(min_length=1)]

    @field_validator("trusted")
    @classmethod
    def _must_be_keys(cls, trusted: dict[str, str]) -> dict[str, str]:
        parse_trusted_keys(trusted)
        return trusted


class Folder(_Section):
    """A folder of this device."""

    folder: Path


class Metrics(_Section):
    """Where Prometheus may scrape this device; loopback unless told otherwise."""

    port: Annotated[int, Field(ge=0, le=65_535)]  # 0: a free one, written to the log
    address: str = "127.0.0.1"


class Limits(_Section):
    """What the device allows itself."""

    cgroup_root: Path | None = Path("/sys/fs/cgroup")  # None: cgroup limits are not looked at
    program_bytes: Annotated[int, Field(ge=1024)] = 64 * 1024 * 1024
    hysteresis_batches: Annotated[int, Field(ge=1)] = DEFAULT_HYSTERESIS_BATCHES  # a roomier rung waits so long
    measured_steps: Annotated[int, Field(ge=0)] = 2  # on each rung, to compare its promise with what happens
    rest_between_steps_seconds: Annotated[float, Field(ge=0, le=60)] = 0.0  # leaves the processor to others


class Timing(_Section):
    """How often things are said and looked at."""

    telemetry_seconds: Seconds = 5.0
    progress_seconds: Seconds = 0.5
    budget_seconds: Seconds = 1.0
    look_again_seconds: Seconds = 5.0
    stop_seconds: Seconds = 10.0  # after that a trainer that does not stop is killed


class AgentConfig(_Section):
    """Everything the agent is told by whoever installed it."""

    fleet: DnsName
    device: DnsName
    device_class: Annotated[Name, Field(alias="class")]
    labels: LabelMap = {}
    broker: Broker
    keys: Keys
    storage: Folder
    models: Folder
    datasets: dict[str, Path] = {}
    metrics: Metrics | None = None  # None: off
    limits: Limits = Limits()
    timing: Timing = Timing()


def load_config(file: Path) -> AgentConfig:
    """Return the configuration in a file, or raise ConfigError with one sentence per mistake."""
    try:
        with file.open("rb") as stream:
            document = tomllib.loads(stream.read(CONFIG_LIMIT_BYTES).decode())
    except OSError as error:
        raise ConfigError(f"The configuration {file} cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The configuration {file} is not TOML: {error}.") from None
    try:
        config = AgentConfig.model_validate(document)
    except ValidationError as error:
        sentences = "\n".join(f"  {_sentence(one)}" for one in error.errors(include_url=False))
        raise ConfigError(f"The configuration {file} has mistakes:\n{sentences}") from None
    return _with_absolute_paths(config, file.resolve().parent)


def _sentence(error: Any) -> str:
    """Return one mistake as a sentence with place, value and remedy."""
    place = ".".join(str(part) for part in error["loc"]) or "the file"
    kind, given = error["type"], error["input"]
    if kind == "missing":
        return f"{place} is missing: add it."
    if kind == "extra_forbidden":
        return f"{place} is not a setting of the agent: remove it, or correct its spelling."
    message = error["msg"].removeprefix("Value error, ")
    if place.startswith(("keys", "broker.password")):
        return f"{place}: {message}"
    return f"{place} = {given!r}: {message}."


def _with_absolute_paths(config: AgentConfig, base: Path) -> AgentConfig:
    """Return the configuration with every path taken from the folder of its file."""
    tls = config.broker.tls
    if tls is not None:
        files = {name: base / path for name in Tls.model_fields if (path := getattr(tls, name)) is not None}
        tls = tls.model_copy(update=files)
    return config.model_copy(
        update={
            "broker": config.broker.model_copy(update={"tls": tls}),
            "storage": Folder(folder=base / config.storage.folder),
            "models": Folder(folder=base / config.models.folder),
            "datasets": {name: base / path for name, path in config.datasets.items()},
        }
    )
