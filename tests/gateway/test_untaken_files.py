"""Files that the platform's place for files does not take: each costs itself, and is told of."""

import asyncio
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.delivery import outbox as sending
from gateway.delivery import pace
from gateway.delivery.holder import Cause, Holder
from gateway.delivery.outbox import MAX_OWN_FAILURES, Outbox
from gateway.delivery.pace import Pace
from gateway.delivery.send_gate import SendGate
from gateway.errors import FileNotTaken
from gateway.messages import Conversation
from gateway.ports import Adapter
from gateway.store.rows import Changes, OutboxRow
from gateway.views import Abilities, Notice, View
from tests.fakes.waiting import PATIENCE
from tests.sampling import examples

ROOM = Conversation(platform="test", account="a", channel="c", private=True)


class Place:
    """A platform that takes texts and fails with some of them, a few times or for ever."""

    abilities = Abilities(drafts=False, edits=False)

    def __init__(self, failures: dict[str, int]) -> None:
        self._failures = failures
        self.tries: dict[str, int] = {}
        self.sent: list[str] = []

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        assert isinstance(view, Notice)
        return (view.text.encode(),)

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        text = payload.decode()
        self.tries[text] = self.tries.get(text, 0) + 1
        if self.tries[text] <= self._failures.get(text, 0):
            raise FileNotTaken("403")
        self.sent.append(text)
        return text


class Session:
    """The holder of the outbox: all marks stand."""

    language = "en"

    def __init__(self) -> None:
        self.aside: list[tuple[str, Cause]] = []

    def keep(self, changes: Changes) -> "asyncio.Future[None]":
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def find_origin(self, turn: str) -> str:
        return turn

    def may_repeat(self, turn: str) -> bool:
        return False

    def may_send(self, seconds: float) -> bool:
        return True

    def note_delivery(self) -> None: ...

    def count(self, name: str) -> None: ...

    def set_aside(self, row: OutboxRow, cause: Cause, why: str) -> None:
        self.aside.append((row.name, cause))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_REST", 0.001)
    for name in ("MIN_BACKOFF", "MAX_BACKOFF"):
        monkeypatch.setattr(sending, name, 0.001)


async def deliver(place: Place, names: list[str]) -> Session:
    session = Session()
    outbox = Outbox(ROOM, cast(Adapter, place), SendGate(), Pace(0.0), cast(Holder, session))
    outbox._backoff = 0.001
    sender = asyncio.create_task(outbox.run())
    for n, name in enumerate(names):
        view = Notice(text=name)
        row = OutboxRow(turn="t", name=name, position=n, version=1, view=view, at=0.0)
        outbox.stands((outbox.want(row),))
    async with asyncio.timeout(PATIENCE):
        while outbox.remaining:
            await asyncio.sleep(0.001)
    outbox.stop()
    await sender
    return session


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(0, 2 * MAX_OWN_FAILURES), min_size=1, max_size=6))
async def test_a_file_that_is_not_taken_costs_itself_alone(times: list[int]) -> None:
    """`times`: failures of each view, before it is taken."""
    names = [f"v{n}" for n in range(len(times))]
    place = Place(dict(zip(names, times, strict=True)))
    session = await deliver(place, names)
    lost = [name for name, n in zip(names, times, strict=True) if n >= MAX_OWN_FAILURES]
    assert sorted(session.aside) == [(name, "refused") for name in lost], "told of once"
    assert sorted(place.sent) == [name for name in names if name not in lost], "each one once"
    assert max(place.tries.values()) <= MAX_OWN_FAILURES + 1
    fine = [name for name, n in zip(names, times, strict=True) if n == 0]
    assert [name for name in place.sent if name in fine] == fine, "in order"


async def test_who_is_behind_a_file_that_is_never_taken_is_sent_at_once() -> None:
    place = Place({"file": 10**6})
    session = await deliver(place, ["before", "file", "after", "last"])
    assert place.sent == ["before", "after", "last"]
    assert session.aside == [("file", "refused")]
