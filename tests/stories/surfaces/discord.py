"""The person in Discord: a private chat, or a channel of a server where others are too."""

import contextlib
import itertools
import re
from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace

from adapters.discord import memory, receive, session
from adapters.discord.adapter import DiscordAdapter
from gateway.texts import say as text_of
from tests.fakes.discord_server import DiscordServer, Json, labels, show_times, walk
from tests.stories.rig import ADMIN, FRIEND, GROUP, PATIENCE, PERSON, STRANGER, Rig
from tests.stories.surfaces.surface import Surface

NAMES = {PERSON: "Ann", FRIEND: "Ben", ADMIN: "Ada", STRANGER: "Zoe"}
DM, CHANNEL = f"9000{PERSON}", "7100"
VOICE = 1 << 13
FENCE = re.compile(r"^```[^\n`]*\n(.*?)\n?```$", re.DOTALL | re.MULTILINE)
LINE = re.compile(r"^(#{1,3} |-# |> )", re.MULTILINE)
MARKED = re.compile(r"(?<!\\)(\*\*|~~|`)(.+?)(?<!\\)\1")
SLANTED = re.compile(r"(?<![\\*])\*([^*\n]+)(?<!\\)\*")
LINK = re.compile(r"\[([^\]]+)\]\(<?http[^)\s]+\)")
ESCAPED = re.compile(r"\\([^A-Za-z0-9\s])")


