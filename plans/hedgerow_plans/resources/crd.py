"""From the models to CustomResourceDefinitions: structural schemas that the API server accepts.

Pydantic writes JSON schema with references and unions with null; a structural schema has neither. Whatever a model says
that a structural schema cannot hold is an error here, not a surprise in a cluster. Writing files is `hack/crds`' work.
"""

from typing import Any

from hedgerow_plans.resources.common import GROUP, VERSION, Ruled
from hedgerow_plans.resources.kinds import Column, Kind

Schema = dict[str, Any]

_DROPPED = {"title", "$defs", "additionalProperties", "default", "anyOf", "$ref", "properties", "items"}
_KEPT = {
    "type",
    "description",
    "enum",
    "format",
    "pattern",
    "required",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-int-or-string",
}


def custom_resource_definition(kind: Kind) -> Schema:
    """Return the CustomResourceDefinition of a kind."""
    names = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "shortNames": list(kind.short_names),
        "categories": ["hedgerow"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def structural_schema(model: type[Ruled], *, with_defaults: bool = True) -> Schema:
    """Return the schema of a part of a resource without references and without unions with null."""
    schema = model.model_json_schema(by_alias=True)
    return _structural(schema, schema.get("$defs", {}), with_defaults=with_defaults)


def _version(kind: Kind) -> Schema:
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
        "schema": {"openAPIV3Schema": _root(kind)},
    }
    if kind.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable]
    return version


def _column(column: Column) -> Schema:
    shown: Schema = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        shown["description"] = column.description
    if column.wide:
        shown["priority"] = 1
    return shown


def _root(kind: Kind) -> Schema:
    root: Schema = {
        "type": "object",
        "description": _sentence(kind.model.__doc__),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{kind.name}."},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": structural_schema(_part(kind, "spec")),
            # A status is whatever the operator wrote: the API server must not add to it.
            "status": structural_schema(_part(kind, "status"), with_defaults=False),
        },
    }
    if kind.model.rules:
        root["x-kubernetes-validations"] = [rule.to_schema() for rule in kind.model.rules]
    return root


def _part(kind: Kind, field: str) -> type[Ruled]:
    annotation = kind.model.model_fields[field].annotation
    if not (isinstance(annotation, type) and issubclass(annotation, Ruled)):
        raise TypeError(f"{kind.name}.{field} is not a part of a resource.")
    return annotation


def _structural(schema: Schema, definitions: Schema, *, with_defaults: bool) -> Schema:
    merged = _resolved(schema, definitions)
    unknown = merged.keys() - _KEPT - _DROPPED
    if unknown:
        raise ValueError(f"A structural schema has no {', '.join(sorted(unknown))}: {merged.get('description')!r}.")
    result = {key: merged[key] for key in merged if key in _KEPT}
    if "description" in result:
        result["description"] = _sentence(result["description"])
    if result.get("x-kubernetes-int-or-string"):
        result.pop("type")
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if result.get("type") == "integer":
        result["format"] = "int64"
    default = _without_nothing(merged.get("default"))
    if with_defaults and default is not None and default != {}:
        result["default"] = default
    return result | _children(merged, definitions, with_defaults=with_defaults)


def _children(merged: Schema, definitions: Schema, *, with_defaults: bool) -> Schema:
    children: Schema = {}
    if merged.get("properties"):
        children["properties"] = {
            name: _structural(child, definitions, with_defaults=with_defaults)
            for name, child in merged["properties"].items()
        }
    if "items" in merged:
        children["items"] = _structural(merged["items"], definitions, with_defaults=with_defaults)
    if isinstance(merged.get("additionalProperties"), dict):
        children["additionalProperties"] = _structural(
            merged["additionalProperties"], definitions, with_defaults=with_defaults
        )
    return children


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """Follow a reference, or the one alternative besides null; what stands beside it has precedence."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return _resolved(target, definitions) | {key: schema[key] for key in schema if key != "$ref"}
    if "anyOf" in schema:
        choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
        if len(choices) != 1:
            raise ValueError(f"A structural schema has no unions: {schema.get('description')!r}.")
        return _resolved(choices[0], definitions) | {key: schema[key] for key in schema if key != "anyOf"}
    return schema


def _without_nothing(value: Any) -> Any:
    """Return a default without what is absent or empty anyway; None if nothing is left."""
    if isinstance(value, dict):
        cleaned = {key: _without_nothing(inner) for key, inner in value.items()}
        return {key: inner for key, inner in cleaned.items() if inner is not None and inner != {}}
    return None if value in (None, "", []) else value


def _sentence(text: str | None) -> str:
    """Return the text of a docstring as one line."""
    return " ".join((text or "").split())
