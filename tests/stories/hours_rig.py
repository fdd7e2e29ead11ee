"""Hours of two people and a stranger: one gateway over the real SDKs beside the servers of three
platforms, where they do what was drawn from the grammar, and what must be true of it."""

import asyncio
import contextlib
import itertools
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import discord
import pytest
from msgspec import Struct
from msgspec.structs import replace

from adapters.discord import memory, receive, session
from adapters.discord.adapter import DiscordAdapter
from agent_core import ambient
from agent_core.ambient import SystemClock
from tests.fakes.discord_rights import IN_THREADS, SEND
from tests.fakes.discord_server import GUILD, DiscordServer, labels, text_of
from tests.fakes.model_server import ModelServer, Say
from tests.fakes.slack_server import APP_TOKEN, SlackServer, elements, shown
from tests.fakes.slack_server import BOT as SLACK_BOT
from tests.fakes.slack_server import TOKEN as SLACK_TOKEN
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import KEY, TOKEN
from tests.stories.hours_grammar import (
    IDS,
    Changes,
    Closes,
    Commands,
    Deed,
    Dies,
    Json,
    Moves,
    Passes,
    Platform,
    Presses,
    PutsOut,
    Renames,
    Says,
    Who,
)
from tests.stories.hours_talk import CHANNEL, DEV, TOPIC, Talk, bring
from tests.stories.jobs_rig import Shifted
from tests.stories.rig import GROUP, Log, Rig, quick, write

LATE = 10.0
"""Seconds until what is due counts as missing."""
WORD = re.compile(r"w\d+ord")


# ---- the world ---------------------------------------------------------------------------------


class Said(Struct, kw_only=True):
    """A message of a person. `words`: those by which it is known; `due`: it is to be answered or
    told of; `native`: as its server knows it."""

    on: Platform
    who: Who
    private: bool
    words: list[str]
    due: bool
    native: Any
    kind: str
    topic: bool = False
    gone: bool = False


class HoursRig(Rig):
    """A gateway with three platforms."""

    discord: DiscordServer
    slack: SlackServer

    def env(self, **more: str) -> dict[str, str]:
        both = {
            "DISCORD_BOT_TOKEN": self.discord.token, "DISCORD_API_BASE_URL": self.discord.api_url,
            "DISCORD_GATEWAY_URL": self.discord.gateway.url, "DISCORD_ALLOWED_USERS": "11,12",
            "SLACK_BOT_TOKEN": SLACK_TOKEN, "SLACK_API_BASE_URL": self.slack.base_url,
            "SLACK_APP_TOKEN": APP_TOKEN, "SLACK_ALLOWED_USERS": "U0ANN,U0BOB",
        }  # fmt: skip
        return super().env(**(both | more))

    async def start(self, **more: str) -> "HoursRig":
        await super().start(**more)
        await self.discord.wait(lambda: self.discord.gateway.connected)
        await self.slack.wait(lambda: self.slack.connections)
        return self


