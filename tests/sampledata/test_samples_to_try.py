"""The samples that people try `hedgerow-agent train` with: a job that is valid and names the base model beside it."""

from pathlib import Path

import yaml

from hedgerow_plans.resources.parsing import parse_resource
from hedgerow_plans.resources.training_job import TrainingJob
from sampledata.__main__ import job_manifest
from sampledata.base_model import BaseModel


def test_the_job_is_valid_and_starts_from_the_base_model_beside_it(tmp_path: Path) -> None:
    base = BaseModel(tmp_path / "digits.safetensors", "ab" * 32, 0.9)
    job = parse_resource(TrainingJob, yaml.safe_load(job_manifest(base)))
    assert isinstance(job, TrainingJob)
    assert job.spec.model.weights.uri == "file:digits.safetensors"
    assert job.spec.model.weights.sha256 == base.sha256
