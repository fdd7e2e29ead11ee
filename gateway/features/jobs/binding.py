"""Binds the confirmation of a job's command to what will run."""

from pathlib import Path

from agent_core.tools.shell import RunCommandArguments, bind
from gateway.messages import digest


def bind_command(command: str, workspace: Path) -> str:
    """What a confirmation of the command is bound to: its words, and the files of the workspace
    that it names."""
    return digest(f"{command}\0{bind(RunCommandArguments(command=command), workspace)}".encode())
