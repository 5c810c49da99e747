"""Layout as a problem of its own: tensors with lifetimes in JSON, for people who bring graphs of other frameworks.

Times are whole numbers and lifetimes half-open: a tensor that ends at 5 and one that starts at 5 may share bytes. Sizes
are taken as they are; whoever wants aligned offsets rounds them up first.
"""

from hedgerow_plans import untrusted
from hedgerow_plans.planning.packing import Interval
from hedgerow_plans.untrusted import Untrustworthy, Value

SCHEMA = "hedgerow.dev/layout-problem/v1"
MOST_BYTES = 8 * 2**20
"""Of a file; checked before it is read."""

MOST_TENSORS = 20_000


def parse_tensors(encoded: bytes, what: str) -> tuple[Interval, ...]:
    """Return the lifetimes that a problem lists; raise Untrustworthy with a sentence about what is wrong."""
    schema, tensors = untrusted.parse(encoded, what, MOST_BYTES).record("schema", "tensors")
    if schema.raw != SCHEMA:
        schema.refuse(f"{SCHEMA!r}")
    return tuple(map(_interval, tensors.items(MOST_TENSORS)))


def _interval(value: Value) -> Interval:
    name, size, start, end = value.record("name", "bytes", "start", "end")
    interval = Interval(size.integer(), start.integer(), end.integer())
    if interval.end <= interval.start:
        life = f"lives from {interval.start} until before {interval.end}"
        raise Untrustworthy(f"{value.where} ({name.text()}) {life}; its end must lie after its start.")
    name.text()
    return interval
