"""'Always' is of who asked: in all their private chats, or in that one group with its threads, by
any linked account, as long as their role lasts. Over Telegram, the real gateway and model SDK."""

from pathlib import Path

import pytest

from gateway.access.standing import StandingRule, StandingRules, add_rules, list_heeded, read_rules
from gateway.messages import Conversation
from gateway.roles import RANK
from gateway.store.rows import Rule
from gateway.store.sqlite import SqliteStore
from gateway.texts import say
from tests.fakes.model_server import Say
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, Rig, mention, write

WRITE = write("a.txt")


def ask(rig: Rig, chat: int, user: int) -> None:
    if chat > 0:
        rig.telegram.say(chat, "do it")
    else:
        rig.telegram.say(chat, "@test_bot do it", user=user, **mention("@test_bot"))


async def runs_unasked(rig: Rig, chat: int, user: int) -> bool:
    """PERSON's always holds for this one's request there; a card is denied again."""
    count = rig.said(chat).count("done")
    rig.model.script(WRITE, Say("done"))
    ask(rig, chat, user)
    await rig.until(lambda: rig.cards(chat) or rig.said(chat).count("done") > count)
    asked = rig.cards(chat)
    if asked:
        rig.press(asked[-1], "Deny", ADMIN if chat < 0 else user)
    await rig.until(lambda: rig.said(chat).count("done") > count)
    await rig.quiet()
    return not asked


async def grant(rig: Rig, chat: int, presser: int) -> None:
    rig.model.script(WRITE, Say("done"))
    ask(rig, chat, PERSON)
    card = await rig.card(chat)
    where = "in all private chats of" if chat > 0 else "in this group and its threads"
    assert where in card["text"]
    rig.press(card, "Always approve", presser)
    await rig.shows("done", chat)
    await rig.quiet()


async def link(rig: Rig) -> None:
    rig.telegram.say(PERSON, "/link")
    text = (await rig.shows("Your code is"))["text"]
    code = next(
        word.strip(".:") for word in text.split() if word.strip(".:").isupper() and len(word) > 7
    )
    rig.telegram.say(FRIEND, f"/link {code}")
    await rig.shows(f"Linked with telegram:{PERSON}", FRIEND)


async def test_in_a_group_it_is_of_who_asked_not_of_who_pressed(rig: Rig) -> None:
    await rig.start()
    await grant(rig, GROUP, ADMIN)
    assert await runs_unasked(rig, GROUP, PERSON)
    assert not await runs_unasked(rig, GROUP, ADMIN), "who pressed has nothing of it"
    assert not await runs_unasked(rig, GROUP, FRIEND)
    assert not await runs_unasked(rig, PERSON, PERSON), "it is for that group"


async def test_in_private_it_holds_in_all_private_chats_of_the_person(rig: Rig) -> None:
    await rig.start()
    await link(rig)
    await grant(rig, PERSON, PERSON)
    assert await runs_unasked(rig, FRIEND, FRIEND), "the same person by another account"
    assert not await runs_unasked(rig, GROUP, PERSON)
    rig.telegram.say(PERSON, "/new")
    await rig.shows(say("new").split("{")[0][:16])
    assert await runs_unasked(rig, PERSON, PERSON)
    await rig.crash()
    await rig.start()
    assert await runs_unasked(rig, PERSON, PERSON)
    rig.telegram.say(FRIEND, "/link off")
    await rig.shows(say("parted"), FRIEND)
    assert not await runs_unasked(rig, FRIEND, FRIEND)


async def test_it_is_listed_and_taken_back_wherever_it_holds(rig: Rig) -> None:
    await rig.start()
    await link(rig)
    await grant(rig, PERSON, PERSON)
    rig.telegram.say(FRIEND, "/permissions")
    card = await rig.shows(say("grant_private"), FRIEND)
    press = rig.press(card, "Revoke 1", FRIEND)
    assert "Revoked" in await rig.told(press)
    assert not await runs_unasked(rig, PERSON, PERSON)


@pytest.mark.parametrize("chat", [PERSON, GROUP])
async def test_it_ends_with_the_role(rig: Rig, chat: int) -> None:
    """Looked at at each call; who has another role again is asked again only below the old one."""
    await rig.start(TELEGRAM_ADMIN_USERS=f"{ADMIN},{PERSON}", TELEGRAM_ALLOWED_USERS=f"{FRIEND}")
    rig.telegram.say(chat, "/mode@test_bot ask", PERSON, chat == GROUP)
    await rig.until(lambda: any(say("mode_ask") in text for text in rig.said(chat)))
    await grant(rig, chat, PERSON)
    assert await runs_unasked(rig, chat, PERSON)
    await rig.crash()
    await rig.start(TELEGRAM_ADMIN_USERS=f"{ADMIN}", TELEGRAM_ALLOWED_USERS=f"{PERSON},{FRIEND}")
    assert not await runs_unasked(rig, chat, PERSON)


RULE = Rule(tool="t", pattern="= x", person="telegram:1", lasting=True)
PLACES = tuple(
    Conversation(platform="telegram", account="b", channel=channel, thread=thread, private=private)
    for channel, thread, private in (
        ("1", "", True), ("2", "", True), ("-3", "", False), ("-3", "t", False), ("-4", "", False),
    )
)  # fmt: skip


@pytest.mark.parametrize("given", PLACES)
async def test_where_a_rule_holds(given: Conversation, tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        for _ in range(3):
            await add_rules(store, "telegram:1", (RULE,), given, "user")
        for place in PLACES:
            found = await read_rules(store, ("telegram:1", "telegram:9"), place)
            same = place.private if given.private else place.channel == given.channel
            assert [one.rule for one in found] == ([RULE] if same else [])
    finally:
        await store.close()


def test_for_whom_a_rule_holds() -> None:
    for had, rank in RANK.items():
        rules = (StandingRule(rule=RULE, role=had),)
        for has in (*RANK, "", "stranger"):
            heeded = bool(list_heeded(rules, has))
            assert heeded == (RANK.get(has, -1) >= rank)  # type: ignore[call-overload]
    assert StandingRules().rules == ()


async def test_what_cannot_be_read_is_no_rule_and_gives_way(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    try:
        await store.put("standing:telegram:1", b'{"rules": "torn')
        assert await read_rules(store, ("telegram:1",), PLACES[0]) == ()
        await add_rules(store, "telegram:1", (RULE,), PLACES[0], "user")
        assert len(await read_rules(store, ("telegram:1",), PLACES[0])) == 1
        assert {one.message for one in caplog.records} == {"document_unreadable"}
    finally:
        await store.close()
