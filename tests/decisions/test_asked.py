"""What a job writes under method and optimizer is what is planned, and what the key of a program tells apart."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from hedgerow_agent.core.data import augmentation
from hedgerow_agent.core.samples import SampleShape, Targets
from hedgerow_agent.trainer.rates import rates
from hedgerow_operator.planning.requests import program_key
from hedgerow_plans import asked
from hedgerow_plans.methods import catalogue
from hedgerow_plans.program import DeviceCosts, ProgramRequest
from hedgerow_plans.protocol.messages import Augmentations, RateSchedule
from hedgerow_plans.resources import job_method, job_optimizer
from hedgerow_plans.resources.training_job import Training
from hedgerow_plans.training import optimizers
from hedgerow_plans.training.clipping import ByGlobalNorm, ByValue
from hedgerow_plans.training.schedules import Length

METHODS: list[tuple[dict[str, Any], catalogue.Method]] = [
    ({"full": {}}, catalogue.Full()),
    ({"last": {}}, catalogue.Last()),
    ({"bias": {}}, catalogue.Bias()),
    ({"normLast": {}}, catalogue.NormLast()),
    ({"lora": {"rank": 4}}, catalogue.Lora(4, 4)),
    ({"lora": {"rank": 4, "alpha": 8, "targets": ["conv*"]}}, catalogue.Lora(4, 8, ("conv*",))),
    ({"adapter": {"width": 8}}, catalogue.Adapter(8)),
    ({"liteResidual": {}}, catalogue.LiteResidual(residuals=True, biases=True)),
    ({"liteResidual": {"train": "Residuals"}}, catalogue.LiteResidual(residuals=True, biases=False)),
    ({"liteResidual": {"train": "Biases"}}, catalogue.LiteResidual(residuals=False, biases=True)),
    (
        {"sparse": {"lastBiases": 3, "layers": [{"name": "conv1", "eighths": 2}, {"name": "fc"}]}},
        catalogue.Sparse(3, (catalogue.LayerShare("conv1", 2), catalogue.LayerShare("fc", 8))),
    ),
    ({"miniLearn": {"filters": 24}}, catalogue.MiniLearn(24)),
    ({"miniLearn": {"filters": 24, "layer": "conv3"}}, catalogue.MiniLearn(24, "conv3")),
    ({"tinyOl": {}}, catalogue.TinyOl(on_top=False)),
    ({"tinyOl": {"place": "Top"}}, catalogue.TinyOl(on_top=True)),
]

RATE = {"learningRate": "0.01"}
OPTIMIZERS: list[tuple[dict[str, Any], optimizers.Optimizer]] = [
    ({"sgd": RATE}, optimizers.Sgd()),
    ({"sgd": {**RATE, "momentum": "0.9", "weightDecay": "0.1"}}, optimizers.Sgd(0.9, 0.1)),
    ({"adam": RATE}, optimizers.Adam()),
    ({"adam8Bit": RATE}, optimizers.Adam8bit()),
    (
        {"adam": {**RATE, "beta1": "0.8", "beta2": "0.9", "epsilon": "1e-6", "weightDecay": "0.1"}},
        optimizers.Adam(0.8, 0.9, 1e-6, 0.1),
    ),
]


@pytest.mark.parametrize(("written", "meant"), METHODS, ids=lambda case: str(case)[:60])
def test_every_method_reaches_the_planner(written: dict[str, Any], meant: catalogue.Method) -> None:
    assert asked.method(job_method.Method.model_validate(written)) == meant


def test_no_field_of_the_resource_is_forgotten() -> None:
    written = {name for method, _ in METHODS for name in method}
    assert written == {field.alias for field in job_method.Method.model_fields.values()}
    written = {name for optimizer, _ in OPTIMIZERS for name in optimizer}
    assert written == {field.alias for field in job_optimizer.Optimizer.model_fields.values()}


@pytest.mark.parametrize(("written", "meant"), OPTIMIZERS, ids=lambda case: str(case)[:60])
def test_every_optimizer_reaches_the_planner_and_its_rate_the_device(
    written: dict[str, Any], meant: optimizers.Optimizer
) -> None:
    parsed = job_optimizer.Optimizer.model_validate(written)
    found = asked.optimizer(parsed)
    assert (type(found), found) == (type(meant), meant)
    assert parsed.learning_rate == "0.01"


def test_programs_of_different_methods_or_optimizers_have_different_keys() -> None:
    def key(method: catalogue.Method, optimizer: optimizers.Optimizer) -> str:
        return program_key(ProgramRequest("mlp", method, optimizer, 8, "pi", DeviceCosts(1, 1), 1000))

    methods = [method for _, method in METHODS]
    keys = {key(method, optimizer) for method in methods for _, optimizer in OPTIMIZERS}
    assert len(keys) == len(METHODS) * len(OPTIMIZERS)


def training(**settings: Any) -> Training:
    optimizer = {"sgd": RATE}
    return Training.model_validate({"epochs": 1, "batchSize": 4, "optimizer": optimizer, **settings})


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ({}, 1.0),
        ({"schedule": {"constant": {}}}, 1.0),
        ({"schedule": {"step": {"everyEpochs": 2, "factor": "0.5"}}}, 0.25),
        ({"schedule": {"cosine": {"warmUpSteps": 3, "finalShare": "0.1"}}}, 0.1),
    ],
)
def test_the_schedule_of_a_job_reaches_the_device(written: dict[str, Any], share: float) -> None:
    told = asked.schedule(training(**written))
    sent = None if told is None else RateSchedule.model_validate_json(told.model_dump_json())
    assert rates(sent).share(49, Length(5, 10)) == pytest.approx(share)


def test_the_augmentation_of_a_job_reaches_the_device_as_the_words_its_hooks_are_made_from() -> None:
    assert asked.augmentation(training()) == ()
    written = [{"noise": {"deviation": "5e-2"}}, {"shift": {"pixels": 1}}, {"flip": {}}]
    words = asked.augmentation(training(augmentation=written))
    assert words == ("noise:5e-2", "shift:1", "flip")
    assert TypeAdapter(Augmentations).validate_json(json.dumps(words)) == words
    images = SampleShape((1, 4, 4), "float32", (10,), Targets.LABELS)
    sample, hook = np.zeros(images.shape, np.float32), augmentation.parse(words, images)
    assert hook is not None
    hook(sample, 1)
    assert np.count_nonzero(sample) > 8


def test_clipping_is_planned_and_makes_another_program() -> None:
    assert asked.clipping(training()) is None
    assert asked.clipping(training(clipping={"value": "0.5"})) == ByValue(0.5)
    assert asked.clipping(training(clipping={"globalNorm": "1e-1"})) == ByGlobalNorm(0.1)
    requests = [
        ProgramRequest("mlp", catalogue.Full(), optimizers.Sgd(), 4, "board", DeviceCosts(1, 1), 100, clipping=clipping)
        for clipping in (None, ByValue(1.0), ByGlobalNorm(1.0), ByGlobalNorm(2.0))
    ]
    assert len({program_key(request) for request in requests}) == len(requests)
