"""Real memory limits: the budget follows them, and when memory runs out the kernel takes the trainer alone."""

from pathlib import Path

import pytest

from hedgerow_plans.protocol.messages import Desired, Phase
from support.devices import AgentProcess, Device, OperatorEnd, assignment, limits_toml, running, small_program

pytestmark = pytest.mark.broker


def confine(agent: AgentProcess, group: Path, limit_bytes: int) -> None:
    (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    (group / "cgroup.procs").write_text(str(agent.pid))


def test_the_budget_is_the_cgroups_limit_less_the_footprint_of_both_processes(
    device: Device, operator: OperatorEnd, memory_group: Path
) -> None:
    device.write_files(more=f"budget_seconds = 0.1\n{limits_toml(rest_seconds=0.02)}")
    job = assignment(operator.publish_program(small_program()), epochs=100)
    limit = 512 << 20
    with running(device) as agent:
        operator.wait_for_phase(Phase.IDLE)
        confine(agent, memory_group, limit)
        operator.desire(Desired(assignment=job))
        report = operator.wait_for(
            lambda report: report.progress is not None and (1 << 20) < report.progress.memory.budget_bytes < limit,
            "the cgroup's budget",
        )
        assert report.progress is not None
        assert report.footprint_bytes is not None
        agent_footprint = limit - report.progress.memory.budget_bytes - report.footprint_bytes
        assert 20 << 20 < agent_footprint < 60 << 20


def test_when_memory_runs_out_the_trainer_dies_and_the_agent_tells_of_it(
    device: Device, operator: OperatorEnd, memory_group: Path
) -> None:
    device.write_files()
    job = assignment(operator.publish_program(small_program()))
    with running(device) as agent:
        operator.wait_for_phase(Phase.IDLE)
        confine(
            agent, memory_group, 24 << 20
        )  # what the agent has already is not counted; the trainer's numpy does not fit
        operator.desire(Desired(assignment=job))
        report = operator.wait_for(
            lambda report: report.phase is Phase.FAILED and "The device runs" in report.message, "giving up"
        )
        assert (report.reason, report.crashes, report.running) == ("CrashLoop", 3, "base")
        assert "signal 9" in report.message
        assert agent.is_running
