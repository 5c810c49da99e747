"""Entry point of `hedgerow-agent`: imports only the standard library until it knows that the extra is there."""

import sys

from hedgerow_plans.extras import explain_missing_extra, is_third_party


def hedgerow_agent() -> int:
    """Run the device agent's command line."""
    try:
        from hedgerow_agent.cli import main
    except ModuleNotFoundError as error:
        if error.name is None or not is_third_party(error.name):
            raise
        sys.stderr.write(explain_missing_extra("hedgerow-agent", "agent", error.name) + "\n")
        return 1
    return main()
