"""Devices that introduce themselves: a birth of an unknown device becomes a Device resource.

What a device claims about itself is put under `device.hedgerow.dev/`, where it cannot pretend to be a label that a
person gave. Its class is taken from the birth once; afterwards the resource belongs to people.
"""

import re
from collections.abc import Mapping

from hedgerow_operator.kube import Body
from hedgerow_plans.protocol.messages import State
from hedgerow_plans.resources.common import API_VERSION

CLAIMED = "device.hedgerow.dev/"
_NAME = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")


def claimed_labels(state: State) -> dict[str, str]:
    """Return what a device says of itself as labels; what cannot be a label is left out."""
    short = {name.removeprefix(CLAIMED): value for name, value in state.labels.items()}
    return {f"{CLAIMED}{name}": value for name, value in short.items() if _NAME.match(name) and _VALUE.match(value)}


def device_body(fleet: str, name: str, state: State, *, approved: bool) -> Body:
    """Return the Device of a device that was not known before."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Device",
        "metadata": {"name": name, "namespace": fleet, "labels": claimed_labels(state)},
        "spec": {"class": state.device_class, "approved": approved},
    }


def label_change(labels: Mapping[str, str], state: State) -> Body | None:
    """Return the change that brings a Device's claimed labels up to date, if they are not."""
    claimed = claimed_labels(state)
    change: dict[str, str | None] = {name: value for name, value in claimed.items() if labels.get(name) != value}
    gone: dict[str, str | None] = {name: None for name in labels if name.startswith(CLAIMED) and name not in claimed}
    return {"metadata": {"labels": change | gone}} if change or gone else None
