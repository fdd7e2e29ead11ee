"""Pairing: a stranger shows a code, somebody entitled enters it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent_core import ambient
from gateway.access.access import CACHE_SECONDS, MAX_KEPT, Access, AllowLists
from gateway.access.codes import HOUR, MAX_WRONG
from gateway.access.pairing import MACHINE, DirectoryPairing, load_people
from gateway.conversation.quotas import over_quota
from gateway.messages import Conversation, Inbound, Sender
from gateway.store.sqlite import SqliteStore
from gateway.texts import say

EVE = Sender(platform="telegram", id="7", name="Eve")
MAX = Sender(platform="telegram", id="8", name="Max")
WRONG, LOCKED = say("pair_wrong"), say("pair_locked")


class Hand(ambient.SystemClock):
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 1_790_000_000.0
        self.passed = 0.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.passed


class Door:
    """Pairing over a real store, and the access lists it tells."""

    def __init__(self, store: SqliteStore, admins: frozenset[str] = frozenset()) -> None:
        self.store = store
        self.access = Access({"telegram": AllowLists(admins=admins)}, {})
        self.news: list[Inbound] = []
        self.pairing = DirectoryPairing(store, self.access, self._accept)

    async def _accept(self, inbounds: Sequence[Inbound]) -> None:
        self.news += inbounds

    async def enter(self, code: str, by: str = "telegram:1") -> str:
        return await self.pairing.enter(code, by, "en")


@pytest.fixture
def clock() -> AsyncIterator[Hand]:
    hand = Hand()
    ambient.use(hand)
    yield hand
    ambient.use(ambient.SystemClock())


@pytest.fixture
async def store(tmp_path: Path, clock: Hand) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "store.db")
    yield store
    await store.close()


async def test_the_code_is_the_same_for_an_hour(store: SqliteStore, clock: Hand) -> None:
    pairing = Door(store).pairing
    code = await pairing.code_for(EVE)
    assert len(code) == 8
    clock.at += HOUR - 1
    assert await pairing.code_for(EVE) == code
    assert await pairing.code_for(MAX) != code
    clock.at += 2
    newer = await pairing.code_for(EVE)
    assert newer != code
    door = Door(store)
    assert await door.enter(code) == WRONG
    assert await door.enter(newer) == say("paired", name="Eve")


async def test_asking_twice_at_once_gives_one_code(store: SqliteStore) -> None:
    pairing = Door(store).pairing
    assert len(set(await asyncio.gather(*(pairing.code_for(EVE) for _ in range(8))))) == 1


async def test_who_is_let_in_is_a_user_at_once_and_after_a_restart(store: SqliteStore) -> None:
    door = Door(store)
    code = await door.pairing.code_for(EVE)
    assert door.access.role(EVE) is None
    assert await door.enter(f" {code[:4].lower()}-{code[4:]} ") == say("paired", name="Eve")
    assert door.access.role(EVE) == "user"
    assert await load_people(store) == {EVE.key: "user"}
    assert await door.enter(code, "telegram:2") == WRONG, "a code works for one enterer"


async def test_a_code_entered_twice_at_once_works_once(store: SqliteStore) -> None:
    door = Door(store)
    code = await door.pairing.code_for(EVE)
    said = await asyncio.gather(*(door.enter(code, f"telegram:{n}") for n in range(5)))
    assert sorted(said, key=len)[0] == say("paired", name="Eve")
    assert said.count(WRONG) == 4


async def test_a_code_ends_with_its_hour(store: SqliteStore, clock: Hand) -> None:
    door = Door(store)
    code = await door.pairing.code_for(EVE)
    clock.at += HOUR
    assert await door.enter(code) == WRONG
    assert door.access.role(EVE) is None


async def test_a_clock_that_was_a_day_ahead_locks_nobody_out(
    store: SqliteStore, clock: Hand
) -> None:
    door = Door(store)
    clock.at += 24 * HOUR
    for n in range(MAX_WRONG):
        await door.enter(f"AAAAAAA{n}")
    assert await over_quota(store, "telegram:1", "before", 1) == 0
    assert await over_quota(store, "telegram:1", "after", 1) > 0
    clock.at -= 24 * HOUR
    code = await door.pairing.code_for(EVE)
    assert await door.enter(code) == say("paired", name="Eve")
    assert await over_quota(store, "telegram:1", "after", 1) == 0


async def test_five_wrong_codes_lock_that_one_out_for_an_hour(
    store: SqliteStore, clock: Hand
) -> None:
    door = Door(store)
    code = await door.pairing.code_for(EVE)
    said = [await door.enter(f"AAAAAAA{n}") for n in range(MAX_WRONG)]
    assert said == [WRONG] * (MAX_WRONG - 1) + [LOCKED]
    assert await door.enter(code) == LOCKED, "the right one too"
    assert await Door(store).enter(code) == LOCKED, "after a restart too"
    assert await door.enter(code, "telegram:2") == say("paired", name="Eve"), "others go on"
    other = await door.pairing.code_for(MAX)
    clock.at += HOUR + 1
    assert await door.enter(other) == WRONG, "the hour of the code is over too"
    assert await door.enter(await door.pairing.code_for(MAX)) == say("paired", name="Max")


async def test_wrong_codes_at_once_are_all_counted(store: SqliteStore) -> None:
    door = Door(store)
    said = await asyncio.gather(*(door.enter(f"AAAAAAA{n}") for n in range(MAX_WRONG)))
    assert said.count(LOCKED) == 1


async def test_the_first_on_the_machine_makes_an_admin(store: SqliteStore) -> None:
    door = Door(store)
    await door.enter(await door.pairing.code_for(EVE), MACHINE)
    await door.enter(await door.pairing.code_for(MAX), MACHINE)
    assert (door.access.role(EVE), door.access.role(MAX)) == ("admin", "user")


async def test_no_admin_is_made_where_the_settings_name_one(store: SqliteStore) -> None:
    door = Door(store, admins=frozenset({"1"}))
    await door.enter(await door.pairing.code_for(EVE), MACHINE)
    assert door.access.role(EVE) == "user"


async def test_no_admin_is_made_in_a_chat(store: SqliteStore) -> None:
    door = Door(store)
    await door.enter(await door.pairing.code_for(EVE), "web:owner")
    assert door.access.role(EVE) == "user"


async def test_the_same_enterer_gets_the_same_answer_again(store: SqliteStore) -> None:
    """A command that was cut off before its row was done is carried out again."""
    door = Door(store)
    code = await door.pairing.code_for(EVE)
    first = await door.enter(code, MACHINE)
    assert first == await Door(store).enter(code, MACHINE) == say("paired_admin", name="Eve")
    assert await load_people(store) == {EVE.key: "admin"}, "and not a user, as the second one"
    assert [await door.enter("AAAAAAAA") for _ in range(MAX_WRONG + 1)] == [WRONG] * 6


async def test_who_is_let_in_is_told_where_the_code_was_shown(store: SqliteStore) -> None:
    door = Door(store)
    there = Conversation(platform="telegram", account="5", channel="7", private=True)
    german = Sender(platform="telegram", id="7", name="Eve", language="de")
    code = await door.pairing.code_for(german, there)
    for _ in range(2):
        await door.enter(code)
    told, again = door.news
    assert told == again, "the second one is known to the store by its event"
    assert (told.conversation, told.text) == (there, say("welcome", "de"))


async def test_put_out_and_let_in_again_with_a_new_code(store: SqliteStore) -> None:
    door = Door(store, admins=frozenset({"9"}))
    code = await door.pairing.code_for(EVE)
    await door.enter(code)
    assert await door.pairing.put_out(EVE.key, "machine", "") == say("unpaired", person=EVE.key)
    assert (door.access.role(EVE), await load_people(store)) == (None, {})
    assert await door.enter(code) == WRONG, "the old code is over for who used it too"
    newer = await door.pairing.code_for(EVE)
    assert newer != code
    assert await door.enter(newer) == say("paired", name="Eve")
    assert await door.pairing.put_out("telegram:8", "machine", "") == say(
        "unpair_unknown", person="telegram:8"
    )
    assert await door.pairing.put_out("telegram:9", "machine", "") == say(
        "unpair_listed", person="telegram:9"
    )


async def test_what_one_process_writes_holds_in_all(store: SqliteStore, clock: Hand) -> None:
    """Access lists of another replica: let in at once, put out within seconds."""
    other = Access({}, {}, look_up=store.get)
    door = Door(store)
    assert await other.learn(EVE) is None
    await door.enter(await door.pairing.code_for(EVE))
    assert await other.learn(EVE) == "user"
    await door.pairing.put_out(EVE.key, "machine", "")
    assert await other.learn(EVE) == "user", "believed for a moment"
    clock.passed += CACHE_SECONDS
    assert await other.learn(EVE) is None


async def test_what_is_kept_of_people_is_bounded(store: SqliteStore) -> None:
    other = Access({}, {}, look_up=store.get)
    for n in range(MAX_KEPT + 10):
        other.pair(f"telegram:{n}", "user")
    assert len(other._paired) == len(other._until) == MAX_KEPT
