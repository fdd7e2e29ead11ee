"""Gateway events as Discord's documents show them, and as they should not come."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord.memory import MessageOrigin
from adapters.discord.parse import (
    NOWHERE,
    Channel,
    DiscordBot,
    channel_of,
    parse,
    read_channel,
    read_me,
    read_press_place,
    token_of,
)
from adapters.discord.receive import read_deletions
from gateway.messages import (
    Attachment,
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    Quote,
    Sender,
)

Json = dict[str, Any]
ME = DiscordBot(id="4001", name="helper", application="4002")
ANN = {"id": "7", "username": "ann", "global_name": "Ann"}
BOT = {"id": "4001", "username": "helper", "bot": True}
OPEN = Channel(opens=True)
DM: Json = {"channel_id": "90"}
TEAM: Json = {"channel_id": "71", "guild_id": "70"}


def message(text: str, **more: Any) -> Json:
    base = {"id": "175928847299117063", "type": 0, "content": text, "author": ANN, "mentions": []}
    return base | TEAM | more


def received(event: Json, channel: Channel = NOWHERE) -> MessageReceived:
    found = parse("MESSAGE_CREATE", event, ME, channel)
    assert isinstance(found, MessageReceived)
    return found


def interaction(kind: int, data: Json, **more: Any) -> Json:
    base = {"id": "5", "application_id": "4002", "token": "tok", "type": kind, "data": data}
    return base | {"locale": "de", "member": {"user": ANN, "nick": "Annie"}} | TEAM | more


def test_a_private_message() -> None:
    found = received(message("hello") | {"guild_id": None})
    assert found.conversation.private and found.addressed
    assert found.conversation.id == "discord:4001::71::p"
    assert found.sender == Sender(platform="discord", id="7", name="Ann", handle="ann")
    assert (found.event, found.message) == ("m175928847299117063", "175928847299117063")
    assert found.at == pytest.approx(1462015105.796)


@pytest.mark.parametrize(
    ("event", "addressed", "text"),
    [
        (message("talk"), False, "talk"),
        (message("<@4001> do it", mentions=[BOT]), True, "do it"),
        (message("ask <@!7> or <@4001>", mentions=[ANN, BOT]), True, "ask @Ann or @helper"),
        (message("<@8> and @everyone"), False, "<@8> and @everyone"),
        (message("yes", type=19, referenced_message=message("?", author=BOT)), True, "yes"),
        (message("yes", type=19, referenced_message=message("?")), False, "yes"),
    ],
)
def test_who_is_spoken_to_in_a_server(event: Json, addressed: bool, text: str) -> None:
    found = received(event)
    assert (found.addressed, found.text) == (addressed, text)
    assert not found.conversation.private and found.conversation.workspace == "70"


def test_a_thread_is_a_conversation_of_its_own() -> None:
    found = received(message("x"), Channel(parent="60")).conversation
    assert (found.channel, found.thread) == ("60", "71")
    assert read_channel({"type": 11, "parent_id": "60"}) == Channel(parent="60")
    assert read_channel({"type": 0, "parent_id": "60"}) == OPEN, "its parent is its category"
    assert read_channel({"type": 2, "parent_id": "60"}) == Channel(), "spoken, not written"
    assert read_channel({"id": "1"}) is None
    assert (channel_of(TEAM), channel_of(DM)) == ("71", "")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<:smile:123> <a:wave:45> :)", ":smile: :wave: :)"),
        ("at <t:1790000000:R> or <t:0>", "at 2026-09-21 14:13 UTC or 1970-01-01 00:00 UTC"),
        ("</stop all:71> ends it", "`/stop all` ends it"),
        ("<t:99999999999:f>", "5138-11-16 09:46 UTC"),
        ("<:a:> <t:x> a<b:c>", "<:a:> <t:x> a<b:c>"),
    ],
)
def test_what_clients_draw_is_put_into_words(written: str, read: str) -> None:
    assert received(message(written)).text == read


def test_a_sticker_is_named() -> None:
    stickers = [{"id": "1", "name": "Wave"}]
    shown = received(message("", sticker_items=stickers))
    assert (shown.text, shown.described) == ("[sticker: Wave]", True)
    said = received(message("Hi", sticker_items=stickers))
    assert (said.text, said.described) == ("Hi", False)


def test_a_mention_in_a_channel_begins_a_task() -> None:
    asked = message("<@4001> do it", mentions=[BOT])
    task = received(asked, OPEN).conversation
    assert (task.channel, task.thread) == ("71", asked["id"])
    assert received(asked, Channel(parent="60")).conversation.thread == "71"
    assert received(asked).conversation.thread == "", "where no thread can be made"
    assert received(message("talk"), OPEN).conversation.thread == ""
    edit = parse("MESSAGE_UPDATE", asked | {"edited_timestamp": "2026"}, ME, OPEN)
    assert isinstance(edit, MessageEdited) and edit.conversation == task


def test_a_reply_to_the_bot_goes_on_with_its_task() -> None:
    chained = message("done", author=BOT, message_reference={"message_id": "5"})
    for ours, thread in ((chained, "5"), (message("a report", author=BOT), "")):
        reply = message("<@4001> more", mentions=[BOT], type=19, referenced_message=ours)
        assert received(reply, OPEN).conversation.thread == thread
        press = interaction(3, {"custom_id": "q:1:a"}, message=ours)
        found = parse("INTERACTION_CREATE", press, ME, OPEN)
        assert isinstance(found, ButtonPressed) and found.conversation.thread == thread


def test_a_reply_quotes_what_our_message_showed() -> None:
    inside = [{"type": 17, "components": [{"type": 10, "content": "The plan"}]}]
    ours = message("", author=BOT, components=inside)
    quote = received(message("yes", type=19, referenced_message=ours)).reply_to
    assert quote is not None and quote.mine and quote.text == "The plan"


def test_files_are_named_by_their_message() -> None:
    about = {"id": "9", "filename": "a.ogg", "content_type": "audio/ogg; x", "size": 5}
    (file,) = received(message("", attachments=[about], flags=1 << 13)).attachments
    ref = "71/175928847299117063/9"
    assert file == Attachment(ref=ref, name="a.ogg", mime="audio/ogg", size=5, voice=True)
    snapshot = [{"message": {"content": "forwarded", "attachments": [about]}}]
    found = received(message("", message_snapshots=snapshot))
    assert found.reply_to == Quote(message="", text="forwarded", forwarded=True)
    assert found.text == "" and len(found.attachments) == 1


def test_a_poll_is_put_into_words() -> None:
    answers = [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no"}}]
    poll = {"question": {"text": "Tea?"}, "answers": answers}
    assert received(message("", poll=poll)).text == "[poll: Tea?]\n- yes\n- no"


@pytest.mark.parametrize(
    "event",
    [
        message("x", author=BOT),
        message("x", webhook_id="5"),
        message("x", type=7),
        message(""),
        message("x", channel_id="no"),
        message("x", author={}),
    ],
)
def test_what_is_not_for_us(event: Json) -> None:
    assert parse("MESSAGE_CREATE", event, ME) is None


def test_a_written_command() -> None:
    given_one = parse("MESSAGE_CREATE", message("<@4001> /Plan on", mentions=[BOT]), ME)
    assert isinstance(given_one, CommandGiven)
    assert (given_one.name, given_one.arguments) == ("plan", "on")
    assert isinstance(parse("MESSAGE_CREATE", message("/plan on"), ME), MessageReceived)


def test_edits_and_deletions() -> None:
    when = "2026-01-01T00:00:00+00:00"
    edited = parse("MESSAGE_UPDATE", message("new", edited_timestamp=when), ME)
    assert isinstance(edited, MessageEdited)
    assert edited.event == f"e175928847299117063:{when}"
    assert parse("MESSAGE_UPDATE", message("new", edited_timestamp=None), ME) is None, "a preview"
    said = received(message("soon gone", id="1"))
    known = {"1": MessageOrigin(conversation=said.conversation, sender=said.sender)}
    (gone,) = read_deletions({"id": "1"} | DM, known)
    assert isinstance(gone, MessageDeleted) and gone.message == "1"
    assert (gone.sender, gone.conversation) == (said.sender, said.conversation)
    assert read_deletions({"id": "2"} | DM, known) == []
    assert len(read_deletions({"ids": ["1", "2"]} | TEAM, known)) == 1


def test_interactions() -> None:
    options = [{"type": 3, "name": "text", "value": " on "}]
    given_one = parse(
        "INTERACTION_CREATE", interaction(2, {"name": "plan", "options": options}), ME
    )
    assert isinstance(given_one, CommandGiven)
    assert (given_one.name, given_one.arguments, given_one.event) == ("plan", "on", "i5")
    assert (given_one.sender.name, given_one.sender.language) == ("Annie", "de")
    button = interaction(3, {"custom_id": "q:1:deny", "component_type": 2}, message={"id": "8"})
    pressed = parse("INTERACTION_CREATE", button, ME)
    assert isinstance(pressed, ButtonPressed)
    assert (pressed.token, pressed.message, pressed.press) == ("q:1:deny", "8", "4002/tok")
    chosen = interaction(3, {"custom_id": "choice:0", "component_type": 3, "values": ["q:1:6"]})
    assert token_of(chosen) == "q:1:6"
    opening = interaction(3, {"custom_id": "w:q:1:text", "component_type": 2})
    assert parse("INTERACTION_CREATE", opening, ME) is None, "it is answered with a modal"


def test_what_a_modal_brings() -> None:
    def filled(token: str, words: str) -> Json:
        field = {"type": 18, "component": {"type": 4, "custom_id": "text", "value": words}}
        return interaction(5, {"custom_id": token, "components": [field]}, message={"id": "8"})

    form = parse("INTERACTION_CREATE", filled("q:1:text", "Monday"), ME)
    assert isinstance(form, FormSubmitted) and (form.token, form.text) == ("q:1:text", "Monday")
    denied = parse("INTERACTION_CREATE", filled("q:1:deny", "too late"), ME)
    assert isinstance(denied, ButtonPressed) and denied.text == "too late"


def test_who_we_are() -> None:
    assert read_me(BOT, {"id": "4002"}) == ME
    assert read_me(BOT) == DiscordBot(id="4001", name="helper", application="4001")
    assert read_me([]) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["7", "\ud800", "w:"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "id", "type", "content", "author", "mentions", "channel_id", "guild_id", "data", "member",
    "token", "components", "component", "values", "custom_id", "attachments", "message_snapshots",
    "referenced_message", "edited_timestamp", "flags", "ids", "channel", "options", "user",
]  # fmt: skip
WHOLE = st.sampled_from(
    [
        message("x", mentions=[BOT]),
        interaction(3, {"custom_id": "q:1:a", "component_type": 2}, message={"id": "8"}),
        interaction(5, {"custom_id": "q:1:text", "components": [{"component": {"value": "a"}}]}),
        interaction(2, {"name": "plan", "options": [{"value": "on"}]}),
    ]
)


@given(WHOLE, st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_odd_events_are_no_error(whole: Json, odd: Json) -> None:
    event = whole | odd
    for kind in ("MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE", "TYPING_START"):
        parse(kind, event, ME)
    read_deletions(event, {})
    token_of(event), read_press_place(event), channel_of(event), read_channel(event.get("channel"))
    read_me(event)
