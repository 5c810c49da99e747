"""What a TrainingJob says about how parameters are updated: one field an optimizer, with its settings."""

from collections.abc import Callable
from decimal import Decimal

from pydantic import Field

from hedgerow_plans.resources.common import DECIMAL_PATTERN, DecimalText, Part, Rule, decimal, one_of, yaml_field


def decimal_rule(
    field: str, bounds: str, said: str, example: str, within: Callable[[Decimal], bool], *, optional: bool = False
) -> Rule:
    """Return the rule that a field is a decimal inside bounds; CEL has no decimals, a double will do for comparing."""

    def holds(part: Part) -> bool:
        given = yaml_field(part, field)
        if given is None and optional:
            return True
        value = decimal(str(given))
        return value is not None and within(value)

    compared = bounds.replace("{}", f"double(self.{field})")
    absent = f"!has(self.{field}) || " if optional else ""
    return Rule(
        f"{absent}self.{field}.matches('{DECIMAL_PATTERN}') && {compared}",
        f'{field} must be a decimal in quotes {said}, such as "{example}"',
        holds,
        field,
    )


def _below_one(field: str, example: str) -> Rule:
    return decimal_rule(field, "{} < 1.0", "of at least 0 and below 1", example, lambda d: d < 1)


_LEARNING_RATE = decimal_rule(
    "learningRate", "{} > 0.0 && {} <= 1000.0", "above 0 and at most 1000", "0.05", lambda d: 0 < d <= 1000
)
_WEIGHT_DECAY = decimal_rule("weightDecay", "{} <= 1.0", "between 0 and 1", "0.0001", lambda d: d <= 1)


class Sgd(Part):
    """Stochastic gradient descent: v = momentum*v + (g + weightDecay*p); p = p - learningRate*v."""

    rules = (_LEARNING_RATE, _below_one("momentum", "0.9"), _WEIGHT_DECAY)

    learning_rate: DecimalText = Field(description='Step size, a decimal in quotes such as "0.05".')
    momentum: DecimalText = Field(default="0", description='Momentum, a decimal in quotes below 1 such as "0.9".')
    weight_decay: DecimalText = Field(default="0", description='Weight decay, a decimal in quotes such as "0.0001".')


class Adam(Part):
    """Adam with decoupled weight decay: p = p - learningRate*(m/(sqrt(v)+epsilon) + weightDecay*p)."""

    rules = (
        _LEARNING_RATE,
        _below_one("beta1", "0.9"),
        _below_one("beta2", "0.999"),
        decimal_rule("epsilon", "{} > 0.0 && {} <= 1.0", "above 0 and at most 1", "1e-8", lambda d: 0 < d <= 1),
        _WEIGHT_DECAY,
    )

    learning_rate: DecimalText = Field(description='Step size, a decimal in quotes such as "0.001".')
    beta1: DecimalText = Field(default="0.9", description='How slowly the mean gradient m forgets, such as "0.9".')
    beta2: DecimalText = Field(default="0.999", description='How slowly the mean square v forgets, such as "0.999".')
    epsilon: DecimalText = Field(default="1e-8", description='Keeps a step from growing without bound, such as "1e-8".')
    weight_decay: DecimalText = Field(default="0", description='Weight decay, a decimal in quotes such as "0.01".')


class Optimizer(Part):
    """How parameters are updated; exactly one of the fields is set."""

    rules = (one_of("optimizer", "sgd", "adam", "adam8Bit"),)

    sgd: Sgd | None = Field(default=None, description="Stochastic gradient descent, with momentum if wanted.")
    adam: Adam | None = Field(default=None, description="Adam: 8 bytes of state for each trained number.")
    adam8bit: Adam | None = Field(
        default=None, description="Adam with moments in eight bits: about 2 bytes of state for each trained number."
    )

    @property
    def learning_rate(self) -> str:
        """The step size of whichever optimizer is chosen."""
        chosen = self.sgd or self.adam or self.adam8bit
        return chosen.learning_rate if chosen else "0"
