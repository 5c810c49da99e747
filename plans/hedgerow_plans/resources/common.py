"""What all kinds share: how parts of a resource behave, their rules, metadata, and a few bounded types.

A spec is intolerant of fields it does not know; a status is tolerant, because a newer operator may have written it. A
rule is stated once: as CEL for the API server, and as a Python predicate for manifests that never see one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, StringConstraints, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

GROUP = "hedgerow.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

ObjectName = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    ),
]
Word = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Digest = Annotated[str, StringConstraints(max_length=64, pattern=r"^[0-9a-f]{64}$")]
Message = Annotated[str, StringConstraints(max_length=1024)]
Shown = Annotated[str, StringConstraints(max_length=128)]
Timestamp = Annotated[str, StringConstraints(max_length=64), Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0, le=2**53)]
DECIMAL_PATTERN = r"^[0-9]{1,9}([.][0-9]{1,18})?(e-[0-9]{1,2})?$"
DecimalText = Annotated[str, StringConstraints(max_length=32)]
"""A number that is not whole, as text: "0.05" or "5e-2". No two readers can disagree about its value."""


def decimal(text: str) -> Decimal | None:
    """Return the value of a decimal, or None if the text is not one."""
    return Decimal(text) if re.fullmatch(DECIMAL_PATTERN, text, re.ASCII) else None


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold between the fields of a part: for the API server and for Python, with one message.

    `holds` is None for a rule about the old and the new object, which only the API server sees.
    """

    expression: str  # CEL; `self` is the part
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""  # the one to blame, as in YAML; empty: the part as a whole

    def to_schema(self) -> dict[str, str]:
        """Return the rule as it stands in a structural schema."""
        where = {"fieldPath": f".{self.field}"} if self.field else {}
        return {"rule": self.expression, "message": self.message, **where}


class Ruled(BaseModel):
    """Something with rules: immutable, camelCase in YAML."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)
    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        for rule in self.rules:
            if rule.holds is not None and not rule.holds(self):
                raise PydanticCustomError("rule", "{message}", {"message": rule.message, "field": rule.field})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the rules to the schema, where the CRD generator finds them."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.rules:
            schema["x-kubernetes-validations"] = [rule.to_schema() for rule in cls.rules]
        return schema

    def to_yaml_form(self) -> dict[str, Any]:
        """Return it as it stands in a manifest: camelCase, without what is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Part(Ruled):
    """A part of a spec: intolerant of unknown fields."""

    model_config = ConfigDict(extra="forbid")


class StatusPart(Part):
    """A part of a status: fields of a newer version are passed over."""

    model_config = ConfigDict(extra="ignore")


class Metadata(StatusPart):
    """What the API server knows about an object, as far as it matters here."""

    name: ObjectName
    namespace: ObjectName | None = None
    uid: Annotated[str, StringConstraints(max_length=128)] = ""
    generation: Count = 1
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class Resource(Ruled):
    """One object of one of our kinds; the subclasses add `spec` and `status`."""

    model_config = ConfigDict(extra="ignore")

    api_version: str = API_VERSION
    kind: str = ""
    metadata: Metadata


def label_name_rule(kind: str, why: str) -> Rule:
    """Return the rule that the name of an object is a DNS label, shorter and plainer than Kubernetes would allow."""
    return Rule(
        "size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",
        f"the name of a {kind} must have at most 63 characters and no dots: {why}",
        lambda resource: len(resource.metadata.name) <= 63 and "." not in resource.metadata.name,
        field="metadata.name",
    )


def yaml_field(part: Ruled, field: str) -> object:
    """Return the value of a field by its name in YAML."""
    return next(getattr(part, name) for name, info in type(part).model_fields.items() if info.alias == field)


def one_of(what: str, *fields: str) -> Rule:
    """Return the rule that exactly one of some fields is set."""
    present = ", ".join(f"has(self.{field})" for field in fields)
    return Rule(
        f"[{present}].filter(x, x).size() == 1",
        f"{what} must have exactly one of {', '.join(fields)}",
        lambda part: sum(yaml_field(part, field) is not None for field in fields) == 1,
    )
