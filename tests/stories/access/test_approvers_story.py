"""Who decides, over Telegram: deciders by risk, several yeses, reminders, escalation."""

import pytest

from adapters.telegram.adapter import TelegramAdapter
from gateway.command_texts import drop_marks
from gateway.errors import Ambiguous, ChatClosed, DeliveryError, Rejected
from gateway.messages import Conversation, QuestionDue
from gateway.ports import person_scope
from gateway.store.rows import QuestionRow
from gateway.texts import say
from tests.fakes.model_server import Say
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PERSON,
    STRANGER,
    Json,
    Rig,
    mention,
    run,
    token,
    write,
)

SECOND = 14
"""Another admin."""
ADMINS = {"TELEGRAM_ADMIN_USERS": f"{ADMIN},{SECOND}"}


async def asked_in_group(rig: Rig, **settings: str) -> Json:
    """A card in the group, asked for by PERSON."""
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(**ADMINS, **settings)
    rig.telegram.say(GROUP, "@test_bot write it", user=PERSON, **mention("@test_bot"))
    card = await rig.card(GROUP)
    await rig.quiet()
    return card


def done(rig: Rig) -> bool:
    return (rig.workspace(GROUP) / "a.txt").exists()


def reminders(rig: Rig, chat: int = PERSON) -> list[str]:
    return [text for text in rig.said(chat) if text.startswith("Still waiting")]


# ---- who decides ---------------------------------------------------------------------------


async def test_only_the_entitled_press_works_and_others_get_a_private_word(rig: Rig) -> None:
    card = await asked_in_group(rig, APPROVERS="low=role:admin")
    only_admins = say("not_entitled", who="admins")
    assert await rig.told(rig.press(card, "Approve once", PERSON)) == only_admins
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == only_admins
    assert await rig.told(rig.press(card, "Approve once", STRANGER)) == say("not_yours")
    rig.telegram.say(GROUP, "/approve", user=FRIEND)
    await rig.shows(only_admins, GROUP)
    assert not done(rig)
    assert await rig.told(rig.press(card, "Approve once", SECOND)) == ""
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert done(rig) and f"by U{SECOND}" in card["text"]
    refused = [line for line in await rig.audit() if line[1] == "press_refused"]
    assert [line[0] for line in refused] == [
        f"telegram:{one}" for one in (PERSON, FRIEND, STRANGER)
    ]


