"""The budget in force, and what cgroups of either version say."""

import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow_agent.budgets import combine, read_cgroup_limit, read_rss_bytes

V1_NO_LIMIT = 9_223_372_036_854_771_712


@pytest.mark.parametrize(
    ("allowance", "override", "cgroup", "expected", "source"),
    [
        (None, None, None, None, "no limit"),
        (500, None, None, 500, "allowance"),
        (500, 400, None, 400, "override"),
        (500, 600, None, 500, "allowance"),
        (None, None, 1000, 900, "cgroup"),
        (950, None, 1000, 900, "cgroup"),
        (0, 5, None, 0, "allowance"),
        (None, None, 50, 0, "cgroup"),  # less than the processes need themselves: nothing is left, never less
    ],
)
def test_the_budget_is_the_least_of_the_limits(
    allowance: int | None, override: int | None, cgroup: int | None, expected: int | None, source: str
) -> None:
    budget = combine(allowance, override, cgroup, footprint_bytes=100)
    assert budget.bytes == expected
    assert source in budget.source


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_v2_takes_the_smallest_limit_on_the_way_up(tmp_path: Path) -> None:
    write(tmp_path / "membership", "0::/system.slice/agent.service\n")
    write(tmp_path / "cgroup/system.slice/agent.service/memory.max", "max\n")
    write(tmp_path / "cgroup/system.slice/memory.max", "104857600\n")
    write(tmp_path / "cgroup/memory.max", "max\n")
    assert read_cgroup_limit(tmp_path / "cgroup", tmp_path / "membership") == 104_857_600
    write(tmp_path / "cgroup/system.slice/agent.service/memory.max", "52428800\n")
    assert read_cgroup_limit(tmp_path / "cgroup", tmp_path / "membership") == 52_428_800


def test_v1_knows_its_number_for_no_limit(tmp_path: Path) -> None:
    write(tmp_path / "membership", "4:memory:/agent\n3:cpuset:/\n0::/\n")
    write(tmp_path / "cgroup/memory/agent/memory.limit_in_bytes", f"{V1_NO_LIMIT}\n")
    write(tmp_path / "cgroup/memory/memory.limit_in_bytes", f"{V1_NO_LIMIT}\n")
    assert read_cgroup_limit(tmp_path / "cgroup", tmp_path / "membership") is None
    write(tmp_path / "cgroup/memory/agent/memory.limit_in_bytes", "67108864\n")
    assert read_cgroup_limit(tmp_path / "cgroup", tmp_path / "membership") == 67_108_864


def test_a_machine_without_cgroups_has_no_limit(tmp_path: Path) -> None:
    assert read_cgroup_limit(tmp_path / "none", tmp_path / "nothing") is None
    write(tmp_path / "membership", "0::/agent\n")
    write(tmp_path / "cgroup/agent/memory.max", "rubbish\n")
    assert read_cgroup_limit(tmp_path / "cgroup", tmp_path / "membership") is None


def test_a_real_v1_limit_is_seen_by_a_process_inside_it(memory_group: Path) -> None:
    (memory_group / "memory.limit_in_bytes").write_text(str(200 << 20))
    code = (
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(memory_group)!r}, 'cgroup.procs').write_text(str(os.getpid()))\n"
        "from hedgerow_agent.budgets import read_cgroup_limit\n"
        "print(read_cgroup_limit())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 200 << 20


def test_the_resident_set_of_a_process_is_read() -> None:
    assert 5 << 20 < read_rss_bytes() < 4 << 30
    assert read_rss_bytes("999999999") == 0
