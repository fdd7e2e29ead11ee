"""The rules of the durable turn, one test each, through the real session, outbox and store (the
turn's own through the real scope). `test_mutants` breaks each rule on purpose and sees its test
fail; `test_kills` and `test_interference` go through all points where these take a few."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from agent_core import ambient
from agent_core.errors import (
    BudgetExceeded,
    Cancelled,
    Diverged,
    Misuse,
    Parked,
)
from agent_core.events import ErrorMet
from agent_core.journal import Noted
from agent_core.messages import Text
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, TextDelta
from agent_core.orchestration.brief import Brief
from agent_core.questions import Answer
from agent_core.scope import Scope, Turn
from gateway.conversation.decisions import Decisions
from gateway.delivery import outbox as outbox_module
from gateway.delivery.fold import ViewFold
from gateway.errors import Fenced, StoreFailed
from gateway.messages import (
    CommandGiven,
    Inbound,
    MessageReceived,
    QuestionExpired,
)
from gateway.store.rows import Changes, Lease, RecordRow
from gateway.store.sqlite import SqliteStore
from gateway.store.statements import read_view
from gateway.views import Activity, FormCard, Notice
from tests.agent_core.scope_rig import ASK, Crew, Disk, make, raises, tool, until
from tests.fakes.lives import Died, count_points, killed_at, life
from tests.fakes.world import ANN, BOB, ROOM, Ledger, Life
from tests.stories.kills_rig import finals, open_card

Story = Callable[[Life], Awaitable[None]]
SOON = 8.0


def live(folder: Path, story: Story, prepare: Callable[[Life], None] | None = None) -> Life:
    """One life in this process."""

    async def main() -> Life:
        one = Life(folder)
        if prepare is not None:
            prepare(one)
        async with one.living():
            await story(one)
        return one

    return asyncio.run(main())


def rows(folder: Path, sql: str) -> list[tuple]:
    db = sqlite3.connect(folder / "store.db", timeout=10)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def says(event: str, text: str) -> MessageReceived:
    return MessageReceived(conversation=ROOM, sender=ANN, event=event, message=event, text=text)


def before_opening(*inbounds: Inbound) -> Callable[[Life], None]:
    """What came in while no process ran: stored, and nobody was told."""

    def prepare(one: Life) -> None:
        opening = one.open_store

        async def open_store(folder: Path) -> SqliteStore:
            store = await opening(folder)
            await store.accept(inbounds)
            return store

        one.open_store = open_store

    return prepare


def dying(name: str, kills: int = 1) -> Callable[[Life], None]:
    """The process dies at the points called `name`, in its first `kills` lives."""

    def prepare(one: Life) -> None:
        hit, died = one.points.hit, len(one.ledger.all("died"))

        def deadly(at: str) -> None:
            hit(at)
            if at == name and died < kills:
                one.ledger.note("died", at=at)
                os.kill(os.getpid(), signal.SIGKILL)

        one.points.hit = deadly

    return prepare


async def parked(one: Life, text: str = "do deploy") -> None:
    await one.say("m1", text)
    await one.until(lambda: one.cards(), SOON)
    await one.quiet(SOON)


async def ends(one: Life, start: str) -> None:
    await one.until(lambda: finals(one, start), SOON)
    await one.quiet(SOON)


# ---- store and session ---------------------------------------------------------------------


def test_R01_a_release_is_refused_for_newer_rows_only(tmp_path: Path) -> None:
    async def main() -> None:
        store = await SqliteStore.open(tmp_path / "store.db")
        first, second = await store.accept([says("e1", "a"), says("e2", "b")])
        opened = await store.acquire(ROOM.id, "r1", 30.0)
        assert opened is not None
        assert not await store.release(opened.lease, first.seq, Changes()), "a newer row is there"
        assert await store.release(opened.lease, second.seq, Changes()), "rows left knowingly"
        assert await store.work("r1") == ()
        await store.close()

    asyncio.run(main())


def test_R02_an_answer_makes_its_turn_runnable_in_the_same_commit() -> None:
    """Killed around the press; `test_kills` does it at every point."""

    async def story(one: Life) -> None:
        await one.say("m1", "do deploy")
        await one.until(lambda: open_card(one) or finals(one, "done"), SOON)
        if not finals(one, "done"):
            await one.quiet(SOON)
            one.points.hit("pressing")
            if open_card(one):
                await one.press("p1", open_card(one).buttons[0].token)
        await ends(one, "done deploy")

    def look(folder: Path, label: str) -> None:
        assert Counter(t["name"] for t in Ledger(folder / "ledger.jsonl").all("tool")) in (
            Counter(deploy=1),
            Counter(),
        ), label

    names = count_points(story)["names"]
    start = names.index("pressing") + 1
    for k in range(start, start + 8):
        try:
            killed_at([{k}], story, look, f"killed at {k} ({names[k - 1]})")
        except Died as error:
            raise AssertionError(f"killed at {k}: {str(error)[-300:]}") from None


def test_R02_an_answer_in_the_moment_of_parking_is_not_overwritten(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        suspend, done = Turn.suspend, []

        def at_park(turn: Turn, reason: BaseException) -> None:
            suspend(turn, reason)
            if isinstance(reason, Parked) and not done:
                done.append(1)
                session = next(iter(one.host.sessions.values()))
                question = next(iter(session.state.questions.values()))
                said = Answer(choice="once", by=ANN.key, name="Ann")
                decide = Decisions(session.context).decide
                one.host.spawn(partial(decide, question, said, 999), "press")

        Turn.suspend = at_park
        try:
            await one.say("m1", "do deploy")
            await ends(one, "done deploy")
        finally:
            Turn.suspend = suspend

    live(tmp_path, story)
    assert rows(tmp_path, "SELECT status FROM turns") == [("done",)]


def test_R03_what_came_in_is_read_before_a_turn_is_resumed(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        """Nobody says a word: what wakes a session has it read its inbox."""
        await one.until(
            lambda: rows(one.folder, "SELECT 1 FROM turns WHERE status = 'cancelled'"), SOON
        )
        await one.quiet(SOON)

    async def first(one: Life) -> None:
        await one.say("m1", "do note|look")
        await story(one)

    assert life(tmp_path, first, dying("tool look")) is None
    ledger = Ledger(tmp_path / "ledger.jsonl")
    before = len(ledger.all("model")), len(ledger.all("tool"))
    stop = CommandGiven(conversation=ROOM, sender=ANN, event="s1", message="s1", name="stop")
    live(tmp_path, story, before_opening(stop))
    assert (len(ledger.all("model")), len(ledger.all("tool"))) == before


def test_R04_an_answer_continues_its_branch_while_a_sibling_works(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        one.agent.gates["note"] = asyncio.Event()
        await one.say("m1", "do note deploy")
        await one.until(lambda: open_card(one), SOON)
        await one.press("p1", open_card(one).buttons[0].token)
        await one.until(lambda: "tool deploy" in one.points.names, SOON)
        one.agent.gates["note"].set()
        await ends(one, "done note deploy")

    names = live(tmp_path, story).points.names
    assert names.index("tool deploy") < names.index("tool note done")


@pytest.mark.parametrize("first", ["expired", "press"])
def test_R05_the_first_row_decides(tmp_path: Path, first: str) -> None:
    async def story(one: Life) -> None:
        await parked(one)
        token = open_card(one).buttons[0].token
        question = token.split(":")[1]
        expired = QuestionExpired(conversation=ROOM, event="x1", question=question)
        acts = [lambda: one.host.accept([expired]), lambda: one.press("p1", token)]
        for act in acts if first == "expired" else reversed(acts):
            await act()
        await ends(one, "done deploy")
        assert one.services.counters.get("rows_failed", 0) == 0

    live(tmp_path, story)
    tools = Ledger(tmp_path / "ledger.jsonl").all("tool")
    assert len(tools) == (0 if first == "expired" else 1)
    status = "expired" if first == "expired" else "answered"
    assert rows(tmp_path, "SELECT status FROM questions") == [(status,)]
    assert rows(tmp_path, "SELECT count(*) FROM inbox WHERE state != 1") == [(0,)]


def test_R06_nothing_to_steer_is_a_record_too() -> None:
    async def main() -> None:
        disk, crew = Disk(), Crew()
        turn, scope = make(disk, crew)
        assert await scope.steer("round-1") == ()
        await crew.think(scope, "model", "x")
        crew.said = [(7, "late")]
        _, scope = make(disk, crew)
        assert await scope.steer("round-1") == (), "a past round heard a later message"
        assert await scope.steer("round-2") == ("late",)

    asyncio.run(main())


def test_R06_a_message_during_a_turn_lands_in_it_once(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        await one.host.accept(
            [
                CommandGiven(
                    conversation=ROOM, sender=ANN, event="c", message="c", name="mode",
                    arguments="steer",
                )
            ]
        )  # fmt: skip
        await one.quiet(SOON)
        await one.say("m1", "do look|add")
        await one.until(lambda: one.cards() or finals(one, "done look"), SOON)
        await one.quiet(SOON)

    assert life(tmp_path, story, dying("tool add")) is None
    live(tmp_path, story, before_opening(says("m2", "hurry")))
    texts = [m["view"].get("text", "") for m in Ledger(tmp_path / "ledger.jsonl").all("send")]
    assert sum("hurry" in text for text in texts) == 1, texts
    assert rows(tmp_path, "SELECT count(*) FROM inbox WHERE state != 1") == [(0,)]


def test_R07_deferred_records_ride_in_order_on_the_next_barrier() -> None:
    async def main() -> None:
        disk, crew = Disk(), Crew()
        turn, scope = make(disk, crew)
        await scope.once("now", lambda: 1)
        scope.emit(ErrorMet(text="a"), "a")
        await scope.steer()
        assert disk.commits == []
        await crew.use(scope, "note", "effect")
        assert disk.commits == [("now", "event:a", "steer", "call-note#start"), ("call-note",)]

    asyncio.run(main())


def test_R08_turn_code_forks_only_by_parallel() -> None:
    async def main() -> None:
        disk, crew, gate = Disk(), Crew(), asyncio.Event()
        _, scope = make(disk, crew)
        with pytest.raises(Misuse):
            await asyncio.ensure_future(scope.steer())

        async def fails(branch: Scope) -> str:
            gate.set()
            raise KeyError("first to fail")

        async def works(branch: Scope) -> str:
            await crew.use(branch, "note", "effect", gate)
            await asyncio.sleep(0.01)
            await crew.use(branch, "look", "pure")
            raise ValueError("first declared")

        with pytest.raises(ValueError, match="first declared"):
            await scope.parallel({"works": works, "fails": fails})
        assert "works/call-look" in disk.keys(), "a sibling was cut off"  # noqa: SIM118

    asyncio.run(main())


def test_R09_a_limit_is_an_argument_and_its_outcome_a_record() -> None:
    async def main() -> None:
        disk, results = Disk(), []
        for _ in range(2):
            _, scope = make(disk, Crew())
            wait = asyncio.Event().wait
            results.append(await scope.tool(tool("t"), "effect", lambda token: wait(), 0.01))
        assert results[0] == results[1] and "Timed out" in results[0].content

    asyncio.run(main())


def test_R10_the_first_suspend_reason_decides_and_closes_every_branch() -> None:
    async def main() -> None:
        disk, crew = Disk(), Crew()
        turn, scope = make(disk, crew)
        with pytest.raises(Parked):
            try:
                await scope.ask(ASK)
            finally:
                turn.suspend(Cancelled())
                await crew.use(scope, "note", "effect")
        assert isinstance(turn.dead, Parked) and crew.did["note"] == 0

    asyncio.run(main())


def test_R11_the_journal_changes_in_the_step_that_queues_the_commit(tmp_path: Path) -> None:
    async def main() -> None:
        disk, crew = Disk(), Crew()
        disk.hold = asyncio.Event()
        turn, scope = make(disk, crew)

        async def branch(inner: Scope) -> str:
            inner.emit(ErrorMet(text="x"), "x")
            return await crew.think(inner, "model", "hi")

        async def release() -> None:
            await until(lambda: len(disk.commits) == 2)
            disk.hold.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(release())
            await scope.parallel({"a": branch, "b": branch})
        assert sorted(disk.keys()) == ["a/event:x", "a/model", "b/event:x", "b/model"]

    asyncio.run(main())


def test_R11_after_a_failed_commit_no_later_one_of_the_lease_passes(tmp_path: Path) -> None:
    async def main() -> None:
        store = await SqliteStore.open(tmp_path / "store.db")
        lease = await held(store, "e1")
        record = Noted(key="x", value=msgspec.Raw(b"1"))
        row = Changes(records=(RecordRow(turn="t", n=0, record=record),))
        await store.submit(lease, row)
        twice = store.submit(lease, row)
        later = store.submit(lease, Changes(records=(RecordRow(turn="t", n=1, record=record),)))
        for future in (twice, later):
            with pytest.raises(StoreFailed):
                await future
        assert len(await store.records("t")) == 1
        await store.close()

    asyncio.run(main())


async def held(store: SqliteStore, event: str) -> Lease:
    await store.accept([says(event, "x")])
    opened = await store.acquire(ROOM.id, "r1", 30.0)
    assert opened is not None
    return opened.lease


def test_R12_keys_come_from_data_and_records_know_their_call() -> None:
    async def main() -> None:
        disk, crew = Disk(), Crew()
        _, scope = make(disk, crew)
        await crew.use(scope, "note", "effect")
        with pytest.raises(Diverged, match="twice"):
            await crew.use(scope, "note", "effect")
        _, scope = make(disk, crew)
        other = msgspec.structs.replace(tool("note"), arguments='{"text": "other"}')
        with pytest.raises(Diverged, match="another call"):
            await scope.tool(other, "effect", raises(AssertionError("it ran")))

    asyncio.run(main())


def test_R13_what_a_turn_reads_is_recorded_at_its_start(tmp_path: Path) -> None:
    systems: list[str] = []

    def life_of(name: str) -> Callable[[Life], None]:
        def prepare(one: Life) -> None:
            brief, complete = one.agent.brief, one.agent.complete

            def other(*args: object) -> Brief:
                return msgspec.structs.replace(brief(*args), system=name)

            async def noted(model: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
                systems.append(request.system)
                return await complete(model, request, on_delta)

            one.agent.brief, one.agent.complete = other, noted

        return prepare

    async def press(one: Life) -> None:
        await one.press("p1", open_card(one).buttons[0].token)
        await ends(one, "done deploy")

    live(tmp_path, parked, life_of("one"))
    live(tmp_path, press, life_of("two"))
    assert systems == ["one", "one"]

    async def same_types() -> None:
        disk = Disk()
        turn, scope = make(disk, Crew())
        first = await scope.once("x", lambda: {1: (2, 3)})
        turn.journal.put()
        _, scope = make(disk, Crew())
        assert await scope.once("x", dict) == first

    asyncio.run(same_types())


def test_R14_a_spent_budget_is_a_record() -> None:
    """The product has no budget yet: what stands is that a refusal is history, not a bug."""

    async def main() -> None:
        disk = Disk()
        for error in (BudgetExceeded("7 of 6"), AssertionError("called again")):
            _, scope = make(disk, Crew())
            with pytest.raises(BudgetExceeded, match="7 of 6"):
                await scope.model(raises(error))

    asyncio.run(main())


def test_R15_a_preview_is_grown_again_in_the_same_message(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        async def slow(model: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
            on_delta(TextDelta(text="part"))
            await one.until(lambda: one.ledger.all("send"), SOON)
            on_delta(TextDelta(text="."))
            await one.until(lambda: one.ledger.all("edit"), SOON)
            one.points.hit("thought")
            parts = (Text(text="whole"),)
            return ModelReply(parts=parts, model="m", provider="p", finish="stop")

        one.agent.complete = slow
        await one.say("m1", "hello")
        await ends(one, "whole")

    assert life(tmp_path, story, dying("thought")) is None
    live(tmp_path, story)
    sends = Ledger(tmp_path / "ledger.jsonl").all("send")
    assert len(sends) == 1, sends


@pytest.mark.parametrize("name", ["look", "add", "note"])
def test_R16_a_tool_cut_off_runs_again_as_its_class_allows(tmp_path: Path, name: str) -> None:
    async def story(one: Life) -> None:
        await one.say("m1", f"do {name}")
        await ends(one, f"done {name}")

    assert life(tmp_path, story, dying(f"tool {name} done")) is None
    live(tmp_path, story)
    ran = Ledger(tmp_path / "ledger.jsonl").all("tool")
    assert len(ran) == (1 if name == "note" else 2)
    assert len({line["key"] for line in ran}) == 1
    kinds = Counter(
        body.split('"kind":"')[1].split('"')[0]
        for (body,) in rows(tmp_path, "SELECT CAST(body AS TEXT) FROM records ORDER BY n")
    )
    assert kinds["tool_started"] == (0 if name == "look" else 1), kinds
    if name == "note":
        views = Ledger(tmp_path / "ledger.jsonl").all()
        assert any("Outcome unknown" in str(line.get("view")) for line in views)


def test_R17_a_turn_that_ends_its_process_each_time_is_given_up(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        await one.say("m1", "do look")
        await one.until(lambda: rows(one.folder, "SELECT 1 FROM turns WHERE status = 'dead'"), SOON)
        await one.quiet(SOON)
        assert any(isinstance(v, Notice) for v in one.screen().values())
        assert await one.store.work("r1") == ()

    lives = [life(tmp_path, story, dying("tool look", 99)) for _ in range(4)]
    assert [one is None for one in lives] == [True, True, True, False]


# ---- views and outbox ----------------------------------------------------------------------


def test_R18_views_are_a_pure_fold_over_records(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        await one.say("m1", "do note deploy|look")
        await one.until(lambda: open_card(one), SOON)
        await one.press("p1", open_card(one).buttons[0].token)
        await ends(one, "done note deploy")
        (turn,) = [t for (t,) in rows(one.folder, "SELECT id FROM turns")]
        records, stored = await one.store.records(turn), await one.store.outbox(ROOM.id, turn)
        folds = [ViewFold(asker="Ann", private=True) for _ in range(2)]
        for record in records:
            for fold in folds:
                fold.add(record)
        assert folds[0] == folds[1]
        assert {row.name: (row.view, row.version) for row in stored} == {
            name: (shape.view, shape.version) for name, shape in folds[0].shapes.items()
        }

    live(tmp_path, story)


def test_R19_the_outbox_is_desired_state(tmp_path: Path) -> None:
    """A first send is marked before the call; what is overtaken is not sent."""

    async def story(one: Life) -> None:
        await one.say("m1", "hello")
        await ends(one, "ack hello")

    assert life(tmp_path, story, dying("sent")) is None
    live(tmp_path, story)
    sends = Ledger(tmp_path / "ledger.jsonl").all("send")
    notes = [line["view"].get("note", "") for line in sends]
    assert len(notes) == 2 and not notes[0] and notes[1], "a message in doubt says so"


def test_R19_an_overtaken_edit_is_merged(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        gate, send = asyncio.Event(), one.adapter.send

        async def held_back(*args: object) -> str:
            native = await send(*args)
            if len(one.ledger.all("send")) == 1:
                await gate.wait()
            return native

        one.adapter.send, one.agent.delays["look"] = held_back, 0.05
        await one.say("m1", "do note|add|look")
        await one.until(lambda: len(one.ledger.all("tool")) == 3, SOON)
        gate.set()
        await ends(one, "done note")

    one = live(tmp_path, story)
    shown = [v for v in one.screen().values() if isinstance(v, Activity)]
    assert len(shown) == 1 and [line.state for line in shown[0].lines] == ["done"] * 3
    assert len(one.ledger.all("edit")) <= 3, "it changed five times"
    assert len(one.ledger.all("send")) == 2


@pytest.mark.parametrize("thinks", [0.0, 0.2])
def test_R19_nothing_is_sent_before_its_mark_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thinks: float
) -> None:
    """Not even what grows while the commit of the whole answer is on its way to a slow disk."""
    apply, marked = SqliteStore._apply, list[bool]()

    def late(self: SqliteStore, c: sqlite3.Connection, lease: Lease, changes: Changes) -> None:
        threading.Event().wait(0.1 if changes.views else 0.0)
        apply(self, c, lease, changes)

    async def story(one: Life) -> None:
        send = one.adapter.send

        async def looked_at(*args: object) -> str:
            with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as disk:
                found = [read_view(body) for (body,) in disk.execute("SELECT body FROM outbox")]
            marked.append(any(row.sending >= 0 for row in found))
            return await send(*args)

        one.adapter.send, one.agent.delays["growing"] = looked_at, thinks
        await one.say("m1", "hello")
        await ends(one, "ack hello")

    monkeypatch.setattr(SqliteStore, "_apply", late)
    live(tmp_path, story)
    assert marked == [True]


def test_R20_a_sender_whose_lease_is_short_waits_for_its_renewal(tmp_path: Path) -> None:
    """A machine that slept: nothing is sent by an old lease, and all of it by the renewed one."""

    async def story(one: Life) -> None:
        one.agent.delays["model"] = 0.05
        await one.say("m1", "hello")
        await one.until(lambda: one.host.sessions, SOON)
        (session,) = one.host.sessions.values()
        may_send, asked = session.state.may_send, list[bool]()

        def looked(seconds: float) -> bool:
            asked.append(may_send(seconds))
            if len(asked) == 1:
                session.state.lease_timer.deadline += 60.0  # it is renewed after all
            return asked[-1]

        session.state.may_send = looked  # type: ignore[method-assign]
        # less than a send may take, and more than the third at which nothing else begins
        session.state.lease_timer.deadline = ambient.monotonic() + 13.0
        await ends(one, "ack hello")
        assert asked[0] is False and asked[1:] and all(asked[1:])

    live(tmp_path, story)
    assert len(Ledger(tmp_path / "ledger.jsonl").all("send")) == 1


def test_R20_the_sender_is_asked_to_stop_never_cancelled(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        send = one.adapter.send

        async def slow(*args: object) -> str:
            native = await send(*args)
            await asyncio.sleep(0.1)
            return native

        one.adapter.send = slow
        await one.say("m1", "hello")
        await one.until(lambda: one.ledger.all("send"), SOON)
        if len(one.ledger.all("drained")) == 0:
            one.ledger.note("drained")
            await one.host.drain(0.0)
        else:
            await ends(one, "ack hello")

    live(tmp_path, story)
    live(tmp_path, story)
    assert len(Ledger(tmp_path / "ledger.jsonl").all("send")) == 1
    assert rows(tmp_path, "SELECT count(*) FROM outbox WHERE unsent = 1") == [(0,)]


def test_R21_no_call_outlives_the_lease(tmp_path: Path) -> None:
    """A send that may take longer than the lease does not start; a holder that cannot renew ends
    its turn before another can own it."""

    async def short(one: Life) -> None:
        await one.say("m1", "hello")
        await one.until(lambda: rows(one.folder, "SELECT 1 FROM turns WHERE status = 'done'"), SOON)
        await asyncio.sleep(0.05)

    def with_ttl(ttl: float) -> Callable[[Life], None]:
        def prepare(one: Life) -> None:
            one.ttl = ttl

        return prepare

    (tmp_path / "a").mkdir()
    one = live(tmp_path / "a", short, with_ttl(outbox_module.SEND_LIMIT - 1))
    assert one.ledger.all("send") == []

    async def cut_off(one: Life) -> None:
        async def fails(*args: object) -> frozenset[str]:
            raise StoreFailed("away")

        one.store._store.renew = fails
        one.agent.gates["note"] = asyncio.Event()
        await one.say("m1", "do note")
        await one.until(lambda: one.ledger.all("tool"), SOON)
        await one.until(lambda: not one.host.sessions, SOON)

    (tmp_path / "b").mkdir()
    one = live(tmp_path / "b", cut_off, with_ttl(0.9))
    assert "tool note done" not in one.points.names


def test_R22_a_tool_that_eats_its_cancel_is_abandoned(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        hit, gate = one.points.hit, asyncio.Event()

        known = one.agent.toolbox._tools["look"]

        async def call(arguments: object, context: object) -> str:
            hit("tool look")
            one.ledger.note("tool", name="look")
            try:
                await gate.wait()
            except asyncio.CancelledError:
                await gate.wait()
            return "late"

        one.agent.toolbox._tools["look"] = msgspec.structs.replace(known, call=call)
        await one.say("m1", "do look")
        await one.until(lambda: one.ledger.all("tool"), SOON)
        await one.host.accept(
            [CommandGiven(conversation=ROOM, sender=ANN, event="s", message="s", name="stop")]
        )
        await one.say("m2", "hello")
        try:
            await one.until(lambda: finals(one, "ack hello"), 2.0)
        finally:
            gate.set()

    live(tmp_path, story)


def test_R23_a_parked_turn_gives_the_lane_back(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        await parked(one)
        await one.say("m2", "hello", BOB)
        await ends(one, "ack")
        await one.press("p1", open_card(one).buttons[0].token)
        await ends(one, "done deploy")
        await one.say("m3", "do tell")
        await one.until(lambda: any(isinstance(c, FormCard) for c in one.cards()), SOON)
        await one.quiet(SOON)
        await one.say("m4", "blue")
        await ends(one, "done tell: blue")

    live(tmp_path, story)


def test_R24_a_bad_request_does_not_take_its_commit_along(tmp_path: Path) -> None:
    async def main() -> None:
        store = await SqliteStore.open(tmp_path / "store.db")
        lease = await held(store, "e1")
        stale = msgspec.structs.replace(lease, token=lease.token - 1)
        record = Noted(key="x", value=msgspec.Raw(b"1"))
        gate, threads = threading.Event(), set()

        class Row(RecordRow, frozen=True):
            def body(self) -> bytes:
                threads.add(threading.current_thread().name)
                return super().body()

        first = store._writer.submit(lambda c: gate.wait(5.0))
        futures = [
            store.submit(
                stale if n == 7 else lease,
                Changes(records=(Row(turn="t", n=n, record=record),)),
            )
            for n in range(20)
        ]
        before = store.commits
        gate.set()
        await first
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert [n for n, r in enumerate(results) if isinstance(r, Fenced)] == [7], results
        assert sum(r is None for r in results) == 19
        assert len(await store.records("t")) == 19
        assert store.commits - before <= 2, "they did not share a commit"
        assert threads == {"store-writer"}, "encoded before the queue"
        await store.close()

    asyncio.run(main())


def test_a_timer_is_not_forgotten_when_the_store_fails_once(tmp_path: Path) -> None:
    async def story(one: Life) -> None:
        due, failed = one.store.due, list[float]()

        async def fails_once(now: float, most: int, after: object = None) -> object:
            if one.ledger.all("send") and not failed:
                failed.append(now)
                raise StoreFailed("for a moment")
            return await due(now, most, after)

        one.store.due = fails_once  # type: ignore[attr-defined]
        one.equip(question_expires=1.0)
        await one.say("m1", "do deploy")
        await one.until(lambda: any(card.state == "expired" for card in one.cards()), SOON)
        assert failed

    live(tmp_path, story)
