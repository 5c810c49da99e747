"""Starting a server: ports, and the sentence when it does not work."""

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import broker as mqtt_broker
from servers import keeper, kubeconfig, ports, processes
from servers.mosquitto import Options
from servers.problems import PortTaken, ServerProblem


@pytest.fixture
def held_port() -> Iterator[int]:
    """A port this very process listens on."""
    with socket.socket() as listener:
        listener.bind((ports.LOOPBACK, 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.broker
def test_a_port_that_is_asked_for_is_used(tmp_path: Path) -> None:
    (port,) = ports.free_ports(1)
    with mqtt_broker.start(tmp_path, port=port) as broker:
        assert broker.port == port
        assert broker.is_running


def test_a_taken_port_is_told_with_its_holder_and_the_remedy(tmp_path: Path, held_port: int) -> None:
    expected = (
        rf"Port {held_port} on 127\.0\.0\.1, which the MQTT broker was to use, is held by \S+ "
        rf"\(process {os.getpid()}\); stop that, or ask for another port\."
    )
    with pytest.raises(PortTaken) as caught, mqtt_broker.start(tmp_path, port=held_port):
        pass
    assert re.fullmatch(expected, str(caught.value))


def test_a_port_taken_between_looking_and_binding_is_replaced(
    tmp_path: Path, held_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = ports.free_ports
    offers = iter([(held_port,)])
    monkeypatch.setattr(ports, "free_ports", lambda count: next(offers, None) or find(count))
    tried: list[int] = []

    def start(free: tuple[int, ...]) -> int:
        tried.append(free[0])
        script = "import socket,sys,time; s=socket.create_server(('127.0.0.1',int(sys.argv[1]))); time.sleep(60)"
        process = processes.start("listener", Path(sys.executable), ["-c", script, str(free[0])], tmp_path / "log")
        process.wait_until_ready(lambda: True, port=free[0])
        process.kill()
        return free[0]

    port = ports.on_free_ports(1, start)

    assert tried == [held_port, port]
    assert port != held_port


def test_free_ports_are_out_of_reach_of_outgoing_connections() -> None:
    lowest_of_the_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert max(found) < lowest_of_the_kernel


@pytest.mark.broker
def test_a_server_that_cannot_start_says_why_with_the_lines_of_its_log(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerProblem) as caught,
        mqtt_broker.start(tmp_path, Options(further_lines=("nonsense yes",))),
    ):
        pass
    sentence = str(caught.value)
    assert sentence.startswith("mosquitto ended with status ")
    assert 'Unknown configuration variable "nonsense"' in sentence
    assert str(tmp_path / "mosquitto.log") in sentence


def test_a_server_that_never_answers_is_stopped_and_told(tmp_path: Path) -> None:
    process = processes.start("sleeper", Path("/bin/sleep"), ["600"], tmp_path / "sleeper.log")
    with pytest.raises(ServerProblem, match=r"sleeper was not ready after 0\.2 s; its log .*sleeper\.log is empty\."):
        process.wait_until_ready(lambda: True, port=1, timeout_seconds=0.2)
    assert not process.is_running


def test_a_program_that_cannot_be_executed_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(ServerProblem, match=r"could not be executed: No such file or directory\.") as caught:
        processes.start("ghost", missing, [], tmp_path / "ghost.log")
    assert f"ghost ended with status {keeper.NOT_STARTED}" in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        pytest.param({}, None, id="nothing-named"),
        pytest.param({"KUBECONFIG": "/theirs"}, "/theirs", id="kubeconfig"),
        pytest.param({"KUBECONFIG": ""}, None, id="empty-kubeconfig"),
        pytest.param({"KUBECONFIG": "/a", "HEDGEROW_TEST_KUBECONFIG": "/b"}, "/b", id="ours-first"),
        pytest.param({"KUBECONFIG": "/a", "HEDGEROW_TEST_KUBECONFIG": ""}, None, id="ours-empty"),
    ],
)
def test_the_developer_names_the_cluster(environment: dict[str, str], named: str | None) -> None:
    assert kubeconfig.named_by_the_developer(environment) == named
