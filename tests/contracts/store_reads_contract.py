"""The store's contract, second part: what is read, and what outlives a restart."""

from msgspec.structs import replace

from gateway.errors import StoreFailed
from gateway.store.rows import AuditRow, Changes, ConversationRow, Opened
from gateway.views import Reply
from tests.contracts.store_values import (
    NOTHING,
    START,
    World,
    keys_of,
    lines,
    outcome,
    place,
    question,
    record,
    said,
    spoken,
    take,
    turn,
    view,
)

C1 = place().id
C2 = place("c2").id


class ReadContract:
    """What was committed is read back, whole and in order."""

    async def test_a_turn_with_its_records_and_views(self, world: World) -> None:
        lease = await take(world.store)
        await world.store.submit(
            lease,
            Changes(
                turns=(turn(),),
                records=tuple(record(n) for n in range(12)),
                views=(view("plan", 2), view("reply", 1)),
            ),
        )
        await world.store.submit(lease, Changes(views=(view("reply", 3, 1, sent=False),)))
        assert await world.store.turn("t1") == turn()
        assert keys_of(await world.store.records("t1")) == [f"k{n}" for n in range(12)]
        rows = await world.store.outbox(C1, "t1")
        assert [(row.name, row.rev) for row in rows] == [("reply", 3), ("plan", 2)]
        assert await world.store.turn("none") is None
        assert await world.store.records("none") == ()
        assert await world.store.outbox(C1, "none") == ()
        assert await world.store.outbox(C2, "t1") == (), "no other conversation has it"

    async def test_the_transcript_by_range(self, world: World) -> None:
        lease = await take(world.store)
        await world.store.submit(lease, Changes(transcript=tuple(spoken(n) for n in range(12))))
        read = world.store.transcript
        assert await read(C1, 9, 12) == (spoken(9), spoken(10), spoken(11))
        assert await read(C1, 11, 99) == (spoken(11),)
        assert await read(C1, 3, 3) == ()
        assert await read(C2, 0, 12) == ()

    async def test_the_newest_of_the_transcript_in_order(self, world: World) -> None:
        lease = await take(world.store)
        await world.store.submit(lease, Changes(transcript=tuple(spoken(n) for n in range(12))))
        assert await world.store.newest(C1, 2) == (spoken(10), spoken(11))
        assert len(await world.store.newest(C1, 99)) == 12
        assert await world.store.newest(C1, 0) == await world.store.newest(C2, 5) == ()

    async def test_the_thread_is_what_was_last_committed(self, world: World) -> None:
        assert await world.store.thread(C1) == ()
        lease = await take(world.store)
        await world.store.submit(lease, Changes(thread=(lines(0), lines(1))))
        await world.store.submit(lease, Changes(row=ConversationRow(end=1)))
        assert await world.store.thread(C1) == (lines(0), lines(1))
        await world.store.submit(lease, Changes(thread=()))
        assert await world.store.thread(C1) == await world.store.thread(C2) == ()

    async def test_views_by_rev_and_the_latest(self, world: World) -> None:
        lease = await take(world.store)
        rows = tuple(view(f"v{n}", rev=20 - n, position=n) for n in range(1, 13))
        await world.store.submit(lease, Changes(views=rows))
        after = await world.store.views(C1, 10, 3)
        assert [(one.rev, one.name) for one in after] == [(11, "v9"), (12, "v8"), (13, "v7")]
        assert await world.store.views(C1, 19, 3) == ()
        latest = await world.store.views(C1, 0, 3, latest=True)
        assert [one.name for one in latest] == ["v10", "v11", "v12"]
        newer = await world.store.views(C1, 10, 3, latest=True)
        assert [one.name for one in newer] == ["v7", "v8", "v9"]
        assert await world.store.views(C2, 0, 3, latest=True) == ()

    async def test_conversations_newest_first_with_their_state(self, world: World) -> None:
        for n, channel in enumerate(("c1", "c2", "c3", "d1")):
            world.clock.time = START + n
            await world.store.accept([said(n, channel)])
        world.clock.time += 10
        await world.store.accept([said("x", "c1")])
        waiting = await take(world.store, "c1")
        titled = Changes(turns=(turn(status="parked"),), row=ConversationRow(title="Trip"))
        assert await world.store.release(waiting, 99, titled)
        await take(world.store, "c3")
        found = await world.store.conversations("test:bot::c", 10)
        assert [(one.conversation, one.state, one.title) for one in found] == [
            (C1, "waiting", "Trip"),
            (place("c3").id, "running", ""),
            (C2, "idle", ""),
        ]
        assert found[0].at == START + 13
        assert len(await world.store.conversations("test:", 2)) == 2
        assert await world.store.conversations("other:", 10) == ()

    async def test_conversations_by_their_words(self, world: World) -> None:
        for n, channel in enumerate(("c1", "c2", "c3")):
            world.clock.time = START + n
            await world.store.accept([said(n, channel)])
        first, second = await take(world.store, "c1"), await take(world.store, "c2")
        words = (("a", 'Grüße aus "Köln"'), ("b", "Ein Zug\nfährt"))
        rows = tuple(
            replace(view(name, rev=n + 1), view=Reply(text=text))
            for n, (name, text) in enumerate(words)
        )
        await world.store.submit(first, Changes(views=rows, row=ConversationRow(title="Trip")))
        other = replace(view("a", rev=1), turn="t2", view=Reply(text="trip to köln"))
        await world.store.submit(second, Changes(views=(other,)))

        async def found(words: str, limit: int = 10) -> list[str]:
            rows = await world.store.conversations("test:", limit, words)
            return [row.conversation for row in rows]

        assert await found("KÖLN trip") == [C2, C1]
        assert await found("köln trip", 1) == [C2]
        assert await found("zug trip GRÜSSE") == [C1]
        assert await found('"köln" fährt') == [C1]
        assert await found("reply kind") == [], "only what people see"
        assert await found("100%") == await found("zug_") == []
        assert len(await found("  ")) == 3
        assert await world.store.conversations("other:", 10, "trip") == ()

    async def test_a_new_holder_gets_what_is_open(self, world: World) -> None:
        seqs = [one.seq for one in await world.store.accept([said(1), said(2), said(3)])]
        lease = await take(world.store)
        await world.store.submit(
            lease,
            Changes(
                turns=(turn("t1"), turn("t2", "parked"), turn("t3", "done"), turn("t4", "dead")),
                views=(view("b", 2, sent=False), view("a", 1, sent=False), view("c", 3)),
                questions=(question("q1"), question("q2", status="answered")),
                row=ConversationRow(rev=3, title="Trip"),
                done=(seqs[0],),
                dead=(seqs[1],),
            ),
        )
        opened = await world.store.acquire(C1, "me", 30)
        assert opened is not None
        assert opened == Opened(
            lease=replace(lease, token=lease.token + 1),
            row=ConversationRow(rev=3, title="Trip"),
            last=seqs[2],
            inbox=opened.inbox,
            turns=(turn("t1"), turn("t2", "parked")),
            views=opened.views,
            questions=(question("q1"),),
            crashed=True,
        )
        assert [row.seq for row in opened.inbox] == [seqs[2]]
        assert sorted(row.name for row in opened.views) == ["a", "b"]

    async def test_the_audit_newest_first(self, world: World) -> None:
        for n in range(3):
            lease = await take(world.store, f"c{n}")
            line = AuditRow(at=START + n, who="a", what=f"w{n}", detail="d")
            await world.store.submit(lease, Changes(audit=(line,)))
        assert [line.what for line in await world.store.audit(2)] == ["w2", "w1"]
        assert len(await world.store.audit(10)) == 3


