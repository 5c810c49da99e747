"""How a graph is executed in a given number of bytes: steps, plans, and programs with a ladder of plans.

A plan is a list of steps with the byte offset of everything a step makes, so that the device decides nothing while it
trains. Offsets count from the start of the arena. What survives a step (parameters, optimiser state) lies below
`resident_bytes` at the same offsets on every rung; what a plan places lies above. A tensor that is recomputed or paged
in may come back at another offset.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.ir import Graph

PROGRAM_SCHEMA = 3
"""Version of the encoded form; an agent refuses a program of a schema it does not speak."""

KERNEL_TABLE = 6
"""Version of the operators' meaning, scratch bytes included; operator and agent must agree on it."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Run a node for the first time in its section; `offsets` has one entry per output."""

    node: int
    offsets: tuple[int, ...]
    scratch_offset: int = 0  # meaningless when the node needs no scratch


@dataclass(frozen=True, slots=True)
class Recompute:
    """Run a node again because an output was freed before its last use."""

    node: int
    offsets: tuple[int, ...]
    scratch_offset: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    """Run a node that changes tensors in place: an optimiser's update, or adding to an accumulator."""

    node: int
    scratch_offset: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    """Give up the bytes of a tensor; `tensor` is its position in the graph's list."""

    tensor: int


@dataclass(frozen=True, slots=True)
class PageOut:
    """Write a live tensor to storage; it stays live until it is freed."""

    tensor: int


@dataclass(frozen=True, slots=True)
class PageIn:
    """Read a tensor that was paged out back into memory."""

    tensor: int
    offset: int


Step = Compute | Recompute | Update | Free | PageOut | PageIn


@dataclass(frozen=True, slots=True)
class Promise:
    """What the device will see if it follows the plan; `peak_bytes` counts from the arena's first byte."""

    peak_bytes: int
    step_nanoseconds: int
    step_picojoules: int
    step_flops: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no plan of the same graph, order and micro-batch can go below."""

    working_set_bytes: int  # largest single step: inputs, outputs, scratch and residents together
    max_live_bytes: int  # of this plan's steps: no layout of them is smaller
    no_overhead_picojoules: int  # every node once
    least_picojoules: int = 0  # proven for every plan within the budget this one was made for; 0: nothing is


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to run one graph: `begin` once, `body` for each micro-batch, `finish` once.

    The graph's outputs are live when the body ends; they are read then and given up without a Free. Everything else
    the body makes it frees, so that it can run again; what `begin` makes is freed in `begin` or `finish`.
    """

    graph: str  # its name in the program
    strategy: str
    micro_batch: int
    micro_batches: int
    begin: tuple[Step, ...]
    body: tuple[Step, ...]
    finish: tuple[Step, ...]
    promise: Promise
    bounds: Bounds

    def sections(self) -> tuple[tuple[Step, ...], tuple[Step, ...], tuple[Step, ...]]:
        """Return the three step lists in the order in which they run."""
        return self.begin, self.body, self.finish

    @property
    def proven_picojoules(self) -> int:
        """What a step costs at least: what was proven for the budget, or every node once.

        The first holds for the graph's own order; a plan in another order that costs less has nothing to gain.
        """
        least = max(self.bounds.least_picojoules, self.bounds.no_overhead_picojoules)
        return min(least, self.promise.step_picojoules)

    @property
    def gap(self) -> float | None:
        """How far the energy may be from the least, in parts of what is proven; None if the class gives no energy."""
        proven = self.proven_picojoules
        return (self.promise.step_picojoules - proven) / proven if proven else None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a resident tensor lies in every arena of the program."""

    tensor: str
    offset: int


@dataclass(frozen=True, slots=True)
class Program:
    """Everything a device needs to train one model by one method inside any of a row of budgets.

    `rungs` are sorted from the most memory to the least; every rung trains to the same parameters. `mapped` names the
    frozen parameters that live outside the arena (flash, or a memory-mapped file) because the device class says so.
    """

    model: str
    method: str
    device_class: str
    batch_size: int
    graphs: tuple[Graph, ...]
    delta: tuple[str, ...]  # trained, stored and sent
    resident: tuple[Placement, ...]
    resident_bytes: int
    mapped: tuple[str, ...]
    rungs: tuple[Plan, ...]
    evaluation: Plan  # forward only, fits below the smallest rung's peak
    remarks: tuple[str, ...] = ()  # sentences on what the plans could not do, such as cut the batch
    kernel_table: int = KERNEL_TABLE
    schema: int = PROGRAM_SCHEMA

    def graph(self, name: str) -> Graph:
        """Return the graph a plan speaks of."""
        return next(graph for graph in self.graphs if graph.name == name)


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No plan fits: a result with numbers, not an error."""

    needed_bytes: int  # the smallest budget for which a plan was found
    available_bytes: int
    floor_bytes: int  # proven: nothing can run below this
    tensor: str  # the largest one at the fullest step
    reason: str
