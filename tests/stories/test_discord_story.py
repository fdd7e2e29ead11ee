"""Dialogues over Discord: the real gateway, the real discord.py and the real model SDK."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.discord import receive, session
from adapters.discord.adapter import DiscordAdapter
from gateway.messages import Conversation
from gateway.views import Abilities
from tests.fakes.discord_gateway import INVALID, RECONNECT
from tests.fakes.discord_server import BOT, DiscordServer, labels, text_of
from tests.fakes.model_server import Call, ModelServer, Say
from tests.gateway.process import KEY
from tests.stories.rig import Log, Rig, write
from tests.stories.test_plan_story import ASK, CHAIN, GOOD

Json = dict[str, Any]
PERSON, FRIEND, ADMIN, STRANGER = 11, 12, 13, 77
DM, CHANNEL, THREAD = f"9000{PERSON}", "7100", "7200"


class DiscordRig(Rig):
    """As its parent, with Discord as the only chat."""

    def __init__(self, folder: Path, discord: DiscordServer, model: ModelServer, url: str) -> None:
        self.folder, self.discord, self.model, self.model_url = folder, discord, model, url
        self.log, self.url = Log(), ""
        self._task, self._gateway = None, None

    def env(self, **more: str) -> dict[str, str]:
        return {
            "TURNKEEPER_HOME": str(self.home), "TURNKEEPER_PORT": "0",
            "DISCORD_BOT_TOKEN": self.discord.token, "DISCORD_API_BASE_URL": self.discord.api_url,
            "DISCORD_GATEWAY_URL": self.discord.gateway.url,
            "DISCORD_ALLOWED_USERS": f"{PERSON},{FRIEND}", "DISCORD_ADMIN_USERS": str(ADMIN),
            "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{self.model_url}/v1",
            "PRO_MODEL": "openai/fake-model", "SANDBOX_PROVIDER": "unsafe-subprocess",
            "LOCAL_MODEL_DISCOVERY": "off",
        } | more  # fmt: skip

    async def start(self, **more: str) -> "DiscordRig":
        await super().start(**more)
        await self.discord.wait(lambda: self.discord.gateway.connected)
        return self

    @property
    def dm(self) -> Path:
        """The folder in which the agent works for the person."""
        where = Conversation(platform="discord", account=BOT, channel=DM, private=True)
        return self.host.services.agent.workspace(where)

    async def carded(self, channel: str = DM, label: str = "Approve once") -> Json:
        """The newest message with that button."""

        def found() -> list[Json]:
            return [one for one in self.discord.chats[channel] if label in labels(one)]

        await self.discord.wait(found)
        return found()[-1]

    def read(self, channel: str = DM) -> list[str]:
        return [text_of(one) for one in self.discord.chats[channel]]


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordRig]:
    monkeypatch.setattr(DiscordAdapter, "abilities", Abilities(edit_interval=0.05))
    for module in (receive, session):
        monkeypatch.setattr(module, "LEAST_PAUSE", 0.01)
    monkeypatch.setattr(session, "SAVE_EVERY", 0.0)
    model, loggers = ModelServer(KEY), [logging.getLogger(n) for n in ("turnkeeper", "adapters")]
    async with DiscordServer() as discord:
        made = DiscordRig(tmp_path, discord, model, await model.start())
        for logger in loggers:
            logger.addHandler(made.log)
            logger.setLevel(logging.INFO)
        try:
            yield made
            assert made.log.bugs == []
            assert discord.violations == []
        finally:
            await made.crash()
            await model.close()
            for logger in loggers:
                logger.removeHandler(made.log)
                logger.setLevel(logging.NOTSET)


# ---- talking -------------------------------------------------------------------------------


async def test_a_message_is_answered_and_grows(rig: DiscordRig) -> None:
    rig.model.script(Say("One two three four five six seven.", words=7), Say("And more."))
    rig.model.gate = asyncio.Event()
    await rig.start()
    await rig.discord.say(DM, "hello", PERSON)
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    await rig.discord.shows(DM, "six seven.")
    await rig.quiet()
    await rig.discord.say(DM, "and now?", PERSON)
    await rig.discord.shows(DM, "And more.")
    await rig.quiet()
    assert rig.read() == ["One two three four five six seven.", "And more."]
    assert rig.seen(role="user") == ["hello", "and now?"]
    await rig.discord.wait(lambda: rig.discord.commands)
    names = {one["name"] for one in rig.discord.commands}
    assert {"approve", "deny", "stop", "new"} <= names
    assert rig.discord.commands[0]["description_localizations"]["de"]


async def test_in_a_server_it_answers_who_speaks_to_it(rig: DiscordRig) -> None:
    await rig.start()
    rig.discord.threads[THREAD] = CHANNEL
    await rig.discord.say(CHANNEL, "not for the bot", PERSON)
    await rig.discord.say(CHANNEL, "@bot for you", PERSON)
    answer = await rig.discord.shows(CHANNEL, "ack [U11] for you")
    await rig.discord.say(CHANNEL, "@bot and this", PERSON, reply_to=answer["id"])
    await rig.discord.shows(CHANNEL, "ack [U11] and this")
    await rig.quiet()
    assert "not for the bot" not in str(rig.seen())
    await rig.discord.say(THREAD, "@bot in the thread", FRIEND)
    await rig.discord.shows(THREAD, "ack [U12] in the thread")
    await rig.quiet()
    assert rig.seen(role="user") == ["[U12] in the thread"], "a thread is a conversation of its own"
    await rig.discord.say(CHANNEL, "@bot me too", STRANGER)
    await rig.discord.say(CHANNEL, "@bot last", PERSON)
    await rig.discord.shows(CHANNEL, "ack [U11] last")
    await rig.quiet()
    assert "me too" not in str(rig.read(CHANNEL))


async def test_waiting_messages_are_edited_and_withdrawn(rig: DiscordRig) -> None:
    rig.model.gate = asyncio.Event()
    await rig.start()
    await rig.discord.say(DM, "first", PERSON)
    await rig.model.wait_inflight(1)
    second = await rig.discord.say(DM, "secnd", PERSON)
    third = await rig.discord.say(DM, "third", PERSON)
    await rig.discord.wait(lambda: DM in rig.discord.typing)
    await rig.discord.change(second, "second")
    await rig.discord.delete(third)
    fourth = await rig.discord.say(DM, "fourth", PERSON)
    assert fourth["id"]
    session_of = rig.host.sessions
    await rig.until(lambda: any(len(one.queue) == 2 for one in session_of.values()))
    rig.model.gate.set()
    await rig.discord.shows(DM, "ack fourth")
    await rig.quiet()
    assert rig.seen(role="user") == ["first", "second", "fourth"]


async def test_a_file_is_read_by_its_reference(rig: DiscordRig) -> None:
    await rig.start()
    rig.discord.files["notes.txt"] = b"the secret is 42"
    about = {"id": "5", "filename": "notes.txt", "content_type": "text/plain; charset=utf-8"}
    about |= {"size": 16, "url": f"{rig.discord.base}/files/notes.txt"}
    await rig.discord.say(DM, "look", PERSON, attachments=[about])
    await rig.until(lambda: rig.discord.made("look") and rig.model.requests)
    await rig.quiet()
    assert "notes.txt" in str(rig.seen())


# ---- decisions -----------------------------------------------------------------------------


async def test_an_approval_by_button_and_not_by_strangers(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    await rig.discord.say(CHANNEL, "@bot write it", PERSON)
    card = await rig.carded(CHANNEL)
    assert "write_file" in text_of(card) and "a.txt" in text_of(card)
    assert labels(card)[-1] == "Deny with reason"
    foreign = await rig.discord.press(card, "Approve once", STRANGER)
    assert "admin" in (await rig.discord.told(foreign)).lower()
    assert rig.discord.answers[foreign] == {"type": 6}
    mine = await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(CHANNEL, "written")
    await rig.quiet()
    assert f" by U{PERSON}" in text_of(card) and labels(card) == []
    assert rig.discord.whispers[mine] == []


async def test_denied_with_a_reason_by_modal(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("so not"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.discord.fill_in(card, "Deny with reason", "use another name", PERSON)
    await rig.discord.shows(DM, "so not")
    await rig.quiet()
    assert "use another name" in rig.seen(role="tool")[-1]
    assert "use another name" in text_of(card)
    assert not list(rig.dm.glob("*.txt"))


def ask(question: str, options: list[str]) -> Call:
    return Call("ask_user", json.dumps({"question": question, "options": options}))


async def test_a_choice_from_a_list_and_a_form_by_modal(rig: DiscordRig) -> None:
    days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    rig.model.script(ask("Which day?", days), ask("And why?", []), Say("Good."))
    await rig.start()
    await rig.discord.say(DM, "plan it", PERSON)
    card = await rig.carded(label="Thursday")
    await rig.discord.press(card, "Thursday", PERSON)
    form = await rig.carded(label="Your answer")
    await rig.discord.fill_in(form, "Your answer", "It rains\non the others", PERSON)
    await rig.discord.shows(DM, "Good.")
    await rig.quiet()
    said = rig.seen(role="tool")
    assert "Thursday" in said[-2] and "It rains\non the others" in said[-1].replace("\\n", "\n")
    assert labels(form) == labels(card) == []


async def test_a_plan_ticks_in_one_message_with_buttons(rig: DiscordRig) -> None:
    await rig.start()
    rig.model.script(CHAIN, *[Say("came out"), GOOD] * 3, Say("All found."))
    rig.model.gate = asyncio.Event()
    await rig.discord.say(DM, ASK, PERSON)
    await rig.model.wait_inflight(1)
    rig.model.gate.set()
    await rig.discord.shows(DM, "All found.")
    await rig.quiet()
    (plan,) = [one for one in rig.discord.chats[DM] if "Find the hosts" in text_of(one)]
    assert "☑ Find the hosts" in text_of(plan) and "3/3" in text_of(plan)
    assert plan["edits"] >= 2 and labels(plan) == []
    shown = [call.params for call in rig.discord.calls if call.name in ("send", "edit")]
    ticking = [json.dumps(one, ensure_ascii=False) for one in shown]
    assert any("◐" in one and "Stop" in one for one in ticking)


async def test_a_slash_command(rig: DiscordRig) -> None:
    await rig.start()
    given = await rig.discord.command(DM, "whoami", PERSON)
    await rig.discord.shows(DM, f"discord:{PERSON}")
    assert rig.discord.answers[given]["type"] == 4, "answered at once, for that person only"
    await rig.discord.command(f"9000{ADMIN}", "mode", ADMIN, "auto")
    await rig.discord.shows(f"9000{ADMIN}", "only before something risky")


# ---- going on ------------------------------------------------------------------------------


async def test_a_press_on_an_old_message_after_a_restart(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.quiet()
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    await rig.discord.say(DM, "and this came meanwhile", PERSON)
    await rig.start()
    assert len(rig.discord.gateway.sessions) == 1, "the session went on"
    await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(DM, "ack write it")
    await rig.discord.shows(DM, "ack and this came meanwhile")
    await rig.quiet()
    assert (rig.dm / "a.txt").exists()


async def _reconnect(rig: DiscordRig) -> None:
    await rig.discord.gateway.hang_up(RECONNECT)


async def _invalid(rig: DiscordRig) -> None:
    await rig.discord.gateway.hang_up(INVALID, resumable=False)


async def _broken(rig: DiscordRig) -> None:
    await rig.discord.gateway.hang_up(code=4000)


SLOWLY = pytest.param(_invalid, marks=pytest.mark.slow)  # a further identify waits 5 seconds


@pytest.mark.parametrize("end", [_reconnect, SLOWLY, _broken])
async def test_a_lost_connection_is_made_again(
    rig: DiscordRig, end: Callable[[DiscordRig], Any]
) -> None:
    await rig.start()
    await rig.discord.say(DM, "one", PERSON)
    await rig.discord.shows(DM, "ack one")
    before = len(rig.discord.gateway.ops)
    await end(rig)
    lost = [op for _, op in rig.discord.gateway.ops[before:]]
    if end is not _invalid:  # what is said while nobody listens comes with the session
        await rig.discord.say(DM, "two", PERSON)
    await rig.discord.wait(
        lambda: {2, 6} & {op for _, op in rig.discord.gateway.ops[before + len(lost) :]}
    )
    await rig.discord.wait(lambda: rig.discord.gateway.connected)
    if end is _invalid:
        await rig.discord.say(DM, "two", PERSON)
    await rig.discord.shows(DM, "ack two")
    await rig.quiet()
    assert rig.read() == ["ack one", "ack two"]


async def test_events_that_come_three_times_in_any_order_are_one_turn(rig: DiscordRig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.shows(DM, "written")
    count = len(list(rig.discord.gateway.sessions.values())[0].events)
    await rig.discord.gateway.again([-n for n in range(1, count)])
    await rig.discord.gateway.again([-n for n in range(count - 1, 0, -1)])
    await rig.discord.say(DM, "the end", PERSON)
    await rig.discord.shows(DM, "ack the end")
    await rig.quiet()
    assert rig.seen(role="user") == ["write it", "the end"]
    assert len(rig.model.requests) == 3
    assert sum("written" in one for one in rig.read()) == 1


async def test_a_press_is_acknowledged_while_the_store_is_slow(
    rig: DiscordRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    await rig.discord.say(DM, "write it", PERSON)
    card = await rig.carded()
    await rig.quiet()
    slow, accept = asyncio.Event(), rig.host.accept

    async def late(inbounds: Any) -> None:
        await slow.wait()
        await accept(inbounds)

    monkeypatch.setattr(rig.host, "accept", late)
    pressed = await rig.discord.press(card, "Approve once", PERSON)
    await rig.discord.wait(lambda: pressed in rig.discord.answers)
    assert not (rig.dm / "a.txt").exists()
    slow.set()
    await rig.discord.shows(DM, "written")
    await rig.quiet()


async def test_a_send_that_was_cut_off_stands_there_once(rig: DiscordRig) -> None:
    await rig.start()
    rig.discord.drop("send")
    await rig.discord.say(DM, "hello", PERSON)
    await rig.discord.shows(DM, "ack hello")
    await rig.quiet()
    assert rig.read() == ["ack hello"], "once, and without a word of doubt"
    assert len({call.params["nonce"] for call in rig.discord.made("send")}) == 1


async def test_a_refused_bot_leaves_the_rest_alone(rig: DiscordRig) -> None:
    rig.discord.gateway.refuse = 4014
    await Rig.start(rig)
    await rig.until(lambda: rig.log.named("adapter_gave_up"))
    assert "Message Content Intent" in rig.log.named("adapter_gave_up")[0].why  # type: ignore[attr-defined]
