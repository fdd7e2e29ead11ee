"""Interactions and the menu of slash commands: what Discord is told of them, and at once.

Discord waits 3 seconds for an answer. None of these waits for the store or for a turn.
"""

from collections.abc import Sequence
from typing import Protocol

from adapters.discord import parse
from adapters.discord.components import EPHEMERAL, NO_PINGS, WRITES, modal, word
from adapters.discord.markdown import code
from gateway.messages import Conversation, Sender
from gateway.texts import say

MESSAGE, DEFERRED, CHOICES = 4, 6, 8
"""Answers to an interaction: a message; 'the message stays as it is'; what may be typed."""
MAX_COMMANDS, MAX_CHOICES, LONGEST = 100, 25, 100
MAX_SHOWN = 1_900
"""Characters of a command that its person is shown; a message has at most 2,000."""
NOBODY = "0"
"""No member permission at all: only who administers the server is shown the command, or whom the
server's own settings let give it."""


class DiscordCommands(Protocol):
    """What the menu of commands is made of."""

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """(name, description) of each command."""

    def takes(self, name: str) -> bool:
        """The command means something with words."""

    async def choices(
        self, conversation: Conversation, sender: Sender, name: str, typed: str
    ) -> Sequence[tuple[str, str]]:
        """(what is shown, what it stands for) of words that go on from what is typed."""


def rows(commands: DiscordCommands) -> list[dict[str, object]]:
    """The menu, as Discord takes it."""
    english, german = (commands.rows(language, admin=True) for language in ("", "de"))
    open_to_all = {name for name, _ in commands.rows("", admin=False)}
    about = dict(german)
    return [
        _command(name, (text, about.get(name, text)), commands.takes(name), name in open_to_all)
        for name, text in english[:MAX_COMMANDS]
    ]


def _command(name: str, about: tuple[str, str], words: bool, for_all: bool) -> dict[str, object]:
    """A slash command; in servers and in private chats with the bot."""
    made: dict[str, object] = {
        "type": 1,
        "name": name,
        "description": about[0][:LONGEST],
        "description_localizations": {"de": about[1][:LONGEST]},
        "options": [_words()] if words else [],
        "integration_types": [0],
        "contexts": [0, 1],
    }
    return made if for_all else made | {"default_member_permissions": NOBODY}


def _words() -> dict[str, object]:
    return {
        "type": 3,
        "name": "text",
        "description": word("arguments", "en"),
        "description_localizations": {"de": word("arguments", "de")},
        "required": False,
        "autocomplete": True,
    }


def answer(event: parse.Json) -> dict[str, object] | None:
    """What is said to an interaction at once, None to one that we do not know."""
    language = str(event.get("locale", ""))
    token = parse.token_of(event)
    match event.get("type"):
        case parse.COMMAND_GIVEN:
            given = f"/{parse.command_of(event)} {parse.read_typed(event)}"
            shown = {"content": code(given[:MAX_SHOWN]), "flags": EPHEMERAL}
            return {"type": MESSAGE, "data": shown | {"allowed_mentions": NO_PINGS}}
        case parse.PRESSED if token.startswith(WRITES):
            token = token.removeprefix(WRITES)
            if token.endswith(":text"):
                return modal(token, say("your_answer", language), needed=True)
            if token.endswith(":deny"):
                return modal(token, word("reason", language), needed=False)
            return modal(token, word("wishes", language), needed=True)
        case parse.PRESSED | parse.FILLED_IN:
            return {"type": DEFERRED}
    return None


def make_choices(choices: Sequence[tuple[str, str]]) -> dict[str, object]:
    """The answer to somebody who types: at most 25 choices, each as short as Discord wants it."""
    fit = [
        {"name": _short(shown), "value": words}
        for shown, words in choices
        if shown and 0 < len(words) <= LONGEST
    ]
    return {"type": CHOICES, "data": {"choices": fit[:MAX_CHOICES]}}


def _short(shown: str) -> str:
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
