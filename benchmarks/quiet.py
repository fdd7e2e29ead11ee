"""A gateway that keeps nothing of its own: the real host and SQLite store, the scripted agent of the
tests, and a platform that only says when a final answer was delivered."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from pydantic import BaseModel

from agent_core.messages import Repetition
from agent_core.tools.contract import Tool, ToolContext
from gateway.access.access import Access
from gateway.access.people import AllowLists
from gateway.conversation.agent import TurnMaker
from gateway.conversation.host import Host
from gateway.conversation.services import Services
from gateway.messages import (
    Attachment,
    ButtonPressed,
    Conversation,
    MessageReceived,
    button_token,
)
from gateway.ports import Accept, Adapter
from gateway.store.audit_chain import AuditSigner
from gateway.store.port import Store
from gateway.store.rows import QuestionRow
from gateway.store.sqlite import SqliteStore
from gateway.views import Abilities, ReplyView, View
from gateway.wiring.features import load_features
from tests.fakes.world import ANN, Ledger, Nothing, Points, ScriptedAgent

RESULT = "a line of what the tool found, as tools give it " * 10
WAVE = 100


class SilentLedger(Ledger):
    """Writes nothing down."""

    def note(self, what: str, **fields: object) -> None:
        return None


class SilentPoints(Points):
    """Counts nothing."""

    def hit(self, name: str) -> None:
        return None


class QuietAgent(ScriptedAgent):
    """The tests' scripted agent with tools that give 480 characters; `on_tool` hears of each run."""

    def __init__(self, folder: Path) -> None:
        self.on_tool: Callable[[str], None] = lambda key: None
        super().__init__(SilentLedger(folder / "none"), SilentPoints(), folder)

    def _tool(self, name: str, repetition: Repetition) -> Tool:
        async def call(arguments: BaseModel, context: ToolContext) -> str:
            self.on_tool(name)
            return RESULT

        return Tool(
            name=name, description=name, arguments=Nothing, repetition=repetition,
            access="write", call=call,
        )  # fmt: skip


class QuietAdapter:
    """A platform that takes everything at once and remembers nothing."""

    platform = "test"
    routes = ()
    last_contact = 1.0
    abilities = Abilities(edit_interval=0.03)

    def __init__(self) -> None:
        self.on_reply: Callable[[str], None] = lambda where: None
        self.calls = 0

    async def run(self, accept: Accept) -> None:
        await asyncio.Event().wait()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        return (msgspec.json.encode(view),)

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        self._look(conversation, payload)
        self.calls += 1
        return str(self.calls)

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        self._look(conversation, payload)
        self.calls += 1

    def _look(self, conversation: Conversation, payload: bytes) -> None:
        if b'"kind":"reply"' in payload:
            view = msgspec.json.decode(payload, type=View)
            if isinstance(view, ReplyView) and view.state == "final":
                self.on_reply(conversation.id)

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        return None

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        return None

    async def receipt(self, conversation: Conversation, message: str) -> None:
        return None

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        return None


class Quiet:
    """One gateway over `folder`, and what people do to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agent = QuietAgent(folder)
        self.adapter = QuietAdapter()
        self.host: Host
        self.store: Store
        self.services: Services

    async def open_store(self) -> Store:
        """The store that it lives on."""
        return await SqliteStore.open(self.folder / "store.db")

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator["Quiet"]:
        self.store = await self.open_store()
        people = AllowLists(allowed=frozenset({"ann"}))
        self.host = Host(
            lambda ports: Services(
                store=self.store, adapters={"test": cast(Adapter, self.adapter)},
                agent=cast(TurnMaker, self.agent),  # as much of one as plain turns need
                access=Access({"test": people}, {}), spawn=ports.spawn, alarm=ports.alarm,
                deliver=ports.deliver, owner="bench", signer=AuditSigner(("a key",)),
            ), load_features(),
        )  # fmt: skip
        self.services = self.host.services
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(self.host.run(ready))
            await ready.wait()
            yield self
            serving.cancel()
        await self.store.close()

    async def say(self, rooms: Iterable[int], text: str, event: str) -> None:
        """`text` in each room, one after the other."""
        for n in rooms:
            name = f"{event}-{n}"
            await self.host.accept(
                [
                    MessageReceived(
                        conversation=room(n), sender=ANN, event=name, message=name, text=text
                    )
                ]
            )

    async def press(self, n: int, question: str, option: str = "once") -> None:
        """A press of the open question's button in room `n`."""
        event = f"press-{question}"
        token = button_token(question, option)
        await self.host.accept(
            [
                ButtonPressed(
                    conversation=room(n),
                    sender=ANN,
                    event=event,
                    message="",
                    token=token,
                    press=event,
                )
            ]
        )

    async def quiet(self) -> None:
        """Until no session is left."""
        async with asyncio.timeout(120):
            while self.host.sessions or self.host._starting:
                await asyncio.sleep(0.005)

    def question(self, n: int) -> str:
        """The open question's id in room `n`, as the store has it."""
        with contextlib.closing(sqlite3.connect(self.folder / "store.db")) as connection:
            sql = "SELECT body FROM questions WHERE conversation = ? AND status = 'open'"
            (body,) = connection.execute(sql, (room(n).id,)).fetchone()
        return msgspec.json.decode(body, type=QuestionRow).id

    def turn(self, n: int) -> str:
        """The newest turn's id in room `n`."""
        with contextlib.closing(sqlite3.connect(self.folder / "store.db")) as connection:
            sql = "SELECT id FROM turns WHERE conversation = ? ORDER BY id DESC LIMIT 1"
            (turn,) = connection.execute(sql, (room(n).id,)).fetchone()
        return str(turn)

    def disk(self) -> int:
        """Bytes of the store's file; its log is emptied into it first."""
        with contextlib.closing(sqlite3.connect(self.folder / "store.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return (self.folder / "store.db").stat().st_size


def room(n: int) -> Conversation:
    """A private conversation of its own."""
    return Conversation(platform="test", account="a", channel=f"room-{n}", private=True)


def percentiles(seconds: list[float]) -> dict[str, float]:
    """p50, p95 and the longest, in milliseconds."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {
        "p50_ms": round(ordered[last // 2] * 1000, 2),
        "p95_ms": round(ordered[round(last * 0.95)] * 1000, 2),
        "max_ms": round(ordered[-1] * 1000, 2),
    }
