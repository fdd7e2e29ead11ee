"""Receiving from Slack by both transports: kept before it is acknowledged, and once."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Sequence

import pytest

from adapters.slack import receive
from adapters.slack.receive import SlackReceiver
from adapters.slack.transport import SlackWire
from gateway.errors import Rejected
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    Inbound,
    MessageReceived,
    dedupe_keys,
)
from gateway.views import Button, FormCard, PlanView
from tests.adapters.slack_rig import adapter_of, running, where
from tests.adapters.telegram_rig import Store
from tests.fakes.slack_server import SECRET, SlackServer, packed
from tests.fakes.waiting import PATIENCE


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as made:
        yield made
        assert made.violations == []


BOTH = pytest.mark.parametrize("transport", ["socket", "http"])


@BOTH
async def test_what_people_do_comes_in(server: SlackServer, transport: str) -> None:
    store = Store()
    async with running(server, store, transport):
        server.people["U0ANN"] = {"locale": "de-DE"}
        server.say("D0ANN", "hello &amp; good day")
        server.command("D0ANN", "stop all")
        said, command = await store.holds(2)
    assert isinstance(said, MessageReceived) and isinstance(command, CommandGiven)
    assert (said.text, said.sender.name, said.sender.language) == (
        "hello & good day",
        "Ann",
        "de-DE",
    )
    assert (said.conversation, said.addressed) == (where(), True)
    assert (command.name, command.arguments) == ("stop", "all")
    assert len(server.made("users.info")) == 1, "names are kept"


@BOTH
async def test_what_is_not_stored_comes_again(
    server: SlackServer, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store()
    store.failures = 1
    async with running(server, store, transport):
        payload = server.say("D0ANN", "hello")
        if transport == "socket":
            await _failed(store)
            (first,) = server._waiting
            server.again(payload)
            await store.holds(1)
            await server.wait(lambda: server.acknowledged)
            assert first in server._waiting, "the first one never was"
        else:
            await store.holds(1)
            await server.wait(lambda: server.answers == [503, 200])
    assert store.texts == ["hello"]
    (told,) = (one for one in caplog.records if one.msg == "slack_not_stored")
    assert vars(told)["why"], "the person was told that the log says it"


async def _failed(store: Store) -> None:
    async with asyncio.timeout(PATIENCE):
        while store.failures:
            await asyncio.sleep(0)


@BOTH
async def test_a_mention_is_two_events_of_one_message(server: SlackServer, transport: str) -> None:
    store = Store()
    async with running(server, store, transport):
        said, _ = server.mention("C0DEV", "look at this")
        first, second = await store.holds(2)
    assert isinstance(first, MessageReceived) and isinstance(second, MessageReceived)
    assert first.conversation == where("C0DEV", said["event"]["ts"]) == second.conversation
    assert first.addressed and second.addressed and first.text == "look at this"
    assert first.event != second.event
    assert dedupe_keys(first)[1] == dedupe_keys(second)[1] != ""


async def test_a_connection_is_renewed_without_a_gap(server: SlackServer) -> None:
    store = Store()
    async with running(server, store):
        server.disconnect()
        await server.wait(lambda: len(server.made("apps.connections.open")) == 2)
        await server.wait(lambda: server.connections == 2)
        server.say("D0ANN", "by the new one")
        await store.holds(1)
        await server.wait(lambda: not server.unacknowledged)


async def test_a_broken_connection_is_made_again(
    server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.slack.receive.MIN_PAUSE", 0.01)
    store = Store()
    async with running(server, store):
        server.fail("apps.connections.open", 500)
        await server.cut()
        server.say("D0ANN", "in between")
        await store.holds(1)
        await server.wait(lambda: not server.unacknowledged)


async def test_a_refused_token_ends_it(server: SlackServer) -> None:
    store = Store()
    server.fail("auth.test", error="invalid_auth")
    with pytest.raises(Rejected, match="invalid_auth"):
        await adapter_of(server).run(store.accept)
    server.fail("apps.connections.open", error="invalid_auth")
    with pytest.raises(Rejected, match="invalid_auth"):
        await adapter_of(server).run(store.accept)


async def test_only_slack_is_believed(
    server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store()
    async with running(server, store, "http"):
        body, kind = packed("events_api", {"type": "url_verification", "challenge": "abc"})
        assert await server.request(body, kind, {}, secret="another secret") == 401
        assert await server.request(body, kind, {}, at=time.time() - 400) == 401
        for bad in ({"X-Slack-Signature": "v0=ä"}, {"X-Slack-Request-Timestamp": "soon"}):
            assert await server.request(body, kind, bad) == 401
        for digits in (13, 400, 5_000):
            late = {"X-Slack-Request-Timestamp": "9" * digits}
            assert await server.request(body, kind, late) == 401
        assert await server.request(b"\xff", kind, {}) == 401
        assert await server.request(b"x" * (1 << 20 | 1), kind, {}) == 413
        for odd in (b"", b"[]", b"{", b"[" * 100_000):
            assert await server.request(odd, kind, {}) == 400
        assert await server.request(body, kind, {}) == 200
        assert json.loads(server.last_answer) == {"challenge": "abc"}
        form = "application/x-www-form-urlencoded"
        assert await server.request(b"ssl_check=1&token=x", form, {}, secret="another") == 200
        assert await server.request(b"text=hello", form, {}) == 400
    assert store.kept == []
    assert "hello" not in caplog.text and SECRET not in caplog.text


async def test_a_command_about_a_payload_is_heard(server: SlackServer) -> None:
    """Bolt's own parser takes the word for a field of the request, and drops the command."""
    store = Store()
    async with running(server, store, "http"):
        server.command("D0ANN", "status of the payload")
        (heard,) = await store.holds(1)
    assert isinstance(heard, CommandGiven) and heard.arguments == "of the payload"