class Hour:
    """What was done, and what must be true of it."""

    def __init__(self, rig: HoursRig, clock: Shifted) -> None:
        self.rig, self.clock = rig, clock
        self.said: list[Said] = []
        self.approved: set[str] = set()
        self.talk = Talk(rig.telegram, rig.discord, rig.slack)
        self.out: set[Platform] = set()
        self._numbers = itertools.count(1)
        rig.model.script(*[answer_by_words] * 2_000)

    # ---- doing ---------------------------------------------------------------------------

    async def do(self, deed: Deed) -> None:
        match deed:
            case Says():
                await self._say(deed)
            case Changes():
                await self._change(deed)
            case Presses():
                await self._press(deed)
            case Commands():
                await self._command(deed)
            case Moves() | Renames() | Closes() | PutsOut():
                await self._arrange(deed)
            case Passes():
                self.clock.offset += deed.seconds
                if deed.rests:
                    await self.rest()
            case Dies():  # what these servers have sent once they do not send again, as others do
                for one in self._missing():
                    one.due = False
                await self.rig.crash()
                self.rig.discord.excuse()
                await self.rig.start()

    async def rest(self) -> None:
        """Until all that is due was said, and nothing is under way."""
        rig = self.rig
        with contextlib.suppress(TimeoutError):  # then `judge` tells what is missing
            async with asyncio.timeout(LATE):
                while self._missing():
                    await asyncio.sleep(0.02)  # noqa: TID251  # on three servers at once
        await rig.slack.wait(lambda: not rig.slack.unacknowledged)
        await rig.quiet()

    def _missing(self) -> list[Said]:
        told = self.told()
        return [
            one
            for one in self.said
            if one.due and any(word not in told.get(self._home(one), "") for word in one.words)
        ]

    @staticmethod
    def _home(one: Said) -> tuple[Platform, str]:
        return one.on, IDS[one.on][one.who] if one.private else "group"

    async def _say(self, deed: Says) -> None:
        group = not deed.private
        topic = deed.topic and group and deed.on == "telegram"
        if group and (deed.on in self.out or (topic and self.rig.telegram.closed)):
            return
        pasted = deed.way == "paste" and deed.on == "telegram"
        words = [f"w{next(self._numbers)}ord" for _ in range(1 + pasted)]
        forwards = deed.way == "forward"
        named = deed.named and group and not forwards
        replies = deed.reply and deed.who != "eve" and not forwards
        newest = self.talk.newest(deed) if replies else None
        native: Any = None
        if not pasted and deed.way == "paste":
            deed = replace(deed, way="typed")
        for n, text in enumerate(bring(deed, words)):
            more: Json = {"named": named and not n, "reply": newest if not n else None}
            match deed.on:
                case "telegram":
                    sent: Any = self.talk.say_on_telegram(deed, text, **more)
                case "discord":
                    sent = await self.talk.say_on_discord(deed, text, **more)
                case "slack":
                    sent = self.talk.say_on_slack(deed, text, **more)
                    newest = None  # who writes in a thread names it, or is read where it is theirs
            native = native or sent
        due = deed.who != "eve" and (deed.private or named or newest is not None)
        self.said.append(
            Said(
                on=deed.on,
                who=deed.who,
                private=deed.private,
                words=words,
                due=due,
                native=native,
                kind=deed.kind,
                topic=topic,
            )  # fmt: skip
        )

    async def _arrange(self, deed: Moves | Renames | Closes | PutsOut) -> None:
        """What people do with the group and with names."""
        rig = self.rig
        match deed:
            case Moves(on="telegram"):
                person = rig.telegram.person(int(IDS["telegram"][deed.who]))
                joins = {"new_chat_members": [person]}
                rig.telegram.tell(
                    GROUP, joins if deed.how == "join" else {"left_chat_member": person}
                )
            case Moves(on="slack"):
                rig.slack.say(DEV, "", IDS["slack"][deed.who], subtype=f"channel_{deed.how}")
            case Renames(on="telegram", group=True):
                rig.telegram.tell(GROUP, {"new_chat_title": deed.name})
            case Renames(on="telegram"):
                rig.telegram.names[int(IDS["telegram"][deed.who])] = deed.name
            case Renames(on="slack", group=True):
                rig.slack.say(
                    DEV, "", IDS["slack"][deed.who], subtype="channel_name", name=deed.name
                )
            case Renames(on="slack"):
                named = {"profile": {"display_name": deed.name}}
                rig.slack.people[IDS["slack"][deed.who]] = named
            case Renames(on="discord", group=False):
                rig.discord.names[int(IDS["discord"][deed.who])] = deed.name
            case Closes(opens=True):
                rig.telegram.closed.clear()
                rig.telegram.tell(GROUP, {"forum_topic_reopened": {}}, TOPIC)
            case Closes():
                rig.telegram.closed.add((GROUP, TOPIC))
                rig.telegram.tell(GROUP, {"forum_topic_closed": {}}, TOPIC)
                self._give_up(lambda one: one.topic)
            case PutsOut():
                await self._put_out(deed)

    def _give_up(self, meant: Callable[[Said], bool]) -> None:
        """What cannot be answered there any more."""
        for one in self._missing():
            if meant(one):
                one.due = False

    async def _put_out(self, deed: PutsOut) -> None:
        if deed.back == (deed.on not in self.out):
            return
        if deed.back:
            self.out.discard(deed.on)
        else:
            self.out.add(deed.on)
            self._give_up(lambda one: one.on == deed.on and not one.private)
        telegram, slack, rights = self.rig.telegram, self.rig.slack, self.rig.discord.rights
        match deed.on:
            case "telegram":
                telegram.blocked.discard(GROUP) if deed.back else telegram.blocked.add(GROUP)
                now = "member" if deed.back else "kicked"
                muted = {"can_send_messages": deed.back} if deed.mutes else {}
                telegram.put_out(GROUP, "restricted" if deed.mutes else now, **muted)
            case "discord" if deed.back:
                await rights.take_back(CHANNEL)
            case "discord" if deed.mutes:
                await rights.overwrite(CHANNEL, (GUILD, 0, SEND | IN_THREADS))
            case "discord":
                await rights.put_out()
            case "slack":
                slack.left.discard(DEV) if deed.back else slack.left.add(DEV)
                kind = "member_joined_channel" if deed.back else "member_left_channel"
                slack.event(
                    {"type": kind, "user": SLACK_BOT, "channel": DEV, "event_ts": slack.stamp()}
                )

    async def _change(self, deed: Changes) -> None:
        there = (one for one in self.said if one.on == deed.on and not one.gone)
        own = [one for one in there if one.who != "eve"]
        if len(own) < deed.back or (deed.on == "telegram" and deed.how == "delete"):
            return
        one = own[-deed.back]
        if deed.how == "delete":
            one.due, one.gone = False, True
            if deed.on == "discord":
                await self.rig.discord.delete(one.native)
            else:
                event = one.native["event"]
                self.rig.slack.delete(event["channel"], event["ts"])
            return
        word = f"w{next(self._numbers)}ord"
        one.words.append(word)
        one.due = False  # edits wait for no answer of their own
        match deed.on:
            case "telegram":
                message = one.native["message"]
                self.rig.telegram.edit(message["chat"]["id"], message["message_id"], word)
            case "slack":
                event = one.native["event"]
                self.rig.slack.edit(event["channel"], event["ts"], word)
            case "discord":
                await self.rig.discord.change(one.native, word)

    async def _press(self, deed: Presses) -> None:
        if any(one.kind == "write" and one.due and one.on == deed.on for one in self.said):
            await self.rest()  # people press what they see
        for _ in range(deed.times):
            card, words = self._open_card(deed.on, deed.label)
            if card is None:
                return
            mine = {word for one in self.said if one.who == deed.who for word in one.words}
            if deed.label == "Approve once":
                self.approved |= {word for word in mine if f"{word}.txt" in words}
            match deed.on:
                case "telegram":
                    who = int(IDS[deed.on][deed.who])
                    self.rig.press(card, deed.label, who, card["chat"]["id"])
                case "discord":
                    await self.rig.discord.press(card, deed.label, int(IDS[deed.on][deed.who]))
                case "slack":
                    self.rig.slack.press(card, deed.label, IDS[deed.on][deed.who])

    def _open_card(self, on: Platform, label: str) -> tuple[Json | None, str]:
        match on:
            case "telegram":
                every = [one for chat in self.rig.telegram.chats.values() for one in chat]
                found = [one for one in every if label in _labels(one)]
                return (found[-1], found[-1]["text"]) if found else (None, "")
            case "discord":
                every = [one for chat in self.rig.discord.chats.values() for one in chat]
                found = [one for one in every if "components" in one and label in labels(one)]
                return (found[-1], text_of(found[-1])) if found else (None, "")
            case "slack":
                every = [one for chat in self.rig.slack.channels.values() for one in chat]
                named = [
                    one for one in every
                    if any(e.get("text", {}).get("text") == label for e in elements(one))
                ]  # fmt: skip
                return (named[-1], shown(named[-1])) if named else (None, "")

    async def _command(self, deed: Commands) -> None:
        who = IDS[deed.on][deed.who]
        if deed.name == "stop":  # it may end whatever is under way there
            for one in self.said:
                if one.on == deed.on and one.private == deed.private:
                    one.due = False
        if deed.name == "approve":
            mine = {word for one in self.said if one.who == deed.who for word in one.words}
            self.approved |= mine
        match deed.on:
            case "telegram":
                chat = int(who) if deed.private else GROUP
                self.rig.telegram.say(chat, f"/{deed.name}", user=int(who))
            case "discord":
                channel = f"9000{who}" if deed.private else CHANNEL
                await self.rig.discord.command(channel, deed.name, int(who))
            case "slack":
                channel = f"D{who[1:]}" if deed.private else DEV
                self.rig.slack.command(channel, deed.name, who)

    # ---- judging -------------------------------------------------------------------------

    def told(self) -> dict[tuple[Platform, str], str]:
        """All that the agent has said, by platform and chat; groups with their threads."""
        found: dict[tuple[Platform, str], str] = {}

        def add(on: Platform, chat: str, text: str) -> None:
            found[on, chat] = f"{found.get((on, chat), '')}\n{text}"

        for chat, messages in self.rig.telegram.chats.items():
            name = "group" if chat == GROUP else str(chat)
            for one in messages:
                add("telegram", name, str(one))
        for channel, messages in self.rig.discord.chats.items():
            own = channel.startswith("9000")
            for one in messages:
                add("discord", channel.removeprefix("9000") if own else "group", str(one))
        for uploads in self.rig.discord.uploads.values():
            add("discord", "files", str(uploads))
        for channel, messages in self.rig.slack.channels.items():
            for one in messages:
                add("slack", f"U{channel[1:]}" if channel[0] == "D" else "group", str(one))
        return found

    def judge(self) -> None:
        told, asked = self.told(), "".join(str(one.body) for one in self.rig.model.requests)
        missing = self._missing()
        assert missing == [], f"nothing was said of {missing}"
        for one in self.said:
            for word in one.words:
                for place, text in told.items():
                    assert place == self._home(one) or word not in text, f"{one} went to {place}"
                assert one.who != "eve" or word not in asked, f"a stranger's words: {one}"
        self._judge_threads()
        files = {path.stem for path in (self.rig.home / "workspaces").rglob("w*ord.txt")}
        assert files <= self.approved, files - self.approved

    def _judge_threads(self) -> None:
        """What is said in a group stands in the topic or the thread of what it answers."""
        for one in self.said:
            if one.private:
                continue
            for message in self.rig.telegram.chats[GROUP] if one.on == "telegram" else ():
                if one.words[0] in str(message):
                    topic = int(message.get("message_thread_id") or 0)
                    assert topic == TOPIC * one.topic, f"{one} is answered in topic {topic}"
            for message in self.rig.slack.channels[DEV] if one.on == "slack" else ():
                if one.words[0] in str(message):
                    assert message.get("thread_ts") in self._list_threads(one, str(message)), (
                        f"{one} is answered by {message}"
                    )

    def _list_threads(self, one: Said, answer: str) -> set[str]:
        """The threads of Slack that `one` may be answered in: its own, for what is forwarded that
        of its comment, and for the second of two long messages, which may be a paste, that of the
        first."""
        comments = [
            other
            for other in self.said
            if (other.on, other.who) == ("slack", one.who) and other.words[0] in answer
        ]
        joined = "attachments" in one.native["event"] or one.kind == "long"
        told = (one, *comments) if joined else (one,)
        events = [other.native["event"] for other in told]
        return {event.get("thread_ts", event["ts"]) for event in events}


