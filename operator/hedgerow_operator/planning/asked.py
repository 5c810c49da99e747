"""What a job asks for, as the planner knows it: methods and optimisers from their one-of objects."""

from collections.abc import Callable, Iterator

from hedgerow_plans.methods import catalogue
from hedgerow_plans.resources import job_method, job_optimizer
from hedgerow_plans.resources.job_method import LiteParts, TinyOlPlace
from hedgerow_plans.training import optimizers


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
