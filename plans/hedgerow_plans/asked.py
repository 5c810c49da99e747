"""What a job asks for, as the planner knows it: methods and optimisers from their one-of objects, and all together.

Operator and agent both plan from manifests, so both ask the same way.
"""

from collections.abc import Callable, Iterator

from hedgerow_plans.methods import catalogue
from hedgerow_plans.models import zoo
from hedgerow_plans.program import DeviceCosts, ProgramRequest
from hedgerow_plans.protocol.messages import BackendName, RateSchedule
from hedgerow_plans.resources import job_method, job_optimizer
from hedgerow_plans.resources import training_job as jobs
from hedgerow_plans.resources.device_class import DeviceClassSpec, FrozenWeights
from hedgerow_plans.resources.job_augmentation import Augmentation
from hedgerow_plans.resources.job_method import LiteParts, TinyOlPlace
from hedgerow_plans.training import optimizers
from hedgerow_plans.training.clipping import ByGlobalNorm, ByValue, Clipping


def program_request(spec: jobs.TrainingJobSpec, class_name: str, device_class: DeviceClassSpec) -> ProgramRequest:
    """Return what is to be planned; raise GraphError if the settings make no sense together."""
    model = zoo.entry(spec.model.zoo)
    return ProgramRequest(
        model=model.name,
        method=method(spec.method),
        optimizer=optimizer(spec.training.optimizer),
        batch_size=spec.training.batch_size,
        device_class=class_name,
        costs=device_costs(device_class),
        budget_bytes=device_class.budget_bytes,
        floor_bytes=device_class.floor_bytes,
        classes=spec.model.classes or model.classes,
        input_shape=spec.model.input_shape or model.input_shape,
        frozen_outside=device_class.memory.frozen_weights is FrozenWeights.MAPPED,
        clipping=clipping(spec.training),
    )


def device_costs(device_class: DeviceClassSpec) -> DeviceCosts:
    """Return what devices of a class pay for computing and paging."""
    compute, storage = device_class.compute, device_class.storage
    if storage is None:
        return DeviceCosts(compute.flops_per_second, compute.picojoules_per_flop)
    return DeviceCosts(
        compute.flops_per_second,
        compute.picojoules_per_flop,
        storage.page_out_bytes_per_second,
        storage.page_in_bytes_per_second,
        storage.picojoules_per_byte_out or 0,
        storage.picojoules_per_byte_in or 0,
    )


def method(asked: job_method.Method) -> catalogue.Method:
    """Return the method that is set; the resource's rule sees to it that there is one."""
    return next(_methods(asked))


def _methods(asked: job_method.Method) -> Iterator[catalogue.Method]:
    plain: tuple[tuple[object, Callable[[], catalogue.Method]], ...] = (
        (asked.full, catalogue.Full),
        (asked.last, catalogue.Last),
        (asked.bias, catalogue.Bias),
        (asked.norm_last, catalogue.NormLast),
    )
    yield from (make() for chosen, make in plain if chosen is not None)
    if asked.lora is not None:
        yield catalogue.Lora(asked.lora.rank, asked.lora.alpha or asked.lora.rank, asked.lora.targets)
    if asked.adapter is not None:
        yield catalogue.Adapter(asked.adapter.width)
    if asked.lite_residual is not None:
        train = asked.lite_residual.train
        yield catalogue.LiteResidual(train is not LiteParts.BIASES, train is not LiteParts.RESIDUALS)
    if asked.sparse is not None:
        shares = tuple(catalogue.LayerShare(layer.name, layer.eighths) for layer in asked.sparse.layers)
        yield catalogue.Sparse(asked.sparse.last_biases, shares)
    if asked.mini_learn is not None:
        yield catalogue.MiniLearn(asked.mini_learn.filters, asked.mini_learn.layer or "")
    if asked.tiny_ol is not None:
        yield catalogue.TinyOl(asked.tiny_ol.place is TinyOlPlace.TOP)


def optimizer(asked: job_optimizer.Optimizer) -> optimizers.Optimizer:
    """Return the optimiser that is set; the learning rate goes another way."""
    if asked.sgd is not None:
        return optimizers.Sgd(float(asked.sgd.momentum), float(asked.sgd.weight_decay))
    adam = asked.adam or asked.adam8bit
    if adam is None:
        return optimizers.Sgd()
    make = optimizers.Adam if asked.adam is not None else optimizers.Adam8bit
    return make(float(adam.beta1), float(adam.beta2), float(adam.epsilon), float(adam.weight_decay))


def clipping(asked: jobs.Training) -> Clipping | None:
    """Return how gradients are clipped, or None."""
    if asked.clipping is None:
        return None
    if asked.clipping.value is not None:
        return ByValue(float(asked.clipping.value))
    return ByGlobalNorm(float(asked.clipping.global_norm or 0))


def schedule(asked: jobs.Training) -> RateSchedule | None:
    """Return the schedule as devices are told it, or None if the rate stays the same."""
    if asked.schedule is None:
        return None
    if (step := asked.schedule.step) is not None:
        return RateSchedule(kind="step", every_epochs=step.every_epochs, factor=step.factor)
    if (cosine := asked.schedule.cosine) is not None:
        return RateSchedule(kind="cosine", warm_up_steps=cosine.warm_up_steps, final_share=cosine.final_share)
    return RateSchedule(kind="constant")


def augmentation(asked: jobs.Training) -> tuple[str, ...]:
    """Return how samples are changed, in the words that devices are told."""
    return tuple(map(_augmentation_word, asked.augmentation))


def _augmentation_word(change: Augmentation) -> str:
    if change.shift is not None:
        return f"shift:{change.shift.pixels}"
    return f"noise:{change.noise.deviation}" if change.noise is not None else "flip"


def backend(asked: jobs.Training) -> BackendName | None:
    """Return what is to compute as devices are told it, or None if that is theirs to choose."""
    if asked.backend is None:
        return None
    return "native" if asked.backend is jobs.Backend.NATIVE else "numpy"
