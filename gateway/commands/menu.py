"""The commands as a menu for platforms that show one, by language and role."""

from collections.abc import Iterable, Sequence


class Menu:
    """The registry is imported when an adapter looks: after its first contact. `admins`: ids of
    the people, on the adapter's platform, who see what only admins may do."""

    def __init__(self, admins: Iterable[str] = ()) -> None:
        self.admins: Sequence[str] = tuple(admins)

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """(name, description) of each command that may be given."""
        from gateway.commands.registry import COMMANDS, about

        shown = [one for one in COMMANDS.values() if admin or one.least != "admin"]
        return [(one.name, about(one.name, language)) for one in shown]
