"""Binds the confirmation of a job's command to what will run."""

from pathlib import Path

from agent_core.tools.shell import RunCommandArguments, bind
from agent_core.tools.sources import read_sources
from gateway.messages import digest


def bind_command(command: str, workspace: Path) -> str:
    """What a confirmation of the command is bound to: its words and the files of the workspace
    that it names; behind a colon, all files of the workspace. Blocks."""
    named = digest(f"{command}\0{bind(RunCommandArguments(command=command), workspace)}".encode())
    return f"{named}:{read_sources(workspace).digest}"


def still_holds(bound: str, now: str, *, whole: bool) -> bool:
    """What was confirmed is what there is `now`, both as `bind_command` gives it. `whole`: no other
    file changed either, which a confirmation of an older version cannot say."""
    (named, _, files), (found, _, there) = bound.partition(":"), now.partition(":")
    return named == found and (not whole or bool(files) and files == there)
