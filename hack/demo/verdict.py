"""Whether the story ended as it must: pure, over what was seen. Each failure is a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceEnding:
    """How one device came out of it."""

    name: str
    device_class: str
    drift: str
    accuracy_before: float  # on its own test samples, base model
    accuracy_after: float  # on the same samples, trained
    rungs_used: tuple[int, ...]
    switches_down: int
    switches_up: int
    planned_bytes: int
    measured_bytes: int | None
    energy_microjoules: int
    energy_source: str
    checkpoint: str


@dataclass(frozen=True, slots=True)
class RollbackEnding:
    """What rolling one device back did to its predictions on a fixed set of samples."""

    device: str
    result: str
    predictions_before_training: tuple[int, ...]
    predictions_after_training: tuple[int, ...]
    predictions_after_rollback: tuple[int, ...]

    @property
    def changed_by_training(self) -> int:
        """Samples that the trained model sees differently."""
        pairs = zip(self.predictions_before_training, self.predictions_after_training, strict=True)
        return sum(before != after for before, after in pairs)


def judge(clean_accuracy: float, devices: Sequence[DeviceEnding], rollback: RollbackEnding) -> list[str]:
    """Return what went wrong, one sentence each; nothing if the story is true."""
    wrong = [sentence for device in devices for sentence in _judge_device(clean_accuracy, device)]
    if not any(device.switches_down for device in devices):
        wrong.append("No device switched to a smaller plan when its memory was taken away.")
    if not any(device.switches_up for device in devices):
        wrong.append("No device went back to a larger plan when its memory was given back.")
    return wrong + _judge_rollback(rollback)


def recovered_share(clean_accuracy: float, device: DeviceEnding) -> float:
    """Return how much of what the drift cost was won back; 1 if it cost nothing."""
    cost = clean_accuracy - device.accuracy_before
    return 1.0 if cost <= 0 else (device.accuracy_after - device.accuracy_before) / cost


def _judge_device(clean_accuracy: float, device: DeviceEnding) -> list[str]:
    wrong = []
    share = recovered_share(clean_accuracy, device)
    if share < 0.5:
        wrong.append(f"{device.name} won back only {share:.0%} of what its drift cost, less than half.")
    if device.measured_bytes != device.planned_bytes:
        seen = "nothing" if device.measured_bytes is None else f"{device.measured_bytes} bytes"
        wrong.append(f"{device.name} was promised a peak of {device.planned_bytes} bytes and {seen} was measured.")
    return wrong


def _judge_rollback(rollback: RollbackEnding) -> list[str]:
    wrong = []
    if rollback.result != "Complete":
        wrong.append(f"The rollback of {rollback.device} ended as {rollback.result!r}, not as Complete.")
    if rollback.changed_by_training == 0:
        wrong.append(f"Training changed none of {rollback.device}'s predictions, so a rollback cannot be seen in them.")
    if rollback.predictions_after_rollback != rollback.predictions_before_training:
        wrong.append(f"After its rollback {rollback.device} does not predict what the base model predicts.")
    return wrong
