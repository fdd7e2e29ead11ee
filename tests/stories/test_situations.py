"""Situations of groups and chats that no other story shows, as the people in them see them."""

import asyncio
import contextlib
import sqlite3
import time

import pytest

from adapters.incoming import BARE_MENTION
from gateway.texts import say
from tests.fakes.model_server import Call, Say, Slow
from tests.fakes.slack_server import BOT as SLACK_BOT
from tests.stories.discord_rig import ADMIN as DISCORD_ADMIN
from tests.stories.discord_rig import CHANNEL, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.discord_rig import FRIEND as DISCORD_FRIEND
from tests.stories.discord_rig import PERSON as DISCORDER
from tests.stories.discord_rig import STRANGER as DISCORD_STRANGER
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, STRANGER, Rig, labels, mention
from tests.stories.slack_rig import DEV, DM, SlackRig
from tests.stories.surfaces import Discord, Held, Slack, Surface, Telegram, Web

pytestmark = pytest.mark.pick("situations", 4)

MINUTE = ("what is one", "what is two", "what is three")
BURST = ("hey", "can you", "look at the log")


# ---- three people ask within a minute: it is seen whose question an answer answers -------------


async def test_on_telegram_each_answer_replies_to_its_question(rig: Rig) -> None:
    await rig.start()
    asked = {}
    for person, text in zip((PERSON, FRIEND, ADMIN), MINUTE, strict=True):
        said = rig.telegram.say(GROUP, f"@test_bot {text}", user=person, **mention("@test_bot"))
        asked[text] = said["message"]["message_id"]
    for text in MINUTE:
        answer = await rig.shows(text, GROUP)
        assert rig.telegram.replies[answer["message_id"]] == asked[text]


async def test_on_discord_each_answer_stands_in_the_thread_of_its_question(
    discord: DiscordRig,
) -> None:
    await discord.start()
    people = (DISCORDER, DISCORD_FRIEND, DISCORD_ADMIN)
    said = [
        await discord.discord.say(CHANNEL, f"@bot {text}", person)
        for person, text in zip(people, MINUTE, strict=True)
    ]
    for message, text in zip(said, MINUTE, strict=True):
        await discord.discord.shows(message["id"], text)
    await discord.quiet()
    assert not discord.discord.chats[CHANNEL], "and nowhere else"


async def test_on_slack_each_answer_stands_in_the_thread_of_its_question(slack: SlackRig) -> None:
    await slack.start()
    asked = {}
    for person, text in zip(("U0ANN", "U0BOB", "U0ADM"), MINUTE, strict=True):
        said, _ = slack.slack.mention(DEV, text, person)
        asked[text] = said["event"]["ts"]
    for text in MINUTE:
        answer = await slack.shows(text, DEV)
        assert answer["thread_ts"] == asked[text]


# ---- a request in pieces ------------------------------------------------------------------------


async def test_on_discord_a_burst_is_one_request(discord: DiscordRig) -> None:
    await discord.start(MESSAGE_BURST="60")
    gate = discord.model.gate = asyncio.Event()
    for n, text in enumerate(BURST, 1):
        await discord.discord.say(DISCORD_DM, text, DISCORDER)
        await _is_asked(discord, n)
    gate.set()
    await discord.discord.shows(DISCORD_DM, "look at the log")
    await discord.quiet()
    assert len(discord.discord.chats[DISCORD_DM]) == 1


async def test_on_slack_a_burst_is_one_request(slack: SlackRig) -> None:
    await slack.start(MESSAGE_BURST="60")
    gate = slack.model.gate = asyncio.Event()
    for n, text in enumerate(BURST, 1):
        slack.slack.say(DM, text)
        await _is_asked(slack, n)
    gate.set()
    await slack.shows("look at the log")
    await slack.quiet()
    assert len(slack.slack.channels[DM]) == 1


async def _is_asked(rig: Rig, messages: int) -> None:
    """The model is being asked about all of the burst until now, and nothing else."""
    words = "\n".join(BURST[:messages])

    def asked() -> bool:
        return rig.model.inflight == 1 and rig.seen(role="user")[-1:] == [words]

    await rig.model.wait(lambda: bool(rig.model.requests) and asked())