async def test_who_asked_may_not_decide_where_they_are_left_out(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(**ADMINS, APPROVERS=f"role:admin,{FRIEND}")
    rig.telegram.say(GROUP, "@test_bot write it", user=ADMIN, **mention("@test_bot"))
    card = await rig.card(GROUP)
    word = await rig.told(rig.press(card, "Approve once", ADMIN))
    assert word == say("not_entitled", who=f"admins, telegram:{FRIEND}")
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == ""
    await rig.shows("written", GROUP)


async def test_the_role_counts_at_the_time_of_the_press(rig: Rig) -> None:
    card = await asked_in_group(rig, APPROVERS="role:admin")
    await rig.stop()
    await rig.start(APPROVERS="asker", TELEGRAM_ADMIN_USERS=str(FRIEND))
    word = await rig.told(rig.press(card, "Approve once", PERSON))
    assert word == say("not_entitled", who="admins"), "it was asked under the rule of then"
    assert await rig.told(rig.press(card, "Approve once", ADMIN)) == say("not_yours")
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == ""
    await rig.shows("written", GROUP)


async def test_several_people_approve_each_counted_once(rig: Rig) -> None:
    card = await asked_in_group(rig, APPROVERS="2:asker,role:admin")
    assert await rig.told(rig.press(card, "Always", ADMIN)) == ""
    await rig.shows(say("voted", name=f"U{ADMIN}", given=1, needed=2), GROUP)
    again = rig.press(card, "Approve once", ADMIN)
    assert await rig.told(again) == say("voted_before", left=1)
    rig.telegram.say(GROUP, "/approve", user=ADMIN)
    await rig.shows(say("voted_before", left=1), GROUP)
    await rig.quiet()
    assert not done(rig)
    await rig.crash()
    await rig.start(**ADMINS)
    rig.telegram.say(GROUP, "/approve", user=SECOND)
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert f"Approved once by U{ADMIN}, U{SECOND}" in card["text"], "the narrower yes"
    votes = [line for line in await rig.audit() if line[1] == "voted"]
    assert [line[0] for line in votes] == [f"telegram:{ADMIN}"]


async def test_the_first_no_decides(rig: Rig) -> None:
    card = await asked_in_group(rig, APPROVERS="3:asker,role:admin")
    data = token(card, "Approve once")
    await rig.told(rig.press(card, "Approve once", ADMIN))
    rig.telegram.say(GROUP, "/deny not today", user=SECOND)
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert f"Denied by U{SECOND}" in card["text"] and "not today" in card["text"]
    assert not done(rig)
    late = rig.telegram.press(GROUP, card["message_id"], data, PERSON)
    assert await rig.told(late) == say("not_open")


async def test_after_a_time_others_may_decide(rig: Rig) -> None:
    card = await asked_in_group(rig, APPROVERS=f"role:admin; escalate=1s:{FRIEND}")
    await rig.shows(f"it can also be decided by: telegram:{FRIEND}", GROUP)
    await rig.quiet()
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == ""
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert sum("can also be decided" in text for text in rig.said(GROUP)) == 1


def pinged(message: Json) -> list[int]:
    return [one["user"]["id"] for one in message["entities"] if one["type"] == "text_mention"]


async def test_who_decides_in_a_group_is_mentioned_and_so_by_the_reminder(rig: Rig) -> None:
    """Who has set the group to mentions only hears of nothing else there."""
    rig.model.script(Say("hi"), write("a.txt"), Say("written"))
    await rig.start(**ADMINS, APPROVERS="role:admin", QUESTION_REMINDER="1")
    rig.telegram.say(GROUP, "@test_bot hello", user=SECOND, **mention("@test_bot"))
    await rig.shows("hi", GROUP)
    rig.telegram.say(GROUP, "@test_bot write it", user=PERSON, **mention("@test_bot"))
    card = await rig.card(GROUP)
    await rig.quiet()
    assert pinged(card) == [ADMIN, SECOND] and f"To decide: {ADMIN}, U{SECOND}\n" in card["text"]
    word = await rig.shows("Still waiting", GROUP)
    assert pinged(word) == [ADMIN, SECOND] and not word.get("disable_notification")
    await rig.told(rig.press(card, "Approve once", SECOND))
    await rig.shows("written", GROUP)
    await rig.quiet()
    assert "To decide" not in card["text"]


async def test_who_asks_and_decides_is_mentioned_by_the_reminder_alone(rig: Rig) -> None:
    card = await asked_in_group(rig, QUESTION_REMINDER="1")
    assert pinged(card) == [] and "To decide" not in card["text"]
    word = await rig.shows("Still waiting", GROUP)
    assert pinged(word) == [PERSON] and word["text"].endswith(f"\nU{PERSON}")


async def test_the_reminder_mentions_those_too_who_may_decide_by_then(rig: Rig) -> None:
    rule = f"role:admin; escalate=1s:{FRIEND}"
    await asked_in_group(rig, APPROVERS=rule, QUESTION_REMINDER="1")
    later = await rig.shows("it can also be decided by", GROUP)
    assert pinged(later) == [FRIEND]
    word = await rig.shows("Still waiting", GROUP)
    assert sorted(pinged(word)) == sorted([ADMIN, SECOND, FRIEND])


# ---- reminders -----------------------------------------------------------------------------


async def test_an_open_question_is_reminded_of_once(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(QUESTION_REMINDER="1")
    rig.telegram.say(PERSON, "write it")
    await rig.shows("Still waiting for a decision: Write a file: a.txt")
    assert "/approve" in reminders(rig)[0]
    await rig.quiet()
    where, question = await only_question(rig)
    assert question.reminded and await rig.store.next_due() == question.expires
    again = QuestionDue(
        conversation=rig.where(), event="another", question=question.id, what="reminder"
    )
    await rig.host.accept([again])
    await rig.crash()
    await rig.start(QUESTION_REMINDER="1")
    rig.press(rig.cards()[0], "Approve once")
    await rig.shows("written")
    await rig.quiet()
    assert len(reminders(rig)) == 1
    assert await rig.store.next_due() is None


async def test_what_was_answered_is_not_reminded_of(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(QUESTION_REMINDER="1000000")
    rig.telegram.say(PERSON, "write it")
    await rig.card()
    await rig.quiet()
    _, question = await only_question(rig)
    assert (question.remind, await rig.store.next_due()) == (0.0, question.expires)
    rig.press(rig.cards()[0], "Approve once")
    await rig.shows("written")
    late = QuestionDue(
        conversation=rig.where(), event="late", question=question.id, what="reminder"
    )
    await rig.host.accept([late])
    await rig.quiet()
    assert reminders(rig) == []


async def only_question(rig: Rig) -> tuple[str, QuestionRow]:
    (found,) = await rig.store.due(float("inf"), 10)
    return found


# ---- the approvers' chat -------------------------------------------------------------------

BOARD = -1009
CHAT = {"APPROVERS_CHAT": f"telegram:{BOARD}", "APPROVERS": "role:admin"}


async def asked_in_private(rig: Rig, **settings: str) -> Json:
    """The card on the board, asked for by PERSON in private."""
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(**(ADMINS | CHAT | settings))
    rig.telegram.say(PERSON, "write it")
    card = await rig.card(BOARD)
    await rig.quiet()
    return card


@pytest.mark.parametrize("who", [PERSON, ADMIN])
async def test_who_asked_is_named_only_where_they_may_decide(rig: Rig, who: int) -> None:
    rig.model.script(run("make deploy"), Say("deployed"))
    await rig.start(**(ADMINS | CHAT | {"APPROVERS": "asker:admin,role:admin"}))
    rig.telegram.say(who, "write it", user=who)
    await rig.card(who)
    named = "the requester, admins" if who == ADMIN else "admins"
    await rig.shows(f"It can be decided by: {named}.", who)
    told = await rig.told(rig.press(rig.cards(who)[0], "Approve once", who))
    assert told == ("" if who == ADMIN else say("not_entitled", who="admins"))


async def test_the_board_is_shown_the_card_and_decides_alone(rig: Rig) -> None:
    card = await asked_in_private(rig, TELEGRAM_ALLOWED_CHATS="-1")
    assert f"Requested by U{PERSON}" in card["text"] and "a.txt" in card["text"]
    await rig.shows("It can be decided by: admins")
    assert await rig.told(rig.press(card, "Approve once", FRIEND)) == say(
        "not_entitled", who="admins"
    )
    own = rig.cards()[0]
    assert await rig.told(rig.press(own, "Approve once", PERSON)) == say(
        "not_entitled", who="admins"
    )
    assert not (rig.workspace() / "a.txt").exists()


async def test_a_press_on_the_board_runs_it_where_it_was_asked(rig: Rig) -> None:
    card = await asked_in_private(rig)
    own = rig.cards()[0]
    stolen = rig.telegram.press(GROUP, 5, token(card, "Approve once"), ADMIN)
    assert await rig.told(stolen) == say("not_here")
    press = rig.press(card, "Approve once", ADMIN)
    assert await rig.told(press) == ""
    await rig.shows("written")
    await rig.telegram.wait(lambda: f"by U{ADMIN}" in card["text"], 15)
    rig.telegram.redeliver(press)
    await rig.quiet()
    assert f"by U{ADMIN}" in own["text"] and "reply_markup" not in card
    assert (rig.workspace() / "a.txt").exists() and len(rig.telegram.chats[BOARD]) == 1
    for who, listed in ((ADMIN, []), (PERSON, [rig.where().id])):
        found = await rig.store.recent(person_scope(f"telegram:{who}"), 10)
        assert [one.conversation for one in found] == listed
    assert await rig.store.next_due() is None
    rig.telegram.say(BOARD, "/approvals", user=ADMIN)
    await rig.shows(say("no_approvals"), BOARD)


async def test_on_the_board_a_reason_is_given_by_command(rig: Rig) -> None:
    card = await asked_in_private(rig)
    told = await rig.told(rig.press(card, "Deny with reason", ADMIN))
    assert told == drop_marks(say("deny_by_number"))
    rig.telegram.say(BOARD, "/deny 1 another name", user=ADMIN)
    await rig.telegram.wait(lambda: "Reason: another name" in card["text"], 15)
    assert not (rig.workspace() / "a.txt").exists()


async def test_the_board_decides_by_commands_over_a_restart(rig: Rig) -> None:
    card = await asked_in_private(rig, GROUP_SCOPE="per_person")
    await rig.crash()
    await rig.start(**ADMINS, **CHAT, GROUP_SCOPE="per_person")
    rig.telegram.say(BOARD, "/approvals", user=ADMIN)
    await rig.shows("1. Write a file: ", BOARD)
    rig.telegram.say(BOARD, "/approve", user=FRIEND)
    await rig.shows(say("not_entitled", who="admins"), BOARD)
    rig.telegram.say(BOARD, "/deny 1 not now", user=SECOND)
    await rig.shows(say("passed_on"), BOARD)
    await rig.shows("written")
    await rig.telegram.wait(lambda: f"Denied by U{SECOND}" in card["text"], 15)
    await rig.quiet()
    assert "not now" in card["text"] and not (rig.workspace() / "a.txt").exists()


async def test_a_stop_where_it_was_asked_closes_the_card_on_the_board(rig: Rig) -> None:
    card = await asked_in_private(rig)
    rig.telegram.say(PERSON, "/stop all")
    await rig.telegram.wait(lambda: "Withdrawn" in card["text"], 15)
    await rig.quiet()
    late = rig.telegram.press(BOARD, card["message_id"], "q:none:once", ADMIN)
    assert await rig.told(late) == say("unknown_button")


async def test_several_on_the_board_approve(rig: Rig) -> None:
    card = await asked_in_private(rig, APPROVERS="2:role:admin")
    counted = say("voted", name=f"U{ADMIN}", given=1, needed=2)
    assert await rig.told(rig.press(card, "Approve once", ADMIN)) == counted
    assert await rig.told(rig.press(card, "Approve once", SECOND)) == ""
    await rig.shows("written")
    await rig.telegram.wait(lambda: f"U{ADMIN}, U{SECOND}" in card["text"], 15)


BOSSES = -1009


@pytest.mark.parametrize("error", [Rejected("no such chat"), ChatClosed("kicked"), Ambiguous("?")])
async def test_a_chat_of_approvers_that_takes_no_card_is_told_of_where_it_was_asked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: DeliveryError
) -> None:
    """Otherwise the asker waits for people who know of nothing."""
    send = TelegramAdapter.send

    async def refuse(
        adapter: TelegramAdapter, where: Conversation, payload: bytes, answers: str = ""
    ) -> str:
        if where.channel == str(BOSSES):
            raise error
        return await send(adapter, where, payload, answers)

    monkeypatch.setattr(TelegramAdapter, "send", refuse)
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start(APPROVERS_CHAT=f"telegram:{BOSSES}", APPROVERS="asker,role:admin")
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    await rig.shows(f"did not take this question ({error})")
    rig.press(card, "Approve once")
    await rig.shows("written")
    await rig.quiet()
    assert len([text for text in rig.said() if "did not take" in text]) == 1
