"""What Discord's gateway, or what answers in its place, may send: nothing ends the adapter, no event
is lost, and nothing is made without a bound."""

import asyncio
import json
import logging
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.discord import receive, session
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.session import MAX_BEGUN, MAX_RESUMES, SPARING, DiscordSession
from adapters.discord.socket import MAX_FRAME, BoundedUnpacker, OddFrame
from gateway.messages import Inbound
from tests.adapters.telegram_rig import Store, running
from tests.fakes.discord_gateway import IDENTIFY, INVALID, RESUME
from tests.fakes.discord_server import DiscordServer
from tests.sampling import examples

DM = "90007"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (receive, session):
        monkeypatch.setattr(module, "MIN_PAUSE", 0.01)


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer() as server:
        yield server


def made(server: DiscordServer) -> DiscordAdapter:
    return DiscordAdapter(server.token, server.api_url, server.gateway.url)


def count(server: DiscordServer, op: int) -> int:
    return [one for _, one in server.gateway.ops].count(op)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
OPS = st.sampled_from([0, 1, 7, 9, 10, 11, 77]) | VALUES
KINDS = st.sampled_from(["READY", "RESUMED", "MESSAGE_CREATE", "INTERACTION_CREATE", "X"]) | VALUES
FRAMES = VALUES | st.fixed_dictionaries(
    {}, optional={"op": OPS, "d": VALUES, "s": VALUES, "t": KINDS}
)


@given(frames=st.lists(FRAMES, min_size=1, max_size=3))
@settings(max_examples=examples(160), deadline=None)
def test_no_frame_ends_the_adapter_or_loses_an_event(frames: list[object]) -> None:
    async def talk() -> None:
        store = Store()
        async with DiscordServer() as server, running(made(server), store):
            await server.wait(lambda: server.gateway.connected)
            await server.say(DM, "before", 7)
            await store.holds(1)
            for frame in frames:
                await server.gateway.send_raw(json.dumps(frame))
            await server.say(DM, "after", 7)
            await store.holds(2)
        assert store.texts[:2] == ["before", "after"]

    with pytest.MonkeyPatch.context() as patch:
        for module in (receive, session):
            patch.setattr(module, "MIN_PAUSE", 0.01)
        asyncio.run(talk())


async def test_repeated_hellos_and_beats_make_nothing(server: DiscordServer) -> None:
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        before, beats = threading.active_count(), count(server, 1)
        for _ in range(300):
            await server.gateway.send_raw('{"op": 10, "d": {"heartbeat_interval": 40000}}')
            await server.gateway.send_raw('{"op": 1, "d": null}')
        await server.say(DM, "after", 7)
        await store.holds(1)
        assert threading.active_count() <= before and count(server, 1) <= beats + 1


@pytest.mark.parametrize("interval", [0, -5, 0.001, 1e15, "soon", None, [], True])
async def test_no_pace_of_beats_is_absurd(server: DiscordServer, interval: object) -> None:
    server.gateway.heartbeat = interval  # type: ignore[assignment]
    store = Store()
    async with running(made(server), store):
        for n in range(20):
            await server.say(DM, "hello", 7)
            await server.gateway.send_raw("[]") if n == 10 else None
            await server.wait(lambda: server.gateway.connected)
        await store.holds(1)
        assert count(server, 1) < 10


async def test_a_resume_goes_to_no_foreign_address(server: DiscordServer) -> None:
    """Its first frame has the token."""
    store = Store()
    async with DiscordServer() as foreign:
        own, server.gateway.url = server.gateway.url, foreign.gateway.url
        adapter = DiscordAdapter(server.token, server.api_url, own)
        async with running(adapter, store):
            await server.wait(lambda: server.gateway.connected)
            await server.gateway.hang_up(code=4000)
            await server.wait(lambda: count(server, RESUME))
            await server.say(DM, "after", 7)
            await store.holds(1)
        assert foreign.gateway.ops == []


@pytest.mark.parametrize(
    ("told", "goes"),
    [
        ("wss://gateway-us-east1-b.discord.gg", True),
        ("wss://discord.gg/", True),
        ("ws://gateway-us-east1-b.discord.gg", False),
        ("wss://discord.gg.evil.example", False),
        ("wss://evildiscord.gg", False),
        ("wss://discord.gg@evil.example", False),
        ("https://gateway.discord.gg", False),
        ("wss://proxy.example:8443/elsewhere", True),
        ("wss://proxy.example/", False),
        ("", False),
    ],
)
def test_the_addresses_of_discord(told: str, goes: bool) -> None:
    gateway: Any = DiscordSession(None, "wss://proxy.example:8443/", None, reads=False)  # type: ignore[arg-type]
    assert gateway._choose_address(told) == (told if goes else "wss://proxy.example:8443/")


