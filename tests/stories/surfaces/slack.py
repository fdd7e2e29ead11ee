"""The person in Slack: a thread with the app, or a channel where others are too."""

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from adapters.slack import receive
from adapters.slack.adapter import SlackAdapter
from gateway.texts import say as text_of
from gateway.views import Abilities
from tests.fakes.slack_server import (
    APP_TOKEN,
    BOT,
    TOKEN,
    SlackServer,
    elements,
    labels,
    show_times,
    shown,
)
from tests.stories.rig import ADMIN, FRIEND, GROUP, PATIENCE, PERSON, STRANGER, Rig
from tests.stories.surfaces.surface import Surface, indented

Json = dict[str, Any]

USERS = {PERSON: "U0ANN", FRIEND: "U0BEN", ADMIN: "U0ADA", STRANGER: "U0ZOE"}
NAMES = {user: user[2:].title() for user in USERS.values()}
DM, DEV = "D0ANN", "C0DEV"
THREAD = "1700000000.000001"
"""Where Ann talks with the app: each line of talk with an agent is a thread."""
MARKS = {"pending": "☐", "in_progress": "◐", "complete": "☑", "error": "✕"}
FENCE = re.compile(r"^```\w*\n?", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(http[^)\s]+\)")
GROWTH = ("chat.startStream", "chat.appendStream", "chat.postMessage", "chat.update")
PACE = Abilities(drafts=False, edit_interval=0.05, send_timeout=14.0)


