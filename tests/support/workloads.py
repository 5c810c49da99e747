"""Random bare problems, and the true optimum of small ones by exhaustive search; shares nothing with the planners."""

import heapq
import random

from hedgerow_plans.bare import BareProblem


def random_training_graph(source: random.Random, nodes: int, *, paging: bool) -> BareProblem:
    """Return a forward chain with skips, and a backward chain that reads it."""
    forward = (nodes + 1) // 2
    inputs: list[list[int]] = [[]]
    for node in range(1, forward):
        inputs.append([node - 1] + ([source.randrange(node)] if source.random() < 0.4 else []))
    for node in range(forward, nodes):
        mirror = 2 * forward - 1 - node
        inputs.append([node - 1] + [p for p in (mirror, mirror - 1) if p >= 0 and source.random() < 0.8])
    return _problem(source, inputs, paging=paging)


def random_layered_graph(source: random.Random, nodes: int, *, width: int, paging: bool = False) -> BareProblem:
    """Return a wide graph in layers, with edges that skip some of them."""
    inputs: list[list[int]] = []
    for node in range(nodes):
        layer = node // width
        nearby = range(max(0, (layer - 1) * width), layer * width)
        chosen = source.sample(nearby, min(len(nearby), source.randint(1, 3))) if nearby else []
        if layer > 1 and source.random() < 0.25:
            chosen.append(source.randrange((layer - 1) * width))
        inputs.append(chosen)
    return _problem(source, inputs, paging=paging)


def _problem(source: random.Random, inputs: list[list[int]], *, paging: bool) -> BareProblem:
    count = len(inputs)
    pages = [(source.randint(1, 20), source.randint(1, 20)) if paging else None for _ in range(count)]
    return BareProblem(
        name="random",
        bytes=tuple(source.randint(1, 9) for _ in range(count)),
        cost=tuple(source.randint(1, 30) for _ in range(count)),
        time=tuple(source.randint(1, 9) for _ in range(count)),
        pages=tuple(pages),
        inputs=tuple(tuple(sorted(set(sources))) for sources in inputs),
    )


def working_set(problem: BareProblem) -> int:
    """Return the most bytes that one node needs."""
    return max(
        own + sum(problem.bytes[source] for source in sources)
        for own, sources in zip(problem.bytes, problem.inputs, strict=True)
    )


def keep_all_peak(problem: BareProblem) -> int:
    """Return the peak if everything is kept until its last reader."""
    last = list(range(len(problem.bytes)))
    for node, sources in enumerate(problem.inputs):
        for source in sources:
            last[source] = node
    return max(sum(problem.bytes[node] for node in range(step + 1) if last[node] >= step) for step in range(len(last)))


def true_optimum(problem: BareProblem, budget: int) -> int | None:
    """Return the least cost of any plan that computes new nodes in order, or None if none fits: Dijkstra's algorithm.

    A state is how far the nodes have come, what is live and what is in storage, as sets of bits.
    """
    nodes = len(problem.bytes)
    needs = [sum(1 << source for source in sources) for sources in problem.inputs]
    queue: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)]
    known = {(0, 0, 0): 0}
    while queue:
        cost, frontier, live, stored = heapq.heappop(queue)
        if frontier == nodes:
            return cost
        if known[frontier, live, stored] < cost:
            continue
        used = sum(problem.bytes[node] for node in range(nodes) if live >> node & 1)
        for node in range(frontier + 1):
            for state in _neighbours(
                problem, needs, (cost, frontier, live, stored), node, used <= budget, used, budget
            ):
                if state[0] < known.get(state[1:], 1 << 60):
                    known[state[1:]] = state[0]
                    heapq.heappush(queue, state)
    return None


def _neighbours(
    problem: BareProblem,
    needs: list[int],
    state: tuple[int, int, int, int],
    node: int,
    fits: bool,
    used: int,
    budget: int,
) -> list[tuple[int, int, int, int]]:
    cost, frontier, live, stored = state
    bit, pages = 1 << node, problem.pages[node]
    found = []
    if live & bit:
        found.append((cost, frontier, live ^ bit, stored))
        if pages is not None and not stored & bit:
            found.append((cost + pages[0], frontier, live, stored | bit))
    elif fits and used + problem.bytes[node] <= budget:
        if live & needs[node] == needs[node]:
            found.append((cost + problem.cost[node], frontier + (node == frontier), live | bit, stored))
        if stored & bit and pages is not None:
            found.append((cost + pages[1], frontier, live | bit, stored))
    return found
