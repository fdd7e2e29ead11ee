"""Further parts of what was addressed to the agent in a group are for it as well."""

import itertools

import pytest
from msgspec.structs import replace

from agent_core import ambient
from gateway.access import addressed as module
from gateway.access.addressed import LONG_PART, Addressed
from gateway.messages import Conversation, MessageReceived, Quote, Sender

GROUP = Conversation(platform="telegram", account="1", channel="-7")
NUMBERS = itertools.count()


def part(text: str = "", *, by: str = "ann", album: str = "", to: bool = False, at: float = 0.0):
    name = str(next(NUMBERS))
    return MessageReceived(
        conversation=GROUP, sender=Sender(platform="telegram", id=by), event=name, message=name,
        text=text, album=album, addressed=to, at=at,
    )  # fmt: skip


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1_000.0]
    monkeypatch.setattr(ambient, "monotonic", lambda: clock[0])
    return clock


def marks(known: Addressed, *messages: MessageReceived) -> list[bool]:
    marked = known.with_parts(messages)
    return [isinstance(one, MessageReceived) and one.addressed for one in marked]


LONG = "a" * LONG_PART


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_album_in_any_order(order: tuple[int, ...]) -> None:
    parts = [part(album="9", to=n == 0) for n in range(3)]
    assert marks(Addressed(), *(parts[n] for n in order)) == [True] * 3


@pytest.mark.usefixtures("now")
def test_an_album_in_several_batches(now: list[float]) -> None:
    known = Addressed()
    assert marks(known, part(album="9", to=True)) == [True]
    now[0] += 5
    assert marks(known, part(album="9"), part(album="8"), part(album="9", by="ben")) == [
        True, False, False,
    ]  # fmt: skip
    now[0] += 60
    assert marks(known, part(album="9")) == [False]


def test_a_paste_of_three(now: list[float]) -> None:
    known = Addressed()
    assert marks(known, part(LONG, to=True)) == [True]
    now[0] += 0.4
    assert marks(known, part("mine", by="ben"), part(LONG)) == [False, True]
    now[0] += 0.4
    assert marks(known, part("the end"), part("something else")) == [True, False]


def heard(known: Addressed, *messages: MessageReceived) -> list[str]:
    """The events of what is addressed then, in order."""
    marked = known.with_parts(messages)
    assert len({one.event for one in marked}) == len(marked), "each once"
    return [one.event for one in marked if isinstance(one, MessageReceived) and one.addressed]


@pytest.mark.parametrize("together", [True, False])
def test_a_paste_that_names_it_at_its_end(together: bool, now: list[float]) -> None:
    known, parts = Addressed(), [part(LONG), part(LONG), part("@bot what is wrong?", to=True)]
    events = [one.event for one in parts]
    if together:
        assert heard(known, parts[0], part("mine", by="ben"), *parts[1:]) == events
        return
    for one in parts[:2]:
        assert heard(known, one) == []
        now[0] += 0.4
    assert heard(known, parts[2]) == events
    assert heard(known, part("@bot", to=True))[:-1] == [], "once"


def test_an_album_that_names_it_later(now: list[float]) -> None:
    known, first, second = Addressed(), part(album="9"), part(album="9", to=True)
    assert heard(known, first, part(album="8"), part(album="9", by="ben")) == []
    now[0] += 5
    assert heard(known, second) == [first.event, second.event]


def test_what_was_said_before_is_no_part(now: list[float]) -> None:
    known = Addressed()
    assert heard(known, part(LONG)) == []
    now[0] += 1.5
    assert len(heard(known, part("@bot", to=True))) == 1
    assert len(heard(known, part(LONG), part("that was all"), part("@bot", to=True))) == 1
    late = (part(LONG, at=100.0), part("@bot", to=True, at=3_700.0))
    assert len(heard(known, *late)) == 1


def test_what_comes_later_is_no_part(now: list[float]) -> None:
    known = Addressed()
    assert marks(known, part(LONG, to=True)) == [True]
    now[0] += 1.5
    assert marks(known, part("later")) == [False]
    assert marks(known, part("short", to=True), part("next")) == [True, False]


def forward(*, by: str = "ann", at: float = 0.0, to: bool = False) -> MessageReceived:
    quote = Quote(message="", author="Bob", text="it is free", forwarded=True)
    return replace(part(by=by, at=at, to=to), reply_to=quote)


def test_what_is_forwarded_after_a_comment(now: list[float]) -> None:
    known = Addressed()
    assert marks(known, part("@bot true?", to=True)) == [True]
    now[0] += 0.4
    assert marks(known, forward(by="ben"), forward()) == [False, True]
    now[0] += 0.8
    assert marks(known, forward(), part("well"), forward()) == [True, False, False]
    now[0] += 5
    assert marks(known, part("@bot", to=True)) == [True]
    now[0] += 1.5
    assert marks(known, forward()) == [False], "later"


def test_what_is_forwarded_before_a_comment_that_opens_a_thread(now: list[float]) -> None:
    """As on Discord."""
    known, forwards = Addressed(), [forward(), forward()]
    assert heard(known, *forwards) == []
    now[0] += 0.4
    asked = part("@bot true?", to=True)
    asked = replace(asked, conversation=replace(GROUP, thread=asked.message))
    assert heard(known, part("no", by="ben"), forward(by="ben")) == []
    marked = known.with_parts([asked])
    assert [one.event for one in marked] == [one.event for one in (*forwards, asked)]
    assert {one.conversation for one in marked} == {asked.conversation}
    again = known.with_parts([forward()])
    assert again[0].conversation == asked.conversation and again[0].addressed
    now[0] += 5
    known.with_parts([forward()])
    now[0] += 1.5
    assert len(known.with_parts([part("@bot", to=True)])) == 1, "forwarded for people"


@pytest.mark.usefixtures("now")
def test_a_backlog_that_comes_at_once_was_not_written_at_once() -> None:
    messages = (part(LONG, to=True, at=100.0), part("the end", at=101.0))
    assert marks(Addressed(), *messages) == [True, True]
    late = (part(LONG, to=True, at=100.0), part("an hour later", at=3_700.0))
    assert marks(Addressed(), *late) == [True, False]


def test_it_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN", 10)
    known = Addressed()
    for n in range(100):
        known.with_parts([part(LONG, by=str(n), to=True), part(album=str(n), to=True)])
    assert len(known._albums) == len(known._last) == 10
    for n in range(100):
        known.with_parts([part(LONG, by=str(n)), part(album=str(n))])
    assert len(known._held) == module.MAX_HELD
    known.with_parts([part(album="9") for _ in range(100)])
    assert max(len(one.parts) for one in known._held.values()) == module.MAX_HELD_PARTS