@BOTH
async def test_words_come_by_a_modal(server: SlackServer, transport: str) -> None:
    store = Store()
    async with running(server, store, transport) as adapter:
        form = FormCard(question="7", text="How many?", token="q:7:text")
        for payload in adapter.render(form, where()):
            await adapter.send(where(), payload)
        plan = PlanView(title="P", steps=(), buttons=(Button(label="Edit", token="q:8:edit"),))
        for payload in adapter.render(plan, where("C0DEV", "5.5")):
            await adapter.send(where("C0DEV", "5.5"), payload)
        server.press(server.channels["D0ANN"][0], "Your answer")
        await server.wait(lambda: server.views)
        server.submit(server.views[0], "three")
        await store.holds(1)
        server.press(server.channels["C0DEV"][0], "Edit")
        await server.wait(lambda: len(server.views) == 2)
        server.submit(server.views[1], "shorter")
        filled, wish = await store.holds(2)
    assert isinstance(filled, FormSubmitted) and isinstance(wish, ButtonPressed)
    assert [filled.event, wish.event] == [f"v{view['id']}" for view in server.views]
    assert (filled.token, filled.text, filled.conversation) == ("q:7:text", "three", where())
    assert (wish.token, wish.text, wish.conversation) == (
        "q:8:edit",
        "shorter",
        where("C0DEV", "5.5"),
    )


