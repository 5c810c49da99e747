"""A real Prometheus that scrapes what it is told to, and can be asked what it saw."""

import json
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from provision.find import locate
from servers import ports, processes, web
from servers.ports import LOOPBACK
from servers.problems import ServerProblem
from servers.processes import Process
from servers.saying import Say, quiet

Targets: TypeAlias = Mapping[str, Sequence[str]]  # "host:port" addresses by job

_CONFIGURATION = """\
global:
  scrape_interval: {interval}
  scrape_timeout: {interval}
  evaluation_interval: {interval}
scrape_configs:
  - job_name: targets
    file_sd_configs:
      - files: ["{targets}"]
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an answer: its labels (with `__name__`) and its value."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus."""

    process: Process
    port: int
    folder: Path

    def scrape(self, targets: Targets) -> None:
        """Scrape these targets from now on, and no others."""
        _write_targets(self.folder, targets)

    def query(self, promql: str) -> list[Sample]:
        """Give the answer to an instant query as of now; a scalar is one sample without labels."""
        path = f"/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
        status, body = web.get(self.port, path)
        if status != 200:
            raise ServerProblem(f"Prometheus refused the query {promql!r}: {body.decode(errors='replace').strip()}")
        data = json.loads(body)["data"]
        if data["resultType"] == "scalar":
            return [Sample({}, float(data["result"][1]))]
        return [Sample(series["metric"], float(series["value"][1])) for series in data["result"]]


@contextmanager
def start(
    folder: Path,
    targets: Targets,
    *,
    interval_seconds: float = 1.0,
    port: int | None = None,
    say: Say = quiet,
) -> Iterator[Prometheus]:
    """Run Prometheus in `folder` while the context lasts, scraping `targets` at this interval."""
    say("Starting Prometheus.")
    interval = f"{round(interval_seconds * 1000)}ms"
    configuration = folder / "prometheus.yml"
    configuration.write_text(_CONFIGURATION.format(interval=interval, targets=_write_targets(folder, targets)))
    running = ports.on_port(port, "Prometheus", lambda free_port: _launch(folder, configuration, free_port))
    try:
        yield running
    finally:
        running.process.stop()


def _launch(folder: Path, configuration: Path, port: int) -> Prometheus:
    options = [
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address={LOOPBACK}:{port}",
    ]
    program, log = locate("prometheus").path, folder / "prometheus.log"
    process = processes.start("Prometheus", program, options, log)
    process.wait_until_ready(lambda: web.is_ok(port, "/-/ready"), port=port)
    return Prometheus(process, port, folder)


def _write_targets(folder: Path, targets: Targets) -> Path:
    groups = [{"targets": list(addresses), "labels": {"job": job}} for job, addresses in targets.items()]
    path, new = folder / "targets.json", folder / "targets.json.new"
    new.write_text(json.dumps(groups))
    new.replace(path)  # Prometheus watches the file and must never read half of it
    return path
