"""A pretrained model wins back what a drift took, with a small part of its parameters."""

import pytest

from hedgerow_plans.protocol.messages import BackendName
from support.adaptation import DRIFTS, RECIPES, adapt
from support.sampling import THOROUGH, sample

CASES = [(drift, name) for drift in DRIFTS for name in RECIPES]
BACKENDS: tuple[BackendName | None, ...] = ("numpy", "native") if THOROUGH else (None,)
"""In a short run what computes on this machine: the compiled backend, where there is one, needs half of the time."""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("drift", "name"), sample(CASES, 3, seed=6))
def test_a_small_delta_recovers_nine_tenths_of_what_full_training_does(
    drift: str, name: str, backend: BackendName | None
) -> None:
    recipe = RECIPES[name]
    whole, small = adapt(drift, recipe.in_full(), backend), adapt(drift, recipe, backend)
    recovered, share = small.gain / whole.gain, small.trained_numbers / whole.trained_numbers
    print(
        f"FIGURE {drift} digits by {name}, {backend or 'any'} backend: {small.before:.3f} to {small.after:.3f} "
        f"(full {whole.after:.3f}), {recovered:.1%} of what full training recovers, with {share:.2%} of its parameters"
    )
    assert whole.gain > 0.15
    assert whole.after > 0.95
    assert recovered >= 0.9
    assert share <= 0.15