class Slack(Surface):
    """Ann, who is an admin, in a thread of the app's own chat; with `group` in a channel."""

    name = "slack"

    def __init__(self, rig: Rig, language: str = "en", crash_at: str = "") -> None:
        super().__init__(rig, language, crash_at)
        self.slack = SlackServer()
        self.chat = PERSON
        self._thread = THREAD
        self._settings: dict[str, str] = {}
        self._exit = contextlib.AsyncExitStack()
        self._files = itertools.count(1)
        self._since = 0
        self._told = 0
        """Private words that a test has looked at."""
        self._seen_waiting: set[str] = set()
        self._given: dict[str, str] = {}
        """Slash commands, by when they were given."""

    async def open(self, **settings: str) -> None:
        patch = self._exit.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(SlackAdapter, "abilities", PACE)
        patch.setattr(receive, "MIN_PAUSE", 0.01)
        await self._exit.enter_async_context(self.slack)
        about = {"locale": "de-DE" if self.language == "de" else "en-US", "tz": self.zone}
        self.slack.people = dict.fromkeys(NAMES, about)
        self._settings = {
            "TELEGRAM_BOT_TOKEN": "", "SLACK_BOT_TOKEN": TOKEN, "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_BASE_URL": self.slack.base_url, "SLACK_ALLOWED_USERS": USERS[FRIEND],
            "SLACK_ADMIN_USERS": f"{USERS[PERSON]},{USERS[ADMIN]}", "GROUP_POLICY": "thread",
        } | settings  # fmt: skip
        await self.rig.start(**self._settings)

    async def restart(self) -> None:
        await self.rig.crash()
        self._note()
        await self.rig.start(**self._settings)

    async def close(self) -> None:
        await self.rig.crash()
        await self._exit.aclose()
        assert self.slack.violations == [], self.slack.violations

    # ---- what a person does --------------------------------------------------------------

    async def say(self, text: str, files: Sequence[tuple[str, bytes]] = ()) -> str:
        named = "@test_bot " if self.chat == GROUP else ""
        return await self.say_as(PERSON, named + text, files)

    async def say_as(
        self, user: int, text: str, files: Sequence[tuple[str, bytes]] = (), reply_to: str = ""
    ) -> str:
        """Somebody writes; in the channel outside threads, until the bot has begun one. A reply is in
        the thread of what it replies to, or begins one below that."""
        self._note()
        sent: Json = {"subtype": "file_share", "files": list(map(self._file, files))}
        more = sent if files else {}
        thread = self._find_thread(reply_to) if reply_to else self._thread
        if self.chat != GROUP:
            return self._said(self.slack.say(DM, text, USERS[user], thread, **more))
        thread = thread if reply_to or self._bots() else ""
        if not text.startswith("@test_bot "):
            return self._said(self.slack.say(DEV, text, USERS[user], thread, **more))
        words = text.removeprefix("@test_bot ")
        stamp = self._said(self.slack.mention(DEV, words, USERS[user], thread)[0])
        if user == PERSON and not thread:
            self._thread = stamp
        return stamp

    async def speak(self, sound: bytes) -> str:
        """Record a clip."""
        file = self._file(("voice.ogg", sound)) | {"subtype": "slack_audio"}
        self._note()
        more: Json = {"subtype": "file_share", "files": [file]}
        return self._said(self.slack.say(DM, "", USERS[PERSON], self._thread, **more))

    async def command(self, text: str) -> None:
        """A slash command, which Slack does not show to anybody and whose thread it does not tell:
        it stands on the screen of who gave it."""
        self._note()
        self._given[self.slack.stamp()] = text
        self.slack.command(self._channel, text.removeprefix("/"), USERS[PERSON])
        await self._taken()

    async def press(self, label: str) -> None:
        card = self._pressed(PERSON, label)
        await self._taken()
        if not _stays(card):
            await self._wait(lambda: label not in labels(card))

    async def press_as(self, user: int, label: str) -> str:
        """The private word that answers the press."""
        card = self._pressed(user, label)
        words = self.slack.ephemeral
        await self._wait(lambda: len(words) > self._told or label not in labels(card))
        if len(words) == self._told:
            return ""
        self._told += 1
        assert words[-1]["user"] == USERS[user] and words[-1]["channel"] == self._channel
        return str(words[-1]["text"])

    def link(self, label: str) -> str:
        buttons = [one for message in self._bots() for one in elements(message)]
        return next(str(one["url"]) for one in buttons if one.get("text", {}).get("text") == label)

    async def deny(self, reason: str) -> None:
        await self._write(text_of("deny_reason", self.language), reason)

    async def fill_in(self, text: str) -> None:
        await self._write(text_of("your_answer", self.language), text)

    async def write_own(self, text: str) -> None:
        await self._write(text_of("something_else", self.language), text)

    async def edit(self, message: str, text: str) -> None:
        await self.change(message, text)
        sessions = self.rig.host.sessions
        await self.rig.until(lambda: any(text in str(one.state.queue) for one in sessions.values()))

    async def change(self, message: str, text: str) -> None:
        """Edit a message that nothing is done about any more."""
        self.slack.edit(self._channel, message, text)

    async def withdraw(self, message: str) -> None:
        """Delete a message that waits."""
        self.slack.delete(self._channel, message)
        sessions = self.rig.host.sessions
        await self.rig.until(lambda: not any(one.state.queue for one in sessions.values()))

    async def stop(self) -> None:
        """The button that Slack shows while the agent is at it."""
        key = self._channel, self._thread
        await self._wait(lambda: self.slack.sessions.get(key) == "processing")
        self._note()
        self.slack.stop(*key, USERS[PERSON])
        await self._taken()

    # ---- what a person sees --------------------------------------------------------------

    async def shows(self, text: str) -> None:
        await self._wait(lambda: any(text in self._drawn(one) for one in self._bots()))

    async def card(self, text: str) -> None:
        def opened() -> bool:
            return any(text in self._drawn(one) and _asks(one) for one in self._bots())

        await self._wait(opened)

    async def grows(self, text: str) -> None:
        def grown() -> bool:
            calls = self.slack.calls[self._since :]
            return any(c.method in GROWTH and text in json.dumps(c.arguments) for c in calls)

        await self._wait(grown)

    async def waits(self, message: str) -> None:
        await self._wait(lambda: (self._channel, message, "eyes") in self.slack.reacted)
        self._seen_waiting.add(message)

    def screen(self) -> list[str]:
        lines = {
            float(ts): f"{NAMES[event['user']]}: {self._written(event)}"
            for (channel, ts), event in self.slack._said.items()
            if channel == self._channel
        }
        lines |= {float(ts): f"{NAMES[USERS[PERSON]]}: {text}" for ts, text in self._given.items()}
        lines |= {float(one["ts"]): f"bot: {self._drawn(one)}" for one in self._bots()}
        return [line for _, line in sorted(lines.items())]

    def hold_sends(self) -> None:
        self.slack.hold("chat.postMessage")

    async def sends(self, text: str) -> None:
        def sent() -> bool:
            calls = self.slack.made("chat.postMessage")
            return any(text in json.dumps(call.arguments) for call in calls)

        await self._wait(sent)

    def let_sends_go(self) -> None:
        self.slack.release("chat.postMessage")

    async def settle(self) -> None:
        """Nothing streams any more, no session is left at work, nobody was refused unseen."""
        await super().settle()
        assert not [one for one in self._bots() if one.get("streaming_state") == "in_progress"]
        await self._wait(lambda: "processing" not in self.slack.sessions.values())
        assert len(self.slack.ephemeral) == self._told

    def named(self, text: str) -> str:
        """The bot's message that shows `text`, for a reply to it."""
        return str(next(one["ts"] for one in self._bots() if text in shown(one)))

    def note(self, user: int, told: str) -> None:
        """Keep the private word that `user` was told for the transcript."""
        self._looks.append(f"-- told to {NAMES[USERS[user]]} alone --\n{told}\n")

    # ---- details -------------------------------------------------------------------------

    @property
    def _channel(self) -> str:
        return DEV if self.chat == GROUP else DM

    def _bots(self) -> list[Json]:
        return self.slack.channels[self._channel]

    async def _wait(self, met: Any) -> None:
        await self.slack.wait(met, PATIENCE)

    async def _taken(self) -> None:
        """Until the gateway has it."""
        await self._wait(lambda: not self.slack.unacknowledged)

    def _note(self) -> None:
        """What is shown from now on is new."""
        self._since = len(self.slack.calls)

    def _said(self, payload: Json) -> str:
        return str(payload["event"]["ts"])

    def _file(self, file: tuple[str, bytes]) -> Json:
        name = f"F{next(self._files):04d}"
        self.slack.files[name] = file[1]
        return {"id": name, "name": file[0], "mimetype": "", "size": len(file[1])}

    def _find_thread(self, message: str) -> str:
        (found,) = (one for one in self._bots() if one["ts"] == message)
        return str(found.get("thread_ts", message))

    def _pressed(self, user: int, label: str) -> Json:
        card = next(one for one in reversed(self._bots()) if _offers(one, label))
        self._note()
        self.slack.press(card, label, USERS[user])
        return card

    async def _write(self, label: str, text: str) -> None:
        """A button that opens a window, and what is written there."""
        before = len(self.slack.views)
        self._pressed(PERSON, label)
        await self._wait(lambda: len(self.slack.views) > before)
        self.slack.submit(self.slack.views[-1], text, USERS[PERSON])
        await self._taken()

    def _written(self, event: Json) -> str:
        text = event["text"].replace(f"<@{BOT}>", "@turnkeeper").removeprefix("@turnkeeper /")
        text = f"/{text}" if "> /" in event["text"] else text
        files = "".join(f"\n[{one['name']}]" for one in event.get("files", ()))
        edited = " (edited)" if "edited" in event else ""
        eyes = " 👀" if event["ts"] in self._seen_waiting else ""
        return f"{text}{files}".strip() + edited + eyes

    def _drawn(self, message: Json) -> str:
        if "files" in message:
            sent = [self.slack.uploads[one] for one in message["files"]]
            names = [f"[{name}, {len(content)} bytes]" for name, content, _ in sent]
            return "\n".join([*names, message["text"]]).strip()
        text = "\n".join(line for block in message["blocks"] for line in _lines(block))

        return show_times(text)


