"""What cannot go on is set aside: kept, told, listed, and resubmitted or dropped by an operator."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from agent_core.models.port import TextDelta
from gateway.conversation import host
from gateway.delivery import outbox, pace
from gateway.errors import Gone, Rejected, StoreFailed, Unsent
from gateway.store.rows import Letter
from gateway.views import Abilities, Media, MediaFile, ReplyView
from tests.fakes.world import ANN, ROOM, Life

SOON = 8.0
Hit = Callable[..., Awaitable[object]]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "SEND_LIMIT", 0.25)
    monkeypatch.setattr(outbox, "MAX_BACKOFF", 0.2)
    monkeypatch.setattr(host, "RETRY_DELAY", 0.1)


def life(folder: Path, **delays: float) -> Life:
    one = Life(folder)
    one.adapter.abilities = Abilities(edit_interval=0.02)
    one.ttl = 1.5
    one.agent.delays = dict(delays)
    return one


def shown(one: Life, text: str) -> bool:
    return any(text in str(view) for view in one.screen().values())


async def letters(one: Life) -> tuple[Letter, ...]:
    return await one.store.letters(50)


def damage(folder: Path, sql: str, *values: object) -> None:
    """As a newer version, a bug or a broken disk leaves a row."""
    with closing(sqlite3.connect(folder / "store.db")) as c, c:
        assert c.execute(sql, values).rowcount > 0


# ---- rows that cannot be read --------------------------------------------------------------

FUTURE = b'{"kind": "of the future"}'
DAMAGES = {
    "message": "UPDATE inbox SET body = ? WHERE state = 0",
    "turn": "UPDATE turns SET body = ?",
    "record": "UPDATE records SET body = ? WHERE n = 1",
    "question": "UPDATE questions SET body = ?",
    "conversation": "UPDATE conversations SET body = ?",
    "view": "UPDATE outbox SET unsent = 1, body = ?",
    "transcript": "UPDATE transcript SET body = ?",
}


@pytest.mark.pick("a row that cannot be read", 2)
@pytest.mark.parametrize("kind", DAMAGES)
async def test_a_row_that_cannot_be_read_stops_only_itself(tmp_path: Path, kind: str) -> None:
    one = life(tmp_path)
    async with one.living():
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "ack hello m1"))
        await one.say("m2", "do deploy")
        await one.until(one.cards)
        await one.quiet()
    if kind == "message":
        async with life(tmp_path).living(prepare=lambda: None) as still:
            still.host._draining = True  # a process that ends as soon as it kept it
            await still.say("m3", "hello m3")
    damage(tmp_path, DAMAGES[kind], b"\xff" if kind == "conversation" else FUTURE)
    again = life(tmp_path)
    async with again.living():
        await again.say("m4", "hello m4")
        await again.until(lambda: shown(again, "ack hello m4"), SOON)
        if kind == "question":  # its time comes
            await again.store._store.write(lambda c: c.execute("UPDATE questions SET expires = 1"))
            assert await again.store.due(2.0, 9) == ()
        await again.quiet()
        assert not again.task.done()
        found = await letters(again)
    # a journal is not read before its turn goes on; of a transcript the rest is shown
    kinds = set() if kind in ("record", "transcript") else {kind}
    assert {one.kind for one in found} == kinds
    assert all("unreadable" in one.why and one.payload for one in found)


async def test_a_row_of_another_conversation_refuses_no_batch(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():
        await one.say("m1", "do deploy")
        await one.until(one.cards)
        await one.quiet()
    for table in ("turns", "questions", "conversations"):
        damage(tmp_path, f"UPDATE {table} SET body = ?", b"{")
    again = life(tmp_path)
    async with again.living():
        await again.say("m2", "hello m2")
        await again.until(lambda: shown(again, "ack hello m2"), SOON)
        await again.quiet()


async def test_a_turn_that_cannot_be_read_goes_on_after_an_upgrade(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():
        await one.say("m1", "do deploy")
        await one.until(one.cards)
        token = one.cards()[0].buttons[0].token
        await one.quiet()
    with closing(sqlite3.connect(tmp_path / "store.db")) as c:
        n, body = c.execute("SELECT n, body FROM records ORDER BY n LIMIT 1").fetchone()
    damage(tmp_path, "UPDATE records SET body = ? WHERE n = ?", FUTURE, n)
    old = life(tmp_path)
    async with old.living():
        await old.press("p1", token)
        await old.until(lambda: shown(old, "cannot be read by this version"), SOON)
        await old.quiet()
        found = {letter.kind: letter for letter in await letters(old)}
    damage(tmp_path, "UPDATE records SET body = ? WHERE n = ?", body, n)
    new = life(tmp_path)
    async with new.living():
        assert await new.store.resubmit(found["turn"].id) == ROOM.id
        new.host.wake(ROOM.id)
        await new.quiet()
        await new.press("p2", token)
        await new.until(lambda: shown(new, "done deploy: deploy ok"), SOON)


# ---- turns that cannot go on ---------------------------------------------------------------


async def test_a_buried_turns_message_can_be_resubmitted(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():
        broken, real = [True], one.agent.brief

        async def complete(*given: object) -> object:
            raise RuntimeError("a bug")

        one.agent.complete, real = complete, one.agent.complete  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "Something in the gateway failed"), SOON)
        await one.quiet()
        (letter,) = await letters(one)
        assert letter.kind == "message" and letter.turn and "a bug" in letter.why
        assert b"hello m1" in letter.payload
        one.agent.complete = real  # type: ignore[method-assign]
        assert broken and await one.store.resubmit(letter.id) == ROOM.id
        one.host.wake(ROOM.id)
        await one.until(lambda: shown(one, "ack hello m1"), SOON)
        assert await letters(one) == ()


async def test_resubmitted_while_no_gateway_runs_it_is_found_at_the_start(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():

        async def complete(*given: object) -> object:
            raise RuntimeError("a bug")

        one.agent.complete = complete  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "Something in the gateway failed"), SOON)
        await one.quiet()
    store = await one.open_store(tmp_path)
    (letter,) = await store.letters(9)
    assert await store.resubmit(letter.id) == ROOM.id
    await store.close()
    async with (again := life(tmp_path)).living():
        await again.until(lambda: shown(again, "ack hello m1"), SOON)


# ---- what was made and not kept ------------------------------------------------------------


@pytest.mark.pick("commits that fail for a while")
@pytest.mark.parametrize("stored", [False, True], ids=["first commit", "later commit"])
async def test_an_answer_is_not_paid_for_twice_because_a_commit_failed(
    tmp_path: Path, stored: bool
) -> None:
    one = life(tmp_path)
    text = "do look" if stored else "hello"
    async with one.living():
        real, failed = one.store.submit, list[str]()

        def submit(lease: object, changes: object) -> "asyncio.Future[None]":
            kinds = [type(row.record).__name__ for row in changes.records]  # type: ignore[attr-defined]
            wanted = "ToolFinished" if stored else "Replied"
            if (wanted in kinds and len(failed) < 3) or (failed and len(failed) < 3):
                failed.append(wanted)
                store = one.store._store
                store._break(lease)
                future = asyncio.get_running_loop().create_future()
                future.set_exception(StoreFailed("disk full"))
                return future
            return real(lease, changes)

        one.store.submit = submit  # type: ignore[method-assign]
        await one.say("m1", text)
        await one.until(lambda: shown(one, "done look" if stored else "ack hello"), SOON)
        await one.quiet()
        assert len(failed) == 3
        assert len(one.ledger.all("model")) == (2 if stored else 1)
        assert len(one.ledger.all("tool")) == (1 if stored else 0)


# ---- what people see -----------------------------------------------------------------------


def failing(one: Life, name: str, error: Exception, times: int = 10**6) -> list[int]:
    """The adapter's calls of this name fail so often; how often they did."""
    real, count = getattr(one.adapter, name), [0]

    async def call(*given: object) -> object:
        if count[0] < times:
            count[0] += 1
            raise error
        return await real(*given)

    setattr(one.adapter, name, call)
    return count


