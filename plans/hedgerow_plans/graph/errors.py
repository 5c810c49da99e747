"""The one exception of everything that builds or rewrites graphs.

Its text is a sentence with the object, the offending value and the remedy, fit for a status message as it stands.
"""


class GraphError(ValueError):
    """A graph that cannot be built, rewritten, differentiated or run."""
