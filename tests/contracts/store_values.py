"""Values and a world for the store's contract: a manual clock, and stores that can be restarted."""

from collections.abc import Awaitable
from typing import Protocol

import msgspec

from agent_core.journal import Noted
from agent_core.messages import Message, user
from agent_core.questions import Decision
from gateway.messages import Conversation, MessageReceived, Sender
from gateway.store.port import Store
from gateway.store.rows import (
    Changes,
    Lease,
    Letter,
    LetterKind,
    OutboxRow,
    QuestionRow,
    QuestionStatus,
    RecordRow,
    TranscriptRow,
    TurnRow,
    TurnStatus,
)
from gateway.views import ReplyView

DAY = 86_400.0
START = 1_800_000_000.0
SENDER = Sender(platform="test", id="7", name="Ada")


class ManualClock:
    """Time that passes when a test says so. `ahead`: what the wall clock was set forward by."""

    def __init__(self) -> None:
        self.time = START
        self.ahead = 0.0

    def now(self) -> float:
        return self.time + self.ahead

    def monotonic(self) -> float:
        return self.time

    async def wait(self, seconds: float) -> None:
        self.time += seconds


class StoreWorld(Protocol):
    """A store that a test may restart; `clock` is the product's clock meanwhile."""

    clock: ManualClock
    store: Store
    shared: bool
    """Several processes have it at once: a lease outlives its process."""

    async def restart(self) -> Store:
        """Close the store and open it anew."""

    async def replica(self) -> Store:
        """Another store over the same data, the same one where there can be only one."""

    async def age(self, days: float) -> None:
        """Let `days` pass and drop what is past its time then."""


def place(channel: str = "c1") -> Conversation:
    """A conversation."""
    return Conversation(platform="test", account="bot", channel=channel)


def said(n: int | str, channel: str = "c1", text: str = "hello") -> MessageReceived:
    """Message number `n`."""
    return MessageReceived(
        conversation=place(channel), sender=SENDER, event=f"e{n}", message=f"m{n}", text=text
    )


def turn(name: str = "t1", status: TurnStatus = "running") -> TurnRow:
    """A turn."""
    return TurnRow(
        id=name,
        status=status,
        sender=SENDER.key,
        sender_name=SENDER.name,
        language="en",
        role="user",
        inbox=(1,),
        message="m1",
        begun=START,
        code="test",
    )


def record(n: int, name: str = "t1", text: str = "") -> RecordRow:
    """Record `n` of a turn."""
    value = msgspec.Raw(msgspec.json.encode(text or f"value {n}"))
    return RecordRow(turn=name, n=n, record=Noted(key=f"k{n}", value=value))


def letter(kind: LetterKind, name: str, payload: object = None, id: str = "") -> Letter:
    """A dead letter of c1."""
    return Letter(
        id=id or name, kind=kind, conversation=place().id, name=name, at=START, why="test",
        payload=msgspec.json.encode(payload),
    )  # fmt: skip


def view(name: str, rev: int, position: int = 0, *, sent: bool = True) -> OutboxRow:
    """A view of the turn t1, as its platform has it or not yet."""
    return OutboxRow(
        turn="t1",
        name=name,
        position=position or rev,
        version=1,
        sent=int(sent),
        view=ReplyView(text=f"{name} at {rev}"),
        at=START,
        rev=rev,
    )


def question(name: str, expires: float = 0.0, status: QuestionStatus = "open") -> QuestionRow:
    """A question of the turn t1."""
    return QuestionRow(
        id=name,
        turn="t1",
        key=f"ask-{name}",
        status=status,
        question=Decision(text="Which?", options=("a", "b")),
        entitled=(SENDER.key,),
        asked=START,
        expires=expires,
    )


def spoken(n: int) -> TranscriptRow:
    """What turn `n` adds to the transcript."""
    return TranscriptRow(n=n, turn=f"t{n}", messages=lines(n))


def lines(n: int) -> tuple[Message, ...]:
    """The messages of `spoken(n)`."""
    return (user(f"line {n}"),)


def keys_of(changes: tuple[object, ...]) -> list[str]:
    """The keys of records."""
    return [getattr(one, "key", "") for one in changes]


async def take(store: Store, channel: str = "c1", owner: str = "me", ttl: float = 30.0) -> Lease:
    """A lease that nobody disputes."""
    opened = await store.acquire(place(channel).id, owner, ttl)
    assert opened is not None
    return opened.lease


async def having_work(store: Store, owner: str) -> tuple[str, ...]:
    """Conversations with work that `owner` may take or has."""
    return tuple(name for name, _ in await store.work(owner))


async def outcome(awaitable: Awaitable[object]) -> object:
    """What came of it; the exception's class if it failed."""
    try:
        return await awaitable
    except Exception as error:
        return type(error)


NOTHING = Changes()