@pytest.mark.parametrize("error", [Rejected("not here"), Gone("deleted"), RuntimeError("bug")])
async def test_growth_that_is_refused_ends_only_the_growth(
    tmp_path: Path, error: Exception
) -> None:
    one = life(tmp_path, growing=0.15)
    async with one.living():
        failing(one, "edit", error)
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "ack hello m1"), SOON)
        await one.say("m2", "hello m2")
        await one.until(lambda: shown(one, "ack hello m2"), SOON)
        await one.quiet()


async def test_an_answer_whose_growing_message_was_deleted_is_sent_anew(tmp_path: Path) -> None:
    one = life(tmp_path, growing=0.15)
    async with one.living():
        failing(one, "edit", Gone("message to edit not found"))
        await one.say("m1", "hello m1")
        await one.quiet(SOON)
        sends = [line["view"] for line in one.ledger.all("send")]
        assert [view["state"] for view in sends] == ["streaming", "final"]
        assert "ack hello m1" in sends[-1]["text"]


async def test_a_growing_message_deleted_while_it_grows_is_sent_anew(tmp_path: Path) -> None:
    """The first edit that fails is one of the growth."""
    one = life(tmp_path)
    async with one.living():
        failing(one, "edit", Gone("message to edit not found"))
        real = one.agent.complete

        async def complete(name: object, request: object, on_delta: Callable[..., None]) -> object:
            for word in ("ack ", "hello ", "m1"):
                on_delta(TextDelta(text=word))
                await asyncio.sleep(0.1)
            return await real(name, request, lambda delta: None)  # type: ignore[arg-type]

        one.agent.complete = complete  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: one.ledger.all("send"))
        await one.quiet(SOON)
        finals = [s["view"] for s in one.ledger.all("send") if s["view"]["state"] == "final"]
        assert [view["text"] for view in finals] == ["ack hello m1"]


