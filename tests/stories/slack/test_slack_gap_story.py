"""What people write while the gateway is away, or no connection stands, is read back: one turn each,
and none for what was answered."""

import asyncio
from collections.abc import Sequence

import pytest

from adapters.slack import receive
from adapters.slack.live import missed
from gateway import clock
from gateway.errors import StoreFailed
from gateway.messages import CommandGiven, Inbound, MessageReceived
from gateway.ports import ListScope, Summary, account_scope
from tests.adapters.slack_rig import adapter_of, where
from tests.adapters.telegram_rig import Store
from tests.fakes.slack_server import SlackServer
from tests.fakes.waiting import PATIENCE
from tests.stories.slack_rig import DEV, DM, SlackRig


@pytest.mark.parametrize("transport", ["socket", "http"])
async def test_what_was_written_meanwhile_gets_one_turn_each(rig: SlackRig, transport: str) -> None:
    rig.transport = transport
    await rig.start(GROUP_POLICY="thread")
    rig.slack.say(DM, "hello")
    root = rig.slack.mention(DEV, "look here")[0]["event"]["ts"]
    await rig.shows("ack hello")
    await rig.shows("ack", DEV)
    await rig.quiet()
    await rig.crash()
    rig.slack.deaf = True
    late = rig.slack.say(DM, "missed")
    rig.slack.say(DEV, "and this?", thread=root)
    rig.slack.mention(DEV, "something new")
    rig.slack.say(DEV, "talk among people")
    rig.slack.mention("C0NEW", "never seen")
    rig.slack.deaf = False
    await rig.start(GROUP_POLICY="thread")
    await rig.shows("ack missed")
    await rig.shows("and this?", DEV)
    await rig.shows("something new", DEV)
    rig.slack.again(late)
    rig.slack.say(DM, "now")
    await rig.shows("ack now")
    await rig.quiet()
    heard = len(rig.model.requests)
    assert heard == 6 and rig.slack.channels["C0NEW"] == [], "no channel is known there"
    await rig.crash()
    await rig.start(GROUP_POLICY="thread")
    rig.slack.say(DM, "and now")
    await rig.shows("ack and now")
    await rig.quiet()
    assert len(rig.model.requests) == heard + 1, "what was answered is not answered again"


async def test_a_gap_in_the_connection_is_read_page_by_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receive, "GAP", 0.0)
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(receive, "MIN_LIFE", 0.0)
    monkeypatch.setattr(missed, "PAGE", 2)
    store = Store()

    async def recent(scope: ListScope, limit: int) -> Sequence[Summary]:
        assert scope == account_scope(where()) and limit == missed.THREADS
        old = where("D0OLD").id
        return (
            Summary(conversation=where().id, title="", at=clock.now(), state="idle"),
            Summary(conversation=old, title="", at=clock.now() - 100_000, state="idle"),
        )

    def texts(kept: Sequence[Inbound]) -> set[str]:
        return {one.text for one in kept if isinstance(one, MessageReceived)}

    async with SlackServer() as server:
        adapter = adapter_of(server, recent=recent)
        server.deaf = True
        for n in range(5):
            server.say("D0ANN", f"missed {n}")
        server.say("D0ANN", "<@U0BOT> /stop all")
        server.say("D0ANN", "beep", "U0OTHER", bot_id="B0OTHER")
        server.say("D0OLD", "long ago")
        server.deaf = False
        server.fail("conversations.history", 429, "ratelimited", retry_after=0.01)
        task = asyncio.create_task(adapter.run(store.accept))
        try:
            async with asyncio.timeout(PATIENCE):
                while len(texts(store.kept)) < 5:
                    await asyncio.sleep(0)
        finally:
            task.cancel()
            await asyncio.wait([task])
        assert texts(store.kept) == {f"missed {n}" for n in range(5)}
        commands = [one for one in store.kept if isinstance(one, CommandGiven)]
        assert {(one.name, one.arguments) for one in commands} == {("stop", "all")}
        assert server.violations == []
        calls = server.made("conversations.history")
        assert {one.arguments["channel"] for one in calls} == {"D0ANN"} and len(calls) >= 4


@pytest.mark.parametrize("transport", ["socket", "http"])
@pytest.mark.parametrize("lasts", [1, 3, 30])
async def test_what_could_not_be_stored_for_long_is_read_back(
    rig: SlackRig, transport: str, lasts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack has given up repeating it, and the connection stood all the time."""
    monkeypatch.setattr(receive, "REPEATED", 0.0)
    monkeypatch.setattr(receive, "MAX_PAUSE", 0.01)
    rig.transport = transport
    await rig.start()
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    real, failures = rig.host.accept, 0

    async def accept(inbounds: Sequence[Inbound]) -> None:
        nonlocal failures
        failures += 1
        if failures <= lasts:
            raise StoreFailed("the disk is full")
        await real(inbounds)

    monkeypatch.setattr(rig.host, "accept", accept)
    rig.slack.say(DM, "missed")
    await rig.shows("ack missed")
    await rig.quiet()
    assert sum("ack missed" in text for text in rig.said(DM)) == 1


FAULTS: dict[str, tuple[int, str]] = {
    "down": (503, ""), "a bug of theirs": (200, "internal_error"), "busy": (200, "ratelimited"),
    "no object": (200, ""),
}  # fmt: skip


@pytest.mark.parametrize("store_fails", [False, True])
@pytest.mark.parametrize("kind", FAULTS)
async def test_a_gap_that_cannot_be_read_now_is_read_later(
    monkeypatch: pytest.MonkeyPatch, kind: str, store_fails: bool
) -> None:
    monkeypatch.setattr(missed, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)
    store = Store()
    asked = 0

    async def recent(scope: ListScope, limit: int) -> Sequence[Summary]:
        nonlocal asked
        asked += 1
        if store_fails and asked < 3:
            raise StoreFailed("the disk is full")
        where_to = (where().id, where("D0GONE").id)
        return tuple(
            Summary(conversation=one, title="", at=clock.now(), state="idle") for one in where_to
        )

    async with SlackServer() as server:
        adapter = adapter_of(server, recent=recent)
        server.deaf = True
        server.say("D0ANN", "missed")
        server.deaf = False
        server.left.add("D0GONE")
        status, error = FAULTS[kind]
        server.fail("conversations.history", status, error, times=4, retry_after=0.01)
        task = asyncio.create_task(adapter.run(store.accept))
        try:
            async with asyncio.timeout(PATIENCE):
                while not any(
                    isinstance(one, MessageReceived) and one.text == "missed" for one in store.kept
                ):
                    await asyncio.sleep(0)
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_what_cannot_be_read_for_long_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(missed, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(missed, "LATE", 0.3)

    async def recent(scope: ListScope, limit: int) -> Sequence[Summary]:
        return (Summary(conversation=where().id, title="", at=clock.now(), state="idle"),)

    async with SlackServer() as server:
        adapter = adapter_of(server, recent=recent)
        server.fail("conversations.history", 503, times=1_000)
        task = asyncio.create_task(adapter.run(Store().accept))
        try:
            async with asyncio.timeout(PATIENCE):
                while "slack_gap_not_read" not in caplog.messages:
                    await asyncio.sleep(0.01)
        finally:
            task.cancel()
            await asyncio.wait([task])
        assert 2 <= len(server.made("conversations.history")) <= 20
