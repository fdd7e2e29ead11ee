"""What leaves our memory leaves the other one too: at once, after an outage, after a kill."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.memory.documents import Change
from agent_core.memory.settings import MemorySettings
from gateway.messages import GatewaySaid, Inbound
from gateway.ops.control import ControlRequest, Operations
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.services import memory_removals
from gateway.services.memory import Memories
from gateway.services.memory_removals import MAX_TRIES, PREFIX, MemoryRemovals, note_erased
from gateway.settings import Settings
from gateway.store.sqlite import SqliteStore
from tests.fakes.world import ANN, ROOM
from tests.stories.jobs_rig import Shifted
from tests.stories.memory_lives_rig import Refusing, alone
from tests.stories.memory_provider_rig import USER, ask, kept, settings
from tests.stories.memory_rig import COFFEE, FALCON, TEA, memory
from tests.stories.rig import FRIEND, PERSON, Rig

WIPE = {"clear": {"tool": "wipe", "arguments": USER}}


@pytest.mark.pick("what the other memory forgets")
@pytest.mark.parametrize("how", ["forget", "clear", "clear at once", "erase"])
async def test_what_people_remove_leaves_it_too_after_an_outage(
    rig: Rig, how: str, shifted: Shifted, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings(rig, **(WIPE if how == "clear at once" else {}))
    broken = Path(f"{kept(rig)}.broken")
    await rig.start(**given)
    await ask(rig, "tea", "noted", memory("add", TEA, "user"), memory("add", FALCON))
    await ask(rig, "tea", "noted too", memory("add", COFFEE, "user"), who=FRIEND)
    broken.touch()
    if how == "erase":
        said = await erase(rig, given)
        assert "The memory mem has not forgotten them yet" in said
        (name,) = await rig.store.keys(PREFIX)
        assert f":{PERSON}" not in (await rig.store.get(name) or b"").decode()
    else:
        rig.telegram.say(PERSON, "/memory forget tea" if how == "forget" else "/memory clear")
        await rig.shows("The memory provider mem, which also has it, has not removed it yet")
    await rig.quiet()
    assert TEA in kept(rig).read_text(), "it was out of order"
    await rig.stop()
    broken.unlink()
    shifted.offset = 600.0
    monkeypatch.setattr(memory_removals, "FIRST_DELAY", 1.0)
    await rig.start(**given)
    gone = [TEA] if how == "forget" else [TEA, FALCON]

    def is_gone() -> bool:
        shifted.offset += 1.0  # attempts may be made before the server has started
        return not any(one in kept(rig).read_text() for one in gone)

    await rig.until(is_gone)
    assert COFFEE in kept(rig).read_text(), "another person's"
    assert (FALCON in kept(rig).read_text()) == (how == "forget")
    while await rig.store.keys(PREFIX):
        await asyncio.sleep(0.005)


async def erase(rig: Rig, given: dict[str, str]) -> str:
    read = Settings.read(rig.env(**given), rig.folder)
    upkeep = StoreUpkeep(read, rig.store, make_trail(read, rig.store), rig.host)
    return await upkeep.erase(f"telegram:{PERSON}", lambda _: None)


@pytest.mark.pick("what the other memory forgets")
async def test_where_it_answers_it_is_gone_at_once_and_nothing_stays_noted(rig: Rig) -> None:
    given = settings(rig)
    await rig.start(**given)
    await ask(rig, "tea", "noted", memory("add", TEA, "user"), memory("add", FALCON))
    rig.telegram.say(PERSON, "/memory forget tea")
    await rig.shows(f"Forgotten: {TEA}")
    assert TEA not in kept(rig).read_text() and FALCON in kept(rig).read_text()
    assert (await erase(rig, given)).count("The memory mem has forgotten them") == 1
    assert FALCON not in kept(rig).read_text() and not await rig.store.keys(PREFIX)


@pytest.mark.pick("what the other memory forgets")
async def test_one_that_cannot_forget_is_said_to_keep_it(rig: Rig) -> None:
    given = settings(rig, remove=None)
    await rig.start(**given)
    await ask(rig, "tea", "noted", memory("add", TEA, "user"))
    rig.telegram.say(PERSON, "/memory clear")
    await rig.shows("keeps it: no tool to remove it is configured")
    assert "sets neither `remove` nor" in await erase(rig, given)
    assert not await rig.store.keys(PREFIX)


# ---- the bound ---------------------------------------------------------------------------


async def test_it_is_given_up_and_told_once(tmp_path: Path, shifted: Shifted) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    told: list[Inbound] = []

    async def deliver(inbounds: Sequence[Inbound]) -> None:
        told.extend(inbounds)

    beside = Refusing([TEA], broken=True)
    removals = MemoryRemovals(store, beside, deliver)
    shelf = Memories(store, MemorySettings(), alone, removals).open_for(ROOM, ANN.key, bool, "de")
    await shelf.apply(Change(action="add", target="user", text=TEA), "a")
    await shelf.apply(Change(action="remove", target="user", old=TEA), "b")
    assert not await shelf.settle()
    for _ in range(3 * MAX_TRIES):
        shifted.offset += memory_removals.MAX_DELAY
        await removals._work_off()
    assert beside.asked == MAX_TRIES
    (said,) = told
    assert isinstance(said, GatewaySaid) and said.conversation == ROOM
    assert said.text.startswith("Das Gedächtnis mem hat nicht gelöscht")
    await removals._take_up_again()  # as a restart does
    await removals._work_off()
    assert beside.asked == MAX_TRIES + 1 and len(told) == 1
    beside.broken = False
    await removals._take_up_again()
    await removals._work_off()
    assert beside.holds == [] and not await store.keys(PREFIX)
    await store.close()


@pytest.mark.parametrize("how", ["resubmit", "drop"])
async def test_what_was_given_up_is_a_dead_letter(
    tmp_path: Path, shifted: Shifted, how: str
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")

    async def deliver(inbounds: Sequence[Inbound]) -> None:
        raise AssertionError("the person is gone")

    beside = Refusing([TEA], broken=True)
    removals = MemoryRemovals(store, beside, deliver)
    shelf = Memories(store, MemorySettings(), alone, removals).open_for(ROOM, ANN.key, bool, "de")
    await shelf.apply(Change(action="add", target="user", text=TEA), "a")
    await note_erased(store, f"memory:own:{ANN.key}")
    commands = Operations(store=store, pairing=None)

    async def give(*words: str) -> tuple[str, bool]:
        answer = await commands.answer(ControlRequest(command=words[0], words=words[1:]))
        return answer.text, answer.ok

    for _ in range(MAX_TRIES):
        assert await give("dead") == ("No dead letters.", True)
        shifted.offset += memory_removals.MAX_DELAY
        await removals._work_off()
    said, _ = await give("dead")
    name = said.split()[0]
    assert "memory removal" in said and "1 entries" in said
    assert TEA not in said and ANN.key not in said
    assert (await give(how, name))[1] and await give("dead") == ("No dead letters.", True)
    assert not (await give(how, name))[1]
    beside.broken = False
    await removals._work_off()
    assert beside.holds == ([] if how == "resubmit" else [TEA]) and not await store.keys(PREFIX)
    await store.close()


@pytest.mark.parametrize("body", [b"", b"{}", b'{"space": 7}', b"\xff", b"null"])
async def test_one_that_cannot_be_read_is_listed_and_can_be_dropped(
    tmp_path: Path, body: bytes
) -> None:
    """It holds up no other, and is kept until an operator drops it."""
    store = await SqliteStore.open(tmp_path / "store.db")
    name = f"{PREFIX}0"
    await store.put(name, body)

    async def deliver(inbounds: Sequence[Inbound]) -> None:
        raise AssertionError

    beside = Refusing([TEA])
    removals = MemoryRemovals(store, beside, deliver)
    shelf = Memories(store, MemorySettings(), alone, removals).open_for(ROOM, ANN.key, bool)
    await shelf.apply(Change(action="add", target="user", text=TEA), "a")
    await shelf.apply(Change(action="remove", target="user", old=TEA), "b")
    await removals._take_up_again()
    await removals._work_off()
    assert beside.holds == [] and await store.get(name) == body
    commands = Operations(store=store, pairing=None)
    said = await commands.answer(ControlRequest(command="dead"))
    assert said.text == f"{name}  memory removal (unreadable here: damaged, or of another version)"
    again = await commands.answer(ControlRequest(command="resubmit", words=(name,)))
    assert not again.ok and "no dead letter" in again.text
    assert (await commands.answer(ControlRequest(command="drop", words=(name,)))).ok
    assert not await store.keys(PREFIX)
    await store.close()


async def test_what_is_remembered_anew_meanwhile_stays(tmp_path: Path, shifted: Shifted) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    beside = Refusing([TEA, FALCON], broken=True)

    async def deliver(inbounds: Sequence[Inbound]) -> None:
        raise AssertionError

    removals = MemoryRemovals(store, beside, deliver)
    shelf = Memories(store, MemorySettings(), alone, removals).open_for(ROOM, ANN.key, bool)
    for n, text in enumerate((TEA, FALCON)):
        await shelf.apply(Change(action="add", target="user", text=text), f"a{n}")
    await shelf.clear("b")
    assert not await shelf.settle()
    await shelf.apply(Change(action="add", target="user", text=TEA), "c")
    beside.broken = False
    shifted.offset += memory_removals.MAX_DELAY
    await removals._work_off()
    assert beside.holds == [TEA]
    await store.close()


@pytest.fixture
def shifted() -> Iterator[Shifted]:
    clock = Shifted()
    ambient.use(clock)
    yield clock
    ambient.use(ambient.SystemClock())
