"""The end of the story: a table of devices and a picture of memory against budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo.verdict import DeviceEnding, recovered_share

KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class MemorySample:
    """The arena of one device at one moment."""

    seconds: float
    planned_bytes: int
    budget_bytes: int


def print_table(console: Console, clean_accuracy: float, devices: Sequence[DeviceEnding]) -> None:
    """Print how each device came out of it."""
    table = Table(
        title=f"Base model on clean images: {clean_accuracy:.3f}", title_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    for heading in (
        "DEVICE",
        "CLASS",
        "DRIFT",
        "BEFORE",
        "AFTER",
        "WON BACK",
        "RUNGS",
        "PLANNED",
        "MEASURED",
        "ENERGY",
    ):
        table.add_column(heading, no_wrap=True)
    table.add_column("CHECKPOINT", no_wrap=True)
    for device in devices:
        table.add_row(*_row(clean_accuracy, device))
    console.print(table)


def _row(clean_accuracy: float, device: DeviceEnding) -> list[str]:
    return [
        device.name,
        device.device_class,
        device.drift,
        f"{device.accuracy_before:.3f}",
        f"{device.accuracy_after:.3f}",
        f"{recovered_share(clean_accuracy, device):.0%}",
        ",".join(str(rung + 1) for rung in device.rungs_used),
        " ".join(str(planned) for _, planned, _ in device.peaks),
        " ".join(str(measured) for _, _, measured in device.peaks),
        f"{device.energy_microjoules / 1e6:.2f} J {device.energy_source}",
        device.checkpoint,
    ]


def draw_memory(file: Path, timelines: Mapping[str, Sequence[MemorySample]]) -> None:
    """Draw the planned peak of each device against its budget over time."""
    import matplotlib as mpl  # noqa: PLC0415 - a second of import, for a picture at the very end

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, rows = plt.subplots(len(timelines), 1, figsize=(9, 1.6 * len(timelines)), sharex=True, squeeze=False)
    for axes, (device, samples) in zip(rows[:, 0], timelines.items(), strict=True):
        seconds = [sample.seconds for sample in samples]
        planned = [sample.planned_bytes / KIBIBYTE for sample in samples]
        budget = [sample.budget_bytes / KIBIBYTE for sample in samples]
        axes.step(seconds, budget, where="post", color="tab:red", linewidth=1.2, label="budget")
        axes.fill_between(seconds, planned, step="post", color="tab:green", alpha=0.45, label="arena")
        axes.set_ylabel("KiB")
        axes.set_title(device, loc="left", fontsize=9)
        axes.set_ylim(bottom=0)
    rows[0, 0].legend(loc="upper right", fontsize=8)
    rows[-1, 0].set_xlabel("seconds since the job was applied")
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)
