"""Any payload that a message type admits, by the type's own schema: a new field is fuzzed from the day it is added."""

from typing import Any

from hypothesis import strategies as st

from hedgerow_plans.protocol.messages import Message

Schema = dict[str, Any]


def payloads(kind: type[Message]) -> st.SearchStrategy[dict[str, Any]]:
    """Return JSON objects that the message type accepts."""
    schema = kind.model_json_schema()
    made: st.SearchStrategy[dict[str, Any]] = _value(schema, schema.get("$defs", {}))
    return made


def _value(schema: Schema, known: dict[str, Schema]) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911 - a table
    if "$ref" in schema:
        return _value(known[schema["$ref"].rsplit("/", 1)[1]], known)
    if "anyOf" in schema:
        return st.one_of([_value(choice, known) for choice in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    match schema["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "number":
            return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False, allow_infinity=False)
        case "string":
            return _text(schema)
        case "array":
            most = min(schema["maxItems"], 3)  # what a list holds matters, not how much
            return st.lists(_value(schema["items"], known), max_size=most)
        case "object":
            return _object(schema, known)
    raise AssertionError(f"The schema {schema} is of a kind that is not fuzzed yet; add it here.")


def _text(schema: Schema) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" not in schema:
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=most)
    found = st.from_regex(schema["pattern"].removesuffix("$") + r"\Z", alphabet=st.characters(codec="ascii"))
    return found.filter(lambda text: least <= len(text) <= (most or len(text)))


def _object(schema: Schema, known: dict[str, Schema]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" not in schema:
        return st.dictionaries(st.text(max_size=20), _value(schema["additionalProperties"], known), max_size=3)
    fields = {name: _value(part, known) for name, part in schema["properties"].items()}
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: made for name, made in fields.items() if name in required},
        optional={name: made for name, made in fields.items() if name not in required},
    )
