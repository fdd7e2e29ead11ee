"""Which commands of a lasting shell only look around, and need neither it nor a person.

What a word means to a shell depends on what it was told before: `ls` may be a function by now. So
a command that is allowed without a person is not given to the shell at all: it runs beside it, in
its folder, by a fresh one.
"""

from agent_core.tools.shell_words import Understood, understand

_BY_SHELL = frozenset(
    {"pytest", "python", "python3", "node", "npm", "pip", "make", "gcc", "go", "cargo", "rustc"}
    | {"which"}
)
"""Verbs whose program depends on what the shell was told, such as a PATH."""


def readonly_verbs(command: str) -> tuple[str, ...]:
    """The verbs of a command that is understood and means the same in a fresh shell; else ()."""
    known = understand(command)
    fresh = isinstance(known, Understood) and _BY_SHELL.isdisjoint(known.verbs)
    return known.verbs if fresh and isinstance(known, Understood) else ()