async def test_a_view_that_changes_has_no_more_copies(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():
        real = one.adapter.send

        async def late(where: object, payload: bytes) -> str:
            native = await real(where, payload)  # type: ignore[arg-type]
            if b'"activity"' in payload:
                await asyncio.sleep(1.0)
            return native

        one.adapter.send = late  # type: ignore[method-assign]
        one.agent.delays["note"] = 0.3
        await one.say("m1", "do note|look|note|look|note")
        await one.until(lambda: shown(one, "done note"), 2 * SOON)
        await one.quiet(2 * SOON)
        kinds = [line["view"].get("kind") for line in one.ledger.all("send")]
        assert kinds.count("activity") <= 2, kinds


async def test_a_platform_that_answers_too_late_gets_two_copies_and_no_more(
    tmp_path: Path,
) -> None:
    one = life(tmp_path)
    async with one.living():
        real = one.adapter.send

        async def late(*given: object) -> str:
            native = await real(*given)  # type: ignore[arg-type]
            await asyncio.sleep(1.0)
            return native

        one.adapter.send = late  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "may be missing here"), SOON)
        one.adapter.send = real  # type: ignore[method-assign]
        await one.quiet(SOON)
        texts = [line["view"]["text"] for line in one.ledger.all("send")]
        assert sum("ack hello m1" in text for text in texts) == 2
        (letter,) = await letters(one)
        assert letter.kind == "view" and b"ack hello m1" in letter.payload
        await one.say("m2", "hello m2")
        await one.until(lambda: shown(one, "ack hello m2"), SOON)


async def test_a_view_that_cannot_be_drawn_is_set_aside_and_comes_when_it_can(
    tmp_path: Path,
) -> None:
    one = life(tmp_path)
    async with one.living():
        real = one.adapter.render

        def render(view: object, where: object) -> tuple[bytes, ...]:
            if isinstance(view, ReplyView):
                raise RuntimeError("no such shape")
            return real(view, where)  # type: ignore[arg-type]

        one.adapter.render = render  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "could not be shown"), SOON)
        await one.quiet()
        (letter,) = await letters(one)
        one.adapter.render = real  # type: ignore[method-assign]
        assert await one.store.resubmit(letter.id) == ROOM.id
        one.host.wake(ROOM.id)
        await one.until(lambda: shown(one, "ack hello m1"), SOON)


async def test_what_a_platform_cannot_be_given_for_very_long_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "MAX_UNSENT", 0.5)
    one = life(tmp_path)
    async with one.living():
        failing(one, "send", Unsent("no route"))
        await one.say("m1", "hello m1")
        await one.quiet(SOON)
        kinds = [letter.kind for letter in await letters(one)]
        assert kinds == ["view"]


@pytest.mark.pick("commits that fail for a while")
async def test_the_time_of_a_call_follows_what_it_uploads(tmp_path: Path) -> None:
    """More than a lease may be left for: it is renewed meanwhile, or the upload ends with it."""
    one = life(tmp_path)
    one.ttl = 0.9
    async with one.living():
        files = (MediaFile(ref="r", name="big.bin", mime="x/y", size=300_000),)
        real = one.adapter.send

        async def slow(where: object, payload: bytes) -> str:
            await asyncio.sleep(1.5 if b"big.bin" in payload else 0)
            return await real(where, payload)  # type: ignore[arg-type]

        one.adapter.send = slow  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: one.host.sessions or shown(one, "ack"))
        session = one.host.sessions.get(ROOM.id)
        assert session is not None
        view = session.state.want("row-9", "media", Media(files=files), 1, final=True)
        session.state.show(
            msgspec.structs.replace(host_changes(), views=(view,), row=session.state.row)
        )
        await one.until(lambda: shown(one, "big.bin"), SOON)
        await one.quiet(SOON)
        assert len([s for s in one.ledger.all("send") if "big.bin" in str(s)]) == 1


