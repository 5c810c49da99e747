"""Label selectors in words; what they select, the resource itself knows."""

from hedgerow_plans.resources.selector import LabelSelector, SelectorOperator


def describe(selector: LabelSelector) -> str:
    """Return the selector as `kubectl get -l` would take it."""
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for requirement in selector.match_expressions:
        values = ",".join(requirement.values)
        match requirement.operator:
            case SelectorOperator.EXISTS:
                parts.append(requirement.key)
            case SelectorOperator.DOES_NOT_EXIST:
                parts.append(f"!{requirement.key}")
            case operator:
                parts.append(f"{requirement.key} {operator.lower()} ({values})")
    return ", ".join(parts) or "(every device)"
