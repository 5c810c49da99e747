"""From the body of an object to a typed value, or to a sentence that its author can act on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from hedgerow_plans.resources.common import Resource

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True)
class Unparsable:
    """An object that cannot be read: which one, which field, and a sentence about it."""

    kind: str
    name: str  # namespace/name, or the name alone
    field: str
    message: str


def parse_resource(kind: type[R], body: Mapping[str, Any]) -> R | Unparsable:
    """Return the object, or what is wrong with it. A status that cannot be read is left out: it is rebuilt anyway."""
    document = {key: body[key] for key in ("apiVersion", "kind", "metadata", "spec", "status") if key in body}
    try:
        return kind.model_validate(document)
    except ValidationError as problem:
        details = problem.errors(include_url=False)
    if all(detail["loc"][:1] == ("status",) for detail in details):
        del document["status"]
        return parse_resource(kind, document)
    return _describe(kind, body, dict(details[0]), len(details))


def _describe(kind: type[Resource], body: Mapping[str, Any], detail: dict[str, Any], problems: int) -> Unparsable:
    name = _name(body.get("metadata"))
    location, value = _blamed(detail)
    field = _path(location)
    others = f" (and {problems - 1} more)" if problems > 1 else ""
    message = f"{kind.__name__} {name}: {field}: {_complaint(detail, value)}{others}."
    return Unparsable(kind.__name__, name, field, message)


def _name(metadata: object) -> str:
    if not isinstance(metadata, Mapping):
        return "without a name"
    parts = (metadata.get("namespace"), metadata.get("name"))
    return "/".join(str(part)[:253] for part in parts if part) or "without a name"


def _path(location: tuple[str | int, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")[:300] or "the object"


def _blamed(detail: dict[str, Any]) -> tuple[tuple[str | int, ...], object]:
    """Return the field to blame and its value: a rule blames one field of the part that it belongs to."""
    location, value = detail["loc"], detail["input"]
    for step in filter(None, detail.get("ctx", {}).get("field", "").split(".")):
        location = (*location, step)
        value = value.get(step) if isinstance(value, Mapping) else None
    return location, value


def _complaint(detail: dict[str, Any], value: object) -> str:
    problem = str(detail["msg"]).rstrip(".")
    match detail["type"]:
        case "missing":
            return "must be given"
        case "extra_forbidden":
            return "is not a field that exists; look for a typing error"
        case "quantity":
            return problem
        case "rule":
            return f"{problem} (here: {_shown(value)})"
    return f"{problem[:1].lower()}{problem[1:]} (here: {_shown(value)})"


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
