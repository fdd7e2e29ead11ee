"""Discord's state across restarts: a small file, written atomically.

The position in the gateway's session; how far each recently active channel has been read, in case
the session is over; the authors of the latest messages; the languages of people, which only
interactions tell; and the ids of the bot's commands.
"""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from adapters.discord.parse import DiscordBot, Json, number_of, presser
from gateway import clock
from gateway.messages import Conversation, MessageReceived, Sender

log = logging.getLogger("adapters.discord")

SAVE_EVERY = 1.0
"""Seconds between two writes of the file."""
MAX_CHANNELS, MAX_PEOPLE, MAX_SAID = 50, 1_000, 200


class GatewayPosition(Struct, frozen=True, kw_only=True):
    """The position in a session: its bot and id, the address to resume it, the last event
    stored."""

    bot: DiscordBot
    session: str
    url: str
    kept: int


class LastSeen(Struct, frozen=True, kw_only=True):
    """A channel's last message that was seen, and the server that it belongs to."""

    message: str
    guild: str = ""


class MessageOrigin(Struct, frozen=True, kw_only=True):
    """A message's author and place, which its deletion does not tell."""

    conversation: Conversation
    sender: Sender


class DiscordState(Struct, frozen=True, kw_only=True):
    """The content of the file."""

    place: GatewayPosition
    channels: dict[str, LastSeen] = {}
    languages: dict[str, str] = {}
    said: dict[str, MessageOrigin] = {}
    commands: dict[str, str] = {}


class DiscordMemory:
    """The file at `path`; without one nothing outlives the process."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._channels: dict[str, LastSeen] = {}
        self._languages: dict[str, str] = {}
        self.said: dict[str, MessageOrigin] = {}
        """The latest messages of people, by id."""
        self.commands: dict[str, str] = {}
        """The ids of the bot's commands by name; empty until Discord has taken the menu."""
        self._saved = 0.0

    async def load(self, bot: str) -> GatewayPosition | None:
        """The place of the bot's session; nothing of another bot is kept."""
        known = await asyncio.to_thread(_load, self._path)
        if known is None or known.place.bot.id != bot:
            return None
        self._channels, self._languages = known.channels, known.languages
        self.said, self.commands = known.said, known.commands
        return known.place

    def note_read(self, event: Json) -> None:
        """A message was read: the newest of its channel is remembered."""
        channel, message = number_of(event, "channel_id"), number_of(event, "id")
        if not channel or not message:
            return
        last = self._channels.pop(channel, None)
        newest = max(message, last.message if last else "0", key=int)
        self._channels[channel] = LastSeen(message=newest, guild=number_of(event, "guild_id"))
        _forget(self._channels, MAX_CHANNELS)

    def remember_message(self, message: MessageReceived) -> None:
        """A person's message was kept."""
        said = MessageOrigin(conversation=message.conversation, sender=message.sender)
        self.said[message.message] = said
        _forget(self.said, MAX_SAID)

    def remember_language(self, event: Json) -> None:
        """Remember the language of an interaction's person."""
        person = presser(event)
        if person is not None and person.language:
            self._languages.pop(person.id, None)
            self._languages[person.id] = person.language
            _forget(self._languages, MAX_PEOPLE)

    def language(self, person: str) -> str:
        """The person's language, "" if it never showed."""
        return self._languages.get(person, "")

    def channels(self) -> Iterator[tuple[str, LastSeen]]:
        """Yield recently active channels, the latest first."""
        return iter(list(self._channels.items())[::-1])

    async def save(self, place: GatewayPosition, *, now: bool = False) -> None:
        """Remember; at most each second unless it has to be `now`."""
        if self._path is None or (not now and clock.monotonic() - self._saved < SAVE_EVERY):
            return
        self._saved = clock.monotonic()
        known = DiscordState(
            place=place,
            channels=self._channels,
            languages=self._languages,
            said=self.said,
            commands=self.commands,
        )
        try:
            await asyncio.to_thread(_save, self._path, msgspec.json.encode(known))
        except OSError as error:
            log.warning("discord_place_not_saved", extra={"error": repr(error)})


def _forget(
    known: dict[str, LastSeen] | dict[str, MessageOrigin] | dict[str, str], most: int
) -> None:
    while len(known) > most:
        del known[next(iter(known))]


def _load(path: Path | None) -> DiscordState | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=DiscordState) if path else None
    except (OSError, msgspec.DecodeError):
        return None


def _save(path: Path, encoded: bytes) -> None:
    """Write it atomically."""
    beside = path.with_suffix(".new")
    beside.write_bytes(encoded)
    beside.replace(path)