class Discord(Surface):
    """Ann, who is an admin. With `group` she is in a channel with the others."""

    name = "discord"

    def __init__(self, rig: Rig, language: str = "en", crash_at: str = "") -> None:
        super().__init__(rig, language, crash_at)
        self.chat = PERSON
        self.server = DiscordServer()
        self._exit = contextlib.AsyncExitStack()
        self._settings: dict[str, str] = {}
        self._mine: dict[str, Json] = {}
        """What people wrote, by id."""
        self._numbers = itertools.count(1)
        self._calls = 0
        """How many calls there were before what is looked at now."""

    async def open(self, **settings: str) -> None:
        quick = self._quick = self._exit.enter_context(pytest.MonkeyPatch.context())
        quick.setattr(
            DiscordAdapter, "abilities", replace(DiscordAdapter.abilities, edit_interval=0.05)
        )
        quick.setattr(memory, "SAVE_EVERY", 0.0)
        for module in (receive, session):
            quick.setattr(module, "MIN_PAUSE", 0.01)
        await self._exit.enter_async_context(self.server)
        self.server.names = NAMES
        self.server.locale = self.language
        self._settings = {
            "TELEGRAM_BOT_TOKEN": "", "DISCORD_BOT_TOKEN": self.server.token,
            "DISCORD_API_BASE_URL": self.server.api_url,
            "DISCORD_GATEWAY_URL": self.server.gateway.url,
            "DISCORD_ADMIN_USERS": f"{PERSON},{ADMIN}", "DISCORD_ALLOWED_USERS": str(FRIEND),
        } | settings  # fmt: skip
        await self._start()
        await self.server.type(DM, "help", PERSON)  # what one types tells one's language

    async def _start(self) -> None:
        menus = len(self.server.made("menu"))
        await self.rig.start(**self._settings)
        await self.server.wait(lambda: self.server.gateway.connected, PATIENCE)
        await self.server.wait(lambda: len(self.server.made("menu")) > menus, PATIENCE)

    async def restart(self) -> None:
        await self.rig.crash()
        await self.server.wait(lambda: not self.server.gateway.connected, PATIENCE)
        self._calls = len(self.server.calls)
        await self._start()

    async def close(self) -> None:
        await self.rig.crash()
        await self._exit.aclose()
        assert self.server.violations == []

    # ---- what a person does --------------------------------------------------------------

    @property
    def channels(self) -> list[str]:
        """What is on the screen: a private chat, or a channel and the threads in it."""
        return [CHANNEL, *self.server.threads] if self.chat == GROUP else [DM]

    async def say(self, text: str, files: Sequence[tuple[str, bytes]] = ()) -> str:
        named = "@test_bot " if self.chat == GROUP else ""
        return await self._say(PERSON, named + text, self.channels[-1], files)

    async def say_as(self, user: int, text: str, reply_to: str = "") -> str:
        """Somebody writes in the channel, or where the message is that is replied to."""
        at = next((one for one in self.channels if self._stands(one, reply_to)), CHANNEL)
        return await self._say(user, text, at, reply_to=reply_to)

    async def _say(
        self, user: int, text: str, channel: str, files: Sequence[tuple[str, bytes]] = (),
        reply_to: str = "",
    ) -> str:  # fmt: skip
        more: Json = {"attachments": list(self._attached(files))} if files else {}
        text = text.replace("@test_bot", "@bot")
        if reply_to:  # Discord's clients mention whom one replies to
            more["mentions"] = [self.server.user]
        self._calls = len(self.server.calls)
        said = await self.server.say(channel, text, user, reply_to, **more)
        self._mine[said["id"]] = said
        return str(said["id"])

    def _attached(self, files: Sequence[tuple[str, bytes]]) -> Iterator[Json]:
        for name, data in files:
            key = f"{next(self._numbers)}-{name}"
            self.server.files[key] = data
            url = f"{self.server.base}/files/{key}"
            yield {
                "id": f"88{next(self._numbers)}",
                "filename": name,
                "size": len(data),
                "url": url,
            }

    async def speak(self, sound: bytes) -> str:
        """Hold the microphone's button."""
        (about,) = self._attached([("voice.ogg", sound)])
        about |= {"content_type": "audio/ogg", "duration_secs": 2.0, "waveform": "AA=="}
        said = await self.server.say(
            self.channels[-1], "", PERSON, attachments=[about], flags=VOICE
        )
        self._mine[said["id"]] = said
        return str(said["id"])

    async def command(self, text: str) -> None:
        """A slash command: it stands on the screen of who gave it."""
        name, _, words = text.removeprefix("/").partition(" ")
        channel = self.channels[-1]
        number = await self.server.command(channel, name, PERSON, words)
        shown = {"id": number, "author": {"id": str(PERSON)}, "content": text, "attachments": []}
        self._mine[number] = shown | {"channel_id": channel, "edited_timestamp": None}

    async def press(self, label: str) -> None:
        await self._press(PERSON, label)

    async def press_as(self, user: int, label: str) -> str:
        """The private word that answers the press, "" if the button goes away instead."""
        pressed = await self._press(user, label)
        await self.server.wait(
            lambda: self.server.whispers.get(pressed) or not self._bearing(label), PATIENCE
        )
        return "".join(self.server.whispers.get(pressed, ()))

    async def _press(self, user: int, label: str) -> str:
        return await self.server.press(self._bearing(label)[-1], label, user)

    def link(self, label: str) -> str:
        buttons = [one for message in self._theirs() for one in walk(message["components"])]
        return next(str(one["url"]) for one in buttons if one.get("label") == label)

    async def deny(self, reason: str) -> None:
        await self._write(DENY[self.language], reason)

    async def fill_in(self, text: str) -> None:
        await self._write(text_of("your_answer", self.language), text)

    async def write_own(self, text: str) -> None:
        await self._write(text_of("something_else", self.language), text)

    async def _write(self, label: str, text: str) -> None:
        """Into the field that a button opens."""
        await self.server.fill_in(self._bearing(label)[-1], label, text, PERSON)

    async def edit(self, message: str, text: str) -> None:
        await self.change(message, text)
        await self.rig.until(lambda: self._waits_with(text))

    async def change(self, message: str, text: str) -> None:
        """Edit a message that nothing is done about any more."""
        await self.server.change(self._mine[message], text)

    async def withdraw(self, message: str) -> None:
        """Delete a message that waits."""
        said = self._mine.pop(message)
        await self.server.delete(said)
        await self.rig.until(lambda: not self._waits_with(said["content"]))

    async def stop(self) -> None:
        """The button below what grows."""
        await self.press(next(label for label in STOP if self._bearing(label)))

    # ---- what a person sees --------------------------------------------------------------

    async def shows(self, text: str) -> None:
        await self.server.wait(lambda: any(text in read(one) for one in self._theirs()), PATIENCE)

    async def card(self, text: str) -> None:
        def opened() -> bool:
            asking = [one for one in self._theirs() if {*labels(one)} - {*STOP}]
            return any(text in read(one) for one in asking)

        await self.server.wait(opened, PATIENCE)

    async def grows(self, text: str) -> None:
        def grown() -> bool:
            made = [call for call in self.server.calls[self._calls :] if call.status == 200]
            shown = [call for call in made if call.name in ("send", "edit")]
            return any(text in read(call.params) for call in shown)

        await self.server.wait(grown, PATIENCE)

    async def waits(self, message: str) -> None:
        await self.server.wait(lambda: self.server.reacted.get(message) == ["👀"], PATIENCE)

    def screen(self) -> list[str]:
        lines = []
        for channel in self.channels:
            if channel in self.server.titles:
                lines.append(f"# {self.server.titles[channel]}")
            mine = {n: one for n, one in self._mine.items() if one["channel_id"] == channel}
            theirs = {one["id"]: one for one in self.server.chats[channel]}
            for n, one in sorted((mine | theirs).items(), key=lambda pair: int(pair[0])):
                said = self._drawn(one) if n in theirs else self._said(one)
                name = "bot" if n in theirs else NAMES[int(one["author"]["id"])]
                lines.append(f"{name}: {said}")
        return lines

    def hold_sends(self) -> None:
        self.server.hold("send")

    async def sends(self, text: str) -> None:
        await self.server.wait(
            lambda: any(text in str(call.params) for call in self.server.made("send")), PATIENCE
        )

    def let_sends_go(self) -> None:
        self.server.release("send")

    def named(self, text: str) -> str:
        """The bot's message that shows `text`, for a reply to it."""
        return str(next(one["id"] for one in self._theirs() if text in read(one)))

    def note(self, user: int, told: str) -> None:
        """Keep the private word that `user` was told for the transcript."""
        self._looks.append(f"-- told to {NAMES[user]} alone --\n{told}\n")

    # ---- details -------------------------------------------------------------------------

    def _theirs(self) -> list[Json]:
        """The bot's messages on the screen, oldest first."""
        found = [one for channel in self.channels for one in self.server.chats[channel]]
        return sorted(found, key=lambda one: int(one["id"]))

    def _bearing(self, label: str) -> list[Json]:
        return [one for one in self._theirs() if label in labels(one)]

    def _stands(self, channel: str, message: str) -> bool:
        return any(one["id"] == message for one in self.server.chats[channel])

    def _waits_with(self, text: str) -> bool:
        return any(text in str(one.state.queue) for one in self.rig.host.sessions.values())

    def _said(self, one: Json) -> str:
        names = "".join(f"\n[{file['filename']}]" for file in one["attachments"])
        if one.get("flags") == VOICE:
            return "[voice note]"
        text = one["content"].replace(f"<@{self.server.user['id']}>", "@test_bot")
        edited = " (edited)" if one["edited_timestamp"] else ""
        eyes = "".join(f" {emoji}" for emoji in self.server.reacted.get(one["id"], ()))
        return f"{text}{names}{edited}{eyes}".strip()

    def _drawn(self, one: Json) -> str:
        files = self.server.uploads[one["id"]].items()
        lines = [f"[{name}, {len(data)} bytes]" for name, data in files]
        lines.append(read(one))
        return "\n".join(filter(None, [*lines, *_rows(one)]))


