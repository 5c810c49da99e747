"""A pretrained model wins back what a drift took, with a small part of its parameters."""

import pytest

from support.adaptation import FULL, RECIPES, adapt
from support.sampling import sample

CASES = [(drift, name) for drift in ("rotated", "inverted") for name in RECIPES]
PROMISED = [case for case in CASES if case != ("inverted", "bias")]


@pytest.mark.parametrize(("drift", "name"), sample(PROMISED, 2, seed=4))
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


@pytest.mark.thorough
def test_what_biases_alone_win_back_of_inverted_digits_is_told() -> None:
    """Biases cannot turn a filter's sign: most of it comes back, and the share is printed, not promised."""
    whole, small = adapt("inverted", FULL), adapt("inverted", RECIPES["bias"])
    print(f"FIGURE inverted digits by bias: {small.gain / whole.gain:.1%} of what full training recovers")
    assert small.gain > 0.5 * whole.gain
