"""Who plays: three classes of devices, six devices that each see the world their own way, and one job."""

from dataclasses import dataclass

import yaml

FLEET = "orchard"
JOB = "handwriting"
DATASET = "camera"
SQUEEZED_CLASS = "raspberry-pi-4"
SQUEEZED_ALLOWANCE = "640Ki"
SITE_LABELS = {"site": "orchard"}
SELECTOR = {f"device.hedgerow.dev/{key}": value for key, value in SITE_LABELS.items()}
"""What a device says of itself carries this prefix in the cluster, so that it cannot pose as something people said."""


@dataclass(frozen=True, slots=True)
class DeviceRole:
    """One device: its class, and what happened to its camera."""

    name: str
    device_class: str
    drift: str
    rest_seconds: float = 0.0  # after each step: those that are squeezed take their time, so that it can be seen


DEVICES = (
    DeviceRole("gate-01", "raspberry-pi-4", "rotated", rest_seconds=0.1),
    DeviceRole("gate-02", "raspberry-pi-4", "inverted", rest_seconds=0.1),
    DeviceRole("post-03", "stm32f746", "fogged"),
    DeviceRole("post-04", "stm32f746", "rotated"),
    DeviceRole("tag-05", "nrf52840", "inverted"),
    DeviceRole("tag-06", "nrf52840", "fogged"),
)

# Speed and energy as published for the boards; the agents here run on this machine inside the boards' memory.
_CLASSES = {
    "raspberry-pi-4": {
        "description": "Raspberry Pi 4B; 4 MiB of its memory are given to training.",
        "memory": {"budget": "4Mi"},
        "compute": {"flopsPerSecond": 2_000_000_000, "picojoulesPerFlop": 24_930},
    },
    "stm32f746": {
        "description": "STM32F746 Discovery: 320 KiB of RAM, weights that are not trained stay in flash.",
        "memory": {"budget": "320Ki", "frozenWeights": "Mapped"},
        "compute": {"flopsPerSecond": 230_000_000, "picojoulesPerFlop": 500},
    },
    "nrf52840": {
        "description": "Nordic nRF52840: 256 KiB of RAM, weights that are not trained stay in flash.",
        "memory": {"budget": "256Ki", "frozenWeights": "Mapped"},
        "compute": {"flopsPerSecond": 6_370_000, "picojoulesPerFlop": 1_724},
    },
}
CLASS_NAMES = tuple(_CLASSES)


def class_manifests() -> str:
    """Return the DeviceClasses as YAML."""
    return yaml.safe_dump_all(
        [_manifest("DeviceClass", {"name": name}, spec) for name, spec in _CLASSES.items()], sort_keys=False
    )


def job_manifest(sha256: str, epochs: int, name: str = JOB, checkpoints_kept: int = 5) -> str:
    """Return the TrainingJob as YAML."""
    spec = {
        "model": {
            "zoo": "cnn-small",
            "classes": 10,
            "inputShape": [1, 28, 28],
            "weights": {"uri": "file:digits.safetensors", "sha256": sha256},
        },
        "dataset": DATASET,
        "method": {"lora": {"rank": 4, "alpha": 4}},
        "training": {
            "epochs": epochs,
            "batchSize": 32,
            "seed": 7,
            "optimizer": {"sgd": {"learningRate": "0.02", "momentum": "0.9"}},
        },
        "devices": {"selector": {"matchLabels": SELECTOR}},
        "checkpoint": {"everySteps": 20, "keep": checkpoints_kept},
    }
    return yaml.safe_dump(_manifest("TrainingJob", {"name": name, "namespace": FLEET}, spec), sort_keys=False)


def _manifest(kind: str, metadata: dict[str, str], spec: object) -> dict[str, object]:
    return {"apiVersion": "hedgerow.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
