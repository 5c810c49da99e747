"""Where the updates go: right after a gradient when the batch is one micro-batch, after the last one otherwise.

With several micro-batches every trainable tensor has a sum of gradients that lives from the beginning of the step to
its end: it is set to zero, added to in each micro-batch, and used by the update once all are done.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Section, Tensor
from hedgerow_plans.training.backward import Tape
from hedgerow_plans.training.optimizers import Optimizer


def direct(
    tape: Tape, trainable: Sequence[Tensor], optimizer: Optimizer, outputs: tuple[str, ...], moves: Sequence[Node] = ()
) -> Graph:
    """Return the graph for a batch in one piece: each update as soon as nobody reads the old value any more.

    Running statistics move after the last reader of what moves them, and not before the loss: what a strategy takes
    for the forward pass, and may run again, must not contain an update.
    """
    made, last_read = _made_at(tape.nodes), _last_read_at(tape.nodes)
    after: dict[int, list[Node]] = {}
    for parameter in trainable:
        gradient = tape.gradients[parameter.name]
        ready = max(made[gradient], last_read[parameter.name])
        after.setdefault(ready, []).append(optimizer.update(parameter, gradient, Section.BODY))
    loss = made[outputs[0]]
    last = []
    for move in moves:
        if any(name in last_read for name in move.updates):
            last.append(move)  # what is computed again later must find them unmoved
        else:
            after.setdefault(max(loss, last_read.get(move.inputs[0], 0)), []).append(move)
    nodes = (*_woven(tape.nodes, after), *last, *optimizer.after_updates(Section.BODY))
    return Graph("direct", tape.tensors, nodes, outputs)


def accumulating(tape: Tape, trainable: Sequence[Tensor], optimizer: Optimizer, outputs: tuple[str, ...]) -> Graph:
    """Return the graph for a batch in several pieces: gradients are summed, and parameters change at the end."""
    made = _made_at(tape.nodes)
    begin = [_zero(parameter) for parameter in trainable]
    after: dict[int, list[Node]] = {}
    for parameter, zero in zip(trainable, begin, strict=True):
        gradient = tape.gradients[parameter.name]
        after.setdefault(made[gradient], []).append(_accumulate(parameter, gradient, zero.outputs))
    finish = [optimizer.update(parameter, f"sum.{parameter.name}", Section.FINISH) for parameter in trainable]
    sums = [tensor for zero in begin for tensor in table.infer(zero, {})]
    nodes = (*begin, *_woven(tape.nodes, after), *finish, *optimizer.after_updates(Section.FINISH))
    return Graph("accumulating", (*tape.tensors, *sums), nodes, outputs)


def _zero(parameter: Tensor) -> Node:
    total = f"sum.{parameter.name}"
    return Node(total, "zero", (), (total,), attributes={"shape": parameter.shape}, section=Section.BEGIN)


def _accumulate(parameter: Tensor, gradient: str, total: tuple[str, ...]) -> Node:
    return Node(f"accumulate.{parameter.name}", "accumulate", (gradient,), (), total)


def _made_at(nodes: Iterable[Node]) -> dict[str, int]:
    return {name: at for at, node in enumerate(nodes) for name in node.outputs}


def _last_read_at(nodes: Iterable[Node]) -> dict[str, int]:
    return {name: at for at, node in enumerate(nodes) for name in node.reads}


def _woven(nodes: Iterable[Node], after: Mapping[int, Sequence[Node]]) -> Iterator[Node]:
    """Return the nodes, each followed by what comes right after it."""
    for at, node in enumerate(nodes):
        yield node
        yield from after.get(at, ())
