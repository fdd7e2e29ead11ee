"""Secrets for commands: what a command that names one gets in its environment, and nobody sees."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


def find_named(command: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that `command` holds: what it is asked about, and what it is given."""
    return tuple(name for name in names if re.search(rf"\b{re.escape(name)}\b", command))


class Secrets(Protocol):
    """Who keeps them. A secret is given to a command whose words hold its name, and to no other."""

    def lend(self, workspace: Path, command: str) -> dict[str, str]:
        """Names and values for `command` in this workspace."""

    def hide(self, text: str) -> str:
        """`text` with the names in place of the values, whosever they are."""


class NoSecrets:
    """Nobody keeps any."""

    def lend(self, workspace: Path, command: str) -> dict[str, str]:
        return {}

    def hide(self, text: str) -> str:
        return text
