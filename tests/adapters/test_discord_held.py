"""What Discord does not tell of one channel, for however long, holds up no other; and nothing of
that channel is lost or out of order."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.discord import held, memory, receive, session
from adapters.discord.adapter import DiscordAdapter
from gateway.messages import MessageReceived
from tests.adapters.telegram_rig import Store, running
from tests.fakes.discord_gateway import INVALID
from tests.fakes.discord_server import DiscordServer, Refusal
from tests.fakes.waiting import PATIENCE

ODD, OTHER, DM = "7100", "7200", "90007"
WAYS = ["502", "429", "silent"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (receive, session):
        monkeypatch.setattr(module, "MIN_PAUSE", 0.01)
        monkeypatch.setattr(module, "MAX_PAUSE", 0.05)
    monkeypatch.setattr(receive, "ASKING", 0.1)
    monkeypatch.setattr(receive, "READING", 0.1)
    monkeypatch.setattr(memory, "SAVE_EVERY", 0.0)


class Barrier:
    """A route that answers for one channel only when it is lifted."""

    def __init__(self, server: DiscordServer, route: str, way: str) -> None:
        self.lifted = asyncio.Event()
        self.asked = 0
        real, serve = getattr(server, f"_on_{route}"), server._serve

        def answer(call: Any, channel: str, **more: str) -> Any:
            if channel != ODD or self.lifted.is_set():
                return real(call, channel=channel, **more)
            self.asked += 1
            if way == "429":
                raise Refusal(429, "too many", retry_after=2.0)
            raise Refusal(502, "no")

        async def serve_late(name: str, request: Any) -> Any:
            odd = name == route and request.match_info.get("channel") == ODD
            if way == "silent" and odd and not self.lifted.is_set():
                self.asked += 1
                await self.lifted.wait()
            return await serve(name, request)

        setattr(server, f"_on_{route}", answer)
        server._serve = serve_late  # type: ignore[method-assign]


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server
    assert server.violations == []


def made(server: DiscordServer, **more: Any) -> DiscordAdapter:
    return DiscordAdapter(server.token, server.api_url, server.gateway.url, **more)


def of(store: Store, channel: str) -> list[str]:
    return [
        one.text
        for one in store.kept
        if isinstance(one, MessageReceived) and one.conversation.channel == channel
    ]


async def say_all(server: DiscordServer, *texts: str) -> None:
    for text in texts:
        for channel in (ODD, DM, OTHER):
            await server.say(channel, f"@bot {text}", 7)


@pytest.mark.parametrize("way", WAYS)
async def test_a_channel_that_is_not_told_holds_up_no_other(
    server: DiscordServer, way: str, tmp_path: Path
) -> None:
    barrier, store = Barrier(server, "channel", way), Store()
    async with running(made(server, memory=tmp_path / "discord.json"), store):
        await server.wait(lambda: server.gateway.connected)
        await say_all(server, "one", "two", "three")
        await store.holds(6)
        await server.wait(lambda: barrier.asked > 0)  # a busy machine gives up before it asks
        assert of(store, ODD) == []
        assert len(of(store, DM)) == len(of(store, OTHER)) == 3
    barrier.lifted.set()
    again = Store()
    async with running(made(server, memory=tmp_path / "discord.json"), again):
        while len(of(again, ODD)) < 3:
            again.grown.clear()
            await again.grown.wait()
    assert [text.split()[-1] for text in of(again, ODD)] == ["one", "two", "three"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("store_fails", [0, 2])
async def test_it_goes_on_once_it_is_told(
    server: DiscordServer, way: str, store_fails: int
) -> None:
    barrier, store = Barrier(server, "channel", way), Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        await say_all(server, "one", "two")
        await store.holds(4)
        store.failures = store_fails
        barrier.lifted.set()
        await store.holds(6)
        await say_all(server, "three")
        await store.holds(9)
    assert [text.split()[-1] for text in of(store, ODD)] == ["one", "two", "three"]


async def test_it_does_not_wait_for_ever(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "HELD_FOR", 0.2)
    Barrier(server, "channel", "502")
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        await say_all(server, "one", "two")
        await store.holds(6)
    assert [text.split()[-1] for text in of(store, ODD)] == ["one", "two"]


async def test_a_flood_in_it_does_not_wait(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "MAX_HELD_HERE", 10)
    Barrier(server, "channel", "502")
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        for n in range(30):
            await server.say(ODD, f"@bot {n}", 7)
        await store.holds(20)
    assert [int(text.split()[-1]) for text in of(store, ODD)][:20] == [*range(20)]


@pytest.mark.parametrize("way", WAYS)
async def test_a_gap_that_cannot_be_read_yet_holds_up_nothing(
    server: DiscordServer, way: str
) -> None:
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        await say_all(server, "before")
        await store.holds(3)
        barrier = Barrier(server, "history", way)
        dispatch = server.gateway.dispatch
        server.gateway.dispatch = lambda *_: asyncio.sleep(0)  # type: ignore[method-assign]
        await say_all(server, "missed")
        server.gateway.dispatch = dispatch  # type: ignore[method-assign]
        await server.gateway.hang_up(INVALID, resumable=False)
        await server.wait(lambda: len(server.gateway.sessions) == 1 and server.gateway.connected)
        await say_all(server, "after")
        await wait_for(store, {DM: {"before", "missed", "after"}, ODD: {"before", "after"}})
        await wait_for(store, {OTHER: {"before", "missed", "after"}})
        await server.wait(lambda: barrier.asked > 0)
        assert "missed" not in last_words(store, ODD)
        barrier.lifted.set()
        await wait_for(store, {ODD: {"before", "missed", "after"}})


def last_words(store: Store, channel: str) -> set[str]:
    return {text.split()[-1] for text in of(store, channel)}


async def wait_for(store: Store, told: dict[str, set[str]]) -> None:
    """Until each channel's messages are there, however often: the store drops known ones."""
    async with asyncio.timeout(PATIENCE):
        while any(last_words(store, channel) != words for channel, words in told.items()):
            store.grown.clear()
            await store.grown.wait()


@pytest.mark.parametrize("route", ["channel", "history"])
async def test_an_adapter_that_runs_again_goes_on_with_what_waits(
    server: DiscordServer, route: str, tmp_path: Path
) -> None:
    """As after a bug: the tasks that would take it ended with the run before."""
    barrier, store = Barrier(server, route, "502"), Store()
    adapter = made(server, memory=tmp_path / "discord.json")
    async with running(adapter, store):
        await server.wait(lambda: server.gateway.connected)
        await say_all(server, "before")
        await store.holds(2 if route == "channel" else 3)
        if route == "history":
            adapter._receiver.on_open(anew=True)
        await server.wait(lambda: barrier.asked > 0)
    async with running(adapter, store):
        await server.wait(lambda: server.gateway.connected)
        barrier.lifted.set()
        await say_all(server, "after")
        async with asyncio.timeout(PATIENCE):
            while len(set(of(store, ODD))) < 2 or adapter._receiver._unread:
                await asyncio.sleep(0.01)
    seen = list(dict.fromkeys(text.split()[-1] for text in of(store, ODD)))
    assert seen == ["before", "after"]
