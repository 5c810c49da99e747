"""The real agent on a real broker: birth, will, refusals, reconnecting, and how little it needs while idle."""

import json
import random
import time

import pytest

from hedgerow_agent.session import wait_seconds
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.protocol.keys import generate_private_key
from hedgerow_plans.protocol.messages import Desired, Phase
from servers.broker import Broker
from support.devices import Device, OperatorEnd, running
from support.eventually import eventually
from support.old_broker import OldBroker

pytestmark = pytest.mark.broker

IDLE_LIMIT_BYTES = 60 * 1000 * 1000


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def without_signature(sealed: bytes) -> bytes:
    document = json.loads(sealed)
    del document["signature"]
    return json.dumps(document).encode()


def wait_online(operator: OperatorEnd, epoch: int) -> None:
    eventually(
        lambda: any(one.state == "online" and one.epoch == epoch for one in operator.states), f"birth of epoch {epoch}"
    )


def test_a_birth_says_what_the_device_is(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    with running(device):
        wait_online(operator, 1)
        birth = operator.states[-1]
        assert (birth.device_class, birth.labels, birth.backend) == ("bench", {"site": "north"}, "native")
        assert (birth.kernel_table, birth.program_schema) == (KERNEL_TABLE, PROGRAM_SCHEMA)
        report = operator.wait_for_phase(Phase.IDLE)
        assert (report.epoch, report.running) == (1, "base")


def test_a_killed_agent_is_lost_with_its_epoch_and_comes_back_with_the_next(
    device: Device, operator: OperatorEnd
) -> None:
    device.write_files()
    with running(device) as agent:
        wait_online(operator, 1)
        agent.kill()
        eventually(lambda: operator.states[-1].state == "lost", "the last will")
        assert operator.states[-1].epoch == 1
        agent.start()
        wait_online(operator, 2)


def test_a_stopped_agent_says_goodbye_and_leaves_no_will(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    with running(device) as agent:
        wait_online(operator, 1)
        assert agent.stop() == 0
        eventually(lambda: operator.states[-1].state == "offline", "goodbye")
        time.sleep(0.2)
        assert [one.state for one in operator.states] == ["online", "offline"]
        assert operator.states[-1].epoch == 1


def test_documents_that_are_not_genuine_or_not_new_are_refused_and_reported(
    device: Device, operator: OperatorEnd
) -> None:
    device.write_files()
    with running(device) as agent:
        first = operator.desire(Desired(allowance_bytes=1))
        operator.wait_for(lambda report: report.observed_sequence == 1, "the first document observed")
        operator.desire(Desired(allowance_bytes=2))
        operator.wait_for(lambda report: report.observed_sequence == 2, "the second document observed")
        operator.sequence = 3
        genuine = operator.seal(Desired(allowance_bytes=3))
        hostile = [
            ("Unsigned", without_signature(genuine)),
            ("BadSignature", genuine.replace(b'\\"allowance_bytes\\":3', b'\\"allowance_bytes\\":4')),
            ("UnknownKey", operator.seal(Desired(), key=generate_private_key())),
            ("Replayed", first),
            ("Malformed", b"\xff" * 100),
            ("Malformed", b"x" * 100_000),
        ]
        for count, (reason, payload) in enumerate(hostile, start=1):
            operator.publish_desired(payload)
            report = operator.wait_for(
                lambda report, count=count: report.refusal is not None and report.refusal.count == count,  # type: ignore[misc]
                f"refusal {count}",
            )
            assert report.refusal is not None
            assert report.refusal.reason == reason
            assert report.observed_sequence == 2
        agent.kill()
        agent.start()
        again = operator.wait_for(lambda report: report.epoch == 2, "the report of the next epoch")
        assert again.refusal is not None
        assert again.refusal.count >= len(hostile)  # the broker still retains the last one


def test_the_same_document_again_is_no_refusal(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    with running(device) as agent:
        operator.desire(Desired(allowance_bytes=1))
        operator.wait_for(lambda report: report.observed_sequence == 1, "the document observed")
        agent.kill()
        agent.start()
        report = operator.wait_for(lambda report: report.epoch == 2, "the report of the next epoch")
        time.sleep(0.3)
        assert report.refusal is None
        assert operator.reported is not None
        assert operator.reported.refusal is None


@pytest.mark.parametrize("metrics", [False, True], ids=["without metrics", "with metrics"])
def test_an_idle_agent_stays_small_and_imports_no_numpy(device: Device, operator: OperatorEnd, metrics: bool) -> None:
    device.write_files(more="[metrics]\nport = 0\n" if metrics else "")
    with running(device) as agent:
        wait_online(operator, 1)
        operator.desire(Desired(allowance_bytes=1))
        operator.wait_for(lambda report: report.observed_sequence == 1, "a signature checked")
        time.sleep(0.5)
        used = resident_bytes(agent.pid)
        with open(f"/proc/{agent.pid}/maps") as maps:  # noqa: PTH123
            mapped = maps.read()
        print(f"FIGURE idle agent{' with metrics' if metrics else ''}: {used / 1e6:.1f} MB resident")
        assert used <= IDLE_LIMIT_BYTES
        assert "numpy" not in mapped
        assert "safetensors" not in mapped


def test_after_the_broker_lost_its_store_the_device_says_everything_again(own_broker: Broker, device: Device) -> None:
    device.port = own_broker.port
    device.write_files()
    with running(device):
        with OperatorEnd(device) as before:
            wait_online(before, 1)
            before.wait_for_phase(Phase.IDLE)
        own_broker.kill()
        own_broker.delete_store()
        own_broker.start()
        with OperatorEnd(device) as after:
            eventually(lambda: after.states and after.states[-1].state == "online", "a new birth")
            report = after.wait_for_phase(Phase.IDLE)
            assert report.epoch == after.states[-1].epoch >= 2


def test_a_broker_that_speaks_only_3_1_1_is_asked_again_in_its_language(device: Device, operator: OperatorEnd) -> None:
    with OldBroker(device.port) as old:
        port, device.port = device.port, old.port
        device.write_files()
        device.port = port
        with running(device):
            report = operator.wait_for_phase(Phase.IDLE)
            assert report.epoch == 2  # the first connection was refused
            operator.desire(Desired(allowance_bytes=1))
            operator.wait_for(lambda report: report.observed_sequence == 1, "a document through the old broker")
        assert old.refused == 1


def test_waiting_doubles_up_to_a_limit_and_never_below_half() -> None:
    chance = random.Random(5)
    for failures in range(60):
        wait = wait_seconds(failures, first=1.0, longest=60.0, jitter=chance.random())
        full = min(60.0, 2.0**failures)
        assert full / 2 <= wait <= full
