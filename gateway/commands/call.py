"""A command as it was given, as all that carry commands out take it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.messages import CommandGiven
from gateway.people.roles import Role

if TYPE_CHECKING:
    from gateway.sessions.intake import Intake
    from gateway.sessions.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command as it was given."""

    session: "Session"
    intake: "Intake"
    command: CommandGiven
    role: Role
    seq: int

    @property
    def words(self) -> list[str]:
        """The arguments, split at spaces."""
        return self.command.arguments.split()

    @property
    def language(self) -> str:
        """The language of who gave it."""
        return self.command.sender.language