# ---- what is no text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"location": {"latitude": 52.52, "longitude": 13.405}}, "[location: 52.52, 13.405]"),
        ({"contact": {"first_name": "Ann", "phone_number": "+491"}}, "[contact: Ann, +491]"),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}]}}, "[poll: Tea?]"),
    ],
)
async def test_a_place_a_contact_a_poll_are_answered(
    rig: Rig, sent: dict[str, object], read: str
) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "", **sent)
    await rig.shows(read)


async def test_on_discord_a_poll_is_answered(discord: DiscordRig) -> None:
    await discord.start()
    poll = {"question": {"text": "Tea?"}, "answers": [{"poll_media": {"text": "yes"}}]}
    await discord.discord.say(DISCORD_DM, "", DISCORDER, poll=poll)
    await discord.discord.shows(DISCORD_DM, "[poll: Tea?]")


async def test_a_message_shared_into_the_apps_chat_is_a_quote(slack: SlackRig) -> None:
    await slack.start()
    shared = {"is_share": True, "author_name": "Bob", "text": "I pay tomorrow"}
    slack.slack.say(DM, "", attachments=[shared])
    await slack.shows("I pay tomorrow")
    slack.slack.say(DM, "is that so?", attachments=[shared])
    await slack.shows("is that so?")
    assert "Bob" in slack.seen(role="user")[0]
    assert slack.seen(role="user")[1].endswith("I pay tomorrow\nis that so?")


PHOTO = {"photo": [{"file_id": "p1", "file_unique_id": "p1", "width": 9, "height": 9}]}
TABLE = {"document": {"file_id": "d1", "file_unique_id": "d1", "file_name": "t.csv"}}


@pytest.mark.parametrize(("sent", "name"), [(PHOTO, "[photo_"), (TABLE, "[t.csv]")])
async def test_on_telegram_a_reply_to_a_file_names_it(
    rig: Rig, sent: dict[str, object], name: str
) -> None:
    await rig.start()
    theirs = rig.telegram.say(GROUP, "", user=FRIEND, **sent)["message"]["message_id"]
    asked = {"reply_to": theirs} | mention("@test_bot")
    rig.telegram.say(GROUP, "@test_bot what is it?", user=PERSON, **asked)
    await rig.shows("what is it?", GROUP)
    assert rig.seen(role="user")[-1].startswith(f"> U{FRIEND}:\n> {name}")


async def test_on_discord_a_reply_to_a_file_names_it(discord: DiscordRig) -> None:
    await discord.start()
    file = {"id": "881", "filename": "t.csv", "size": 8, "url": "https://cdn.invalid/t.csv"}
    said = await discord.discord.say(CHANNEL, "", DISCORD_FRIEND, attachments=[file])
    quoted = {"type": 19, "referenced_message": said}
    asked = await discord.discord.say(CHANNEL, "@bot what is it?", DISCORDER, **quoted)
    await discord.discord.shows(asked["id"], "what is it?")
    assert discord.seen(role="user")[-1].startswith(f"> U{DISCORD_FRIEND}:\n> [t.csv]")


async def test_an_album_that_replies_quotes_once(rig: Rig) -> None:
    await rig.start()
    theirs = rig.telegram.say(GROUP, "which is best?", user=FRIEND)["message"]["message_id"]
    caption = mention("@test_bot")["entities"]
    for n in range(3):
        rig.telegram.files[f"p{n}"] = b"a picture"
        words = {"caption": "@test_bot these?", "caption_entities": caption} if n == 1 else {}
        file = {"document": {"file_id": f"p{n}", "file_unique_id": f"p{n}"}}
        album = {"media_group_id": "g", "reply_to": theirs} | file | words
        rig.telegram.say(GROUP, "", user=PERSON, **album)
    await rig.shows("these?", GROUP)
    assert rig.seen(role="user")[-1].count("which is best?") == 1


# ---- files instead of words ----------------------------------------------------------------------


@pytest.mark.parametrize("surface", [Telegram, Web, Discord, Slack])
async def test_a_question_is_answered_by_a_file(surface: type[Surface], rig: Rig) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(Sort=[Call("ask_user", '{"question": "Which list?"}'), Say("Sorted.")])
        await person.say("Sort it")
        await person.card("Which list?")
        await person.say("this one", [("list.txt", b"b a")])
        await person.shows("Sorted.")
        (answer,) = rig.seen(role="tool")
        assert "this one" in answer and "incoming/list.txt" in answer
        assert not rig.log.named("release_refused"), "the session goes on with the turn"
        assert "incoming/" not in "\n".join(person.screen()), "the model's words"
    finally:
        await person.close()


