"""Programs for jobs: asked for, computed off the event loop, kept in the cluster and on disk, found again.

The strategies themselves are pure and live in `hedgerow_plans`; here are the process pool, the time limit, the memo and
the storage around them.
"""