class QuestionContract:
    """Questions are found by id, and those whose time has come by their time."""

    async def test_find_due_and_next(self, world: World) -> None:
        lease, other = await take(world.store), await take(world.store, "c2")
        assert await world.store.next_due() is None
        soon, later, never = question("q1", START + 5), question("q2", START + 9), question("q3")
        await world.store.submit(lease, Changes(questions=(later, never)))
        await world.store.submit(other, Changes(questions=(soon,)))
        assert await world.store.find("q1") == (C2, soon)
        assert await world.store.find("q3") == (C1, never)
        assert await world.store.find("none") is None
        assert await world.store.next_due() == START + 5
        assert await world.store.due(START, 10) == ()
        assert await world.store.due(START + 5, 10) == ((C2, soon),)
        assert await world.store.due(START + 20, 10) == ((C2, soon), (C1, later))
        assert await world.store.due(START + 20, 1) == ((C2, soon),)

    async def test_a_question_is_due_for_its_reminder_first(self, world: World) -> None:
        lease = await take(world.store)
        asked = replace(question("q1", START + 9), remind=START + 3)
        endless = replace(question("q2"), remind=START + 4)
        await world.store.submit(lease, Changes(questions=(asked, endless)))
        assert await world.store.next_due() == START + 3
        assert await world.store.due(START + 4, 9) == ((C1, asked), (C1, endless))
        both = tuple(replace(one, reminded=True) for one in (asked, endless))
        await world.store.submit(lease, Changes(questions=both))
        assert await world.store.due(START + 8, 9) == ()
        assert await world.store.next_due() == START + 9
        closed = tuple(replace(one, status="answered") for one in both)
        await world.store.submit(lease, Changes(questions=closed))
        assert await world.store.next_due() is None

    async def test_the_end_of_a_question_shown_elsewhere_is_due_until_told(
        self, world: World
    ) -> None:
        lease = await take(world.store)
        asked = replace(question("q1", START + 90), chat="c9")
        await world.store.submit(lease, Changes(questions=(asked,)))
        assert await world.store.next_due() == START
        relayed = replace(asked, relayed=True)
        await world.store.submit(lease, Changes(questions=(relayed,)))
        assert await world.store.due(START + 50, 9) == ()
        ended = replace(relayed, status="answered")
        await world.store.submit(lease, Changes(questions=(ended,)))
        assert await world.store.due(START + 50, 9) == ((C1, ended),)
        await world.store.submit(lease, Changes(questions=(replace(ended, told=True),)))
        assert await world.store.next_due() is None
        assert await world.store.due(START + 99, 9) == ()

    async def test_a_closed_question_is_due_no_more(self, world: World) -> None:
        lease = await take(world.store)
        await world.store.submit(
            lease, Changes(questions=(question("q1", START), question("q2", START + 1)))
        )
        closed = question("q1", START, "answered")
        await world.store.submit(lease, Changes(questions=(closed,)))
        assert await world.store.find("q1") == (C1, closed)
        assert await world.store.next_due() == START + 1
        assert await world.store.due(START + 9, 10) == ((C1, question("q2", START + 1)),)

    async def test_a_question_may_be_put_off_or_brought_forward(self, world: World) -> None:
        lease = await take(world.store)
        both = (question("q1", START + 5), question("q2", START + 6))
        await world.store.submit(lease, Changes(questions=both))
        await world.store.submit(lease, Changes(questions=(question("q1", START + 9),)))
        assert await world.store.next_due() == START + 6
        assert [row.id for _, row in await world.store.due(START + 8, 10)] == ["q2"]
        await world.store.submit(lease, Changes(questions=(question("q2", START + 10),)))
        await world.store.submit(lease, Changes(questions=(question("q1", START + 2),)))
        assert await world.store.next_due() == START + 2
        assert [row.id for _, row in await world.store.due(START + 20, 10)] == ["q1", "q2"]
        await world.store.submit(lease, Changes(questions=(question("q1", 0.0),)))
        assert await world.store.next_due() == START + 10
        await world.store.submit(lease, Changes(questions=(question("q2", START + 11),)))
        assert await world.store.next_due() == START + 11
        clash = Changes(questions=(question("q2", START + 99),), records=(record(0), record(0)))
        assert await outcome(world.store.submit(lease, clash)) is StoreFailed
        assert await world.store.due(START + 11, 9) == ((C1, question("q2", START + 11)),)