HEARS = {"TRANSCRIPTION_MODEL": "openai/whisper-1"}


@pytest.mark.parametrize("surface", [Telegram, Discord, Slack])
async def test_a_question_is_answered_by_a_voice_note(
    surface: type[Telegram | Discord | Slack], rig: Rig
) -> None:
    person = surface(rig)
    await person.open(**HEARS)
    try:
        person.answers(Buy=[Call("ask_user", '{"question": "What shall I buy?"}'), Say("Bought.")])
        await person.say("Buy it")
        await person.card("What shall I buy?")
        await person.speak(b"OggS!")
        await person.shows("Bought.")
        await rig.quiet()
        (answer,) = rig.seen(role="tool")
        assert "buy some milk" in answer and len(rig.model.requests) == 2
        screen = "\n".join(person.screen())
        assert screen.count("I heard: buy some milk") == 1 and "incoming/" not in screen
    finally:
        await person.close()


@pytest.mark.parametrize("surface", [Telegram, Discord, Slack])
async def test_a_voice_note_beside_a_card_that_waits_is_a_message(
    surface: type[Telegram | Discord | Slack], rig: Rig
) -> None:
    """What was heard decides nothing: the card stays open, and is pressed."""
    person = surface(rig)
    await person.open(**HEARS)
    try:
        person.answers(
            Deploy=[Call("run_command", '{"command": "make deploy"}'), Say("Deployed.")],
            milk=[Say("Noted.")],
        )
        await person.say("Deploy it")
        await person.card("make deploy")
        await rig.quiet()
        await person.speak(b"OggS!")
        await person.shows("Noted.")
        await rig.quiet()
        await person.card("make deploy")
        await person.press("Approve once")
        await person.shows("Deployed.")
        assert len(rig.model.requests) == 3
    finally:
        await person.close()


@pytest.mark.parametrize("surface", [Telegram, Web, Discord, Slack])
async def test_what_comes_with_a_file_while_it_steers_is_read(
    surface: type[Surface], rig: Rig
) -> None:
    person = surface(rig)
    await person.open()
    try:
        pack = [Held(Call("list_files")), Say("Pack light.")]
        person.answers(pack=pack, cold=[Say("Take a coat.")])
        await person.command("/mode steer")
        await person.shows("into account")
        await person.say("What do I pack?")
        await person.thinks()
        await person.waits(await person.say("It is cold there", [("forecast.txt", b"-20")]))
        person.mind.let_go()
        await person.shows("Take a coat.")
        assert "forecast.txt" in rig.seen(role="user")[-1]
        (kept,) = rig.home.glob("workspaces/*/incoming/*forecast.txt")
        assert kept.read_bytes() == b"-20"
    finally:
        await person.close()


# ---- commands and rights ------------------------------------------------------------------------


async def test_commands_for_another_bot_of_the_group_are_left_alone(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, "/weather berlin", PERSON, True)
    rig.telegram.say(GROUP, "/weather@other_bot berlin", PERSON, True)
    rig.telegram.say(GROUP, "@test_bot hello", user=PERSON, **mention("@test_bot"))
    await rig.shows("hello", GROUP)
    await rig.quiet()
    assert len(rig.said(GROUP)) == 1


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("port 8080 is taken", "port 8080 is taken"),
        ("2 copies are enough", "2 copies are enough"),
        ("1 keep 2 copies", "keep 2 copies"),
        ("nein, 2 reichen", "nein, 2 reichen"),
    ],
)
async def test_a_reason_may_have_numbers(rig: Rig, said: str, reason: str) -> None:
    rig.model.script(Call("run_command", '{"command": "make serve"}'), Say("Not run."))
    await rig.start()
    rig.telegram.say(PERSON, "serve it")
    await rig.card()
    rig.telegram.say(PERSON, f"/deny {said}")
    await rig.shows("Not run.")
    assert rig.seen(role="tool")[-1].endswith(f": {reason}")