async def test_a_dead_address_to_resume_at_is_not_the_only_one(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = server.gateway.url
    monkeypatch.setattr(DiscordSession, "_choose_address", lambda _, told: told)
    server.gateway.url = "ws://127.0.0.1:9/"
    store = Store()
    async with running(DiscordAdapter(server.token, server.api_url, own), store):
        await server.wait(lambda: server.gateway.connected)
        await server.gateway.hang_up(code=4000)
        await server.wait(lambda: count(server, RESUME))
        await server.say(DM, "after", 7)
        await store.holds(1)


@pytest.mark.parametrize("code", [4007, 4009])
async def test_a_session_that_is_over_is_not_resumed(server: DiscordServer, code: int) -> None:
    async with running(made(server), Store()):
        await server.wait(lambda: server.gateway.connected)
        await server.gateway.hang_up(code=code)
        await server.wait(lambda: count(server, IDENTIFY) == 2, 20)
        assert count(server, RESUME) == 0


@pytest.mark.parametrize("ends", [4000, 4008, 1011, INVALID])
async def test_a_session_that_never_goes_on_is_given_up(
    server: DiscordServer, ends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(socket: Any, _: object) -> None:
        if ends == INVALID:
            await socket.send_json({"op": INVALID, "d": True})
        else:
            await socket.close(code=ends)

    monkeypatch.setattr(server.gateway, "_resume", refuse)
    async with running(made(server), Store()):
        await server.wait(lambda: server.gateway.connected)
        await server.gateway.hang_up(code=4000)
        await server.wait(lambda: count(server, IDENTIFY) == 2, 20)
        assert count(server, RESUME) == MAX_RESUMES


async def test_connections_that_end_at_once_make_no_storm(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MIN_PAUSE", 0.05)
    async with running(made(server), Store()):
        await server.wait(lambda: server.gateway.connected)
        for n in range(5):
            await server.gateway.hang_up(code=4000)
            began = asyncio.get_running_loop().time()
            await server.wait(lambda n=n: count(server, RESUME) > n)
            await server.wait(lambda: server.gateway.connected)
        assert asyncio.get_running_loop().time() - began >= 0.05 * 2**4


def test_sessions_are_begun_with_care() -> None:
    """1,000 a day are allowed."""
    gateway: Any = DiscordSession(None, "wss://x/", None, reads=False)  # type: ignore[arg-type]
    now = session.clock.monotonic()
    gateway._begun.extend([now] * (MAX_BEGUN - 1))
    assert gateway._spare_sessions() == 0
    gateway._begun.append(now)
    assert gateway._spare_sessions() == SPARING
    gateway._id = "one to resume"
    assert gateway._spare_sessions() == 0


def pack_zlib(text: bytes) -> tuple[Any, bytes]:
    packer = zlib.compressobj()
    return zlib.decompressobj(), packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)


def pack_zstd(text: bytes) -> tuple[Any, bytes]:
    return zstandard.ZstdDecompressor().decompressobj(), zstandard.compress(text)


@pytest.mark.parametrize("pack", [pack_zlib, pack_zstd])
def test_a_frame_is_unpacked_to_a_bound(pack: Callable[[bytes], tuple[Any, bytes]]) -> None:
    inner, packed = pack(bytes(range(256)) * 4_000)
    assert BoundedUnpacker(inner).decompress(packed) == bytes(range(256)) * 4_000
    inner, packed = pack(b" " * (4 * MAX_FRAME))
    with pytest.raises(OddFrame):
        BoundedUnpacker(inner).decompress(packed)


async def test_no_word_and_no_token_of_an_event_is_logged(
    server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = Store()
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        await server.say(DM, "what I had for lunch", 7)
        await server.command(DM, "stop", 7)
        await store.holds(2)
        await server.wait(lambda: server.answers)
    assert not [text for text in caplog.messages if "lunch" in text or "token-" in text]


async def test_answers_that_nobody_takes_do_not_pile_up(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was pressed counts all the same."""
    monkeypatch.setattr(receive, "MAX_ANSWERING", 20)
    store, presses = Store(), 200
    data = {"custom_id": "q:1:yes", "component_type": 2}
    async with running(made(server), store):
        await server.wait(lambda: server.gateway.connected)
        server.hold("answer")
        for _ in range(presses):
            await server.interact(3, DM, 7, data, message={"id": "5", "channel_id": DM})
        await store.holds(presses)
        assert len(server.made("answer")) <= 20
        server.release("answer")
        await server.wait(lambda: server.answers)
    server.excuse()


async def test_large_events_that_wait_to_be_stored_have_a_bound(
    server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "MAX_SIZE", 50_000)
    monkeypatch.setattr(receive, "BATCH", 2)
    free, most = asyncio.Event(), 0

    class Slow(Store):
        async def accept(self, batch: Sequence[Inbound]) -> None:
            nonlocal most
            await free.wait()
            most = max(most, len(adapter._receiver._line))
            await super().accept(batch)

    store, adapter = Slow(), made(server)
    async with running(adapter, store):
        await server.wait(lambda: server.gateway.connected)
        for n in range(40):
            await server.say(DM, f"{n} " + "x" * 10_000, 7)
        free.set()
        await store.holds(40)
    assert [text.split()[0] for text in store.texts] == [str(n) for n in range(40)]
    assert most <= 6
