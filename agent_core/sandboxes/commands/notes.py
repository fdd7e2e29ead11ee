"""Notes for the model about the fate of its sandbox, for the results of commands."""

import os
from collections.abc import Sequence

from msgspec.structs import replace

from agent_core.sandboxes.commands.advice import MAX_LOOKED
from agent_core.sandboxes.masks import SecretFiles
from agent_core.sandboxes.port import NetworkLoan, ProcessResult
from agent_core.tools import paths

LOST = "broke down"
ANEW = (
    "[A new sandbox: the one before {why}. What ran in it is gone; files, HOME and /tmp are as "
    "they were.]\n"
)
NO_FOLDER = (
    "[A new sandbox: the folder of the one before is gone, with files, HOME and /tmp. What ran in "
    "it is gone.]\n"
)
EMPTIED = (
    "[A new sandbox. HOME and /tmp were not used for a day and begin empty: install again what is "
    "needed. Files of the workspace are as they were.]\n"
)
_HIDDEN = (
    "[Nothing can be read here: {names}. A command that names it is asked about, and reads it if "
    "it is allowed.]"
)
SECRET_CAME = "was ended because a secret file came: {names}"
SHELL_ENDED = (
    "Not run: the sandbox, and this shell with it, ended because a secret file came, which is "
    "hidden from the next one: {names}. Run it again."
)


def add_notes(
    done: ProcessResult, loan: NetworkLoan, ended: str, hidden: SecretFiles
) -> ProcessResult:
    """Add notes for the model to the result."""
    output = done.output
    met = [one for one in hidden.names if os.path.basename(one) in output[-MAX_LOOKED:]]
    if done.exit_code and met:
        output = f"{output.rstrip()}\n{_HIDDEN.format(names=list_names(met))}\n"
    if ended:
        output = ended + output
    noted = done if output is done.output else replace(done, output=output)
    return append_note(noted, loan.describe_refused(done))


def append_note(done: ProcessResult, note: str) -> ProcessResult:
    """Add a note to the end of the result."""
    return replace(done, output=f"{done.output.rstrip()}\n{note}\n".lstrip()) if note else done


def list_names(found: Sequence[str]) -> str:
    """List the first of these files."""
    return ", ".join(map(paths.display_path, found[:3]))