async def test_who_may_not_choose_the_model_hears_so(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/model anthropic/claude")
    await rig.shows("Only an admin can choose the model here. It is openai/fake-model.")


async def test_a_french_person_gets_french_cards_and_words(rig: Rig) -> None:
    rig.model.script(Call("run_command", '{"command": "make"}'), Say("Non."))
    await rig.start()
    french = {"id": PERSON, "is_bot": False, "first_name": "Anne", "language_code": "fr"}
    rig.telegram.say(PERSON, "lance-le", **{"from": french})
    card = await rig.card()
    assert "Rien n’isole cette commande" in card["text"]
    rig.press(card, "Refuser")
    await rig.shows("Refusé par")
    rig.telegram.say(PERSON, "/mode nope", **{"from": french})
    await rig.until(lambda: any("Utilisez" in text or "Écrivez" in text for text in rig.said()))


# ---- what a platform does not let it do ----------------------------------------------------------


async def test_where_reactions_are_forbidden_a_waiting_message_is_seen_by_typing(
    rig: Rig,
) -> None:
    await rig.start()
    gate = rig.model.gate = asyncio.Event()
    rig.telegram.say(GROUP, "@test_bot one", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    rig.telegram.fail("setMessageReaction", 400, description="Bad Request: REACTION_INVALID")
    before = len(rig.telegram.working)
    rig.telegram.say(GROUP, "@test_bot two", user=FRIEND, **mention("@test_bot"))
    await rig.telegram.wait(lambda: GROUP in rig.telegram.working[before:])
    gate.set()
    await rig.shows("two", GROUP)


async def test_on_discord_it_is_seen_by_typing_too(discord: DiscordRig) -> None:
    await discord.start()
    gate = discord.model.gate = asyncio.Event()
    await discord.discord.say(DISCORD_DM, "one", DISCORDER)
    await discord.model.wait_inflight(1)
    discord.discord.fail("react", 403, code=50013)
    before = len(discord.discord.typing)
    await discord.discord.say(DISCORD_DM, "two", DISCORDER)
    await discord.discord.wait(lambda: DISCORD_DM in discord.discord.typing[before:])
    gate.set()
    await discord.discord.shows(DISCORD_DM, "two")


async def test_a_growing_answer_that_a_moderator_deletes_comes_anew_on_telegram(rig: Rig) -> None:
    rig.model.script(Slow(0.02, "word " * 40 + "the end"))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot count", user=PERSON, **mention("@test_bot"))
    await rig.shows("word word", GROUP)
    gone = "Bad Request: message to edit not found"
    rig.telegram.fail("editMessageText", 400, description=gone)
    await rig.shows("the end", GROUP)


async def test_a_growing_answer_that_a_moderator_deletes_comes_anew_on_discord(
    discord: DiscordRig,
) -> None:
    discord.model.script(Slow(0.02, "word " * 40 + "the end"))
    await discord.start()
    said = await discord.discord.say(CHANNEL, "@bot count", DISCORDER)
    await discord.discord.shows(said["id"], "word word")
    discord.discord.fail("edit", 404, code=10008)
    await discord.discord.shows(said["id"], "the end")


async def test_a_growing_answer_that_a_moderator_deletes_comes_anew_on_slack(
    slack: SlackRig,
) -> None:
    slack.model.script(Slow(0.02, "word " * 60 + "the end"))
    await slack.start()
    slack.slack.mention(DEV, "count")
    await slack.shows("word word", DEV)
    slack.slack.fail("chat.update", error="message_not_found")
    await slack.shows("the end", DEV)


async def test_what_strangers_change_in_a_server_leaves_no_row(discord: DiscordRig) -> None:
    def count() -> list[int]:
        with contextlib.closing(sqlite3.connect(discord.home / "turnkeeper.db")) as store:
            tables = ("conversations", "inbox")
            return [store.execute(f"SELECT count(*) FROM {one}").fetchone()[0] for one in tables]

    await discord.start()
    await discord.discord.say(DISCORD_DM, "hello", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "hello")
    await discord.quiet()
    before = count()
    for person in (DISCORD_STRANGER, DISCORDER):
        said = await discord.discord.say(CHANNEL, "lunch?", person)
        await discord.discord.change(said, "lunch at one?")
        await discord.discord.delete(said)
    await discord.discord.say(DISCORD_DM, "and now?", DISCORDER)
    await discord.discord.shows(DISCORD_DM, "and now?")
    await discord.quiet()
    assert [n - m for n, m in zip(count(), before, strict=True)] == [0, 1], "the last message alone"


async def test_by_default_a_thread_is_not_listened_to_without_a_mention(
    discord: DiscordRig,
) -> None:
    await discord.start()
    task = await discord.discord.say(CHANNEL, "@bot and in Europe?", DISCORDER)
    await discord.discord.shows(task["id"], "in Europe?")
    await discord.discord.say(task["id"], "and in Asia?", DISCORDER)
    await discord.discord.say(task["id"], "@bot and in Africa?", DISCORDER)
    await discord.discord.shows(task["id"], "in Africa?")
    await discord.quiet()
    assert "Asia" not in str(discord.seen())


# ---- whose question an answer answers, where others speak in between ---------------------------


async def test_on_telegram_an_answer_after_tools_replies_to_its_question(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Call("list_files"), Say("Nothing there."))
    said = rig.telegram.say(GROUP, "@test_bot look", user=PERSON, **mention("@test_bot"))
    answer = await rig.shows("Nothing there.", GROUP)
    lines = await rig.shows("List files", GROUP)
    assert answer["message_id"] != lines["message_id"]
    for shown in (lines, answer):
        assert rig.telegram.replies[shown["message_id"]] == said["message"]["message_id"]


# ---- edited again, after it was answered again ---------------------------------------------------


async def test_a_message_that_was_answered_again_may_be_edited_again(rig: Rig) -> None:
    await rig.start()
    said = rig.telegram.say(PERSON, "what is tow")["message"]["message_id"]
    await rig.shows("ack what is tow")
    for n, words in enumerate(("what is two", "what is three"), 1):
        await rig.quiet()
        rig.telegram.edit(PERSON, said, words)
        await rig.telegram.wait(lambda n=n: len(_offers(rig)) == 1 and len(_edited(rig)) == n)
        rig.press(_offers(rig)[0], "Answer again")
        await rig.shows(f"ack {words}")


def _edited(rig: Rig) -> list[str]:
    return [text for text in rig.said() if text.startswith("You edited your message")]


def _offers(rig: Rig) -> list[dict[str, object]]:
    return [one for one in rig.buttons() if "Answer again" in labels(one)]


# ---- an option in a person's own words, and the one who is asked in a thread --------------------

ASKED = Call("ask_user", '{"question": "Which way?", "options": ["Train", "Plane"]}')
DAY = Call("ask_user", '{"question": "Which day?"}')


async def test_an_option_that_is_written_is_chosen(rig: Rig) -> None:
    await rig.start()
    rig.model.script(ASKED, Say("By train."))
    rig.telegram.say(PERSON, "book it")
    await rig.card()
    await rig.quiet()
    rig.telegram.say(PERSON, " train ")
    await rig.shows("By train.")
    assert rig.seen(role="tool") == ["Train"]


async def test_on_slack_an_option_is_written_in_the_thread(slack: SlackRig) -> None:
    await slack.start()
    slack.model.script(ASKED, Say("By train."))
    said, _ = slack.slack.mention(DEV, "book it")
    await slack.shows("Which way?", DEV)
    await slack.quiet()
    slack.slack.say(DEV, "TRAIN", thread=said["event"]["ts"])
    await slack.shows("By train.", DEV)
    assert slack.seen(role="tool") == ["Train"]


async def test_on_slack_a_mention_in_the_thread_answers_too(slack: SlackRig) -> None:
    await slack.start()
    slack.model.script(DAY, Say("Another one."), Say("On Monday."))
    said, _ = slack.slack.mention(DEV, "book it")
    await slack.shows("Which day?", DEV)
    slack.slack.mention(DEV, "Monday", "U0BOB", said["event"]["ts"])
    await slack.shows("Another one.", DEV)
    await slack.quiet()
    slack.slack.mention(DEV, "Monday", "U0ANN", said["event"]["ts"])
    await slack.shows("On Monday.", DEV)
    assert slack.seen(role="tool") == ["Monday"]


async def test_on_slack_what_is_shared_into_the_thread_answers(slack: SlackRig) -> None:
    await slack.start()
    slack.model.script(DAY, Say("On Monday."))
    said, _ = slack.slack.mention(DEV, "book it")
    await slack.shows("Which day?", DEV)
    await slack.quiet()
    shared = {"is_share": True, "author_name": "Bob", "text": "Monday suits me"}
    slack.slack.say(DEV, "", thread=said["event"]["ts"], attachments=[shared])
    await slack.shows("On Monday.", DEV)
    assert slack.seen(role="tool") == ["> Forwarded, by Bob:\n> Monday suits me"]


async def test_on_discord_what_is_forwarded_into_the_thread_answers(discord: DiscordRig) -> None:
    await discord.start(GROUP_POLICY="thread")
    discord.model.script(DAY, Say("On Monday."))
    said = await discord.discord.say(CHANNEL, "@bot book it", DISCORDER)
    await discord.discord.shows(said["id"], "Which day?")
    await discord.quiet()
    forwarded = [{"message": {"content": "Monday suits me", "attachments": []}}]
    await discord.discord.say(said["id"], "", DISCORDER, message_snapshots=forwarded)
    await discord.discord.shows(said["id"], "On Monday.")
    assert discord.seen(role="tool") == ["> Forwarded, by Somebody:\n> Monday suits me"]


async def test_on_discord_a_mention_in_the_thread_answers(discord: DiscordRig) -> None:
    await discord.start()
    discord.model.script(DAY, Say("Another one."), Say("On Monday."))
    said = await discord.discord.say(CHANNEL, "@bot book it", DISCORDER)
    await discord.discord.shows(said["id"], "Which day?")
    await discord.discord.say(said["id"], "@bot Sunday", DISCORD_FRIEND)
    await discord.discord.shows(said["id"], "Another one.")
    await discord.quiet()
    await discord.discord.say(said["id"], "@bot Monday", DISCORDER)
    await discord.discord.shows(said["id"], "On Monday.")
    assert discord.seen(role="tool") == ["Monday"]


async def test_who_is_cut_off_by_somebody_else_hears_so(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, "/mode@test_bot interrupt", user=ADMIN)
    await rig.shows("stops me", GROUP)
    gate = rig.model.gate = asyncio.Event()
    said = rig.telegram.say(GROUP, "@test_bot mine", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight()
    rig.telegram.say(GROUP, "@test_bot no, mine", user=ADMIN, **mention("@test_bot"))
    word = await rig.shows("Stopped here: a newer message arrived.", GROUP)
    assert rig.telegram.replies[word["message_id"]] == said["message"]["message_id"]
    gate.set()
    await rig.shows("no, mine", GROUP)


# ---- a stranger's command -----------------------------------------------------------------------


async def test_on_discord_a_stranger_is_told_alone_that_a_command_is_not_for_them(
    discord: DiscordRig,
) -> None:
    await discord.start()
    given = await discord.discord.command(CHANNEL, "status", DISCORD_STRANGER)
    whispers = discord.discord.whispers
    await discord.discord.wait(lambda: say("not_known") in whispers[given])
    given = await discord.discord.command(CHANNEL, "status", DISCORDER)
    await discord.discord.shows(CHANNEL, "Idle.")
    await discord.quiet()
    assert len(discord.discord.chats[CHANNEL]) == 1
    assert say("not_known") not in whispers[given]


# ---- a message that becomes one for the agent by an edit ----------------------------------------


async def test_on_telegram_a_mention_that_an_edit_adds_is_answered_once(rig: Rig) -> None:
    await rig.start()
    mine, theirs, old = (
        rig.telegram.say(GROUP, text, user=user)["message"]["message_id"]
        for text, user in (("six", PERSON), ("seven", STRANGER), ("eight", PERSON))
    )
    named = mention("@test_bot")
    rig.telegram.edit(GROUP, old, "@test_bot eight", date=int(time.time()) - 4_000, **named)
    rig.telegram.edit(GROUP, theirs, "@test_bot seven", **named)
    rig.telegram.edit(GROUP, mine, "@test_bot six", **named)
    answer = await rig.shows("six", GROUP)
    assert rig.telegram.replies[answer["message_id"]] == mine
    await rig.quiet()
    rig.telegram.edit(GROUP, mine, "@test_bot sixty", **named)
    await rig.shows("You edited your message after", GROUP)
    await rig.quiet()
    assert len(rig.model.requests) == 1, "none for the stranger, the old one, the second edit"


async def test_a_mention_that_an_edit_adds_begins_a_topic(rig: Rig) -> None:
    await rig.start(GROUP_POLICY="thread")
    topic = {"thread": 5, "group": True}
    said = rig.telegram.say(GROUP, "six", user=PERSON, **topic)["message"]["message_id"]
    other = rig.telegram.say(GROUP, "among people", user=FRIEND, **topic)["message"]["message_id"]
    rig.telegram.edit(GROUP, said, "@test_bot six", **mention("@test_bot"))
    answer = await rig.shows("six", GROUP)
    assert rig.telegram.replies[answer["message_id"]] == said
    rig.telegram.say(GROUP, "seven", user=FRIEND, **topic)
    await rig.shows("seven", GROUP)
    rig.telegram.edit(GROUP, other, "still among people")
    await rig.quiet()
    assert len(rig.model.requests) == 2


async def test_on_discord_a_mention_that_an_edit_adds_is_answered_once(
    discord: DiscordRig,
) -> None:
    await discord.start()
    theirs = await discord.discord.say(CHANNEL, "what is two", DISCORD_STRANGER)
    mine = await discord.discord.say(CHANNEL, "what is one", DISCORDER)
    for message, text in ((theirs, "two"), (mine, "one")):
        await discord.discord.change(message, f"@bot what is {text}")
    await discord.discord.shows(mine["id"], "what is one")
    await discord.discord.change(mine, "@bot what is three")
    await discord.discord.shows(mine["id"], "You edited your message after")
    await discord.quiet()
    assert len(discord.model.requests) == 1


async def test_on_slack_a_mention_that_an_edit_adds_is_answered_once(slack: SlackRig) -> None:
    await slack.start()
    theirs = slack.slack.say(DEV, "what is two", "U0EVE")["event"]["ts"]
    mine = slack.slack.say(DEV, "what is one")["event"]["ts"]
    for message, text in ((theirs, "two"), (mine, "one")):
        slack.slack.edit(DEV, message, f"<@{SLACK_BOT}> what is {text}")
    answer = await slack.shows("what is one", DEV)
    assert answer["thread_ts"] == mine
    slack.slack.edit(DEV, mine, f"<@{SLACK_BOT}> what is three")
    await slack.shows("You edited your message after", DEV)
    await slack.quiet()
    assert len(slack.model.requests) == 1


# ---- nothing but a mention ----------------------------------------------------------------------


async def test_on_discord_a_bare_mention_below_a_message_is_about_it(discord: DiscordRig) -> None:
    await discord.start()
    said = await discord.discord.say(CHANNEL, "is this right?", DISCORD_FRIEND)
    quoted = {"type": 19, "referenced_message": said}
    asked = await discord.discord.say(CHANNEL, "@bot", DISCORDER, **quoted)
    await discord.discord.shows(asked["id"], "is this right?")
    await discord.discord.say(asked["id"], "@bot", DISCORD_FRIEND)
    await discord.discord.shows(asked["id"], f"] {BARE_MENTION}")


async def test_on_slack_a_bare_mention_in_a_thread_is_about_it(slack: SlackRig) -> None:
    await slack.start()
    said = slack.slack.say(DEV, "is this right?", "U0BOB")["event"]["ts"]
    slack.slack.mention(DEV, "", thread=said)
    answer = await slack.shows("is this right?", DEV)
    assert answer["thread_ts"] == said and BARE_MENTION in str(answer)


# ---- what is forwarded, with a comment before it (Telegram) or after it (Discord) ---------------

FORWARDED = {"message": {"content": "Monday suits me", "attachments": []}}


async def test_in_a_group_what_is_forwarded_comes_with_its_comment(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot who is right?", user=PERSON, **mention("@test_bot"))
    for user, words in ((FRIEND, "no, I am"), (PERSON, "it is free"), (PERSON, "it costs 5")):
        origin = {"type": "user", "sender_user": {"id": 9, "first_name": "Bob"}, "date": 1}
        rig.telegram.say(GROUP, words, user=user, forward_origin=origin)
    await rig.shows("it costs 5", GROUP)
    await rig.quiet()
    said = "who is right?\n> Forwarded, by Bob:\n> it is free\n> Forwarded, by Bob:\n> it costs 5"
    assert len(rig.model.requests) == 1 and rig.seen(role="user")[0].endswith(said)


@pytest.mark.parametrize("channel", [DISCORD_DM, CHANNEL])
async def test_on_discord_what_is_forwarded_comes_with_the_comment_below(
    discord: DiscordRig, channel: str
) -> None:
    await discord.start(GROUP_POLICY="thread")
    await discord.discord.say(channel, "", DISCORDER, message_snapshots=[FORWARDED])
    asked = await discord.discord.say(channel, "@bot is that so?", DISCORDER)
    shown = asked["id"] if channel == CHANNEL else channel
    await discord.discord.shows(shown, "Monday suits me")
    await discord.quiet()
    (said,) = discord.seen(role="user")
    assert said.endswith("is that so?\n> Forwarded, by Somebody:\n> Monday suits me")
