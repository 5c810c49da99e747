"""Bodies become typed values, or a sentence with the object, the field and the offending value."""

import copy
from typing import Any

import pytest

from hedgerow_plans.resources.device import Device
from hedgerow_plans.resources.device_class import DeviceClass, FrozenWeights
from hedgerow_plans.resources.parsing import Unparsable, parse_resource
from hedgerow_plans.resources.training_job import TrainingJob, training_digest, training_generation
from support.manifests import Manifest, manifest, manifests


def job(**changes: Any) -> TrainingJob:
    body = copy.deepcopy(manifest("good", "training-job").body)
    body["metadata"] |= {"namespace": "plant", "generation": 7}
    body["spec"] |= changes.pop("spec", {})
    parsed = parse_resource(TrainingJob, body | changes)
    assert isinstance(parsed, TrainingJob)
    return parsed


@pytest.mark.parametrize("good", manifests("good"), ids=lambda found: found.name)
def test_a_good_manifest_parses_and_is_written_back_as_it_was(good: Manifest) -> None:
    parsed = parse_resource(good.model, good.body)
    assert not isinstance(parsed, Unparsable)
    written = parsed.to_yaml_form()["spec"]
    assert contains(written, good.body["spec"])


@pytest.mark.parametrize("bad", manifests("bad"), ids=lambda found: found.name)
def test_a_bad_manifest_is_refused_with_its_golden_sentence(bad: Manifest) -> None:
    refused = parse_resource(bad.model, bad.body)
    assert isinstance(refused, Unparsable)
    assert refused.message == bad.golden("Python")


def test_defaults_are_those_of_the_design() -> None:
    parsed = parse_resource(TrainingJob, manifest("good", "training-job-shortest").body)
    assert isinstance(parsed, TrainingJob)
    spec = parsed.spec
    assert (spec.training.seed, spec.checkpoint.every_steps, spec.checkpoint.keep) == (0, 50, 3)
    assert (spec.completion.success_threshold_percent, spec.completion.deadline_seconds, spec.suspend) == (
        100,
        None,
        False,
    )
    assert spec.training.optimizer.sgd is not None
    assert (spec.training.optimizer.sgd.momentum, spec.training.optimizer.sgd.weight_decay) == ("0", "0")


def test_sizes_of_a_class_are_bytes_inside() -> None:
    parsed = parse_resource(DeviceClass, manifest("good", "device-class").body)
    assert isinstance(parsed, DeviceClass)
    spec = parsed.spec
    assert (spec.budget_bytes, spec.floor_bytes, spec.allowance_bytes) == (256 << 20, 64 << 20, 128 << 20)
    assert spec.memory.frozen_weights is FrozenWeights.MAPPED


def test_a_sentence_names_namespace_and_name() -> None:
    body = copy.deepcopy(manifest("bad", "negative-epochs").body)
    body["metadata"]["namespace"] = "plant"
    refused = parse_resource(TrainingJob, body)
    assert isinstance(refused, Unparsable)
    assert (refused.name, refused.field) == ("plant/shortest", "spec.training.epochs")
    assert refused.message.startswith("TrainingJob plant/shortest: spec.training.epochs: ")


@pytest.mark.parametrize(
    "body", [{}, {"metadata": None}, {"metadata": {"name": 5}, "spec": []}, {"spec": "x" * 10_000}]
)
def test_what_is_not_an_object_at_all_is_refused_in_a_short_sentence(body: dict[str, Any]) -> None:
    refused = parse_resource(Device, body)
    assert isinstance(refused, Unparsable)
    assert len(refused.message) < 1000


def test_a_status_of_a_newer_operator_is_read_without_what_is_unknown() -> None:
    assert job(status={"progressPercent": 40, "futureField": {"a": 1}}).status.progress_percent == 40


def test_a_status_that_cannot_be_read_is_left_out_because_it_is_rebuilt() -> None:
    assert job(status={"progressPercent": "many"}).status.progress_percent == 0


def test_only_edits_of_what_is_trained_make_a_new_training_generation() -> None:
    before = job()
    assert training_generation(before) == 7
    status = {"trainingGeneration": 3, "trainingDigest": training_digest(before.spec)}
    rolled_back = job(status=status, spec={"rollback": {"request": {"to": "base", "requestId": "b"}}, "suspend": True})
    assert training_generation(rolled_back) == 3
    retrained = job(status=status, spec={"dataset": "other"})
    assert training_generation(retrained) == 7


def contains(written: Any, original: Any) -> bool:
    """Whether everything of the original is there; defaults may have been added, numbers of bytes become text."""
    if isinstance(original, dict):
        return all(key in written and contains(written[key], value) for key, value in original.items())
    if isinstance(original, list):
        return len(written) == len(original) and all(map(contains, written, original))
    return bool(written == original or written == str(original))
