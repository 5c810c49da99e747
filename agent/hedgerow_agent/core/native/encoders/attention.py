"""Multi-head attention; a head is never cut."""

import math

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Room
from hedgerow_agent.core.native.layout import MOST_PARTS


def _attention(call: Call, _block: Block) -> Drafts | None:
    queries, keys, _values = call.inputs
    heads, samples = call.integer("heads", 1), len(queries)
    width = queries.shape[2] // heads
    scores, room = queries.shape[1] * keys.shape[1], Room(call)
    kept = len(call.outputs) > 1
    if not kept and room.left < MOST_PARTS * scores:
        return None
    place = call.outputs[1] if kept else room.take(MOST_PARTS * scores)
    sizes = (samples, heads, queries.shape[1], keys.shape[1], width, int(kept))
    work = samples * heads * scores * (width // 4 + 8)
    operands = (*call.inputs, call.outputs[0], place)
    return (Draft("attention", operands, sizes, samples * heads, work, (1 / math.sqrt(width),)),)


def _grad_scores(call: Call, _block: Block) -> Drafts | None:
    gradient, chances, values, other = call.inputs
    samples, heads, queries, keys = chances.shape
    room, width = Room(call), gradient.shape[2] // heads
    if room.left < queries * keys:
        return None
    parts = min(MOST_PARTS, room.left // (queries * keys))
    place = room.take(parts * queries * keys)
    of_keys = int(call.node.attributes["of"] != "queries")
    sizes = (samples, heads, queries, keys, width, 0, of_keys)
    work = chances.size * (width // 4 + 4)
    operands = (gradient, chances, values, other, *call.outputs, place)
    numbers = (1 / math.sqrt(width),)
    return (Draft("attention_grad_scores", operands, sizes, samples * heads, work, numbers, most_parts=parts),)


def _grad_values(call: Call, _block: Block) -> Drafts:
    gradient, chances = call.inputs
    samples, heads, queries, keys = chances.shape
    width = gradient.shape[2] // heads
    sizes = (samples, heads, queries, keys, width, 1)
    operands, work = (gradient, chances, *call.outputs), chances.size * width // 8
    return (Draft("attention_grad_values", operands, sizes, samples * heads, work),)


ENCODERS = {
    "multi_head_attention": _attention,
    "attention_grad_scores": _grad_scores,
    "attention_grad_values": _grad_values,
}
