"""`python -m hedgerow_agent` is `hedgerow-agent`."""

from hedgerow_agent.cli import main

raise SystemExit(main())
