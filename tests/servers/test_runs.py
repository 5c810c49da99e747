"""Runs do not disturb each other, and an interrupted one leaves no process behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from provision.find import locate_broker
from servers import processes
from support.eventually import eventually
from support.inner_runs import InnerRun

StartRun = Callable[[str, str], InnerRun]

# It sets the handler of SIGINT itself: a shell that runs the outer tests in the background has it ignored.
SLEEPS_WITH_BROKER_AND_ETCD = """
import signal, time
from pathlib import Path
from servers import etcd

signal.signal(signal.SIGINT, signal.default_int_handler)

def test_sleeps(broker, servers_folder):
    with etcd.start(servers_folder):
        Path("started").touch()
        time.sleep(300)
"""
SLEEPS_WITH_CONTROL_PLANE = """
import time
from pathlib import Path

def test_sleeps(own_broker, control_plane):
    Path("started").touch()
    time.sleep(300)
"""
MEETS_THE_OTHER_RUN = """
import os, time
from pathlib import Path
from servers import mqtt

def test_meets(broker, own_broker, kubectl, namespace):
    kubectl("create", "configmap", "mine", "-n", namespace, f"--from-literal=port={broker.port}")
    Path(f"ports").write_text(f"{broker.port} {own_broker.port}")
    deadline = time.monotonic() + 60
    while not Path(os.environ["HEDGEROW_OTHER_RUN"]).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    own_broker.restart()
    assert mqtt.answers(broker.port) and mqtt.answers(own_broker.port)
    kept = kubectl("get", "configmaps", "-A", "-o", "jsonpath={.items[*].data.port}").stdout
    assert kept == str(broker.port)  # the other run's is in another cluster
"""
# The forked child inherits the starter's end of the keeper's pipe, and leaves when the test closes its input.
STARTS_A_SERVER_AND_FORKS = """
import os, sys
from pathlib import Path
from provision.find import locate_broker
from servers import processes

process = processes.start("sleeper", Path("/bin/sleep"), ["300"], Path(sys.argv[1]))
forked = os.fork()
if forked:
    print(process.pid, forked, flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[StartRun]:
    """Start an inner run in a folder of this name."""
    runs: list[InnerRun] = []

    def start(name: str, test_file_text: str) -> InnerRun:
        runs.append(InnerRun(tmp_path / name, test_file_text))
        return runs[-1]

    yield start
    for started in runs:
        started.close()


@pytest.mark.broker
@pytest.mark.cluster
def test_two_runs_at_the_same_time_do_not_disturb_each_other(
    run: StartRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGEROW_OTHER_RUN", str(tmp_path / "second/ports"))
    first = run("first", MEETS_THE_OTHER_RUN)
    monkeypatch.setenv("HEDGEROW_OTHER_RUN", str(tmp_path / "first/ports"))
    second = run("second", MEETS_THE_OTHER_RUN)

    assert first.wait() == 0, first.output()
    assert second.wait() == 0, second.output()

    used = [port for name in ("first", "second") for port in (tmp_path / name / "ports").read_text().split()]
    assert len(set(used)) == 4
    assert not first.servers()
    assert not second.servers()


@pytest.mark.broker
@pytest.mark.cluster
@pytest.mark.parametrize(
    "signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
def test_an_interrupted_run_leaves_no_process(run: StartRun, signal_number: signal.Signals) -> None:
    interrupted = run("interrupted", SLEEPS_WITH_BROKER_AND_ETCD)
    interrupted.wait_for("started")
    assert_running(interrupted, locate_broker().name, "etcd")

    interrupted.process.send_signal(signal_number)

    assert interrupted.wait() != 0
    assert_nothing_left(interrupted)


@pytest.mark.broker
@pytest.mark.cluster
def test_a_killed_run_leaves_no_process(run: StartRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_TEST_KUBECONFIG", "")
    killed = run("killed", SLEEPS_WITH_CONTROL_PLANE)
    killed.wait_for("started")
    assert_running(killed, locate_broker().name, "etcd", "kube-apiserver", "kube-controller-manager")

    killed.process.kill()

    assert killed.wait() == -signal.SIGKILL
    assert_nothing_left(killed)


def test_a_server_ends_with_its_starter_though_a_forked_child_holds_the_pipe(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_A_SERVER_AND_FORKS, tmp_path / "log"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        server, forked = (psutil.Process(int(word)) for word in starter.stdout.readline().split())
        starter.kill()
        starter.wait()
        eventually(lambda: is_gone(server), "the server is gone")
        assert forked.is_running()


def test_a_server_ends_with_its_keeper(tmp_path: Path) -> None:
    process = processes.start("sleeper", Path("/bin/sleep"), ["300"], tmp_path / "log")
    server = psutil.Process(process.pid)
    keeper = server.parent()
    assert keeper is not None
    keeper.kill()
    eventually(lambda: is_gone(server), "the server is gone")
    process.stop()
    assert not process.is_running


def test_a_server_that_ignores_being_asked_is_killed(tmp_path: Path) -> None:
    deafness = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    script = f"{deafness}; print('deaf', flush=True); time.sleep(300)"
    process = processes.start("deaf", Path(sys.executable), ["-c", script], tmp_path / "log", grace_seconds=0.2)
    eventually(lambda: "deaf" in process.log_text(), "the handler is set")
    process.stop()
    assert not psutil.pid_exists(process.pid)


def is_gone(process: psutil.Process) -> bool:
    """An orphan may stay a zombie for as long as the machine's first process does not care."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def assert_running(run: InnerRun, *names: str) -> None:
    programs = {Path(command.split()[0]).name for command in run.servers().values()}
    assert programs >= set(names)


def assert_nothing_left(run: InnerRun) -> None:
    eventually(lambda: not run.servers(), "no process of the run is left", timeout_seconds=20)
