"""The commands as a menu for platforms that show one, by language and role."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from gateway.command_texts import drop_marks
from gateway.messages import Conversation, Sender

Choices = Callable[[Conversation, Sender, str, str], Awaitable[Sequence[tuple[str, str]]]]


class MenuEntry(Protocol):
    """A command as a menu has it: a gateway.feature.Command, which is imported late."""

    @property
    def name(self) -> str: ...
    @property
    def least(self) -> str: ...
    @property
    def help(self) -> Callable[[str], str]: ...


LoadCommands = Callable[[], Mapping[str, MenuEntry]]
WORDLESS = frozenset({"start", "help", "new", "approvals", "status", "whoami"})
"""Commands that are whole by their name."""


class Menu:
    """The menu of commands. `load` returns the commands, after the adapter's first contact.
    `admins`: ids of people on the platform who also see admin commands. `choices`: completions, as
    in `gateway.wiring.choices`."""

    def __init__(
        self,
        load: LoadCommands,
        admins: Iterable[str] = (),
        choices: Choices | None = None,
    ) -> None:
        self.admins: Sequence[str] = tuple(admins)
        self._load = load
        self._choices = choices

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """Return (name, description) of each command."""
        shown = [one for one in self._load().values() if admin or one.least != "admin"]
        return [(one.name, drop_marks(one.help(language))) for one in shown]

    def takes(self, name: str) -> bool:
        """The command means something with words."""
        return name not in WORDLESS

    async def choices(
        self, conversation: Conversation, sender: Sender, name: str, typed: str
    ) -> Sequence[tuple[str, str]]:
        """Return (label, words) completions of what is typed."""
        if self._choices is None:
            return ()
        return await self._choices(conversation, sender, name, typed)
