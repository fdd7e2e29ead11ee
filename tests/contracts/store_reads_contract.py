"""The store's contract, second part: what is read, and what outlives a restart."""

import pytest
from msgspec.structs import replace

from agent_core.messages import user
from gateway.errors import Unstorable
from gateway.folded_text import fold_text
from gateway.messages import (
    ButtonPressed,
    Conversation,
    FormSubmitted,
    Inbound,
    JobFired,
    MessageReceived,
    Sender,
    StopPressed,
    read_conversation,
)
from gateway.ports import ListScope, account_scope, channel_scope, parse_words, person_scope
from gateway.store import search
from gateway.store.removal.periods import CREATED
from gateway.store.rows import (
    AcquiredConversation,
    AuditRow,
    Changes,
    ConversationRow,
    ConversationSettings,
)
from gateway.views import Activity, ReplyView
from tests.contracts.store_values import (
    NOTHING,
    START,
    StoreWorld,
    having_work,
    keys_of,
    letter,
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
from tests.sampling import dice
from tests.spellings import spell

C1 = place().id
C2 = place("c2").id


def elsewhere(n: int) -> MessageReceived:
    """A message to another account."""
    return replace(said(n), conversation=replace(place(), account="another"))


class ReadContract:
    """What was committed is read back, whole and in order."""

    async def test_a_turn_with_its_records_and_views(self, world: StoreWorld) -> None:
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
        assert await world.store.locate("t1") == C1
        assert await world.store.turn("none") is None
        assert await world.store.locate("none") == ""
        assert await world.store.records("none") == ()
        assert await world.store.outbox(C1, "none") == ()
        assert await world.store.outbox(C2, "t1") == (), "no other conversation has it"

    async def test_the_transcript_by_range(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        await world.store.submit(lease, Changes(transcript=tuple(spoken(n) for n in range(12))))
        read = world.store.transcript
        assert await read(C1, 9, 12) == (spoken(9), spoken(10), spoken(11))
        assert await read(C1, 11, 99) == (spoken(11),)
        assert await read(C1, 3, 3) == ()
        assert await read(C2, 0, 12) == ()

    async def test_the_newest_of_the_transcript_in_order(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        await world.store.submit(lease, Changes(transcript=tuple(spoken(n) for n in range(12))))
        assert await world.store.newest(C1, 2) == (spoken(10), spoken(11))
        assert len(await world.store.newest(C1, 99)) == 12
        assert await world.store.newest(C1, 0) == await world.store.newest(C2, 5) == ()

    async def test_a_thread_is_the_rows_that_are_named(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        await world.store.submit(lease, Changes(transcript=tuple(spoken(n) for n in range(12))))
        thread = await world.store.thread(C1, ((2, 4), (9, 10)))
        assert thread == (lines(2), lines(3), lines(9))
        assert await world.store.thread(C1, ()) == await world.store.thread(C2, ((0, 9),)) == ()

    async def test_rows_that_may_hold_words(self, world: StoreWorld) -> None:
        for channel, text in (("c1", "Grüße aus Köln"), ("c2", 'say "on" \\ off')):
            lease = await take(world.store, channel)
            rows = tuple(
                replace(spoken(n), messages=(user(f"{text} {n}"),)) for n in range(search.PIECE + 9)
            )
            await world.store.submit(lease, Changes(transcript=rows))

        async def found(*words: str, limit: int = 1_000) -> list[tuple[str, int, int]]:
            holding = await world.store.find_holding(
                (C2, C1, "none"), frozenset(map(fold_text, words)), limit
            )
            return [(name, rows[0].n, len(rows)) for name, rows in holding if rows]

        every = search.PIECE + 9
        assert await found("grüsse", "köln") == [(C1, 0, every)]
        assert await found('"on"', "\\", "say") == [(C2, 0, every)]
        assert await found("köln", "off") == []
        assert await found(str(every - 1), limit=5) == [(C2, every - 5, 5), (C1, every - 5, 5)]
        assert await found("100", limit=5) == []
        assert await found(limit=every - 8) == [(C2, 8, every - 8), (C1, 8, every - 8)]

    async def test_views_by_rev_and_the_latest(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        rows = tuple(view(f"v{n}", rev=20 - n, position=n) for n in range(1, 13))
        await world.store.submit(lease, Changes(views=rows))
        after = await world.store.views(C1, 10, 3)
        assert [(one.rev, one.name) for one in after] == [(11, "v9"), (12, "v8"), (13, "v7")]
        assert await world.store.views(C1, 19, 3) == ()
        latest = await world.store.latest(C1, 3)
        assert [one.name for one in latest] == ["v10", "v11", "v12"]
        assert len(await world.store.latest(C1, 99)) == 12
        assert await world.store.latest(C2, 3) == ()
        older = await world.store.latest(C1, 3, 10)
        assert [one.name for one in older] == ["v7", "v8", "v9"]
        assert [one.name for one in await world.store.latest(C1, 99, 3)] == ["v1", "v2"]
        assert await world.store.latest(C1, 9, 1) == ()

    async def test_conversations_newest_first_with_their_state(self, world: StoreWorld) -> None:
        for n, channel in enumerate(("c1", "c2", "c3")):
            world.clock.time = START + n
            await world.store.accept([said(n, channel)])
        await world.store.accept([elsewhere(8)])
        world.clock.time += 10
        await world.store.accept([said("x", "c1")])
        waiting = await take(world.store, "c1")
        titled = Changes(turns=(turn(status="parked"),), row=ConversationRow(title="Trip"))
        assert await world.store.release(waiting, 99, titled)
        await take(world.store, "c3")
        found = await world.store.recent(account_scope(place()), 10)
        assert [(one.conversation, one.state, one.title) for one in found] == [
            (C1, "waiting", "Trip"),
            (place("c3").id, "running", ""),
            (C2, "idle", ""),
        ]
        assert found[0].at == START + 12
        assert await world.store.recent(account_scope(place()), 2) == found[:2]
        assert await world.store.summary(C1) == found[0]
        assert await world.store.summary(place("none").id) is None

    async def test_the_settings_of_a_conversation(self, world: StoreWorld) -> None:
        assert await world.store.settings(C1) == ConversationSettings()
        lease = await take(world.store)
        assert await world.store.settings(C1) == ConversationSettings()
        chosen = ConversationSettings(plans="on", model="lite")
        await world.store.submit(lease, Changes(row=ConversationRow(settings=chosen)))
        assert await world.store.settings(C1) == chosen

    async def test_a_list_keeps_its_order_whoever_goes_on(self, world: StoreWorld) -> None:
        """Whatever is written into lists and when, they are in the order of the last messages."""
        order: list[str] = []
        for n, which in enumerate("abcaabbbcadcbaaacd"):
            world.clock.time += 0.01
            await world.store.accept([said(n, which)])
            order = [which, *(one for one in order if one != which)]
        found = await world.store.recent(account_scope(place()), 10)
        assert [one.conversation for one in found] == [place(one).id for one in order]

    async def test_lists_of_a_group_and_of_a_person(self, world: StoreWorld) -> None:
        ann, bob = (Sender(platform="test", id=name) for name in ("ann", "bob"))
        for n, (where, sender) in enumerate(
            (
                (replace(place("g"), thread="1"), ann),
                (replace(place("g"), thread="2", person="bob"), bob),
                (replace(place("g2"), thread="1"), ann),
                (replace(place("pa"), private=True), ann),
                (replace(place("pa2"), private=True, account="other"), ann),
                (replace(place("pb"), private=True), bob),
            )
        ):
            world.clock.time += 1
            await world.store.accept([replace(said(n), conversation=where, sender=sender)])

        async def names(scope: ListScope) -> list[str]:
            found = await world.store.recent(scope, 10)
            return [read_conversation(one.conversation).channel for one in found]

        assert await names(channel_scope(replace(place("g"), thread="9"))) == ["g", "g"]
        assert await names(person_scope(ann.key)) == ["pa2", "pa"]
        assert await names(person_scope(bob.key)) == ["pb"]
        assert await names(account_scope(place())) == ["pb", "pa", "g2", "g", "g"]
        job = JobFired(conversation=replace(place("pa"), private=True), event="e", job="j",
                       due=START, text="t")  # fmt: skip
        world.clock.time += 1
        await world.store.accept([job])
        assert await names(person_scope(ann.key)) == ["pa", "pa2"]

    @pytest.mark.parametrize("kind", [ButtonPressed, FormSubmitted, StopPressed])
    async def test_who_decides_in_a_private_conversation_does_not_get_it_into_a_list(
        self, world: StoreWorld, kind: type[ButtonPressed | FormSubmitted | StopPressed]
    ) -> None:
        ann, bob = (Sender(platform="test", id=name) for name in ("ann", "bob"))
        words = {"message": "", "token": "q:1:once", "text": ""}
        used = {name: words[name] for name in words if name in kind.__struct_fields__}

        def press(where: Conversation, sender: Sender, event: str) -> Inbound:
            return kind(conversation=where, sender=sender, event=event, **used)

        async def listed(who: Sender) -> list[str]:
            found = await world.store.recent(person_scope(who.key), 10)
            return [read_conversation(one.conversation).channel for one in found]

        asked, opened = (replace(place(name), private=True) for name in ("asked", "opened"))
        await world.store.accept([replace(said(1), conversation=asked, sender=ann)])
        world.clock.time += 1
        await world.store.accept([press(asked, bob, "by bob"), press(opened, ann, "by ann")])
        assert (await listed(ann), await listed(bob)) == (["opened", "asked"], [])
        world.clock.time += 1
        told = replace(said(2), conversation=asked, sender=ann)
        await world.store.accept([told, press(asked, bob, "again")])
        assert (await listed(ann), await listed(bob)) == (["asked", "opened"], [])

    async def test_conversations_by_their_words(self, world: StoreWorld) -> None:
        for n, channel in enumerate(("c1", "c2", "c3")):
            world.clock.time = START + n
            await world.store.accept([said(n, channel)])
        first, second = await take(world.store, "c1"), await take(world.store, "c2")
        words = (("a", 'Grüße aus "Köln"'), ("b", "Ein Zug\nfährt"))
        rows = tuple(
            replace(view(name, rev=n + 1), view=ReplyView(text=text))
            for n, (name, text) in enumerate(words)
        )
        await world.store.submit(first, Changes(views=rows, row=ConversationRow(title="Trip")))
        other = replace(view("a", rev=1), turn="t2", view=ReplyView(text="trip to köln"))
        changed = Activity(lines=(), note="Changed files: plan.txt.")
        done = replace(view("activity", rev=2), turn="t2", view=changed)
        await world.store.submit(second, Changes(views=(other, done)))

        async def found(words: str, limit: int = 10) -> list[str]:
            rows = await world.store.recent(account_scope(place()), limit, words)
            return [row.conversation for row in rows]

        assert await found("KÖLN trip") == [C2, C1]
        assert await found("köln trip", 1) == [C2]
        assert await found("zug trip GRÜSSE") == [C1]
        assert await found('"köln" fährt') == [C1]
        assert await found("reply kind") == [], "only what people see"
        assert await found("plan.txt") == [C2], "what was done is seen as well"
        assert await found("100%") == await found("zug_") == []
        assert len(await found("  ")) == 3
        assert await world.store.recent(person_scope("test:7"), 10, "trip") == ()

    async def test_a_word_is_found_in_each_spelling(self, world: StoreWorld) -> None:
        """By the list's search and by that of earlier parts, in plain rows and beside others."""
        word = dice("spelt word").choice(("Häuser", "Straße", "Łódź", "Ёлка", "ガス", "İzmir"))
        for n, written in enumerate(spell(word)):
            world.clock.time += 1
            await world.store.accept([said(n, f"c{n}")])
            lease = await take(world.store, f"c{n}")
            text = f'"two\n{written}\\'
            kept = (replace(spoken(1), messages=(user(text),)), spoken(2))
            title = written if n % 2 else ""
            shown = "none" if title else text
            views = tuple(
                replace(view(name, rev=rev), turn=f"t{n}", view=ReplyView(text=words))
                for rev, (name, words) in enumerate((("a", shown), ("b", "plain – or not")), 1)
            )
            row = ConversationRow(title=title)
            await world.store.submit(lease, Changes(views=views, transcript=kept, row=row))
        every = [place(f"c{n}").id for n in range(len(spell(word)))][::-1]
        for typed in spell(word):
            found = await world.store.recent(account_scope(place()), len(every), typed)
            assert [one.conversation for one in found] == every, typed
            holding = await world.store.find_holding(every, parse_words(typed), 9)
            assert [name for name, rows in holding if rows] == every, typed
        assert not await world.store.recent(account_scope(place()), 9, word * 2)

    @pytest.mark.parametrize("count", [31, 32, 33, 32 + 2_048, 33 + 2 * 2_048])
    async def test_words_are_found_in_every_view_of_a_long_conversation(
        self, world: StoreWorld, count: int
    ) -> None:
        await world.store.accept([said(1)])
        lease = await take(world.store)
        for start in range(1, count + 1, 500):
            rows = (view(f"v{n}v", rev=n) for n in range(start, min(start + 500, count + 1)))
            await world.store.submit(lease, Changes(views=tuple(rows)))
        for n in sorted({1, 2, count - 2_048, count - 32, count - 31, count}):
            wanted = world.store.recent(account_scope(place()), 5, f"v{n}v")
            assert (n >= 1) == bool(await wanted), n
        for words in (f"v{count + 1}v", "v0v"):
            assert not await world.store.recent(account_scope(place()), 5, words)

    async def test_a_new_holder_gets_what_is_open(self, world: StoreWorld) -> None:
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
                letters=(letter("message", str(seqs[1]), said(2)),),
            ),
        )
        opened = await world.store.acquire(C1, "me", 30)
        assert opened is not None
        assert opened == AcquiredConversation(
            lease=replace(lease, token=lease.token + 1, nonce=opened.lease.nonce),
            row=ConversationRow(rev=3, title="Trip"),
            last=seqs[2],
            inbox=opened.inbox,
            turns=(turn("t1"), turn("t2", "parked")),
            views=opened.views,
            questions=(question("q1"),),
            crashed=True,
            began=opened.began,
        )
        assert [row.seq for row in opened.inbox] == [seqs[2]]
        assert sorted(row.name for row in opened.views) == ["a", "b"]

    async def test_the_audit_newest_first(self, world: StoreWorld) -> None:
        for n in range(3):
            lease = await take(world.store, f"c{n}")
            line = AuditRow(at=START + n, who="a", what=f"w{n}", detail="d")
            await world.store.submit(lease, Changes(audit=(line,)))
        assert [line.what for line in await world.store.audit(2)] == ["w2", "w1"]
        assert len(await world.store.audit(10)) == 3


class QuestionContract:
    """Questions are found by id, and those whose time has come by their time."""

    async def test_find_due_and_next(self, world: StoreWorld) -> None:
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

    async def test_a_question_is_due_for_its_reminder_first(self, world: StoreWorld) -> None:
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
        self, world: StoreWorld
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

    async def test_a_closed_question_is_due_no_more(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        await world.store.submit(
            lease, Changes(questions=(question("q1", START), question("q2", START + 1)))
        )
        closed = question("q1", START, "answered")
        await world.store.submit(lease, Changes(questions=(closed,)))
        assert await world.store.find("q1") == (C1, closed)
        assert await world.store.next_due() == START + 1
        assert await world.store.due(START + 9, 10) == ((C1, question("q2", START + 1)),)

    async def test_a_question_may_be_put_off_or_brought_forward(self, world: StoreWorld) -> None:
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
        assert await outcome(world.store.submit(lease, clash)) is Unstorable
        assert await world.store.due(START + 11, 9) == ((C1, question("q2", START + 11)),)


class DirectoryContract:
    """Small documents, written only if they are what the writer believes."""

    async def test_documents_by_key(self, world: StoreWorld) -> None:
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
        assert await store.keys("") == ("code:1", "person:2", CREATED)

    async def test_a_first_write_can_ask_that_nothing_is_there(self, world: StoreWorld) -> None:
        assert await world.store.put("first", b"1", b"")
        assert not await world.store.put("first", b"2", b"")
        assert await world.store.get("first") == b"1"

    async def test_compare_and_set(self, world: StoreWorld) -> None:
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

    async def test_everything_outlives_a_restart(self, world: StoreWorld) -> None:
        seqs = [one.seq for one in await world.store.accept([said(1), said(2)])]
        lease = await take(world.store)
        await world.store.submit(
            lease,
            Changes(
                turns=(turn(status="parked"),),
                records=(record(0),),
                done=(seqs[0],),
                letters=(letter("message", str(seqs[1]), said(2)),),
                views=(view("reply", 1, sent=False),),
                questions=(question("q1", START),),
                transcript=(spoken(0),),
                row=ConversationRow(rev=1),
                audit=(AuditRow(at=START, who="a", what="w", detail="d"),),
            ),
        )
        await world.store.put("k", b"v")
        store = await world.restart()
        assert await having_work(store, "me") == (C1,)
        assert await having_work(store, "other") == (() if world.shared else (C1,))
        opened = await store.acquire(C1, "me", 30)
        assert opened is not None
        assert opened.crashed
        assert opened.lease.token > lease.token
        assert (opened.last, opened.inbox, opened.row.rev) == (seqs[1], (), 1)
        assert [len(each) for each in (opened.turns, opened.views, opened.questions)] == [1] * 3
        assert keys_of(await store.records("t1")) == ["k0"]
        assert await store.transcript(C1, 0, 1) == (spoken(0),)
        assert await store.due(START, 1) == ((C1, question("q1", START)),)
        assert [one.id for one in await store.letters(9)] == [str(seqs[1])]
        assert [line.what for line in await store.audit(9)] == ["w"]
        assert await store.get("k") == b"v"
        assert (await store.accept([said(3)]))[0].seq > seqs[1]

    async def test_events_are_known_for_a_day(self, world: StoreWorld) -> None:
        (one,) = await world.store.accept([said(1)])
        lease = await take(world.store)
        assert await world.store.release(lease, one.seq, Changes(done=(one.seq,)))
        await world.age(0.9)
        assert not (await world.store.accept([said(1)]))[0].fresh
        await world.age(0.2)
        assert (await world.store.accept([said(1)]))[0].fresh

    async def test_journals_of_ended_turns_are_kept_for_30_days(self, world: StoreWorld) -> None:
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

    async def test_the_journal_of_a_dead_turn_stays_as_long_as_its_letter(
        self, world: StoreWorld
    ) -> None:
        """Resubmitted without it, the turn would run its tools again."""
        store, lease = world.store, await take(world.store)
        rows = (record(0, "t1"), record(0, "t2"))
        await store.submit(lease, Changes(turns=(turn("t1"), turn("t2")), records=rows))
        letters = tuple(letter("turn", name, turn(name), f"t-{name}") for name in ("t1", "t2"))
        await store.submit(lease, Changes(letters=letters))
        await world.age(40)
        assert await store.drop("t-t2")
        assert await store.resubmit("t-t1") == C1
        await world.age(31)
        assert [len(await store.records(name)) for name in ("t1", "t2")] == [1, 0]

    async def test_a_sweep_takes_nothing_young(self, world: StoreWorld) -> None:
        await world.store.accept([said(1)])
        lease = await take(world.store)
        changes = Changes(turns=(turn(status="done"),), records=(record(0),))
        await world.store.submit(lease, changes)
        assert await world.store.sweep(world.clock.time) == 0
        assert len(await world.store.records("t1")) == 1
        assert len(await world.store.arrivals(C1, 0)) == 1
        assert not await world.store.release(lease, 0, NOTHING)
