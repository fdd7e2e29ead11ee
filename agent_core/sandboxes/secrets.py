"""Secrets for commands: added to the environment of a command that names one, visible to nobody."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol


def find_named(command: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of `names` that occur in `command`: it is asked about them, and gets them."""
    return tuple(name for name in names if re.search(rf"\b{re.escape(name)}\b", command))


class Secrets(Protocol):
    """Keeps secrets. A command gets a secret only if its words contain the name."""

    def lend(self, workspace: Path, command: str) -> dict[str, str]:
        """Names and values for `command` in this workspace."""

    def hide(self, text: str) -> str:
        """`text` with the names in place of the values, whosever they are."""


class NoSecrets:
    """Keeps none."""

    def lend(self, workspace: Path, command: str) -> dict[str, str]:
        return {}

    def hide(self, text: str) -> str:
        return text
