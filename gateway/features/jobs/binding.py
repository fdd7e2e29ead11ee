"""Binds the approval of a job's command to the code that will run."""

from pathlib import Path

from agent_core.tools.shell import RunCommandArguments, bind
from agent_core.tools.sources import read_sources
from gateway.messages import digest


def bind_command(command: str, workspace: Path) -> str:
    """Return the digest to which an approval of the command is bound: its words and the workspace
    files that it names; after a colon, that of all files of the workspace. Blocks."""
    named = digest(f"{command}\0{bind(RunCommandArguments(command=command), workspace)}".encode())
    return f"{named}:{read_sources(workspace).digest}"


def still_holds(bound: str, now: str, *, whole: bool) -> bool:
    """Return True if the approved digest equals `now`, both from `bind_command`. `whole`: compare
    all other files too, which digests of older versions cannot."""
    (named, _, files), (found, _, there) = bound.partition(":"), now.partition(":")
    return named == found and (not whole or bool(files) and files == there)
