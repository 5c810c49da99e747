"""Bare planning problems: graphs of other frameworks as nodes with bytes, costs and edges, and what a plan for one is.

Nodes are in execution order and have one output each, which lives from its computation until it is freed. Computing a
node needs all its inputs and its own output live at once; what nobody reads is freed after its computation. Everything
is an integer. A plan for a bare problem is a list of steps; `verify_bare` checks it, `planning` makes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SCHEMA = "hedgerow.dev/planning-problem/v1"
MAX_FILE_BYTES = 32 * 2**20
"""Well above a graph of 100,000 nodes; a larger file is refused before it is parsed."""
MAX_NODES = 100_000
MAX_EDGES = 1_000_000
_MOST = 2**53
"""Larger integers do not survive every JSON reader, nor a solver's floating point."""

Step = tuple[Literal["compute", "free", "page_out", "page_in"], int]

_REQUIRED = ("bytes", "cost")
_OPTIONAL = ("time", "page_out", "page_in")


class BadProblem(Exception):
    """The problem cannot be planned as it is; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class BareProblem:
    """Tuples are indexed by node."""

    name: str
    bytes: tuple[int, ...]
    cost: tuple[int, ...]
    time: tuple[int, ...]
    pages: tuple[tuple[int, int] | None, ...]  # (out, in); None: this one is never paged
    inputs: tuple[tuple[int, ...], ...]

    def deadline(self, factor: float) -> int:
        """Return the most time a plan may take, recomputation included, paging not."""
        return int(sum(self.time) * factor)


def parse_problem(document: object) -> BareProblem:
    """Check a parsed JSON document; raise BadProblem with a sentence that names what is wrong."""
    if not isinstance(document, Mapping):
        raise BadProblem(f"A planning problem is a JSON object, not {_kind(document)}.")
    if document.get("schema") != SCHEMA:
        found = "is missing" if "schema" not in document else f"is {document['schema']!r}"
        raise BadProblem(f'The field "schema" {found}; write "schema": "{SCHEMA}".')
    name = document.get("name", "")
    if not isinstance(name, str):
        raise BadProblem(f'The field "name" is {_kind(name)}; give a text.')
    nodes = _items(document, "nodes", MAX_NODES)
    if not nodes:
        raise BadProblem('The list "nodes" is empty; there is nothing to plan.')
    fields = [_node(index, node) for index, node in enumerate(nodes)]
    edges = _items(document, "edges", MAX_EDGES)
    return BareProblem(
        name=name,
        bytes=tuple(node["bytes"] for node in fields),
        cost=tuple(node["cost"] for node in fields),
        time=tuple(node.get("time", 0) for node in fields),
        pages=tuple((node["page_out"], node["page_in"]) if "page_in" in node else None for node in fields),
        inputs=_inputs(len(fields), edges),
    )


def _items(document: Mapping[str, object], key: str, most: int) -> list[object]:
    items = document.get(key)
    if not isinstance(items, list):
        raise BadProblem(f'The field "{key}" is {_kind(items)}; give a list.')
    if len(items) > most:
        raise BadProblem(f'The list "{key}" has {len(items)} entries; at most {most} can be planned.')
    return items


def _node(index: int, node: object) -> dict[str, int]:
    if not isinstance(node, Mapping):
        raise BadProblem(f"Node {index} is {_kind(node)}; give an object with bytes and cost.")
    where = f"Node {index} ({node['name']!r})" if isinstance(node.get("name"), str) else f"Node {index}"
    for key in _REQUIRED:
        if key not in node:
            raise BadProblem(f'{where} has no "{key}"; give an integer.')
    if ("page_out" in node) != ("page_in" in node):
        raise BadProblem(f"{where} has only one of page_out and page_in; give both, or neither if it is never paged.")
    return {key: _amount(where, key, node[key]) for key in (*_REQUIRED, *_OPTIONAL) if key in node}


def _amount(where: str, key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadProblem(f'{where} has "{key}": {value!r}, which is not an integer; choose a finer unit.')
    if value < 0:
        raise BadProblem(f'{where} has "{key}": {value}, which is negative.')
    if value > _MOST:
        raise BadProblem(f'{where} has "{key}": {value}, more than {_MOST}; choose a coarser unit.')
    return value


def _inputs(nodes: int, edges: list[object]) -> tuple[tuple[int, ...], ...]:
    inputs: list[set[int]] = [set() for _ in range(nodes)]
    for number, edge in enumerate(edges):
        producer, consumer = _edge(number, edge, nodes)
        inputs[consumer].add(producer)
    return tuple(tuple(sorted(producers)) for producers in inputs)


def _edge(number: int, edge: object, nodes: int) -> tuple[int, int]:
    if not isinstance(edge, list) or len(edge) != 2 or not all(type(end) is int for end in edge):
        raise BadProblem(f"Edge {number} is {edge!r}; write [producer, consumer] with two node numbers.")
    for end in edge:
        if not 0 <= end < nodes:
            raise BadProblem(f"Edge {number} names node {end}, but there are only nodes 0 to {nodes - 1}.")
    producer, consumer = edge
    if producer >= consumer:
        raise BadProblem(
            f"Edge {number} leads from node {producer} to node {consumer}, which does not run later: the graph has a "
            "cycle, or its nodes are not in execution order. Sort the nodes so that every edge leads forward."
        )
    return producer, consumer


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "missing", bool: "true or false"}
    return names.get(type(value), "a number")
