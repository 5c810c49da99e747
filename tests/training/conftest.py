"""Settings of the training core's tests."""

from hypothesis import settings

# Machines that share their cores are slow now and then; a slow example is not a wrong one.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
