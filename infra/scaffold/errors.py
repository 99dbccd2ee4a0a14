"""Why nothing was written. The message ends with the remedy."""


class ScaffoldError(Exception):
    """A name that cannot be a tool's, or a tree that is not as we left it."""
