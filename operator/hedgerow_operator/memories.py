"""What must survive a restart, as annotations on the objects it is about: JSON in, plain values out.

Annotations, because a status may be rebuilt from scratch and these may not. A memory that somebody edited into
something unreadable counts as none: the device's own report then still keeps sequence numbers from going back.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hedgerow_operator.world import DeviceMemory, JobMemory

ANNOTATION = "hedgerow.dev/memory"
_JOB = TypeAdapter(JobMemory)
_DEVICE = TypeAdapter(DeviceMemory)


def read_job_memory(annotations: Mapping[str, str]) -> JobMemory | None:
    """Return what is remembered of a job, if anything."""
    try:
        return _JOB.validate_json(annotations[ANNOTATION])
    except (KeyError, ValidationError):
        return None


def read_device_memory(annotations: Mapping[str, str]) -> DeviceMemory:
    """Return what is remembered of a device."""
    try:
        return _DEVICE.validate_json(annotations[ANNOTATION])
    except (KeyError, ValidationError):
        return DeviceMemory()


def write_memory(memory: JobMemory | DeviceMemory) -> dict[str, Any]:
    """Return the change that writes a memory down."""
    adapter: TypeAdapter[Any] = _JOB if isinstance(memory, JobMemory) else _DEVICE
    values = adapter.dump_python(memory, mode="json")
    defaults = {field.name: field.default for field in dataclasses.fields(memory)}
    known = {name: value for name, value in values.items() if value != defaults[name]}
    text = json.dumps(known, separators=(",", ":"), sort_keys=True)
    return {"metadata": {"annotations": {ANNOTATION: text}}}
