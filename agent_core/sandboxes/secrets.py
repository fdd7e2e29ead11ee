"""Secrets for commands: what a command that names one gets in its environment, and nobody sees."""

from pathlib import Path
from typing import Protocol


class Secrets(Protocol):
    """Who keeps them. A secret is given to a command whose words hold its name, and to no other."""

    def given(self, workspace: Path, command: str) -> dict[str, str]:
        """Names and values for `command` in this workspace."""

    def hide(self, text: str) -> str:
        """`text` with the names in place of the values, whosever they are."""


class NoSecrets:
    """Nobody keeps any."""

    def given(self, workspace: Path, command: str) -> dict[str, str]:
        return {}

    def hide(self, text: str) -> str:
        return text
