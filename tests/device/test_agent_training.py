"""A real agent trains a real job from a signed document on a real broker, and keeps to its budget."""

import urllib.request
from dataclasses import replace

import pytest

from hedgerow_plans.plan import Compute, Plan, Program
from hedgerow_plans.protocol.messages import Desired, EnergySource, Phase
from hedgerow_plans.protocol.topics import program_topic
from support.devices import (
    FLEET,
    STEPS_PER_EPOCH,
    Device,
    OperatorEnd,
    assignment,
    limits_toml,
    predict,
    running,
    small_program,
)
from support.eventually import eventually

pytestmark = pytest.mark.broker


def broken_program() -> Program:
    """A program one of whose steps puts its result on top of the parameters."""
    program = small_program()
    rung = program.rungs[0]
    number, step = next((n, one) for n, one in enumerate(rung.body) if isinstance(one, Compute) and one.offsets)
    shifted = replace(step, offsets=(0, *step.offsets[1:]))
    body = (*rung.body[:number], shifted, *rung.body[number + 1 :])
    return replace(program, rungs=(replace(rung, body=body), *program.rungs[1:]))


def peaks() -> list[int]:
    return [rung.promise.peak_bytes for rung in small_program().rungs]


def test_a_job_runs_from_a_signed_document_to_a_better_model(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    reference = operator.publish_program(small_program())
    with running(device):
        operator.desire(Desired(assignment=assignment(reference)))
        report = operator.wait_for_phase(Phase.COMPLETED)
        progress = report.progress
        assert progress is not None
        assert progress.step == progress.total_steps == 4 * STEPS_PER_EPOCH
        assert progress.memory.measured_bytes == progress.memory.planned_bytes == peaks()[0]
        assert progress.accuracy_before is not None
        assert progress.accuracy_after is not None
        assert progress.accuracy_before < 0.3
        assert progress.accuracy_after > 0.8
        assert progress.rungs_used == (0,)
        top: Plan = small_program().rungs[0]
        executed = progress.total_steps + 2  # the two measured steps ran twice
        assert progress.energy.source is EnergySource.MODELLED
        assert progress.energy.microjoules == executed * top.promise.step_picojoules // 1_000_000
        steps = [one.step for one in report.checkpoints]
        assert steps == [20, 40, 60, 80, 100, 120, 140, 156]
        assert report.running == "step-000156"
        assert report.footprint_bytes is not None
        assert report.footprint_bytes > 10 << 20
        assert predict(device)["accuracy"] > 0.75
        phases = list(dict.fromkeys(one.phase for one in operator.reports))
        assert phases == [Phase.IDLE, Phase.PREPARING, Phase.TRAINING, Phase.COMPLETED]
        eventually(
            lambda: any(one.progress and one.progress.step == 156 for one in operator.telemetry), "telemetry of the end"
        )
        assert operator.telemetry[-1].checkpoints_written == 8


def test_rungs_follow_the_allowance_down_at_once_and_up_after_a_while(device: Device, operator: OperatorEnd) -> None:
    device.write_files(more=limits_toml(rest_seconds=0.01))
    reference = operator.publish_program(small_program())
    job = assignment(reference, epochs=20, checkpoint_every_steps=100)
    with running(device):
        operator.desire(Desired(assignment=job))
        operator.wait_for(lambda report: report.progress and report.progress.rung == 0, "the first rung")
        tight = peaks()[3]
        operator.desire(Desired(assignment=job, allowance_bytes=tight))
        low = operator.wait_for(
            lambda report: report.progress and report.progress.rung == 3 and report.progress.memory.measured_bytes,
            "rung 3, measured",
        ).progress
        assert low is not None
        assert low.memory.planned_bytes == low.memory.measured_bytes == tight
        assert low.memory.budget_bytes == tight
        operator.desire(Desired(assignment=job, allowance_bytes=tight, override_bytes=peaks()[-1]))
        operator.wait_for(lambda report: report.progress and report.progress.rung == 5, "the override's rung")
        operator.desire(Desired(assignment=job))
        high = operator.wait_for(lambda report: report.progress and report.progress.rung == 0, "rung 0 again").progress
        assert high is not None
        assert (high.switches_down, high.switches_up) == (2, 1)
        assert high.rungs_used == (0, 3, 5)
        assert high.memory.budget_bytes == peaks()[0]


def test_a_budget_that_nothing_fits_pauses_with_the_numbers_and_training_resumes_by_itself(
    device: Device, operator: OperatorEnd
) -> None:
    device.write_files()
    reference = operator.publish_program(small_program())
    job = assignment(reference)
    with running(device):
        operator.desire(Desired(assignment=job, allowance_bytes=peaks()[-1] - 1))
        paused = operator.wait_for_phase(Phase.PAUSED)
        assert paused.reason == "NothingFits"
        assert str(peaks()[-1]) in paused.message
        assert str(peaks()[-1] - 1) in paused.message
        operator.desire(Desired(assignment=job, allowance_bytes=peaks()[-1]))
        done = operator.wait_for_phase(Phase.COMPLETED).progress
        assert done is not None
        assert done.memory.measured_bytes == done.memory.planned_bytes == peaks()[-1]


def test_a_job_that_is_taken_away_stops_the_trainer(device: Device, operator: OperatorEnd) -> None:
    device.write_files(more=limits_toml(rest_seconds=0.05))
    reference = operator.publish_program(small_program())
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference, epochs=100)))
        operator.wait_for_phase(Phase.TRAINING)
        assert agent.trainer_pid() is not None
        operator.desire(Desired())
        operator.wait_for_phase(Phase.IDLE)
        eventually(lambda: agent.trainer_pid() is None, "no trainer")


