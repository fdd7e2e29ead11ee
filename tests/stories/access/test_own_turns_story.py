"""In a group steer, interrupt and stop reach one's own turns, by any linked account, and all for
admins; ask and auto belong to who chose them. Over Telegram, the real gateway and model SDK."""

import asyncio

import pytest

from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, FRIEND, GROUP, PATIENCE, PERSON, Rig, mention, write

WHO = {"own": PERSON, "linked": FRIEND, "admin": ADMIN, "other": FRIEND}
LIST = Call("list_files")


def call(rig: Rig, text: str, user: int = PERSON) -> None:
    rig.telegram.say(GROUP, f"@test_bot {text}", user=user, **mention("@test_bot"))


async def link(rig: Rig) -> None:
    rig.telegram.say(PERSON, "/link")
    text = (await rig.shows("Your code is"))["text"]
    code = next(
        word for word in text.replace("`", " ").split() if len(word) >= 8 and word.isupper()
    )
    rig.telegram.say(FRIEND, f"/link {code.strip('.:')}")
    await rig.shows(f"Linked with telegram:{PERSON}", FRIEND)


async def begun(rig: Rig, who: str) -> asyncio.Event:
    """PERSON's turn runs in the group and waits for its model until the event is set."""
    await rig.start()
    if who == "linked":
        await link(rig)
    gate = rig.model.gate = asyncio.Event()
    call(rig, "one")
    await rig.model.wait_inflight(1, PATIENCE)
    return gate


def waits(rig: Rig, count: int) -> bool:
    session = rig.session(GROUP)
    return session is not None and len(session.state.queue) == count


@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_turn_is_steered(rig: Rig, who: str) -> None:
    rig.model.script(LIST, Say("first done"), Say("second done"))
    gate = await begun(rig, who)
    session = rig.session(GROUP)
    assert session is not None
    rig.telegram.say(GROUP, "/mode@test_bot steer", ADMIN, True)
    await rig.until(lambda: session.state.row.settings.arrival == "steer")
    call(rig, "but otherwise", WHO[who])
    await rig.until(lambda: waits(rig, 1))
    rig.model.gate = None
    gate.set()
    await rig.shows("first done", GROUP)
    if who == "other":
        await rig.shows("second done", GROUP)
    await rig.quiet()
    steered = "but otherwise" in str(rig.seen(1, role="user"))
    assert steered == (who != "other"), "words of others wait for a turn of their own"
    assert len(rig.model.requests) == (3 if who == "other" else 2)


@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_turn_is_interrupted(rig: Rig, who: str) -> None:
    rig.model.script(LIST, Say("first done"), Say("second done"))
    gate = await begun(rig, who)
    session = rig.session(GROUP)
    assert session is not None and session.state.active is not None
    first = session.state.active
    rig.telegram.say(GROUP, "/mode@test_bot interrupt", ADMIN, True)
    await rig.until(lambda: session.state.row.settings.arrival == "interrupt")
    call(rig, "something else", WHO[who])
    if who == "other":
        await rig.until(lambda: waits(rig, 1))
        assert not first.closed, "it goes on"
    else:
        await rig.until(lambda: first.closed)
    rig.model.gate = None
    gate.set()
    if who == "other":
        await rig.shows("second done", GROUP)
    await rig.quiet()
    assert first.row.status == ("done" if who == "other" else "cancelled")


@pytest.mark.parametrize("words", ["stop", "stop all"])
@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_turn_is_stopped(rig: Rig, who: str, words: str) -> None:
    rig.model.script(LIST, Say("first done"))
    gate = await begun(rig, who)
    session = rig.session(GROUP)
    assert session is not None and session.state.active is not None
    first = session.state.active
    rig.telegram.say(GROUP, words.replace("stop", "/stop@test_bot"), WHO[who], True)
    if who == "other":
        await rig.shows(say("stop_not_yours"), GROUP)
    else:
        await rig.until(lambda: first.closed)
    rig.model.gate = None
    gate.set()
    await rig.quiet()
    assert ("first done" in rig.said(GROUP)) == (who == "other")


@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_waiting_turns_end_by_stop_all(rig: Rig, who: str) -> None:
    rig.model.script(write("a.txt"))
    await rig.start()
    if who == "linked":
        await link(rig)
    call(rig, "write it")
    await rig.card(GROUP)
    await rig.quiet()
    rig.telegram.say(GROUP, "/stop@test_bot all", WHO[who], True)
    await rig.shows(say("nothing_running" if who == "other" else "stopped"), GROUP)
    await rig.quiet()
    assert bool(rig.cards(GROUP)) == (who == "other")


@pytest.mark.parametrize("word", ["queue", "steer", "interrupt"])
async def test_in_a_group_only_admins_choose_what_messages_do(rig: Rig, word: str) -> None:
    await rig.start()
    rig.telegram.say(GROUP, f"/mode@test_bot {word}", PERSON, True)
    await rig.shows(say("mode_admins"), GROUP)
    rig.telegram.say(PERSON, f"/mode {word}")
    await rig.until(lambda: any(say(f"mode_{word}") in text for text in rig.said()))  # type: ignore[arg-type]


async def test_auto_in_a_group_holds_for_who_chose_it(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("by the admin"), write("b.txt"), Say("by the person"))
    await rig.start()
    rig.telegram.say(GROUP, "/mode@test_bot auto", PERSON, True)
    await rig.shows(say("admins_only", role="user"), GROUP)
    rig.telegram.say(GROUP, "/mode@test_bot auto", ADMIN, True)
    await rig.until(lambda: any(say("mode_auto") in text for text in rig.said(GROUP)))
    call(rig, "write a", ADMIN)
    await rig.shows("by the admin", GROUP)
    assert not rig.cards(GROUP)
    call(rig, "write b", PERSON)
    await rig.card(GROUP)
    await rig.quiet()
    assert not (rig.workspace(GROUP) / "b.txt").exists()


@pytest.mark.parametrize("chat", [ADMIN, GROUP])
async def test_auto_ends_with_the_role_that_may_choose_it(rig: Rig, chat: int) -> None:
    """Looked at again at each call: the turn had begun as an admin's."""
    rig.model.script(write("a.txt"), write("b.txt"), Say("done"))
    await rig.start()
    rig.telegram.say(chat, "/mode@test_bot auto", ADMIN, chat == GROUP)
    await rig.until(lambda: any(say("mode_auto") in text for text in rig.said(chat)))
    gate = rig.model.gate = asyncio.Event()
    if chat == GROUP:
        call(rig, "write both", ADMIN)
    else:
        rig.telegram.say(chat, "write both")
    await rig.model.wait_inflight(1, PATIENCE)
    people = rig.host.services.access._platforms["telegram"]
    demoted = type(people)(allowed=people.allowed | {str(ADMIN)}, chats=people.chats)
    rig.host.services.access.replace_lists({"telegram": demoted}, rig.host.services.access.policy)
    rig.model.gate = None
    gate.set()
    await rig.card(chat)
    await rig.quiet()
    assert not (rig.workspace(chat) / "a.txt").exists()
