"""Which commands of a lasting shell only look around, and need neither it nor a person.

What a word means to a shell depends on what it was told before: `ls` may be a function by now. So
a command that is allowed without a person is not given to the shell at all: it runs beside it, in
its folder, by a fresh one.
"""

import re

from agent_core.tools.shell_reading.line import SHOWN
from agent_core.tools.shell_reading.verbs import VERSIONS
from agent_core.tools.shell_words import Understood, understand

_BY_SHELL = (VERSIONS - {"git", "jq", "rg"}) | {
    "command",
    "kubectl",
    "ssh",
    "printenv",
    "sleep",
    "type",
    "whereis",
    "which",
}
"""Verbs whose program depends on what the shell was told, such as a PATH."""
_EXPANDS = re.compile(rf"\$\{{?({SHOWN})\b|\$\$|\A[^;|&\n]*\$(?:\?|\{{PIPE)")
"""What a variable is depends on the shell, too, and so does how its last command ended."""


def readonly_verbs(command: str) -> tuple[str, ...]:
    """The verbs of a command that is understood and means the same in a fresh shell; else ()."""
    known = understand(command)
    if not isinstance(known, Understood) or known.sets or _EXPANDS.search(command):
        return ()
    by_shell = any(verb in _BY_SHELL or verb.startswith("python") for verb in known.verbs)
    return () if by_shell else known.verbs
