"""Entry point of the device's program; imports nothing of the extra until `run_program` can explain its absence."""

from hedgerow_plans.extras import run_program


def hedgerow_agent() -> int:
    """Run the device agent's command line."""
    return run_program("hedgerow-agent", "agent", "hedgerow_agent.cli")