async def test_poison_holds_nothing_up(
    server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, once = Store(), iter([True])
    real = SlackReceiver._open

    async def trip(self: SlackReceiver, payload: dict) -> None:  # type: ignore[type-arg]
        if next(once, False):
            raise KeyError("odd")
        await real(self, payload)

    monkeypatch.setattr(SlackReceiver, "_open", trip)
    async with running(server, store):
        server.push("interactive", {"type": "something new"})
        server.push("events_api", {"event": 5})
        server.say("D0ANN", "after it")
        await store.holds(1)
        await server.wait(lambda: not server.unacknowledged)


async def test_a_quiet_connection_is_alive_and_a_mute_one_is_not(
    server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.slack.receive.SILENCE", 0.02)
    monkeypatch.setattr("adapters.slack.receive.GREETING", 0.02)
    monkeypatch.setattr("adapters.slack.receive.MIN_PAUSE", 0.01)
    store = Store()
    server.mute = 1
    async with running(server, store) as adapter:
        await server.wait(lambda: len(server.made("apps.connections.open")) == 2)
        await server.wait(lambda: server.connections == 1)
        contacts = {adapter.last_contact}
        async with asyncio.timeout(PATIENCE):
            while len(contacts) < 5:  # its hello is one at most
                await asyncio.sleep(0.005)
                contacts.add(adapter.last_contact)
        server.say("D0ANN", "after silence")
        await store.holds(1)
        await server.wait(lambda: not server.unacknowledged)
    assert len(server.made("apps.connections.open")) == 2, "silence is no reason to reconnect"


@BOTH
async def test_a_burst_is_kept_whole_and_in_order(server: SlackServer, transport: str) -> None:
    store = Store()
    async with running(server, store, transport):
        for n in range(120):
            server.say("D0ANN", f"no. {n}")
        await store.holds(120)
        if transport == "socket":
            await server.wait(lambda: not server.unacknowledged)
    assert store.texts == [f"no. {n}" for n in range(120)]


@BOTH
async def test_facts_that_cannot_be_read_cost_no_message(
    server: SlackServer, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes wrong with a look-up, whatever it is, concerns that look-up."""

    async def fail(*_: object) -> None:
        raise RecursionError("an answer of a kind that nobody knows")

    store = Store()
    async with running(server, store, transport):
        monkeypatch.setattr(SlackWire, "call", fail)
        server.say("D0ANN", "hello")
        server.command("D0ANN", "stop")
        await store.holds(2)
        monkeypatch.undo()
        server.say("D0ANN", "and again")
        await store.holds(3)
    assert store.texts == ["hello", "and again"]


async def test_a_connection_to_be_renewed_is_read_only_for_a_while(
    server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if something goes on coming: otherwise they pile up."""
    monkeypatch.setattr(receive, "REST", 0.3)
    store = Store()
    async with running(server, store), asyncio.timeout(PATIENCE):
        (old,) = server._sockets
        server.disconnect()
        with contextlib.suppress(ConnectionError):
            while not old.closed:
                await old.send_json({"type": "whatever"})
                await asyncio.sleep(0.02)
        await server.wait(lambda: server.connections == 1 and old not in server._sockets)
        server.say("D0ANN", "hello")
        await store.holds(1)


async def test_what_waits_to_be_stored_has_a_bound(
    server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "MAX_WAITING", 50 << 10)
    monkeypatch.setattr(receive, "BATCH", 10)
    free, most = asyncio.Event(), 0

    class Slow(Store):
        async def accept(self, batch: Sequence[Inbound]) -> None:
            nonlocal most
            await free.wait()
            most = max(most, adapter._receiver._line.qsize())
            await super().accept(batch)

    store = Slow()
    async with running(server, store) as adapter:
        for n in range(400):
            server.say("D0ANN", f"{n}")
        while adapter._receiver._line.qsize() < 40:
            await asyncio.sleep(0.01)
        free.set()
        await store.holds(400)
        await server.wait(lambda: not server.unacknowledged)
    assert store.texts == [str(n) for n in range(400)]
    assert most <= 50


DEPTHS = [100, 300, 500, 700, *range(800, 1_000, 10), 100_000]


@pytest.mark.parametrize("key", ["type", "envelope_id", "payload", "event", "x"])
async def test_no_depth_of_a_frame_ends_the_connection(server: SlackServer, key: str) -> None:
    store = Store()
    async with running(server, store):
        (socket,) = server._sockets
        for depth in DEPTHS:
            deep = "[" * depth + "]" * depth
            await socket.send_str(f'{{"{key}": {deep}}}')
            payload = f'{{"event": {{"type": "message", "{key}": {deep}}}}}'
            await socket.send_str(f'{{"type": "events_api", "payload": {payload}}}')
        server.say("D0ANN", "hello")
        await store.holds(1)
        assert len(server.made("apps.connections.open")) == 1
