"""What comes in is clean before it is stored, and what names something stays what it is."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.text import is_clean
from gateway.conversation.inbox.cleaning import MAX_LINE, clean_inbound
from gateway.messages import (
    Attachment,
    ButtonPressed,
    CommandGiven,
    Conversation,
    FormSubmitted,
    Inbound,
    JobFired,
    MessageEdited,
    MessageReceived,
    Quote,
    Sender,
    WebhookCalled,
)

ANY = st.text(st.characters(codec=None, categories=None), max_size=40)
WHERE = Conversation(platform="telegram", account="1", channel="7", private=True)


def said(text: str) -> list[Inbound]:
    """Each inbound value with `text` wherever somebody else decides on it."""
    sender = Sender(platform="telegram", id="7", name=text, handle=text)
    common = {"conversation": WHERE, "sender": sender, "event": f"e{text}"}
    return [
        MessageReceived(
            message="m",
            text=text,
            attachments=(Attachment(ref=f"r{text}", name=text, mime=text),),
            reply_to=Quote(message="q", author=text, text=text),
            **common,
        ),
        MessageEdited(message="m", text=text, **common),
        CommandGiven(message="m", name="deny", arguments=text, **common),
        ButtonPressed(message="m", token=f"q:{text}", text=text, **common),
        FormSubmitted(token="q:1", text=text, **common),
    ]


@given(ANY)
@example("a \xad")
@example("\xad\n\u202ea \u200d")
def test_all_of_it_can_be_stored(text: str) -> None:
    for inbound in said(text):
        cleaned = clean_inbound(inbound)
        stored = msgspec.json.encode(cleaned)
        assert msgspec.json.decode(stored, type=type(inbound)) == cleaned
        assert clean_inbound(cleaned) == cleaned
        assert is_clean(getattr(cleaned, "text", ""))
        if isinstance(cleaned, MessageReceived):
            assert "\n" not in cleaned.sender.name + cleaned.attachments[0].name
            assert "\u202e" not in cleaned.sender.name + cleaned.attachments[0].name


def test_a_clean_one_is_itself() -> None:
    for inbound in said("Ünï 🙂 ok"):
        assert clean_inbound(inbound) is inbound


@given(ANY, ANY)
def test_two_names_stay_two(one: str, other: str) -> None:
    first, second = (clean_inbound(said(text)[0]).event for text in (one, other))
    assert (first == second) == (one == other) or "\\" in one + other


def test_jobs_and_hooks_too() -> None:
    for kind in (JobFired, WebhookCalled):
        fields = {field.name for field in msgspec.structs.fields(kind)}
        assert "text" in fields


def test_a_long_name_leaves_room_beside_it() -> None:
    """Of people and of files, whose kind stays."""
    long = "a" * 4_000
    for one in said(f"{long}.tar.gz"):
        sender = clean_inbound(one).sender  # type: ignore[union-attr]  # all of these have one
        assert len(sender.name) == MAX_LINE and sender.name.endswith("a.tar.gz")
        assert sender.handle == f"{long}.tar.gz", "what names somebody is no other's"
    assert clean_inbound(clean_inbound(said(long)[0])) == clean_inbound(said(long)[0])