STOP = ("Stop", "Anhalten")
DENY = {"en": "Deny with reason", "de": "Mit Grund ablehnen"}


def read(message: Json) -> str:
    """A message of the bot as one reads it: what is code stands as it is, in a line of its own."""
    lines = []
    for block in _texts(message["components"]):
        at = 0
        for fenced in FENCE.finditer(block):
            lines += [_read(block[at : fenced.start()]), _code(fenced[1])]
            at = fenced.end()
        lines.append(_read(block[at:]))
    return "\n".join(filter(None, lines))


def _texts(components: Sequence[Json]) -> Iterator[str]:
    return (show_times(one["content"]) for one in walk(components) if one["type"] == 10)


def _code(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if line.strip())


def _read(text: str) -> str:
    """Without its markup and blank lines."""
    text = LINK.sub(r"\1", LINE.sub("", text))
    for pattern in (MARKED, MARKED):  # one may stand within another
        text = pattern.sub(r"\2", text)
    text = ESCAPED.sub(r"\1", SLANTED.sub(r"\1", text))
    return "\n".join(line for line in text.split("\n") if line.strip())


def _rows(message: Json) -> Iterator[str]:
    """Its buttons, row by row."""
    for row in walk(message["components"]):
        if row["type"] == 1:
            yield " ".join(f"[{label}]" for label in labels({"components": [row]}))
