"""Interactions and the menu of slash commands: their immediate answers.

Discord waits 3 seconds for an answer. None of these waits for the store or for a turn.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from adapters.discord import parse
from adapters.discord.components import EPHEMERAL, NO_PINGS, SUPPRESS_EMBEDS, WRITES, modal
from adapters.discord.markdown import code
from gateway.messages import Conversation, Sender
from gateway.texts import CATALOGUE, say
from gateway.texts.languages import ENGLISH

MESSAGE, DEFERRED, CHOICES = 4, 6, 8
"""Answers to an interaction: a message; 'the message stays as it is'; completions."""
MAX_COMMANDS, MAX_CHOICES, LONGEST = 100, 25, 100
MAX_SHOWN = 1_900
"""Characters of a command that its person is shown; a message has at most 2,000."""
LOCALES = {"es": ("es-ES", "es-419"), "pt": ("pt-BR",), "zh": ("zh-CN", "zh-TW")}
"""Discord's names of languages that it divides; others go by their own."""
NOBODY = "0"
"""No member permission: only administrators of the server see the command, and whoever the server's
own settings allow."""


class DiscordCommands(Protocol):
    """The menu of commands."""

    def rows(self, language: str, *, admin: bool) -> Sequence[tuple[str, str]]:
        """(name, description) of each command."""

    def takes(self, name: str) -> bool:
        """The command means something with words."""

    async def choices(
        self, conversation: Conversation, sender: Sender, name: str, typed: str
    ) -> Sequence[tuple[str, str]]:
        """Return (label, words) completions of what is typed."""


def rows(commands: DiscordCommands) -> list[dict[str, object]]:
    """The menu, as Discord takes it."""
    open_to_all = {name for name, _ in commands.rows("", admin=False)}
    about = {code: dict(commands.rows(code, admin=True)) for code in _list_others()}
    return [
        _command(
            name,
            {"description": text[:LONGEST]}
            | _localize({code: known.get(name, text) for code, known in about.items()}),
            commands.takes(name),
            name in open_to_all,
        )
        for name, text in commands.rows("", admin=True)[:MAX_COMMANDS]
    ]


def _list_others() -> tuple[str, ...]:
    return tuple(code for code in CATALOGUE.list_codes() if code != ENGLISH)


def _localize(texts: Mapping[str, str]) -> dict[str, object]:
    """Return a description in other languages than English."""
    found = {
        locale: text[:LONGEST]
        for code, text in texts.items()
        for locale in LOCALES.get(code, (code,))
    }
    return {"description_localizations": found}


def _command(name: str, about: dict[str, object], words: bool, for_all: bool) -> dict[str, object]:
    """A slash command; in servers and in private chats with the bot."""
    made: dict[str, object] = {
        "type": 1,
        "name": name,
        **about,
        "options": [_words()] if words else [],
        "integration_types": [0],
        "contexts": [0, 1],
    }
    return made if for_all else made | {"default_member_permissions": NOBODY}


def _words() -> dict[str, object]:
    return {
        "type": 3,
        "name": "text",
        "description": say("arguments"),
        **_localize({code: say("arguments", code) for code in _list_others()}),
        "required": False,
        "autocomplete": True,
    }


def answer(event: parse.Json) -> dict[str, object] | None:
    """Return the immediate answer to an interaction, None to an unknown one."""
    language = str(event.get("locale", ""))
    token = parse.token_of(event)
    match event.get("type"):
        case parse.COMMAND_GIVEN:
            given = f"/{parse.command_of(event)} {parse.read_typed(event)}"
            flags = EPHEMERAL | SUPPRESS_EMBEDS
            shown = {"content": code(given[:MAX_SHOWN]), "flags": flags}
            return {"type": MESSAGE, "data": shown | {"allowed_mentions": NO_PINGS}}
        case parse.PRESSED if token.startswith(WRITES):
            token = token.removeprefix(WRITES)
            if token.endswith(":text"):
                return modal(token, say("your_answer", language), needed=True)
            if token.endswith(":deny"):
                return modal(token, say("reason", language), needed=False)
            return modal(token, say("wishes", language), needed=True)
        case parse.PRESSED | parse.FILLED_IN:
            return {"type": DEFERRED}
    return None


def make_choices(choices: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Make the answer to somebody who types: at most 25 choices, shortened to Discord's limits."""
    fit = [
        {"name": _shorten(shown), "value": words}
        for shown, words in choices
        if shown and 0 < len(words) <= LONGEST
    ]
    return {"type": CHOICES, "data": {"choices": fit[:MAX_CHOICES]}}


def _shorten(shown: str) -> str:
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