def host_changes() -> object:
    from gateway.store.rows import Changes

    return Changes()


async def test_a_row_that_always_fails_is_told_and_kept(tmp_path: Path) -> None:
    one = life(tmp_path)
    async with one.living():

        async def learn(sender: object) -> None:
            raise RuntimeError("a bug")

        real = one.services.access.learn
        one.services.access.learn = learn  # type: ignore[method-assign]
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "It is kept as"), SOON)
        await one.quiet()
        one.services.access.learn = real  # type: ignore[method-assign]
        (letter,) = await letters(one)
        assert await one.store.resubmit(letter.id) == ROOM.id
        one.host.wake(ROOM.id)
        await one.until(lambda: shown(one, "ack hello m1"), SOON)


async def test_a_file_that_cannot_be_looked_at_ends_no_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "TIDY_EVERY", 0.1)
    one = life(tmp_path)
    one.ttl = 0.4
    tried: list[float] = []

    def tidy(before: float) -> int:
        tried.append(before)
        raise FileNotFoundError("gone meanwhile")

    one.agent.tidy = tidy  # type: ignore[method-assign]
    async with one.living():
        await one.until(lambda: len(tried) >= 2, SOON)
        assert not one.task.done()
        await one.say("m1", "hello m1")
        await one.until(lambda: shown(one, "ack hello m1"), SOON)


async def test_turns_begin_a_few_at_a_time(tmp_path: Path) -> None:
    from gateway.conversation.slots import Slots
    from gateway.messages import Conversation

    one, full = life(tmp_path), asyncio.Event()
    async with one.living():
        one.equip(slots=Slots(3))
        under_way, most = [0], [0]
        real = one.agent.complete

        async def complete(*given: object) -> object:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            if most[0] == 3:
                full.set()
            try:
                await full.wait()  # or the first might have ended before the third begins
                return await real(*given)  # type: ignore[arg-type]
            finally:
                under_way[0] -= 1

        one.agent.complete = complete  # type: ignore[method-assign]
        rooms = [
            Conversation(platform="test", account="a", channel=f"c{n}", private=True)
            for n in range(20)
        ]
        for n, room in enumerate(rooms):
            await one.say(f"m{n}", f"hello {n}", ANN, room)
        await one.quiet(20)
        assert most[0] == 3, "all places are used, and no more"
        for n, room in enumerate(rooms):
            assert any(f"ack hello {n}" in str(v) for v in one.screen(room).values())
        assert one.services.slots.running == one.services.slots.waiting == 0


@pytest.mark.pick("commits that fail for a while")
async def test_sessions_that_ended_here_with_their_lease_are_no_crashes(tmp_path: Path) -> None:
    """A disk that takes small commits only, and no giving back, gives up no turn."""
    one = life(tmp_path)
    async with one.living():
        real, failed = one.store.submit, list[int]()

        def submit(lease: object, changes: object) -> "asyncio.Future[None]":
            large = bool(changes.records)  # type: ignore[attr-defined]
            if large and len(failed) < 5 and one.ledger.all("tool"):
                failed.append(1)
                one.store._store._break(lease)
                future = asyncio.get_running_loop().create_future()
                future.set_exception(StoreFailed("disk full"))
                return future
            return real(lease, changes)

        async def give_back(lease: object) -> None:
            raise StoreFailed("disk full")

        one.store.submit = submit  # type: ignore[method-assign]
        one.store.give_back = give_back  # type: ignore[attr-defined]
        await one.say("m1", "do look")
        await one.until(lambda: shown(one, "done look"), 4 * SOON)
        assert len(failed) == 5 and await letters(one) == ()


async def test_why_something_was_set_aside_tells_no_secret(tmp_path: Path) -> None:
    """Platforms quote in their errors what they were sent, or the address with a key in it."""
    key = "ghp_aB3dE7gH1jK5mN9pQ2sT6vW8xY4zaB3dE7gH"
    one = life(tmp_path)
    async with one.living():
        failing(one, "send", Rejected(f"no call of https://a:{key}@platform.example"))
        await one.say("m1", "hello m1")
        await one.quiet(SOON)
        (letter, *_) = await letters(one)
        assert "platform.example" in letter.why and "gH1jK5" not in letter.why
