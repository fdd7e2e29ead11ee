"""Slack's payloads as its documents show them, and as they should not come."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.live import about
from adapters.slack.parse import SlackBot, parse, read_me
from gateway.messages import (
    Attachment,
    ButtonPressed,
    ChatLost,
    CommandGiven,
    Inbound,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    Quote,
)
from tests.adapters.slack_rig import where
from tests.sampling import examples

Json = dict[str, Any]
ME = SlackBot(user="U0BOT", team="T0TEAM", bot="B0BOT")


def heard(**event: object) -> Inbound | None:
    whole = {"type": "message", "channel": "C0DEV", "user": "U0ANN", "ts": "10.000001"} | event
    payload = {"type": "event_callback", "event_id": "Ev1", "team_id": "T0TEAM", "event": whole}
    return parse("events_api", payload, ME)


def test_who_we_are() -> None:
    answer = {"user_id": "U0BOT", "team_id": "T0TEAM", "bot_id": "B0BOT"}
    assert read_me(answer) == ME
    assert read_me({"user_id": 5}) is None and read_me({}) is None


@pytest.mark.parametrize(
    ("channel", "thread", "place"),
    [
        ("D0ANN", "", where("D0ANN")),
        ("D0ANN", "9.000001", where("D0ANN", "9.000001")),
        ("C0DEV", "", where("C0DEV", "10.000001")),
        ("C0DEV", "9.000001", where("C0DEV", "9.000001")),
        ("C0DEV", "10.000001", where("C0DEV", "10.000001")),
        ("G0MPIM", "", where("G0MPIM", "10.000001")),
    ],
)
def test_each_thread_is_a_conversation(channel: str, thread: str, place: object) -> None:
    more = {"thread_ts": thread} if thread else {}
    said = heard(channel=channel, text="x", **more)
    assert isinstance(said, MessageReceived)
    assert said.conversation == place and said.message == "10.000001" and said.at == 10.000001
    assert said.addressed == channel.startswith("D")


@pytest.mark.parametrize(
    ("event", "lost"),
    [
        ({"type": "channel_archive"}, True),
        ({"type": "group_left", "user": None}, True),
        ({"type": "channel_deleted"}, True),
        ({"type": "member_left_channel", "user": "U0BOT"}, True),
        ({"type": "member_left_channel", "user": "U0ANN"}, False),
        ({"type": "channel_left", "channel": 5}, False),
    ],
)
def test_a_channel_in_which_the_app_may_not_write(event: Json, lost: bool) -> None:
    found = heard(**event)
    assert found == (ChatLost(conversation=where("C0DEV"), event="Ev1") if lost else None)


def test_a_mention_is_for_us_and_is_left_out() -> None:
    said = heard(text="<@U0BOT> hello <@U1|bob>")
    assert isinstance(said, MessageReceived)
    assert said.addressed and said.text == "hello @bob"
    other = heard(text="<@U0BOTTOM> hello")
    assert isinstance(other, MessageReceived) and not other.addressed


def test_a_mention_that_comes_alone_is_a_message() -> None:
    """An app without message events for a channel gets the mention only."""
    only = heard(type="app_mention", text="<@U0BOT> hello")
    assert isinstance(only, MessageReceived) and only.addressed and only.text == "hello"


def test_a_command_in_words() -> None:
    given_ = heard(text="<@U0BOT> /deny use another")
    assert isinstance(given_, CommandGiven)
    assert (given_.name, given_.arguments) == ("deny", "use another")
    copied = heard(channel="D0ANN", channel_type="im", text="@turnkeeper /stop all")
    assert isinstance(copied, CommandGiven), "a hint of ours that was copied mentions nobody"
    assert (copied.name, copied.arguments) == ("stop", "all")
    among = heard(text="/deny it")
    assert isinstance(among, MessageReceived), "in a channel it must be said to us"


def test_edits_and_deletions_are_of_their_writer() -> None:
    before = {"user": "U0ANN", "ts": "9.000001", "text": "a", "thread_ts": "8.000001"}
    changed = heard(
        subtype="message_changed", message=before | {"text": "b"}, previous_message=before
    )
    assert isinstance(changed, MessageEdited)
    assert (changed.text, changed.message) == ("b", "9.000001")
    assert changed.conversation == where("C0DEV", "8.000001")
    unfurled = before | {"attachments": [{}]}
    assert heard(subtype="message_changed", message=unfurled, previous_message=before) is None
    gone = heard(subtype="message_deleted", previous_message=before)
    assert isinstance(gone, MessageDeleted) and gone.message == "9.000001"
    tombstone = {"subtype": "tombstone", "ts": "9.000001", "user": "USLACKBOT", "text": "gone"}
    also = heard(subtype="message_changed", message=tombstone, previous_message=before)
    assert isinstance(also, MessageDeleted) and also.sender.id == "U0ANN"


@pytest.mark.parametrize(
    "event",
    [
        {"user": "U0BOT", "text": "my own"},
        {"bot_id": "B1", "text": "another bot"},
        {"subtype": "bot_message", "text": "x"},
        {"subtype": "channel_join", "text": "<@U0ANN> has joined"},
        {"text": ""},
        {"text": "x", "ts": "soon"},
        {"text": "x", "channel": "../C1"},
        {"type": "reaction_added"},
    ],
)
def test_what_is_not_for_us(event: Json) -> None:
    assert heard(**event) is None


def test_files_come_by_reference() -> None:
    files = [
        {"id": "F01", "name": "a.png", "mimetype": "image/png", "size": 5},
        {"id": "F02", "subtype": "slack_audio", "mimetype": "audio/mp4", "size": -1},
        {"id": "F03", "mode": "tombstone"},
    ]
    said = heard(subtype="file_share", text="", files=files)
    assert isinstance(said, MessageReceived)
    assert said.attachments == (
        Attachment(ref="F01", name="a.png", mime="image/png", size=5),
        Attachment(ref="F02", name="file", mime="audio/mp4", voice=True),
    )


def test_what_is_shared_is_quoted_with_its_author() -> None:
    shared: Json = {
        "is_share": True, "is_msg_unfurl": True, "author_name": "Bob", "text": "I pay *tomorrow*",
        "files": [{"id": "F01", "name": "a.png", "mimetype": "image/png", "size": 5}],
    }  # fmt: skip
    alone = heard(text="", attachments=[shared])
    assert isinstance(alone, MessageReceived)
    quote = Quote(message="", author="Bob", text="I pay *tomorrow*", forwarded=True)
    assert alone.text == "" and alone.reply_to == quote and len(alone.attachments) == 1
    both = heard(text="is that so?", attachments=[shared, shared | {"author_name": "Eve"}])
    assert isinstance(both, MessageReceived) and both.reply_to is not None
    assert both.text == "is that so?" and both.reply_to.text.endswith("\nEve: I pay *tomorrow*")
    preview = heard(text="see https://x.example", attachments=[{"title": "X", "text": "y"}])
    assert isinstance(preview, MessageReceived) and preview.reply_to is None


def pressed(**more: object) -> Inbound | None:
    action = {"action_id": "b0", "value": "q:7:once", "action_ts": "11.5"}
    payload: Json = {
        "type": "block_actions", "user": {"id": "U0ANN"}, "channel": {"id": "D0ANN"},
        "message": {"ts": "9.000001"}, "actions": [action],
    }  # fmt: skip
    return parse("interactive", payload | more, ME)


@pytest.mark.parametrize(
    ("brought", "read"),
    [
        ({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "db1 is full"}}]}, "db1 is full"),
        ({"attachments": [{"title": "db1", "text": "is full"}]}, "db1\nis full"),
        ({"files": [{"mode": "tombstone"}]}, "[file]"),
    ],
)  # fmt: skip
def test_what_has_no_words_is_described(brought: Json, read: str) -> None:
    said = heard(channel="D0ANN", text="", **brought)
    assert isinstance(said, MessageReceived)
    assert said.text == read and said.described
    nothing = heard(channel="D0ANN", text="", blocks=[{"type": "divider"}])
    assert nothing is None


def test_a_press_stays_in_its_conversation() -> None:
    press = pressed()
    assert isinstance(press, ButtonPressed)
    assert (press.token, press.message, press.press) == ("q:7:once", "9.000001", "D0ANN||U0ANN")
    assert press.conversation == where("D0ANN")
    parent = pressed(message={"ts": "9.000001", "thread_ts": "9.000001"})
    assert isinstance(parent, ButtonPressed) and parent.conversation == where("D0ANN")
    below = pressed(message={"ts": "9.000001", "thread_ts": "8.000001"}, channel={"id": "C0DEV"})
    assert isinstance(below, ButtonPressed)
    assert below.conversation == where("C0DEV", "8.000001")
    chosen = {"action_id": "c0", "selected_option": {"value": "q:7:3"}, "action_ts": "1.5"}
    choice = pressed(actions=[chosen])
    assert isinstance(choice, ButtonPressed) and choice.token == "q:7:3"
    assert pressed(actions=[]) is None and pressed(user={}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["C0DEV", "9.000001"]),
    lambda inside: st.lists(inside, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["event", "type", "channel", "user", "ts", "text", "message", "files", "actions", "id",
             "view", "state", "values", "event_id", "subtype", "previous_message", "thread_ts"]
        ),
        inside, max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip
KINDS = st.sampled_from(["events_api", "interactive", "slash_commands", "hello"])


@settings(max_examples=examples(300), deadline=None)
@given(KINDS, st.dictionaries(st.sampled_from(["type", "event", "event_id", "view", "user", "actions", "message"]), JSON))  # fmt: skip
def test_odd_payloads_are_let_go(kind: str, payload: Json) -> None:
    for one in (
        payload,
        payload | {"type": "block_actions"},
        payload | {"type": "view_submission"},
    ):
        parse(kind, one, ME)


def test_what_a_window_keeps_of_a_message_fits() -> None:
    chosen: dict[str, Any] = {"type": "message_action", "callback_id": about.SHORTCUT}
    chosen |= {"trigger_id": "1.2", "user": {"id": "U1"}, "channel": {"id": "C0DEV"}}
    message = {"ts": "1.5", "thread_ts": "1.2", "user": "U2", "text": "x"}
    assert about.read(chosen | {"message": message}) is not None
    for odd in ({"ts": "1.5" * 1_000}, {"thread_ts": "1.5" * 1_000}, {"ts": "x"}):
        assert about.read(chosen | {"message": message | odd}) is None
    assert about.read(chosen | {"message": message, "channel": {"id": "C" * 3_000}}) is None
    for text in ('"' * 5_000, "\\" * 5_000, "line\n" * 1_000):
        kept = about._About(
            channel="C0DEV",
            thread="1.5",
            message="1.5",
            author='"' * 100,
            text=about._shorten(text),
        )
        made = about.window(kept, "en")["private_metadata"]
        assert isinstance(made, str) and len(made) <= 3_000