class DirectoryContract:
    """Small documents, written only if they are what the writer believes."""

    async def test_documents_by_key(self, world: World) -> None:
        store = world.store
        assert await store.get("person:1") is None
        assert await store.put("person:2", b"two")
        assert await store.put("person:1", b"\x00\xff")
        assert await store.put("code:1", b"x")
        assert await store.get("person:1") == b"\x00\xff"
        assert await store.keys("person:") == ("person:1", "person:2")
        assert await store.put("person:1", None)
        assert await store.put("person:1", None)
        assert await store.keys("person:") == ("person:2",)
        assert await store.keys("") == ("code:1", "person:2")

    async def test_a_first_write_can_ask_that_nothing_is_there(self, world: World) -> None:
        assert await world.store.put("first", b"1", b"")
        assert not await world.store.put("first", b"2", b"")
        assert await world.store.get("first") == b"1"

    async def test_compare_and_set(self, world: World) -> None:
        store = world.store
        assert not await store.put("k", b"new", expected=b"old")
        assert await store.put("k", b"old")
        assert await store.put("k", b"new", expected=b"old")
        assert not await store.put("k", b"newer", expected=b"old")
        assert await store.get("k") == b"new"
        assert not await store.put("k", None, expected=b"old")
        assert await store.put("k", None, expected=b"new")
        assert not await store.put("k", None, expected=b"new")
        assert await store.get("k") is None


