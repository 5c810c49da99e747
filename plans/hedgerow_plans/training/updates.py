"""Where the updates go: right after a gradient when the batch is one micro-batch, after the last one otherwise.

With several micro-batches every trainable tensor has a sum of gradients that lives from the beginning of the step to
its end: it is set to zero, added to in each micro-batch, and used by the update once all are done. Clipping by the
global norm waits for the last gradient in either case.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Section, Tensor
from hedgerow_plans.training import clipping
from hedgerow_plans.training.backward import Tape
from hedgerow_plans.training.clipping import ByGlobalNorm, Clipping
from hedgerow_plans.training.optimizers import Optimizer


@dataclass(frozen=True, slots=True)
class Rule:
    """How gradients become updates: what is done to them first, and what an update is."""

    optimizer: Optimizer
    clipping: Clipping | None = None

    def update(self, parameter: Tensor, gradient: str, section: Section) -> Node:
        """Return the node that changes a parameter in place."""
        return clipping.clipped(self.optimizer.update(parameter, gradient, section), self.clipping)

    def before_updates(self, gradients: Iterable[tuple[str, str]], section: Section) -> tuple[Node, ...]:
        """Return what every update waits for, made of (parameter, gradient): nothing, unless the norm counts."""
        if not isinstance(self.clipping, ByGlobalNorm):
            return ()
        return clipping.factor_nodes(gradients, self.clipping, section)


def direct(
    tape: Tape, trainable: Sequence[Tensor], rule: Rule, outputs: tuple[str, ...], moves: Sequence[Node] = ()
) -> Graph:
    """Return the graph for a batch in one piece: each update as soon as nobody reads the old value any more.

    Running statistics move after the last reader of what moves them, and not before the loss: what a strategy takes
    for the forward pass, and may run again, must not contain an update.
    """
    made, last_read = _made_at(tape.nodes), _last_read_at(tape.nodes)
    after: dict[int, list[Node]] = {}
    gradients = [(parameter.name, tape.gradients[parameter.name]) for parameter in trainable]
    waited_for = rule.before_updates(sorted(gradients, key=lambda pair: made[pair[1]]), Section.BODY)
    end = len(tape.nodes) - 1
    for node in waited_for:
        after.setdefault(made.get(node.inputs[0], end), []).append(node)
    for parameter in trainable:
        gradient = tape.gradients[parameter.name]
        ready = end if waited_for else max(made[gradient], last_read[parameter.name])
        after.setdefault(ready, []).append(rule.update(parameter, gradient, Section.BODY))
    loss = made[outputs[0]]
    last = []
    for move in moves:
        if any(name in last_read for name in move.updates):
            last.append(move)  # what is computed again later must find them unmoved
        else:
            after.setdefault(max(loss, last_read.get(move.inputs[0], 0)), []).append(move)
    nodes = (*_woven(tape.nodes, after), *last, *rule.optimizer.after_updates(Section.BODY))
    return Graph("direct", (*tape.tensors, *_made_of(waited_for, tape.tensors)), nodes, outputs)


def accumulating(tape: Tape, trainable: Sequence[Tensor], rule: Rule, outputs: tuple[str, ...]) -> Graph:
    """Return the graph for a batch in several pieces: gradients are summed, and parameters change at the end."""
    made = _made_at(tape.nodes)
    begin = [_zero(parameter) for parameter in trainable]
    after: dict[int, list[Node]] = {}
    for parameter, zero in zip(trainable, begin, strict=True):
        gradient = tape.gradients[parameter.name]
        after.setdefault(made[gradient], []).append(_accumulate(parameter, gradient, zero.outputs))
    totals = [(parameter.name, f"sum.{parameter.name}") for parameter in trainable]
    waited_for = rule.before_updates(totals, Section.FINISH)
    finish = [rule.update(parameter, f"sum.{parameter.name}", Section.FINISH) for parameter in trainable]
    sums = [tensor for zero in begin for tensor in table.infer(zero, {})]
    nodes = (*begin, *_woven(tape.nodes, after), *waited_for, *finish, *rule.optimizer.after_updates(Section.FINISH))
    return Graph("accumulating", (*tape.tensors, *sums, *_made_of(waited_for, sums)), nodes, outputs)


def _made_of(nodes: Iterable[Node], tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return what nodes make of tensors and of what earlier ones made."""
    known, made = {tensor.name: tensor for tensor in tensors}, list[Tensor]()
    for node in nodes:
        made += table.infer(node, known)
        known[made[-1].name] = made[-1]
    return made


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
