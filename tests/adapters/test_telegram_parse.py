"""Bot API updates to Inbound values."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.telegram.parse import TelegramBot, parse, read_me
from gateway.messages import (
    Attachment,
    ButtonPressed,
    ChatLost,
    CommandGiven,
    Conversation,
    MessageEdited,
    MessageReceived,
    Quote,
    Sender,
    StopPressed,
)
from tests.sampling import examples

ME = TelegramBot(id=42, username="Test_Bot")
ANN = {"id": 7, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann"}
SENDER = Sender(platform="telegram", id="7", name="Ann Lee", handle="ann")
PRIVATE = {"id": 7, "type": "private", "first_name": "Ann"}
GROUP = {"id": -1007, "type": "supergroup", "title": "Team"}
HERE = Conversation(platform="telegram", account="42", channel="7", private=True)
THERE = Conversation(platform="telegram", account="42", channel="-1007")
BOT = {"id": 42, "is_bot": True, "first_name": "Test", "username": "Test_Bot"}


def message(chat: dict[str, Any] = PRIVATE, **more: Any) -> dict[str, Any]:
    return {"message_id": 5, "from": ANN, "chat": chat, "date": 1700000000} | more


def said(chat: dict[str, Any] = PRIVATE, **more: Any) -> Any:
    return parse({"update_id": 9, "message": message(chat, **more)}, ME)


def test_a_private_message() -> None:
    assert said(text="hello") == MessageReceived(
        conversation=HERE,
        sender=SENDER,
        event="u9",
        message="5",
        text="hello",
        addressed=True,
        at=1700000000.0,
    )


def test_a_group_message_is_addressed_by_mention_or_reply_only() -> None:
    assert said(GROUP, text="hello").conversation == THERE
    assert not said(GROUP, text="hello @test_bot").addressed  # no entity: not a mention
    entity = {"type": "mention", "offset": 3, "length": 9}
    assert said(GROUP, text="👋 @test_bot hi", entities=[entity]).addressed
    assert not said(GROUP, text="👋 @fest_bot hi", entities=[entity]).addressed
    named = {"type": "text_mention", "offset": 0, "length": 2, "user": BOT}
    assert said(GROUP, text="hi", entities=[named]).addressed
    photo = [{"file_id": "p", "width": 1}]
    caption = {"caption": "👋 @test_bot hi", "caption_entities": [entity], "photo": photo}
    assert said(GROUP, **caption).addressed


def test_a_reply_quotes_its_message_and_author() -> None:
    mine = said(GROUP, text="yes", reply_to_message={"message_id": 3, "from": BOT, "text": "Sure?"})
    assert mine.addressed
    assert mine.reply_to == Quote(message="3", author="Test", text="Sure?", mine=True)
    other = {"message_id": 3, "from": ANN, "caption": "a long story"}
    part = said(GROUP, text="why", reply_to_message=other, quote={"text": "story", "position": 7})
    assert part.reply_to == Quote(message="3", author="Ann Lee", text="story", marked=True)
    assert not part.addressed


def test_what_is_forwarded_is_its_authors() -> None:
    bob = {"type": "user", "sender_user": {"id": 9, "first_name": "Bob"}, "date": 1}
    whole = said(text="I pay tomorrow.", forward_origin=bob)
    assert whole.text == ""
    assert whole.reply_to == Quote(message="", author="Bob", text="I pay tomorrow.", forwarded=True)
    hidden = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    assert said(text="x", forward_origin=hidden).reply_to.author == "Eve"
    channel = {"type": "channel", "chat": {"title": "News"}, "message_id": 1, "date": 1}
    photo = [{"file_id": "p", "width": 1}]
    shown = said(caption="look", photo=photo, forward_origin=channel)
    assert shown.reply_to.author == "News" and shown.reply_to.text == "look"
    assert [file.ref for file in shown.attachments] == ["p"]
    assert isinstance(said(text="/stop", forward_origin=bob), MessageReceived), (
        "no command of Ann's"
    )
    own = {"type": "user", "sender_user": BOT, "date": 1}
    assert said(text="Sure?", forward_origin=own).reply_to.mine


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"location": {"latitude": 52.52, "longitude": 13.405}}, "[location: 52.52, 13.405]"),
        (
            {"venue": {"title": "Zoo", "address": "Way 1",
                       "location": {"latitude": 1.5, "longitude": -2}},
             "location": {"latitude": 1.5, "longitude": -2}},
            "[place: Zoo, Way 1, 1.5, -2]",
        ),
        (
            {"contact": {"first_name": "Ann", "last_name": "Lee", "phone_number": "+491"}},
            "[contact: Ann Lee, +491]",
        ),
        (
            {"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}},
            "[poll: Tea?]\n- yes\n- no",
        ),
        (
            {"checklist": {"title": "Buy", "tasks": [{"text": "tea", "completion_date": 1},
                                                     {"text": "milk"}]}},
            "[check list: Buy]\n- [x] tea\n- [ ] milk",
        ),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲: 4]"),
        ({"story": {"chat": PRIVATE, "id": 1}}, "[a story: bots cannot read it]"),
        ({"location": {"latitude": "x"}}, "[location: ]"),
    ],
)  # fmt: skip
def test_what_has_no_words_is_put_into_words(sent: dict[str, Any], words: str) -> None:
    shown = said(**sent)
    assert shown.text == words
    assert shown.described == bool({"venue", "contact"} & sent.keys()), "names that others gave"


def test_what_nobody_sent_on_purpose_is_nothing() -> None:
    assert said(new_chat_members=[ANN]) is None
    assert said(pinned_message=message(text="x")) is None


def test_forum_topics_are_threads_and_their_opening_is_no_reply() -> None:
    opening = {"message_id": 4, "from": BOT, "forum_topic_created": {"name": "x"}}
    inside = {"message_thread_id": 4, "is_topic_message": True, "reply_to_message": opening}
    topic = said(GROUP, text="hi", **inside)
    assert topic.conversation.thread == "4"
    assert topic.reply_to is None
    assert not topic.addressed
    assert said(GROUP, text="hi", message_thread_id=4).conversation.thread == ""


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("/Plan on", "plan", "on"),
        ("/new", "new", ""),
        ("/mode@test_bot  steer \n now", "mode", "steer \n now"),
    ],
)
def test_commands(text: str, name: str, arguments: str) -> None:
    assert said(GROUP, text=text) == CommandGiven(
        conversation=THERE,
        sender=SENDER,
        event="u9",
        message="5",
        name=name,
        arguments=arguments,
        addressed="@" in text,
    )


def test_what_is_not_a_command_for_us() -> None:
    assert said(GROUP, text="/new@other_bot") is None
    assert isinstance(said(text="/usr/bin/env"), MessageReceived)
    assert isinstance(said(text="/ new"), MessageReceived)


def test_files_are_references() -> None:
    sizes = [{"file_id": "s", "width": 90}, {"file_id": "l", "width": 800, "file_size": 9}]
    assert said(caption="see", photo=sizes).attachments == (
        Attachment(ref="l", name="photo_5.jpg", mime="image/jpeg", size=9),
    )
    voice = said(voice={"file_id": "v", "mime_type": "audio/ogg", "duration": 2})
    assert voice.text == ""
    assert voice.attachments == (
        Attachment(ref="v", name="voice.ogg", mime="audio/ogg", voice=True),
    )
    document = said(document={"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"})
    assert document.attachments == (Attachment(ref="d", name="a.pdf", mime="application/pdf"),)


def test_an_album_is_messages_that_share_its_name() -> None:
    first, second = (
        said(media_group_id="g1", photo=[{"file_id": name, "width": 1}], **more)
        for name, more in (("a", {"caption": "both"}), ("b", {}))
    )
    assert (first.album, second.album) == ("g1", "g1")
    assert (first.text, second.text) == ("both", "")
    assert [one.attachments[0].ref for one in (first, second)] == ["a", "b"]
    assert said(text="alone").album == ""


@pytest.mark.parametrize(
    ("field", "file", "name", "mime", "voice"),
    [
        (
            "audio",
            {"file_name": "s.flac", "mime_type": "audio/flac"},
            "s.flac",
            "audio/flac",
            False,
        ),
        ("voice", {}, "voice.ogg", "audio/ogg", True),
        ("video_note", {}, "video.mp4", "video/mp4", False),
        ("video", {}, "video.mp4", "video/mp4", False),
        ("sticker", {"emoji": "👍"}, "sticker.webp", "image/webp", False),
        ("sticker", {"is_video": True}, "sticker.webm", "video/webm", False),
    ],
)
def test_every_kind_of_file(
    field: str, file: dict[str, Any], name: str, mime: str, voice: bool
) -> None:
    found = said(**{field: {"file_id": "x", "file_size": 3} | file})
    assert found.attachments == (Attachment(ref="x", name=name, mime=mime, size=3, voice=voice),)
    assert found.text == file.get("emoji", "")


def test_an_animated_sticker_is_its_emoji() -> None:
    found = said(sticker={"file_id": "x", "emoji": "👍", "is_animated": True})
    assert (found.text, found.attachments) == ("👍", ())


RICH = {
    "blocks": [
        {"type": "heading", "text": "Plan", "size": 3},
        {"type": "paragraph", "text": ["a ", {"type": "bold", "text": ["b", "c"]}]},
        {
            "type": "list",
            "items": [{"label": "", "blocks": [{"type": "paragraph", "text": "one"}]}],
        },
        {"type": "details", "summary": "more", "blocks": [{"type": "pre", "text": "x = 1"}]},
        {"type": "table", "cells": [[{"text": "1"}, {"text": "2"}]]},
    ]
}


def test_a_rich_message_is_quoted_and_forwarded_as_its_text() -> None:
    text = "Plan\na bc\none\nmore\nx = 1\n1 | 2"
    reply = said(text="yes", reply_to_message={"message_id": 3, "from": BOT, "rich_message": RICH})
    assert reply.reply_to == Quote(message="3", author="Test", text=text, mine=True)
    assert said(rich_message=RICH).text == text
    deep: dict[str, Any] = {"text": "x"}
    for _ in range(900):
        deep = {"blocks": [deep], "text": [deep]}
    assert said(text="hi", reply_to_message={"message_id": 3, "rich_message": deep}).reply_to


def test_edits_of_captions_and_what_an_edit_cannot_take_back() -> None:
    edited = parse({"update_id": 9, "edited_message": message(caption="now", photo=[])}, ME)
    assert isinstance(edited, MessageEdited)
    assert edited.text == "now"
    assert (
        parse(
            {"update_id": 9, "edited_message": message(location={"latitude": 1, "longitude": 2})},
            ME,
        )
        is None
    )


def test_an_edit() -> None:
    edited = parse({"update_id": 9, "edited_message": message(text="better")}, ME)
    assert edited == MessageEdited(
        conversation=HERE, sender=SENDER, event="u9", message="5", text="better"
    )


@pytest.mark.parametrize("more", [{"date": 1, "text": "?", "from": BOT}, {"date": 0}])
def test_a_press_also_on_a_message_that_is_gone(more: dict[str, Any]) -> None:
    query = {"id": "77", "from": ANN, "data": "q:a:yes", "chat_instance": "1"}
    query["message"] = {"message_id": 6, "chat": PRIVATE} | more
    assert parse({"update_id": 9, "callback_query": query}, ME) == ButtonPressed(
        conversation=HERE,
        sender=SENDER,
        event="u9",
        message="6",
        token="q:a:yes",
        press="77",
        anywhere=more["date"] == 0,
    )


def test_the_native_stop_button() -> None:
    stopped = {"chat": PRIVATE, "message_thread_id": 3, "draft_id": 1}
    found = parse({"update_id": 9, "stopped_message_generation": stopped}, ME)
    assert isinstance(found, StopPressed)
    assert found.sender.id == "7"
    assert found.conversation == msgspec.structs.replace(HERE, thread="3")


def test_people_who_write_as_a_chat() -> None:
    fake = {
        "id": 1087968824,
        "is_bot": True,
        "first_name": "Group",
        "username": "GroupAnonymousBot",
    }
    admin = said(GROUP, text="hi", **{"from": fake}, sender_chat=GROUP)
    assert admin.sender == Sender(platform="telegram", id="-1007", name="Team", anonymous=True)
    assert said(GROUP, text="post", sender_chat=GROUP, is_automatic_forward=True) is None


@pytest.mark.parametrize(
    ("member", "lost"),
    [
        ({"status": "kicked"}, True),
        ({"status": "left"}, True),
        ({"status": "restricted", "can_send_messages": False}, True),
        ({"status": "restricted", "can_send_messages": True}, False),
        ({"status": "member"}, False),
        ({}, False),
    ],
)
def test_a_chat_in_which_the_bot_may_not_write(member: dict[str, Any], lost: bool) -> None:
    update = {"update_id": 9, "my_chat_member": {"chat": GROUP, "new_chat_member": member}}
    found = parse(update, ME)
    assert isinstance(found, ChatLost) is lost
    assert found is None or (found.conversation.channel, found.event) == (str(GROUP["id"]), "u9")


def test_what_says_nothing() -> None:
    assert said(text="hi", **{"from": BOT}) is None
    assert said(new_chat_members=[ANN]) is None
    assert said(migrate_to_chat_id=-5) is None
    assert parse({"update_id": 9, "my_chat_member": {}}, ME) is None
    assert parse({"update_id": 9, "channel_post": message(text="x")}, ME) is None
    assert read_me({"id": "x"}) is None


def test_lone_surrogates_can_be_stored() -> None:
    assert said(text="a\ud800b").text == "a\ufffdb"


KEYS = st.sampled_from(
    [
        "update_id",
        "message",
        "edited_message",
        "callback_query",
        "stopped_message_generation",
        "from",
        "chat",
        "id",
        "type",
        "text",
        "caption",
        "entities",
        "offset",
        "length",
        "user",
        "sender_chat",
        "date",
        "photo",
        "document",
        "voice",
        "file_id",
        "width",
        "reply_to_message",
        "quote",
        "external_reply",
        "origin",
        "data",
        "message_id",
        "message_thread_id",
        "sticker",
        "is_topic_message",
        "first_name",
        "username",
        "title",
        "is_bot",
        "file_size",
        "rich_message",
        "blocks",
        "items",
        "cells",
        "summary",
        "media_group_id",
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    | st.sampled_from(["private", "mention", "/new@x y", "\ud83d", 7, -1007, 10**400])
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=8)
    ),
    max_leaves=40,
)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(KEYS, JSON, max_size=5),
    st.dictionaries(KEYS, JSON, max_size=8),
    st.sampled_from(["message", "edited_message", "callback_query", "stopped_message_generation"]),
)
def test_odd_payloads_never_raise(update: Any, body: Any, kind: str) -> None:
    for one in (update, {"update_id": 1, kind: body}, {"update_id": 1, kind: message() | body}):
        found = parse(one, ME)
        if found is not None:
            assert found.conversation.id
            msgspec.json.encode(found)
