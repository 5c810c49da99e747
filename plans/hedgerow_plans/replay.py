"""A device on paper: follows a plan's steps, knows what is live where, and which value every tensor holds.

Part of the independent check: it shares no code with the planners. A value is named by the node and pass that made it;
when a node runs, everything it reads must hold the same values as in the graph's own order, so a plan that passes
computes, bit for bit, what keep-all computes. Positions that come from outside are checked before they are used.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hedgerow_plans.graph.ir import ALIGNMENT_BYTES, Graph, Node, Section, Tensor
from hedgerow_plans.plan import Compute, Free, PageIn, PageOut, Recompute, Step, Update
from hedgerow_plans.violations import Findings, Rule

Value = tuple[int, int]
"""Position of the node that made it, and the pass of the body it was made in."""

LOADED: Value = (-1, 0)
"""What residents hold when a step begins."""

ScratchBytes = Callable[[Node, Mapping[str, Tensor], int], int]
Reference = Mapping[tuple[int, int], tuple[Value, ...]]


def reference_values(graph: Graph, passes: int) -> dict[tuple[int, int], tuple[Value, ...]]:
    """Return what each node of each pass reads when nodes run once in the order of a valid graph."""
    values = {tensor.name: LOADED for tensor in graph.resident()}
    reads: dict[tuple[int, int], tuple[Value, ...]] = {}
    rounds = [(Section.BEGIN, 0), *((Section.BODY, number) for number in range(passes)), (Section.FINISH, 0)]
    for section, number in rounds:
        own: list[str] = []
        for index, node in enumerate(graph.nodes):
            if node.section is section:
                reads[index, number] = tuple(values[name] for name in node.reads)
                values.update(dict.fromkeys(node.outputs + node.updates, (index, number)))
                own += node.outputs
        if section is Section.BODY:
            for name in own:
                del values[name]
    return reads


class Arena:
    """Byte ranges in use, kept sorted so that a clash is found among the neighbours."""

    def __init__(self, first_byte: int) -> None:
        self.first_byte = first_byte
        self.top = 0
        self._starts: list[int] = []
        self._ends: list[int] = []

    def take(self, start: int, byte_count: int) -> bool:
        """Take a range into use; return False, and change nothing, if it clashes with another."""
        index = bisect_left(self._starts, start)
        before_is_clear = index == 0 or self._ends[index - 1] <= start
        after_is_clear = index == len(self._starts) or start + byte_count <= self._starts[index]
        if not (before_is_clear and after_is_clear):
            return False
        self._starts.insert(index, start)
        self._ends.insert(index, start + byte_count)
        self.top = max(self.top, start + byte_count)
        return True

    def give_back(self, start: int) -> None:
        """Give up the range that starts there."""
        index = bisect_left(self._starts, start)
        del self._starts[index], self._ends[index]


@dataclass(frozen=True, slots=True)
class Live:
    """A transient tensor in memory."""

    offset: int
    value: Value
    placed: bool  # False after a clash: there is no range to give back


class Replay:
    """The state of the paper device; every step that breaks a rule leaves a sentence in `findings`."""

    def __init__(
        self, graph: Graph, micro_batch: int, arena: Arena, scratch_bytes: ScratchBytes, findings: Findings
    ) -> None:
        self.graph = graph
        self.tensors = graph.by_name()
        self.position = {tensor.name: index for index, tensor in enumerate(graph.tensors)}
        self.micro_batch = micro_batch
        self.arena = arena
        self.scratch_bytes = scratch_bytes
        self.findings = findings
        self.live: dict[int, Live] = {}
        self.stored: dict[int, Value] = {}
        self.values: dict[int, Value] = {}  # of residents that were changed
        self.ran: set[int] = set()

    def run(self, steps: tuple[Step, ...], section: Section, number: int, reference: Reference) -> None:
        """Follow the steps of one section once."""
        self.ran = set()
        for index, step in enumerate(steps):
            where = f"step {index} of {section.value}"
            match step:
                case Free(tensor):
                    self._free(where, tensor)
                case PageOut(tensor):
                    self._page_out(where, tensor)
                case PageIn(tensor, offset):
                    self._page_in(where, tensor, offset)
                case _:
                    self._node(where, step, section, number, reference)
        for index, node in enumerate(self.graph.nodes):
            if node.section is section and index not in self.ran:
                self.findings.add(Rule.COMPLETENESS, f"node {node.name} never runs in {section.value}.")

    def _transient(self, where: str, tensor: int) -> bool:
        known = 0 <= tensor < len(self.graph.tensors)
        if not self.findings.check(known, Rule.STRUCTURE, f"{where} speaks of tensor {tensor}, which does not exist."):
            return False
        held = self.graph.tensors[tensor]
        return self.findings.check(
            not held.resident, Rule.LIVENESS, f"{where} moves {held.name}, which survives the step and never moves."
        )

    def _free(self, where: str, tensor: int) -> None:
        if self._transient(where, tensor):
            name = self.graph.tensors[tensor].name
            if self.findings.check(tensor in self.live, Rule.LIVENESS, f"{where} frees {name}, which is not live."):
                self.drop(tensor)

    def drop(self, tensor: int) -> None:
        """Forget a live tensor."""
        gone = self.live.pop(tensor)
        if gone.placed:
            self.arena.give_back(gone.offset)

    def _page_out(self, where: str, tensor: int) -> None:
        if self._transient(where, tensor):
            name = self.graph.tensors[tensor].name
            if self.findings.check(tensor in self.live, Rule.PAGING, f"{where} pages out {name}, which is not live."):
                self.stored[tensor] = self.live[tensor].value

    def _page_in(self, where: str, tensor: int, offset: int) -> None:
        if self._transient(where, tensor):
            name = self.graph.tensors[tensor].name
            if self.findings.check(
                tensor in self.stored, Rule.PAGING, f"{where} pages in {name}, which was never paged out."
            ):
                self._make(where, tensor, offset, self.stored[tensor])

    def _node(
        self, where: str, step: Compute | Recompute | Update, section: Section, number: int, reference: Reference
    ) -> None:
        if not self.findings.check(
            0 <= step.node < len(self.graph.nodes), Rule.STRUCTURE, f"{where} runs node {step.node}, which is unknown."
        ):
            return
        node = self.graph.nodes[step.node]
        if not self._allowed(where, step, node, section):
            return
        self.ran.add(step.node)
        self._check_reads(where, node, reference[step.node, number])
        value = (step.node, number)
        if isinstance(step, Update):
            self._change(node, value)
        else:
            for name, offset in zip(node.outputs, step.offsets, strict=True):
                self._make(where, self.position[name], offset, value)
        self._scratch(where, node, step.scratch_offset)

    def _allowed(self, where: str, step: Compute | Recompute | Update, node: Node, section: Section) -> bool:
        rules = (
            (node.section is section, f"{where} runs node {node.name}, which belongs to {node.section.value}."),
            (
                bool(node.updates) == isinstance(step, Update),
                f"{where} is the wrong kind of step for node {node.name}.",
            ),
            (
                (step.node in self.ran) == isinstance(step, Recompute),
                f"{where} computes node {node.name} twice, or repeats what was not computed yet.",
            ),
        )
        for holds, sentence in rules:
            if not self.findings.check(holds, Rule.COMPLETENESS, sentence):
                return False
        expected = len(node.outputs)
        got = 0 if isinstance(step, Update) else len(step.offsets)
        sentence = f"{where} gives {got} offsets for the {expected} outputs of node {node.name}."
        return self.findings.check(got == expected, Rule.STRUCTURE, sentence)

    def _check_reads(self, where: str, node: Node, expected: tuple[Value, ...]) -> None:
        for name, wanted in zip(node.reads, expected, strict=True):
            held = self._value(name)
            if held is None:
                self.findings.add(Rule.LIVENESS, f"{where} (node {node.name}) reads {name}, which is not live.")
            elif held != wanted:
                sentence = f"{where} (node {node.name}) reads {name} in another state than the graph's own order does."
                self.findings.add(Rule.VALUES, sentence)

    def _value(self, name: str) -> Value | None:
        index = self.position[name]
        if self.tensors[name].resident:
            return self.values.get(index, LOADED)
        return self.live[index].value if index in self.live else None

    def _change(self, node: Node, value: Value) -> None:
        for name in node.updates:
            index, tensor = self.position[name], self.tensors[name]
            if tensor.resident:
                self.values[index] = value
            elif index in self.live:
                held = self.live[index]
                self.live[index] = Live(held.offset, value, held.placed)

    def _make(self, where: str, tensor: int, offset: int, value: Value) -> None:
        held = self.graph.tensors[tensor]
        if not self.findings.check(
            tensor not in self.live, Rule.LIVENESS, f"{where} makes {held.name}, which is live already."
        ):
            return
        placed = self._take(where, held.name, offset, held.bytes(self.micro_batch))
        self.live[tensor] = Live(offset, value, placed)

    def _scratch(self, where: str, node: Node, offset: int) -> None:
        byte_count = self.scratch_bytes(node, self.tensors, self.micro_batch)
        if byte_count and self._take(where, f"the scratch of node {node.name}", offset, byte_count):
            self.arena.give_back(offset)

    def _take(self, where: str, name: str, offset: int, byte_count: int) -> bool:
        aligned = offset % ALIGNMENT_BYTES == 0 and offset >= self.arena.first_byte
        placement = (
            f"{where} puts {name} at {offset}, which is not a multiple of {ALIGNMENT_BYTES} above the residents."
        )
        if not self.findings.check(aligned, Rule.PLACEMENT, placement):
            return False
        overlap = f"{where} puts {name} at {offset}, where {byte_count} bytes overlap something live."
        return self.findings.check(self.arena.take(offset, byte_count), Rule.OVERLAP, overlap)
