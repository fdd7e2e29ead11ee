"""Commands of a lasting shell that are read-only, and need neither it nor a person.

The meaning of a word depends on the shell's earlier commands: `ls` may be a function by now. So a
command that is allowed without a person is not given to the shell at all: it runs beside it, in its
folder, by a fresh one.
"""

import re

from agent_core.tools.shell_reading.lines.names import SHOWN
from agent_core.tools.shell_reading.verbs import VERSIONS
from agent_core.tools.shell_words import Understood, understand

_BY_SHELL = (VERSIONS - {"git", "jq", "rg"}) | {
    *("alias", "dirs", "hash", "jobs", "popd", "pushd", "times", "trap", "umask", "wait"),
    "command",
    "kubectl",
    "ssh",
    "printenv",
    "sleep",
    "type",
    "whereis",
    "which",
}
"""Verbs whose program depends on the shell's state, such as its PATH."""
_EXPANDS = re.compile(rf"\$\{{?({SHOWN})\b|\$\$|\A[^;|&\n]*\$(?:\?|\{{PIPE)")
"""Matches expansions, which depend on the shell's state, too: variables, and the status of its last
command."""


def readonly_verbs(command: str) -> tuple[str, ...]:
    """Return the verbs of a command that is understood and means the same in a fresh shell;
    otherwise ()."""
    known = understand(command)
    if not isinstance(known, Understood) or known.sets or _EXPANDS.search(command):
        return ()
    by_shell = any(verb in _BY_SHELL or verb.startswith("python") for verb in known.verbs)
    return () if by_shell else known.verbs