class LastingContract:
    """What outlives a restart, and what goes with time."""

    async def test_everything_outlives_a_restart(self, world: World) -> None:
        seqs = [one.seq for one in await world.store.accept([said(1), said(2)])]
        lease = await take(world.store)
        await world.store.submit(
            lease,
            Changes(
                turns=(turn(status="parked"),),
                records=(record(0),),
                done=(seqs[0],),
                dead=(seqs[1],),
                views=(view("reply", 1, sent=False),),
                questions=(question("q1", START),),
                transcript=(spoken(0),),
                row=ConversationRow(rev=1),
                audit=(AuditRow(at=START, who="a", what="w", detail="d"),),
            ),
        )
        await world.store.put("k", b"v")
        store = await world.restart()
        assert await store.work("me") == (C1,)
        assert await store.work("other") == ()
        opened = await store.acquire(C1, "me", 30)
        assert opened is not None
        assert opened.crashed
        assert opened.lease.token > lease.token
        assert (opened.last, opened.inbox, opened.row.rev) == (seqs[1], (), 1)
        assert [len(each) for each in (opened.turns, opened.views, opened.questions)] == [1] * 3
        assert keys_of(await store.records("t1")) == ["k0"]
        assert await store.transcript(C1, 0, 1) == (spoken(0),)
        assert await store.due(START, 1) == ((C1, question("q1", START)),)
        assert [row.seq for row in await store.dead_letters(9)] == [seqs[1]]
        assert [line.what for line in await store.audit(9)] == ["w"]
        assert await store.get("k") == b"v"
        assert (await store.accept([said(3)]))[0].seq > seqs[1]

    async def test_events_are_known_for_a_day(self, world: World) -> None:
        (one,) = await world.store.accept([said(1)])
        lease = await take(world.store)
        assert await world.store.release(lease, one.seq, Changes(done=(one.seq,)))
        await world.age(0.9)
        assert not (await world.store.accept([said(1)]))[0].fresh
        await world.age(0.2)
        assert (await world.store.accept([said(1)]))[0].fresh

    async def test_journals_of_ended_turns_are_kept_for_30_days(self, world: World) -> None:
        lease = await take(world.store)
        rows = (record(0, "t1"), record(0, "t2"))
        await world.store.submit(lease, Changes(turns=(turn("t1"), turn("t2")), records=rows))
        ended = (turn("t1", "done"), turn("t2", "parked"))
        await world.store.submit(lease, Changes(turns=ended))
        await world.age(29)
        assert len(await world.store.records("t1")) == 1
        await world.age(2)
        assert await world.store.records("t1") == ()
        assert len(await world.store.records("t2")) == 1
        assert await world.store.turn("t1") == turn("t1", "done")

    async def test_a_sweep_takes_nothing_young(self, world: World) -> None:
        await world.store.accept([said(1)])
        lease = await take(world.store)
        changes = Changes(turns=(turn(status="done"),), records=(record(0),))
        await world.store.submit(lease, changes)
        assert await world.store.sweep(world.clock.time) == 0
        assert len(await world.store.records("t1")) == 1
        assert len(await world.store.arrivals(C1, 0)) == 1
        assert not await world.store.release(lease, 0, NOTHING)