def test_what_is_missing_is_named_and_awaited(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    weights = device.folder / "models" / "base.safetensors"
    content = weights.read_bytes()
    weights.unlink()
    reference = operator.publish_program(small_program())
    with running(device):
        operator.desire(Desired(assignment=assignment(reference, epochs=1)))
        report = operator.wait_for(lambda report: report.reason == "WeightsMissing", "missing weights reported")
        assert report.phase is Phase.PREPARING
        assert "base.safetensors" in report.message
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        operator.wait_for(lambda report: report.reason == "WeightsDiffer", "other weights reported")
        weights.write_bytes(content)
        operator.wait_for_phase(Phase.COMPLETED)


def test_an_unknown_dataset_is_rejected_with_the_names_that_are_known(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    reference = operator.publish_program(small_program())
    with running(device):
        operator.desire(Desired(assignment=assignment(reference, dataset="vibration")))
        report = operator.wait_for_phase(Phase.REJECTED)
        assert report.reason == "DatasetUnknown"
        assert "'vibration' (it has digits)" in report.message


def test_an_augmentation_that_the_device_does_not_know_is_rejected_with_those_it_does(
    device: Device, operator: OperatorEnd
) -> None:
    device.write_files()
    wanted = assignment(operator.publish_program(small_program())).model_copy(update={"augmentation": ("blur:2",)})
    with running(device):
        operator.desire(Desired(assignment=wanted))
        report = operator.wait_for_phase(Phase.REJECTED)
        assert "There is no augmentation 'blur:2'; known are shift:PIXELS, flip and noise:DEVIATION." in report.message


def test_a_program_whose_plan_does_not_verify_is_rejected_before_it_runs(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    reference = operator.publish_program(broken_program())
    with running(device):
        operator.desire(Desired(assignment=assignment(reference)))
        report = operator.wait_for_phase(Phase.REJECTED)
        assert report.reason == "PlanViolation"
        assert report.crashes == 0
        assert report.progress is None


def test_damaged_program_parts_are_reported_and_good_ones_still_count(device: Device, operator: OperatorEnd) -> None:
    device.write_files()
    job = assignment(operator.publish_program(small_program()), epochs=1)
    good = operator.parts[-1]
    topic = program_topic(FLEET, job.program.digest, 0)
    operator.publish(topic, b"\0" * len(good))
    try:
        with running(device):
            operator.desire(Desired(assignment=job))
            operator.wait_for(lambda report: report.reason == "ProgramDamaged", "damaged parts reported")
            operator.publish(topic, good)
            operator.wait_for_phase(Phase.COMPLETED)
    finally:
        operator.publish(topic, good)


def test_metrics_show_what_the_report_says(device: Device, operator: OperatorEnd) -> None:
    device.write_files(more="[metrics]\nport = 0\n")
    reference = operator.publish_program(small_program())
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference, epochs=1)))
        report = operator.wait_for_phase(Phase.COMPLETED)
        assert report.progress is not None
        address = next(
            line.rpartition("Metrics on ")[2] for line in agent.log.read_text().splitlines() if "Metrics on" in line
        )
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            series = dict(
                line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#")
            )
        assert float(series["hedgerow_agent_arena_planned_bytes"]) == peaks()[0]
        assert float(series["hedgerow_agent_arena_measured_bytes"]) == peaks()[0]
        assert float(series["hedgerow_agent_arena_budget_bytes"]) == peaks()[0]
        joules = float(series['hedgerow_agent_energy_joules_total{source="modelled"}'])
        assert joules == pytest.approx(report.progress.energy.microjoules / 1e6)
        assert float(series["hedgerow_agent_loss"]) == pytest.approx(report.progress.loss)
        assert float(series['hedgerow_agent_accuracy{moment="after"}']) == report.progress.accuracy_after
        assert float(series["hedgerow_agent_rung"]) == 0
        assert float(series['hedgerow_agent_rung_switches_total{direction="down"}']) == 0
        assert float(series["hedgerow_agent_checkpoints_total"]) == 2
        assert float(series["hedgerow_agent_rollbacks_total"]) == 0
        assert float(series['hedgerow_agent_phase{phase="Completed"}']) == 1
