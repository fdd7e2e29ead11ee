"""The store's contract, first part: inbox, leases and commits. Every store passes it."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.errors import Fenced, StoreFailed, Unstorable
from gateway.messages import MessageEdited, dedupe_keys
from gateway.store.port import Store
from gateway.store.rows import AuditRow, Changes, ConversationRow
from tests.contracts.store_values import (
    NOTHING,
    SENDER,
    START,
    StoreWorld,
    having_work,
    keys_of,
    letter,
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


class InboxContract:
    """What platforms say is kept once, in order, before it is acknowledged."""

    async def test_rows_come_in_the_order_accepted(self, world: StoreWorld) -> None:
        first = await world.store.accept([said(1), said(2)])
        (third,) = await world.store.accept([said(3)])
        seqs = [one.seq for one in (*first, third)]
        assert seqs == sorted(set(seqs))
        assert all(one.fresh for one in (*first, third))
        rows = await world.store.arrivals(C1, 0)
        assert [row.seq for row in rows] == seqs
        assert [row.inbound for row in rows] == [said(1), said(2), said(3)]
        assert [row.at for row in rows] == [START] * 3
        assert [row.seq for row in await world.store.arrivals(C1, seqs[1])] == seqs[2:]

    async def test_a_known_event_or_message_changes_nothing(self, world: StoreWorld) -> None:
        await world.store.accept([said(1)])
        again = await world.store.accept([said(1, text="other words")])
        same_message = await world.store.accept([replace(said(1), event="e9")])
        same_event = await world.store.accept([replace(said(1), message="m9")])
        assert [one.fresh for one in (*again, *same_message, *same_event)] == [False] * 3
        assert [row.inbound for row in await world.store.arrivals(C1, 0)] == [said(1)]

    async def test_an_edit_of_a_known_message_is_fresh(self, world: StoreWorld) -> None:
        await world.store.accept([said(1)])
        where = place()
        edits = [
            MessageEdited(conversation=where, sender=SENDER, event=f"x{n}", message="m1", text="x")
            for n in range(2)
        ]
        assert [one.fresh for one in await world.store.accept(edits)] == [True, True]

    async def test_a_message_that_was_not_heard_may_come_once_more(self, world: StoreWorld) -> None:
        (one, _) = await world.store.accept([said(1), said(2)])
        lease = await take(world.store)
        unheard = (dedupe_keys(said(1))[1],)
        await world.store.submit(lease, Changes(done=(one.seq,), unheard=unheard))
        store = await world.restart()
        assert [a.fresh for a in await store.accept([said(1), said(2)])] == [False, False]
        again = [replace(said(n), event=f"x{n}") for n in (1, 2, 1)]
        assert [a.fresh for a in await store.accept(again)] == [True, False, False]
        assert [row.inbound.event for row in await store.arrivals(C1, 0)] == ["e2", "x1"]

    async def test_a_batch_of_several_conversations(self, world: StoreWorld) -> None:
        batch = [said(1), said(2, "c2"), said(1), said(3), said(4, "c2")]
        accepted = await world.store.accept(batch)
        assert [one.fresh for one in accepted] == [True, True, False, True, True]
        assert [row.inbound.event for row in await world.store.arrivals(C1, 0)] == ["e1", "e3"]
        assert [row.inbound.event for row in await world.store.arrivals(C2, 0)] == ["e2", "e4"]
        assert await world.store.accept([]) == ()

    async def test_a_redelivery_after_a_restart_is_known(self, world: StoreWorld) -> None:
        (one, _) = await world.store.accept([said(1), said(2)])
        lease = await take(world.store)
        await world.store.submit(lease, Changes(done=(one.seq,)))
        store = await world.restart()
        assert [a.fresh for a in await store.accept([said(1), said(2)])] == [False, False]
        assert [row.inbound.event for row in await store.arrivals(C1, 0)] == ["e2"]

    async def test_what_cannot_be_encoded_is_refused(self, world: StoreWorld) -> None:
        with pytest.raises(StoreFailed):
            await world.store.accept([said(1, text="half a pair: \ud83d")])
        assert await world.store.arrivals(C1, 0) == ()
        assert (await world.store.accept([said(1)]))[0].fresh

    async def test_dead_letters_wait_again_when_resubmitted(self, world: StoreWorld) -> None:
        store = world.store
        seqs = [one.seq for one in await store.accept([said(1), said(2), said(3)])]
        one, two = (letter("message", str(seqs[n]), said(n + 1)) for n in range(2))
        two = replace(two, at=START + 1)
        lease = await take(store)
        await store.submit(lease, Changes(letters=(one, two), done=(seqs[2],)))
        assert await store.letters(10) == (two, one)
        assert await store.letters(1) == (two,)
        assert await store.arrivals(C1, 0) == ()
        assert await store.release(lease, seqs[2], NOTHING)
        assert await having_work(store, "me") == ()
        await world.age(2)  # the letter holds the payload: its row is long swept
        assert await store.resubmit(one.id) == C1
        assert await store.resubmit(one.id) is None
        assert await store.resubmit("12345") is None
        assert await store.letters(10) == (two,)
        assert await having_work(store, "me") == (C1,)
        opened = await store.acquire(C1, "me", 30)
        assert opened is not None
        assert [row.inbound for row in opened.inbox] == [said(1)]

    async def test_dead_letters_are_dropped(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        one = letter("turn", "t1", id="t-1")
        await world.store.submit(lease, Changes(letters=(one,)))
        assert await world.store.drop("t-1")
        assert not await world.store.drop("t-1")
        assert await world.store.letters(10) == ()

    @pytest.mark.parametrize("order", sorted(set(itertools.permutations("ddr"))))
    async def test_of_operators_beside_each_other_one_has_a_letter(
        self, world: StoreWorld, order: tuple[str, ...]
    ) -> None:
        """They drop and resubmit it: what the others are told is that it is not there."""
        store, lease = world.store, await take(world.store)
        (row,) = await store.accept([said(1)])
        dead = letter("message", str(row.seq), said(1))
        await store.submit(lease, Changes(letters=(dead,)))
        done: list[Any] = await asyncio.gather(
            *(store.drop(dead.id) if one == "d" else store.resubmit(dead.id) for one in order)
        )
        assert sum(map(bool, done)) == 1 and await store.letters(9) == ()
        resubmitted = C1 in done
        assert [one.inbound for one in await store.arrivals(C1, 0)] == [said(1)] * resubmitted

    async def test_a_row_resubmitted_under_a_lease_is_not_stranded(self, world: StoreWorld) -> None:
        (one, two) = await world.store.accept([said(1), said(2)])
        lease = await take(world.store)
        dead = letter("message", str(one.seq), said(1))
        await world.store.submit(lease, Changes(letters=(dead,), done=(two.seq,)))
        assert await world.store.resubmit(dead.id) == C1
        released = await world.store.release(lease, two.seq, NOTHING)
        found = await world.store.arrivals(C1, two.seq)
        assert (not released and len(found) == 1) or await having_work(world.store, "me") == (C1,)

    async def test_a_letter_takes_its_row_out_of_the_work_and_back(self, world: StoreWorld) -> None:
        """A turn, a view, a question: each is no work while it lies aside."""
        store, lease = world.store, await take(world.store)
        row, wanted, asked = turn("t1"), view("a", 1, sent=False), question("q1", START)
        await store.submit(lease, Changes(turns=(row,), views=(wanted,), questions=(asked,)))
        letters = (
            letter("turn", "t1", row, "t-1"),
            letter("view", "t1 a", wanted, "v-1"),
            letter("question", "q1", asked, "q-1"),
        )
        await store.submit(lease, Changes(letters=letters))
        assert await store.release(lease, 0, NOTHING), "nothing of it is work"
        assert await store.due(START + 86_400, 9) == ()
        for one in letters:
            assert await store.resubmit(one.id) == C1
        assert await having_work(store, "me") == (C1,)
        opened = await store.acquire(C1, "me", 30)
        assert opened is not None
        assert [one.id for one in opened.turns] == ["t1"]
        assert [one.name for one in opened.views] == ["a"]
        assert [one.id for one in opened.questions] == ["q1"]
        assert [one.id for _, one in await store.due(START + 86_400, 9)] == ["q1"]


class LeaseContract:
    """One writer a conversation; work that nobody holds is found."""

    async def test_one_holder_until_it_runs_out(self, world: StoreWorld) -> None:
        first = await world.store.acquire(C1, "a", 30)
        assert first is not None
        assert not first.crashed
        assert await world.store.acquire(C1, "b", 30) is None
        world.clock.time += 31
        second = await world.store.acquire(C1, "b", 30)
        assert second is not None
        assert second.crashed
        assert second.lease.token > first.lease.token
        assert await world.store.acquire(C1, "a", 30) is None

    async def test_an_owner_takes_back_its_own(self, world: StoreWorld) -> None:
        first = await take(world.store, owner="a")
        again = await world.store.acquire(C1, "a", 30)
        assert again is not None
        assert again.crashed
        assert again.lease.token > first.token
        assert await outcome(world.store.submit(first, NOTHING)) is Fenced

    @pytest.mark.parametrize("how", ["release", "give_back"])
    async def test_a_lease_let_go_was_no_crash(self, world: StoreWorld, how: str) -> None:
        first = await take(world.store, owner="a")
        if how == "release":
            assert await world.store.release(first, 0, NOTHING)
        else:
            await world.store.give_back(first)
        opened = await world.store.acquire(C1, "b", 30)
        assert opened is not None
        assert not opened.crashed
        assert opened.lease.token > first.token

    async def test_a_stale_token_writes_nothing(self, world: StoreWorld) -> None:
        old = await take(world.store, owner="a")
        world.clock.time += 31
        await take(world.store, owner="b")
        changes = Changes(turns=(turn(),), records=(record(0),))
        assert await outcome(world.store.submit(old, changes)) is Fenced
        assert await outcome(world.store.release(old, 0, changes)) is Fenced
        await world.store.give_back(old)
        assert await world.store.turn("t1") is None
        assert await world.store.records("t1") == ()
        assert await world.store.acquire(C1, "c", 30) is None

    @pytest.mark.parametrize("how", ["release", "give_back"])
    async def test_a_lease_let_go_writes_no_more(self, world: StoreWorld, how: str) -> None:
        lease = await take(world.store)
        if how == "release":
            assert await world.store.release(lease, 0, NOTHING)
        else:
            await world.store.give_back(lease)
        late = Changes(turns=(turn(),), views=(view("reply", 1, sent=False),))
        assert await outcome(world.store.submit(lease, late)) is Fenced
        assert await world.store.turn("t1") is None

    async def test_renew_tells_which_are_still_ours(self, world: StoreWorld) -> None:
        lost = await take(world.store, "c1", ttl=10)
        kept = await take(world.store, "c2")
        gone = await take(world.store, "c3")
        assert await world.store.release(gone, 0, NOTHING)
        world.clock.time += 20
        await take(world.store, "c1", owner="other")
        assert await world.store.renew([lost, kept, gone], 30) == {kept.conversation}
        assert await world.store.renew([], 30) == frozenset()
        world.clock.time += 20
        assert await world.store.acquire(kept.conversation, "other", 30) is None

    async def test_release_waits_for_what_is_left(self, world: StoreWorld) -> None:
        (one,) = await world.store.accept([said(1)])
        lease = await take(world.store)
        (two,) = await world.store.accept([said(2)])
        release = world.store.release
        assert not await release(lease, one.seq, Changes(done=(one.seq,)))
        assert not await release(lease, two.seq, Changes(views=(view("reply", 1, sent=False),)))
        assert not await release(lease, two.seq, Changes(turns=(turn(),)))
        assert not await release(lease, two.seq, Changes(views=(view("reply", 1),)))
        sending = replace(view("plan", 2), sending=0)
        parked = Changes(turns=(turn(status="parked"),), views=(sending,))
        assert not await release(lease, two.seq, parked)
        assert [row.seq for row in await world.store.arrivals(C1, 0)] == [two.seq]
        assert await release(lease, two.seq, Changes(views=(view("plan", 2),)))
        assert await having_work(world.store, "me") == ()

    async def test_a_row_behind_a_parked_turn_neither_spins_nor_is_lost(
        self, world: StoreWorld
    ) -> None:
        (one,) = await world.store.accept([said(1)])
        lease = await take(world.store)
        await world.store.submit(lease, Changes(turns=(turn(status="parked"),), done=(one.seq,)))
        (two,) = await world.store.accept([said(2)])
        assert not await world.store.release(lease, one.seq, NOTHING)
        assert await world.store.release(lease, two.seq, NOTHING)
        assert await having_work(world.store, "me") == ()
        store = await world.restart()
        assert await having_work(store, "me") == ()
        await store.accept([said(3)])
        assert await having_work(store, "me") == (C1,)
        opened = await store.acquire(C1, "me", 30)
        assert opened is not None
        assert [row.inbound.event for row in opened.inbox] == ["e2", "e3"]
        assert [t.status for t in opened.turns] == ["parked"]

    async def test_work_is_what_this_owner_may_take(self, world: StoreWorld) -> None:
        assert await having_work(world.store, "a") == ()
        await world.store.accept([said(1, "c2"), said(2, "c1")])
        assert await having_work(world.store, "a") == (C2, C1)
        await world.store.accept([said(3, "c2")])
        assert await having_work(world.store, "a") == (C1, C2)
        lease = await take(world.store, owner="a")
        assert await having_work(world.store, "a") == (C1, C2)
        assert await having_work(world.store, "b") == (C2,)
        await world.store.give_back(lease)
        assert await having_work(world.store, "b") == (C1, C2)
        await take(world.store, owner="a")
        world.clock.time += 31
        assert await having_work(world.store, "b") == (C1, C2)

    async def test_work_names_the_newest_row_also_of_what_the_owner_holds(
        self, world: StoreWorld
    ) -> None:
        (one,) = await world.store.accept([said(1)])
        assert await world.store.work("a") == ((C1, one.seq),)
        await take(world.store, owner="a")
        (two,) = await world.store.accept([said(2)])
        assert await world.store.work("a") == ((C1, two.seq),)
        assert await world.store.work("b") == ()

    async def test_the_time_of_a_lease_counts_from_before_the_call(self, world: StoreWorld) -> None:
        before = world.clock.monotonic()
        opened = await world.store.acquire(C1, "a", 30)
        assert opened is not None and opened.began == before
        _, taken = await world.store.take_in([said(1, "c2")], frozenset((C2,)), "a", 30)
        assert all(one.began == before for one in taken)

    @pytest.mark.parametrize("ahead", [3_600.0, -3_600.0])
    async def test_a_clock_that_is_set_neither_ends_nor_prolongs_a_lease(
        self, world: StoreWorld, ahead: float
    ) -> None:
        held = await take(world.store, owner="a")
        world.clock.ahead = ahead
        assert await world.store.acquire(C1, "b", 30) is None
        assert await having_work(world.store, "b") == ()
        assert await world.store.renew([held], 30) == {C1}
        other = await take(world.store, "c2", owner="a")
        world.clock.ahead = 0.0
        world.clock.time += 29
        assert await world.store.acquire(C1, "b", 30) is None
        assert await world.store.acquire(C2, "b", 30) is None
        world.clock.time += 2
        assert await world.store.acquire(C1, "b", 30) is not None
        assert await world.store.acquire(C2, "b", 30) is not None
        assert await outcome(world.store.submit(other, NOTHING)) is Fenced

    async def test_the_lease_of_an_ended_process_is_free_where_it_was_alone(
        self, world: StoreWorld
    ) -> None:
        first = await take(world.store, owner="a")
        store = await world.restart()
        opened = await store.acquire(C1, "b", 30)
        assert (opened is None) is world.shared
        if opened is None:
            world.clock.time += 31
            opened = await store.acquire(C1, "b", 30)
        assert opened is not None and opened.crashed
        assert opened.lease.token > first.token

    async def test_a_holder_that_ended_leaves_work_without_a_row(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        await world.store.submit(lease, Changes(turns=(turn(),)))
        world.clock.time += 31
        assert await having_work(world.store, "b") == (C1,)
        assert await world.store.sweep(world.clock.time) == 0
        assert await having_work(world.store, "b") == (C1,)

    async def test_a_commit_behind_a_release_writes_no_more(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        released = world.store.release(lease, 0, NOTHING)
        late = world.store.submit(lease, Changes(views=(view("reply", 1, sent=False),)))
        assert await released
        assert await outcome(late) is Fenced
        assert await world.store.outbox(C1, "t1") == ()

    @given(arrivals=st.lists(st.integers(0, 6), min_size=1, max_size=8), seed=st.integers(0, 3))
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    async def test_no_row_is_stranded(
        self, world: StoreWorld, arrivals: list[int], seed: int
    ) -> None:
        """Rows that come at any moment, two holders in two replicas: each row is handled."""
        replicas = [world.store, await world.replica()]
        world.clock.time += 1
        channel = f"{world.clock.time:.0f}"
        handled: list[int] = []

        async def arrive() -> set[int]:
            seqs = set()
            for n, pause in enumerate(arrivals):
                for _ in range(pause):
                    await asyncio.sleep(0)
                store = replicas[n % 2]
                (one,) = await store.accept([said(f"{channel}-{n}", channel)])
                seqs.add(one.seq)
            return seqs

        async def hold(n: int) -> None:
            for _ in range(10 * seed + 4):
                await _hold_once(replicas[n], place(channel).id, f"owner {n}", handled)

        accepted, _, _ = await asyncio.gather(arrive(), hold(0), hold(1))
        while place(channel).id in await having_work(world.store, "owner 0"):
            await _hold_once(world.store, place(channel).id, "owner 0", handled)
        assert sorted(handled) == sorted(accepted)


async def _hold_once(store: Store, conversation: str, owner: str, handled: list[int]) -> None:
    opened = await store.acquire(conversation, owner, 30)
    if opened is None:
        await asyncio.sleep(0)
        return
    seen, rows = opened.last, opened.inbox
    while True:
        handled += [row.seq for row in rows]
        seen = max([seen, *(row.seq for row in rows)])
        if await store.release(opened.lease, seen, Changes(done=tuple(r.seq for r in rows))):
            return
        rows = await store.arrivals(conversation, seen)
        assert rows


class CommitContract:
    """All or nothing, in order, and nothing after a failure."""

    async def test_a_clash_fails_the_whole_commit(self, world: StoreWorld) -> None:
        (one,) = await world.store.accept([said(1)])
        lease = await take(world.store)
        await world.store.submit(lease, Changes(turns=(turn(),), records=(record(0),)))
        clash = Changes(
            turns=(turn(status="done"), turn("t2")),
            records=(record(1), record(0, text="other")),
            done=(one.seq,),
            views=(view("reply", 1),),
            questions=(question("q1", START),),
            transcript=(spoken(0),),
            row=ConversationRow(rev=9),
            audit=(AuditRow(at=1.0, who="a", what="b", detail="c"),),
        )
        assert await outcome(world.store.submit(lease, clash)) is Unstorable
        store = world.store
        assert keys_of(await store.records("t1")) == ["k0"]
        assert await store.turn("t1") == turn()
        assert await store.turn("t2") is None
        assert await store.outbox(C1, "t1") == ()
        assert await store.find("q1") is None
        assert await store.due(START, 10) == ()
        assert await store.next_due() is None
        assert await store.transcript(C1, 0, 9) == ()
        assert await store.audit(10) == ()
        assert len(await store.arrivals(C1, 0)) == 1
        again = await store.acquire(C1, "me", 30)
        assert again is not None
        assert again.row == ConversationRow()

    @pytest.mark.parametrize(
        "bad",
        [
            Changes(records=(record(1), record(1))),
            Changes(transcript=(spoken(0),)),
            Changes(audit=(AuditRow(at=1.0, who="a", what="b", detail="\ud83d"),)),
        ],
        ids=["records clash", "transcript clash", "cannot be encoded"],
    )
    async def test_after_a_failure_the_lease_writes_no_more(
        self, world: StoreWorld, bad: Changes
    ) -> None:
        lease, other = await take(world.store), await take(world.store, "c2")
        await world.store.submit(lease, Changes(turns=(turn(),), transcript=(spoken(0),)))
        failed = world.store.submit(lease, bad)
        queued = world.store.submit(lease, Changes(records=(record(2),)))
        fine = world.store.submit(other, Changes(turns=(turn("t2"),)))
        assert await outcome(failed) is Unstorable
        assert await outcome(queued) is StoreFailed
        assert await outcome(fine) is not StoreFailed
        late = Changes(records=(record(3),))
        assert await outcome(world.store.submit(lease, late)) is StoreFailed
        assert await outcome(world.store.release(lease, 0, late)) is StoreFailed
        assert await world.store.records("t1") == ()
        new = await take(world.store)
        await world.store.submit(new, Changes(records=(record(0),)))
        assert keys_of(await world.store.records("t1")) == ["k0"]

    async def test_commits_queued_together_fail_one_by_one(self, world: StoreWorld) -> None:
        leases = [await take(world.store, f"c{n}") for n in range(50)]
        await world.store.submit(leases[7], Changes(records=(record(0, "t7"),)))
        await take(world.store, "c8")
        changes = [Changes(records=(record(0, f"t{n}"),)) for n in range(50)]
        futures = [world.store.submit(*each) for each in zip(leases, changes, strict=True)]
        outcomes = [await outcome(future) for future in futures]
        assert outcomes.pop(8) is Fenced
        assert outcomes.pop(7) is Unstorable
        assert not any(isinstance(one, type) for one in outcomes)
        rows = [await world.store.records(f"t{n}") for n in range(50)]
        assert [len(one) for one in rows] == [0 if n == 8 else 1 for n in range(50)]

    async def test_commits_are_applied_in_the_order_queued(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        futures = [
            world.store.submit(
                lease, Changes(records=(record(n),), row=ConversationRow(rev=n), turns=(turn(),))
            )
            for n in range(100)
        ]
        await world.store.submit(lease, Changes(turns=(turn(status="done"),)))
        assert all(future.done() for future in futures)
        assert keys_of(await world.store.records("t1")) == [f"k{n}" for n in range(100)]
        assert await world.store.release(lease, 0, NOTHING)
        opened = await world.store.acquire(C1, "me", 30)
        assert opened is not None
        assert opened.row.rev == 99

    async def test_a_commit_outlives_its_waiter(self, world: StoreWorld) -> None:
        lease = await take(world.store)
        world.store.submit(lease, Changes(records=(record(0),))).cancel()
        await world.store.submit(lease, Changes(records=(record(1),)))
        assert keys_of(await world.store.records("t1")) == ["k0", "k1"]
