"""A pretrained model wins back what a drift took, with a small part of its parameters."""

import pytest

from support.adaptation import DRIFTS, FULL, RECIPES, adapt
from support.sampling import sample

CASES = [(drift, name) for drift in DRIFTS for name in RECIPES]


@pytest.mark.parametrize(("drift", "name"), sample(CASES, 2, seed=6))
def test_a_small_delta_recovers_nine_tenths_of_what_full_training_does(drift: str, name: str) -> None:
    whole, small = adapt(drift, FULL), adapt(drift, RECIPES[name])
    recovered, share = small.gain / whole.gain, small.trained_numbers / whole.trained_numbers
    print(
        f"FIGURE {drift} digits by {name}: {small.before:.3f} to {small.after:.3f} (full {whole.after:.3f}), "
        f"{recovered:.1%} of what full training recovers, with {share:.2%} of its parameters"
    )
    assert whole.gain > 0.15
    assert whole.after > 0.95
    assert recovered >= 0.9
    assert share <= 0.15
