"""Programs survive encoding, have one digest each, and hostile bytes give a sentence and nothing else."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.codec import MOST_BYTES, MalformedProgram, decode, digest, encode
from hedgerow_plans.graph.ir import Graph, Init, Node, Role, Section, Tensor
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.plan import (
    Bounds,
    Compute,
    Free,
    PageIn,
    PageOut,
    Placement,
    Plan,
    Program,
    Promise,
    Recompute,
    Update,
)
from hedgerow_plans.program import ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify_program
from support.networks import COSTS, PLENTY, UNHURRIED

TINY_GRAPH = Graph(
    "direct",
    (
        Tensor("w", (2,), batched=False, role=Role.TRAINABLE, init=Init("normal", 0.5)),
        Tensor("x", (2,)),
        Tensor("y", (2,)),
    ),
    (
        Node("x", "input", (), ("x",), attributes={"field": "x", "shape": (2,)}),
        Node("y", "scale", ("x",), ("y",), attributes={"scale": 1.0, "count": 3, "flag": True}),
        Node("w", "sgd", ("y",), (), ("w",), {"momentum": 0.0}, Section.FINISH),
    ),
    ("y",),
)
TINY_PLAN = Plan(
    "direct",
    "by-hand",
    2,
    1,
    (),
    (Compute(0, (64,)), PageOut(1), Free(1), PageIn(1, 128), Compute(1, (192,), 64), Recompute(0, (64,)), Free(1)),
    (Update(2, 64),),
    Promise(208, 1, 2, 3),
    Bounds(4, 5, 6),
)
TINY = Program(
    "tiny", "by-hand", "board", 2, (TINY_GRAPH,), ("w",), (Placement("w", 0),), 64, (), (TINY_PLAN,), TINY_PLAN
)


def made(model: str, method: Full | Last | Lora, batch_size: int) -> Program:
    program = build_program(ProgramRequest(model, method, Sgd(0.9, 0.001), batch_size, "board", COSTS, PLENTY))
    assert isinstance(program, Program)
    return program


SMALL = made("mlp", Last(), 2)
ENCODED = encode(SMALL)


@pytest.mark.parametrize("model", ["mlp", "cnn-small"])
@pytest.mark.parametrize("method", [Full(), Last(), Lora(2, alpha=3.0)], ids=lambda method: method.name)
def test_what_was_encoded_comes_back(model: str, method: Full | Last | Lora) -> None:
    program = made(model, method, 2)
    encoded = encode(program)
    assert decode(encoded) == program
    assert encode(decode(encoded)) == encoded


def test_every_kind_of_step_and_attribute_comes_back() -> None:
    assert decode(encode(TINY)) == TINY


def test_the_digest_of_a_program_never_changes() -> None:
    pinned = "9aad0ff7b650e6712f76084909067625c8e0c5fe3e8f799bcce39b9be703089d"
    assert digest(encode(replace(TINY, kernel_table=4))) == pinned


def test_bytes_are_compact_sorted_ascii() -> None:
    encoded = encode(replace(TINY, model="m"))
    assert encoded.startswith(b'{"batchSize":2,"delta":["w"],"deviceClass":"board","evaluation":{"begin":[],"body":[[')
    assert b" " not in encoded
    assert encoded.isascii()


@pytest.mark.parametrize(
    ("encoded", "sentence"),
    [
        (b"", "The program is not JSON in ASCII"),
        (b"[]", "The program is a list of 0; expected an object."),
        (b"{}", "The program lacks or has too much of"),
        (b"\xff\xfe", "not JSON in ASCII"),
        (b"[" * 200_000, "not JSON in ASCII"),
        (b"9" * 10_000, "not JSON in ASCII"),
        (b'{"a":1,"a":2}', "the same field twice"),
        (b"null", "expected an object"),
    ],
)
def test_what_is_no_program_is_a_sentence(encoded: bytes, sentence: str) -> None:
    with pytest.raises(MalformedProgram, match=sentence):
        decode(encoded)


def test_a_file_over_the_limit_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(MalformedProgram, match=f"at most {MOST_BYTES} are accepted"):
        decode(b" " * (MOST_BYTES + 1))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b'"batchSize":2', b'"batchSize":0', r"The program.batchSize is 0; expected a whole number from 1"),
        (b'"batchSize":2', b'"batchSize":2.0', r"The program.batchSize is 2.0; expected a whole number"),
        (b'"batchSize":2', b'"batchSize":true', r"The program.batchSize is True; expected a whole number"),
        (b'"batchSize":2', b'"batchSize": 2', "not in canonical form"),
        (b'"schema":3', b'"schema":2', r"The program.schema is 2; expected a whole number from 3 to 3"),
        (b'"dtype":"float32"', b'"dtype":"float64"', "is 'float64'; expected one of float32, int32"),
        (b'["normal",0.5]', b'["normal",NaN]', "is nan; expected a finite number"),
        (b'["normal",0.5]', b'["normal",1e999]', "is inf; expected a finite number"),
        (b'["free",1]', b'["fly",1]', "is 'fly'; expected one of compute"),
        (b'["free",1]', b'["free",-1]', "is -1; expected a whole number from 0"),
        (b'["free",1]', b'["free"]', "expected a list of 2"),
        (b'["free",1]', b"[]", "is a list of 0; expected a step"),
        (b'"model":"tiny"', b'"model":"\\u00e9"', "expected printable ASCII"),
        (b'"model":"tiny"', b'"model":"' + b"x" * 300 + b'"', "expected a text of at most 256 characters"),
        (b'"trainable","shape":[2]', b'"trainable","shape":[0]', "expected a whole number from 1"),
    ],
)
def test_a_wrong_byte_is_named_with_its_place(old: bytes, new: bytes, sentence: str) -> None:
    encoded = encode(TINY)
    assert old in encoded
    with pytest.raises(MalformedProgram, match=sentence):
        decode(encoded.replace(old, new, 1))


def answer(encoded: bytes) -> Program | None:
    """Decode, and check what comes out; anything but MalformedProgram is the test's failure."""
    try:
        program = decode(encoded)
    except MalformedProgram:
        return None
    assert encode(program) == encoded
    verify_program(program, PLENTY)
    return program


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(ENCODED) - 1), st.integers(0, 40), st.binary(max_size=12))
def test_bytes_changed_at_random_never_raise_anything_else(start: int, length: int, new: bytes) -> None:
    answer(ENCODED[:start] + new + ENCODED[start + length :])


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(encoded: bytes) -> None:
    assert answer(encoded) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def spots(value: object) -> list[tuple[dict[str, object] | list[object], str | int]]:
    """Return every place in a JSON document where a value sits."""
    found: list[tuple[dict[str, object] | list[object], str | int]] = []
    if isinstance(value, dict):
        for name, inner in value.items():
            found += [(value, name), *spots(inner)]
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += [(value, index), *spots(inner)]
    return found


@UNHURRIED
@given(st.data())
def test_values_changed_at_random_never_raise_anything_else(data: st.DataObject) -> None:
    document = json.loads(ENCODED)
    places = spots(document)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(range(len(places))).map(places.__getitem__))
        holder[key] = data.draw(JSON | st.integers(0, 100))  # type: ignore[index]
    answer(json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii"))
