"""Sizes as people write them, and columns as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.protocol.messages import RollbackResult
from hedgerow_plans.resources.columns import device_columns, format_energy, job_columns, plan_columns
from hedgerow_plans.resources.device import DeviceColumns, DeviceStatus
from hedgerow_plans.resources.execution_plan import PlanColumns
from hedgerow_plans.resources.quantities import MAX_QUANTITY_BYTES, format_bytes, parse_quantity
from hedgerow_plans.resources.training_job import JobColumns, TrainingJobStatus


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("4096", 4096),
        ("500k", 500_000),
        ("2M", 2_000_000),
        ("1.5G", 1_500_000_000),
        ("1T", 10**12),
        ("1Ki", 1024),
        ("256Mi", 268_435_456),
        ("1.5Gi", 1_610_612_736),
        ("1Ti", 2**40),
        ("12e3", 12_000),
        ("12E3", 12_000),
        ("0.1Ki", 103),  # 102.4, rounded up as Kubernetes does
        ("8192Ti", MAX_QUANTITY_BYTES),
    ],
)
def test_a_quantity_is_a_number_of_bytes(text: str, size_bytes: int) -> None:
    assert parse_quantity(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["", "Mi", "-1", "+1", "1.", ".5", "1 Mi", "100m", "1mi", "1KB", "1e-3", "0x10", "٣", "1Mi\n", "1" * 33]
)
def test_what_is_not_a_size_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size: write bytes, or a quantity such as 64Mi"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["8193Ti", "1e99", "999999999999999T"])
def test_a_size_beyond_exact_numbers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is more than 8Pi"):
        parse_quantity(text)


@given(st.integers(0, MAX_QUANTITY_BYTES))
def test_a_shown_size_reads_back_within_five_percent(size_bytes: int) -> None:
    assert abs(parse_quantity(format_bytes(size_bytes)) - size_bytes) <= 0.05 * size_bytes


@given(st.integers(0, MAX_QUANTITY_BYTES), st.integers(0, MAX_QUANTITY_BYTES))
def test_the_larger_size_is_never_shown_as_the_smaller(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert parse_quantity(format_bytes(small)) <= parse_quantity(format_bytes(large))


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0"), (1023, "1023"), (1024, "1Ki"), (3_250_586, "3.1Mi"), (1 << 20, "1Mi"), (268_435_456, "256Mi")],
)
def test_sizes_are_shown_short(size_bytes: int, shown: str) -> None:
    assert format_bytes(size_bytes) == shown


@pytest.mark.parametrize(
    ("microjoules", "shown"),
    [(0, "0µJ"), (999, "999µJ"), (1500, "1.5mJ"), (1_200_000, "1.2J"), (3_600_000_000, "3.6kJ"), (10**13, "10.0MJ")],
)
def test_energy_is_shown_short(microjoules: int, shown: str) -> None:
    assert format_energy(microjoules) == shown


def test_the_columns_of_a_job_are_as_in_the_design() -> None:
    status = TrainingJobStatus.model_validate({"progressPercent": 61, "accuracy": {"before": "0.71", "now": "0.94"}})
    assert job_columns(status) == JobColumns(progress="61%", accuracy="0.71→0.94")
    assert job_columns(TrainingJobStatus()) == JobColumns(progress="0%", accuracy="")


def test_the_columns_of_a_device_are_as_in_the_design() -> None:
    status = DeviceStatus.model_validate(
        {
            "rung": 1,
            "rungs": 4,
            "memory": {"planned": 3_250_586, "measured": 3_250_586, "budget": 3_355_443},
            "accuracy": {"before": "0.71", "now": "0.90", "after": "0.94"},
            "energy": {"microjoules": 1_200_000, "source": "modelled"},
            "rollback": {"requestId": "a", "result": RollbackResult.COMPLETE},
            "refusal": {"count": 2, "reason": "Replayed", "message": "Its sequence 3 is not newer than 4."},
        }
    )
    assert device_columns(status) == DeviceColumns(
        rung="2/4",
        memory="3.1Mi/3.2Mi",
        accuracy="0.71→0.94",
        energy="1.2J modelled",
        rollback="Complete",
        refused="2x Replayed: Its sequence 3 is not newer than 4.",
    )
    assert device_columns(DeviceStatus()) == DeviceColumns()


def test_the_columns_of_a_plan_are_as_in_the_design() -> None:
    columns = plan_columns(1_153_433, 6_606_028, 4, "0.02")
    assert columns == PlanColumns(floor="1.1Mi", peak="6.3Mi", rungs="4", gap="0.02%")
    assert plan_columns(1, 1, 1).gap == "-"
