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
WORDLESS = frozenset({"start", "help", "new", "undo", "retry", "approvals", "status", "whoami"})
"""Commands that are whole by their name."""


class Menu:
    """`load` gives the commands when an adapter looks: after its first contact. `admins`: ids of
    the people, on the adapter's platform, who see what only admins may do. `choices`: what a
    command may go on with, as `gateway.wiring.choices` has it."""

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
        """(name, description) of each command that may be given."""
        shown = [one for one in self._load().values() if admin or one.least != "admin"]
        return [(one.name, drop_marks(one.help(language))) for one in shown]

    def takes(self, name: str) -> bool:
        """The command means something with words."""
        return name not in WORDLESS

    async def choices(
        self, conversation: Conversation, sender: Sender, name: str, typed: str
    ) -> Sequence[tuple[str, str]]:
        """(what is shown, what it stands for) of words that go on from what is typed."""
        if self._choices is None:
            return ()
        return await self._choices(conversation, sender, name, typed)