def _labels(message: Json) -> list[str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", ())
    return [one["text"] for row in rows for one in row]


def answer_by_words(body: Json) -> Any:
    """All is said back; `write w1ord` writes that file besides."""
    messages = body["messages"]
    said = [n for n, message in enumerate(messages) if message["role"] == "user"]
    last = str(messages[said[-1]]["content"])
    rounds = sum(1 for one in messages[said[-1] :] if one["role"] == "assistant")
    words = last.split()
    named = [after for word, after in zip(words, words[1:], strict=False) if word == "write"]
    told = f"ack {' '.join(WORD.findall(last))}"
    if named and not rounds:  # said at once: messages of a burst are one request
        return write(f"{named[-1]}.txt", text=told)
    return Say(told)


@contextlib.asynccontextmanager
async def living_hour(folder: Path) -> AsyncIterator[Hour]:
    """An hour that has not begun. At its end no call has broken a platform's schema, and no bug is
    in the log."""
    model, clock = ModelServer(KEY), Shifted()
    ambient.use(clock)
    loggers = [logging.getLogger(name) for name in ("turnkeeper", "adapters")]
    before = [one.level for one in loggers]
    async with (
        TelegramServer(token=TOKEN) as telegram,
        DiscordServer() as server,
        SlackServer() as slack,
    ):
        rig = HoursRig(folder, telegram, model, await model.start())
        rig.discord, rig.slack = server, slack
        rig.log = Log()
        for one in loggers:
            one.addHandler(rig.log)
            one.setLevel(logging.INFO)
        try:
            await rig.start()
            yield Hour(rig, clock)
            assert rig.log.bugs == []
            for found in (telegram.violations, server.violations, slack.violations):
                assert found == [], found
        finally:
            await rig.crash()
            await model.close()
            ambient.use(SystemClock())
            for one, level in zip(loggers, before, strict=True):
                one.removeHandler(rig.log)
                one.setLevel(level)


@contextlib.contextmanager
def hurry() -> Iterator[None]:
    """The same pacing as in life, on a shorter scale."""
    with pytest.MonkeyPatch.context() as patched:
        quick(patched)
        faster = replace(DiscordAdapter.abilities, edit_interval=0.05)
        patched.setattr(DiscordAdapter, "abilities", faster)
        for module in (receive, session):
            patched.setattr(module, "MIN_PAUSE", 0.01)
        patched.setattr(memory, "SAVE_EVERY", 0.0)
        patched.setattr(discord.Client, "before_identify_hook", _at_once)
        yield


async def _at_once(_client: object, _shard: int | None, *, initial: bool = False) -> None:
    """The SDK waits 5 seconds before a further identify."""


def live(folder: Path, deeds: list[Deed]) -> None:
    """Do them, and judge."""

    async def run() -> None:
        async with living_hour(folder) as hour:
            for deed in deeds:
                await hour.do(deed)
            await hour.rest()
            hour.judge()

    with hurry():
        asyncio.run(run())
