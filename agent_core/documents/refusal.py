"""The error for documents that are not read. A module of its own: the reading program runs as
`__main__`, and a class defined there would be another one for its readers."""

LOCKED = "it is locked with a password. Ask for a copy without one."


class Refused(Exception):
    """The document cannot be read; the text says why."""
