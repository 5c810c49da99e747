"""The abstract scheduling problem: nodes in execution order that read and make tensors, with integer bytes and costs.

A plan is a list of operation codes, nothing else: `v` runs node v, `~t` pages tensor t in. The first run of a node is
its computation, each later one a recomputation. Frees and page-outs follow: a tensor dies right after its last read
before it comes back, and one that is ever paged in is written once, right after its first computation.

Running a node needs everything it reads and makes, and its scratch, in memory at once. New nodes run in the given
order; what is proven here is proven for that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

Pages = tuple[int, int]
"""What it costs to write a tensor to storage, and to read it back."""


@dataclass(frozen=True)
class Workload:
    """What is to be scheduled; tuples are indexed by node or by tensor."""

    sizes: tuple[int, ...]  # by tensor, in bytes
    pages: tuple[Pages | None, ...]  # by tensor; None: it is never paged
    reads: tuple[tuple[int, ...], ...]  # by node, without repetition
    makes: tuple[tuple[int, ...], ...]  # by node
    costs: tuple[int, ...]  # by node
    times: tuple[int, ...]  # by node
    scratch: tuple[int, ...]  # by node: bytes beside what it reads and makes
    fences: tuple[int, ...]  # by node: it may run again only before this node runs; its own number: never

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.costs)

    @cached_property
    def maker(self) -> tuple[int, ...]:
        """By tensor: the node that makes it."""
        maker = [0] * len(self.sizes)
        for node, tensors in enumerate(self.makes):
            for tensor in tensors:
                maker[tensor] = node
        return tuple(maker)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """By tensor: the nodes that read it, in order."""
        readers: list[list[int]] = [[] for _ in self.sizes]
        for node, tensors in enumerate(self.reads):
            for tensor in tensors:
                readers[tensor].append(node)
        return tuple(map(tuple, readers))

    @cached_property
    def working_sets(self) -> tuple[int, ...]:
        """By node: the bytes it needs at once."""
        return tuple(
            scratch + sum(self.sizes[tensor] for tensor in (*reads, *makes))
            for reads, makes, scratch in zip(self.reads, self.makes, self.scratch, strict=True)
        )

    @cached_property
    def floor_bytes(self) -> int:
        """The largest working set: below it nothing can run."""
        return max(self.working_sets, default=0)

    @cached_property
    def is_fenced(self) -> bool:
        """Whether some node may not run again at some time."""
        return any(fence < self.nodes for fence in self.fences)

    @cached_property
    def base_cost(self) -> int:
        """Every node once: no plan costs less."""
        return sum(self.costs)

    @cached_property
    def base_time(self) -> int:
        """Every node once."""
        return sum(self.times)

    @cached_property
    def keep_all_profile(self) -> tuple[int, ...]:
        """By node: the bytes in use while it runs, if everything is kept until its last reader."""
        return profile(self, [readers[-1] if readers else maker for readers, maker in self._ends()])

    @property
    def keep_all_bytes(self) -> int:
        """The peak without recomputation and paging."""
        return max(self.keep_all_profile, default=0)

    def _ends(self) -> list[tuple[tuple[int, ...], int]]:
        return list(zip(self.readers, self.maker, strict=True))


def profile(work: Workload, last: Sequence[int]) -> tuple[int, ...]:
    """Return the bytes in use at each node if every tensor lives from its maker through its `last` node."""
    changes = [*work.scratch, 0]
    for node, scratch in enumerate(work.scratch):
        changes[node + 1] -= scratch
    for tensor, size in enumerate(work.sizes):
        changes[work.maker[tensor]] += size
        changes[last[tensor] + 1] -= size
    total, live = 0, []
    for change in changes[:-1]:
        total += change
        live.append(total)
    return tuple(live)


def weigh(work: Workload, codes: Sequence[int]) -> tuple[int, int]:
    """Return what a plan costs, and the most bytes it has in use at once."""
    cost, last, current = 0, list[int](), dict[int, int]()
    stored: set[int] = set()
    for position, code in enumerate(codes):
        if code < 0:
            write, read = work.pages[~code] or (0, 0)
            cost += read + (0 if ~code in stored else write)
            stored.add(~code)
        else:
            cost += work.costs[code]
        for tensor in work.reads[code] if code >= 0 else ():
            last[current[tensor]] = position
        for tensor in work.makes[code] if code >= 0 else (~code,):
            current[tensor] = len(last)
            last.append(position)
    return cost, _peak(work, codes, last)


def _peak(work: Workload, codes: Sequence[int], last: Sequence[int]) -> int:
    """Return the peak; `last` has the position of each life's last use, in order of birth."""
    dying = [0] * (len(codes) + 1)
    used = peak = life = 0
    for position, code in enumerate(codes):
        for tensor in work.makes[code] if code >= 0 else (~code,):
            used += work.sizes[tensor]
            dying[last[life]] += work.sizes[tensor]
            life += 1
        peak = max(peak, used + (work.scratch[code] if code >= 0 else 0))
        used -= dying[position]
    return peak
