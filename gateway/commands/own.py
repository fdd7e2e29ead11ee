"""Commands of our own: what they do is told by the catalogue of texts."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from gateway.feature import Call, Command
from gateway.people.roles import Role
from gateway.texts import Key, say


def own_command(name: str, run: Callable[[Call], Awaitable[str]], least: Role = "user") -> Command:
    """Make a command whose help is the text `command_<name>`."""
    return Command(name=name, run=run, help=partial(say, cast(Key, f"command_{name}")), least=least)
