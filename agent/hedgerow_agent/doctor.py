"""Looks at everything the agent needs and says, one line each, what is well and what to do about the rest."""

import importlib.util
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_agent.budgets import read_cgroup_limit
from hedgerow_agent.config import AgentConfig

_TIMEOUT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    well: bool
    subject: str
    message: str


def examine(config: AgentConfig) -> Iterator[Finding]:
    """Yield what is found, in the order in which a device needs it."""
    keys = ", ".join(config.keys.trusted)
    yield Finding(True, "config", f"{config.fleet}/{config.device} of class {config.device_class}; trusts {keys}.")
    yield _broker(config)
    yield _storage(config)
    yield _models(config)
    yield from _datasets(config)
    yield _backend()
    limit = read_cgroup_limit(config.limits.cgroup_root) if config.limits.cgroup_root else None
    yield Finding(True, "memory", "no cgroup limit." if limit is None else f"cgroup limit {limit} bytes.")


def _broker(config: AgentConfig) -> Finding:
    where = f"{config.broker.host}:{config.broker.port}"
    try:
        socket.create_connection((config.broker.host, config.broker.port), _TIMEOUT_SECONDS).close()
    except OSError as error:
        return Finding(False, "broker", f"{where} cannot be reached ({error}): check [broker] host and port.")
    return Finding(True, "broker", f"{where} answers.")


def _storage(config: AgentConfig) -> Finding:
    folder = config.storage.folder
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    if not os.access(existing, os.W_OK):
        return Finding(False, "storage", f"{folder} cannot be written: give this user the right to.")
    return Finding(True, "storage", f"{folder} can be written.")


def _models(config: AgentConfig) -> Finding:
    folder = config.models.folder
    if not folder.is_dir():
        return Finding(False, "models", f"{folder} is not a folder: create it and copy base models into it.")
    names = sorted(file.name for file in folder.glob("*.safetensors"))
    if not names:
        return Finding(False, "models", f"{folder} holds no .safetensors file: copy base models into it.")
    return Finding(True, "models", f"{', '.join(names)}.")


def _datasets(config: AgentConfig) -> Iterator[Finding]:
    if not config.datasets:
        yield Finding(False, "datasets", "none: name at least one under [datasets].")
    for name, file in config.datasets.items():
        there = file.exists()
        yield Finding(there, f"dataset {name}", f"{file} {'is there' if there else 'is missing: prepare it'}.")


def _backend() -> Finding:
    missing = [name for name in ("numpy", "safetensors") if importlib.util.find_spec(name) is None]
    if missing:
        return Finding(False, "backend", f"{', '.join(missing)} missing: pip install 'hedgerow[agent]'.")
    from hedgerow_agent.trainer.backend import open_backend  # noqa: PLC0415 - numpy comes with it
    from hedgerow_agent.trainer.loading import Unfit  # noqa: PLC0415 - as above

    try:
        return Finding(True, "backend", open_backend(None, os.environ).words)
    except Unfit as missing:
        return Finding(False, "backend", str(missing))
