"""The commands as a menu for platforms that show one."""

from collections.abc import Sequence
from typing import overload


class Menu(Sequence[tuple[str, str]]):
    """(name, description) of each command. The registry is imported when an adapter looks: after
    its first contact."""

    def __len__(self) -> int:
        return len(self._rows())

    @overload
    def __getitem__(self, index: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[str, str]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, str] | Sequence[tuple[str, str]]:
        return self._rows()[index]

    def _rows(self) -> list[tuple[str, str]]:
        from gateway.commands.registry import COMMANDS

        return [(one.name, one.help) for one in COMMANDS.values()]