def _asks(message: Json) -> bool:
    """It bears the buttons of a question."""
    options = [o for e in elements(message) for o in e.get("options", [e])]
    return any(str(one.get("value", "")).startswith("q:") for one in options)


def _offers(message: Json, label: str) -> bool:
    """By a button, or in a list by how the choice begins."""
    listed = (option for one in elements(message) for option in one.get("options", ()))
    chosen = any(one["text"]["text"].startswith(f"{label}:") for one in listed)
    return chosen or label in labels(message)


def _stays(message: Json) -> bool:
    """Its buttons do something with a job, or try a step again: they are there for longer."""
    kinds = ("j:", "p:")
    return any(str(one.get("value", "")).startswith(kinds) for one in elements(message))


def _lines(block: Json) -> Iterator[str]:
    """What one reads of a block; what is folded away stands further in."""
    match block["type"]:
        case "markdown":
            text = LINK.sub(r"\1", FENCE.sub("", block["text"]))
            yield text.replace("**", "").replace("`", "")
        case "header":
            yield block["text"]["text"]
        case "context":
            yield from (one["text"] for one in block["elements"])
        case "rich_text":
            for part in block["elements"]:
                yield "".join(one.get("text") or one["fallback"] for one in part["elements"])
        case "plan":
            yield block["title"]
            for one in block["tasks"]:
                yield from _lines(one)
        case "task_card":
            skipped = block["title"].startswith("– ")
            title = block["title"] if skipped else f"{MARKS[block['status']]} {block['title']}"
            note = " ".join(_lines(block["details"])) if "details" in block else ""
            yield f"{title} ({note})" if note else title
            if "output" in block:
                yield indented("\n".join(_lines(block["output"])))
        case "actions":
            for one in block["elements"]:
                options = [f"[{option['text']['text']}]" for option in one.get("options", ())]
                yield from options or [f"[{one['text']['text']}]"]
