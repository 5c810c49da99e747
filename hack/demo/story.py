"""The acts of the story, in order, through kubectl and the device's own command line."""

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from demo.cast import (
    DEVICES,
    FLEET,
    JOB,
    SQUEEZED_ALLOWANCE,
    SQUEEZED_CLASS,
    DeviceRole,
    class_manifests,
    job_manifest,
)
from demo.closing import MemorySample
from demo.live import Show
from demo.stage import PROGRAMS, Stage
from demo.twins import read_twins
from demo.verdict import DeviceEnding, RollbackEnding
from demo.watching import DeviceView, look_at_fleet, wait_until
from sampledata import base_model
from sampledata.images import Images
from sampledata.prepare import SampleData
from servers.problems import ServerProblem

EPOCHS = 20
SQUEEZE_AT_PERCENT = 25
RESTORE_AT_PERCENT = 60
ROLLED_BACK = "gate-02"
PROBE_SAMPLES = 64
TIMEOUT_SECONDS = 300.0


@dataclass(slots=True)
class Story:
    """Plays the acts on a stage and remembers what it saw."""

    stage: Stage
    data: SampleData
    show: Show
    devices: Sequence[DeviceRole] = DEVICES
    started_at: float = 0.0
    timelines: dict[str, list[MemorySample]] = field(default_factory=dict)
    job: Mapping[str, Any] = field(default_factory=dict)  # its status at the last look

    def register(self) -> None:
        """Act 1: the devices come up by themselves."""
        self.show.say(f"\n[bold]1. {len(self.devices)} devices start and register themselves.[/bold]")
        self.stage.kubectl("apply", "-f", "-", input=class_manifests())
        for role in self.devices:
            self.stage.start_agent(role.name)
        wait_until("all devices are registered", lambda: len(self._look()) == len(self.devices), 120)
        self.show.say(self.stage.kubectl("get", "devices", "-n", FLEET).stdout)

    def train(self) -> None:
        """Act 2: one job for all of them; half-way one class loses memory and gets it back."""
        self.show.say(f"[bold]2. kubectl apply -f job.yaml: adapt to what each camera sees ({EPOCHS} epochs).[/bold]")
        self.stage.kubectl("apply", "-f", "-", input=job_manifest(self.data.base.sha256, EPOCHS))
        self.started_at = time.monotonic()
        self._until_progress(SQUEEZE_AT_PERCENT)
        self.show.say(f"[bold]3. {SQUEEZED_CLASS} may use only {SQUEEZED_ALLOWANCE} for a while.[/bold]")
        self._allow(SQUEEZED_ALLOWANCE)
        self._until_progress(RESTORE_AT_PERCENT)
        self.show.say(f"[bold]4. {SQUEEZED_CLASS} gets its memory back.[/bold]")
        self._allow(None)
        wait_until("the job has succeeded", self._job_succeeded, TIMEOUT_SECONDS, every_seconds=1.0)
        wait_until("every device shows how it ended", self._all_completed, 60)
        self.show.say(self.stage.kubectl("get", "trainingjobs,executionplans", "-n", FLEET).stdout)

    def roll_back(self) -> RollbackEnding:
        """Act 3: one device goes back to the base model, over the air."""
        probe = self.probe(ROLLED_BACK)
        before_training, after_training = base_model.predict(self.data.base, probe), self.predict(ROLLED_BACK, probe)
        self.show.say(f"[bold]5. kubectl hedgerow rollback device/{ROLLED_BACK} --to base[/bold]")
        said = self.stage.kubectl("hedgerow", "rollback", f"device/{ROLLED_BACK}", "--to", "base", "-n", FLEET)
        self.show.say(said.stdout.strip())
        wait_until("the rollback is over", self._rollback_is_over, 60)
        result = self._look()[ROLLED_BACK].rollback_result
        return RollbackEnding(ROLLED_BACK, result, before_training, after_training, self.predict(ROLLED_BACK, probe))

    def endings(self) -> list[DeviceEnding]:
        """Return how each device came out of training, from kubectl and from the devices' twins."""
        views = self._look()
        twins = read_twins(self.stage.broker, list(views))
        endings = []
        for role in self.devices:
            view, progress = views[role.name], twins[role.name].progress
            if progress is None or view.accuracy_before is None or view.accuracy_after is None:
                raise ServerProblem(f"{role.name} ended without figures: {view}")
            endings.append(
                DeviceEnding(
                    name=role.name,
                    device_class=role.device_class,
                    drift=role.drift,
                    accuracy_before=view.accuracy_before,
                    accuracy_after=view.accuracy_after,
                    rungs_used=progress.rungs_used,
                    switches_down=progress.switches_down,
                    switches_up=progress.switches_up,
                    peaks=tuple((peak.rung, peak.planned_bytes, peak.measured_bytes) for peak in progress.peaks),
                    energy_microjoules=progress.energy.microjoules,
                    energy_source=progress.energy.source.value,
                    checkpoint=view.checkpoint,
                )
            )
        return endings

    def predict(self, device: str, probe: Images) -> tuple[int, ...]:
        """Ask a device what it sees in a fixed set of samples."""
        file = self.stage.folder / "devices" / device / "probe.npz"
        np.savez(file, x=probe.x, y=probe.y)
        config = self.stage.config_file(device)
        command: list[str | Path] = [
            PROGRAMS / "hedgerow-agent",
            "predict",
            "--config",
            config,
            "--input",
            file,
            "-o",
            "json",
        ]
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if answer.returncode != 0:
            raise ServerProblem(f"{device} could not predict: {answer.stderr.strip()}")
        return tuple(json.loads(answer.stdout)["predictions"])

    def probe(self, device: str) -> Images:
        """Return a fixed set of samples as a device sees them."""
        with np.load(self.data.datasets[device]) as images:
            return Images(images["x"][:PROBE_SAMPLES], images["y"][:PROBE_SAMPLES])

    def _look(self) -> dict[str, DeviceView]:
        views, self.job = look_at_fleet(self.stage.kubectl)
        for view in views.values():
            if self.started_at and view.planned_bytes is not None and view.budget_bytes is not None:
                sample = MemorySample(time.monotonic() - self.started_at, view.planned_bytes, view.budget_bytes)
                self.timelines.setdefault(view.name, []).append(sample)
        self.show.update(views)
        return views

    def _until_progress(self, percent: int) -> None:
        """Wait until the class that is squeezed has come so far."""

        def far_enough() -> bool:
            views = [view for view in self._look().values() if view.device_class == SQUEEZED_CLASS]
            return bool(views) and min(view.progress_percent or 0 for view in views) >= percent

        wait_until(f"{SQUEEZED_CLASS} has done {percent} % of its steps", far_enough, TIMEOUT_SECONDS)

    def _allow(self, allowance: str | None) -> None:
        patch = json.dumps({"spec": {"memory": {"allowance": allowance}}})
        self.stage.kubectl("patch", "deviceclasses.hedgerow.dev", SQUEEZED_CLASS, "--type=merge", "-p", patch)

    def _job_succeeded(self) -> bool:
        self._look()
        state = self.job.get("state")
        if state in {"Failed", "Invalid"}:
            raise ServerProblem(f"The job {JOB} ended as {state}: {self.job.get('conditions')}")
        return state == "Succeeded"

    def _all_completed(self) -> bool:
        return all(view.accuracy_after is not None for view in self._look().values())

    def _rollback_is_over(self) -> bool:
        return self._look()[ROLLED_BACK].rollback_result not in {"", "Pending", "NotRequested"}
