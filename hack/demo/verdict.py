"""Whether the story ended as it must: pure, over what was seen. Each failure is a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

SMALLEST_COST = 0.1
"""A drift that costs less accuracy than this shows nothing when it is won back."""


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
    peaks: tuple[tuple[int, int, int], ...]  # rung, planned bytes, measured bytes: of every rung it used
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
    """Return how much of what the drift cost was won back."""
    cost = clean_accuracy - device.accuracy_before
    return (device.accuracy_after - device.accuracy_before) / cost


def _judge_device(clean_accuracy: float, device: DeviceEnding) -> list[str]:
    return [*_judge_accuracy(clean_accuracy, device), *_judge_memory(device)]


def _judge_accuracy(clean_accuracy: float, device: DeviceEnding) -> list[str]:
    cost = clean_accuracy - device.accuracy_before
    if cost < SMALLEST_COST:
        return [f"The drift of {device.name} cost only {cost:.2f} of accuracy, too little to show anything with it."]
    share = recovered_share(clean_accuracy, device)
    if share < 0.5:
        return [f"{device.name} won back only {share:.0%} of what its drift cost, less than half."]
    return []


def _judge_memory(device: DeviceEnding) -> list[str]:
    wrong = [
        f"{device.name} was promised a peak of {planned} bytes on rung {rung + 1} and {measured} bytes were measured."
        for rung, planned, measured in device.peaks
        if planned != measured
    ]
    missing = sorted(set(device.rungs_used) - {rung for rung, _, _ in device.peaks})
    return [*wrong, *(f"{device.name} used rung {rung + 1} and its memory was never measured." for rung in missing)]


def _judge_rollback(rollback: RollbackEnding) -> list[str]:
    wrong = []
    if rollback.result != "Complete":
        wrong.append(f"The rollback of {rollback.device} ended as {rollback.result!r}, not as Complete.")
    if rollback.changed_by_training == 0:
        wrong.append(f"Training changed none of {rollback.device}'s predictions, so a rollback cannot be seen in them.")
    if rollback.predictions_after_rollback != rollback.predictions_before_training:
        wrong.append(f"After its rollback {rollback.device} does not predict what the base model predicts.")
    return wrong
