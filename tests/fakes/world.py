"""A small world on disk for kill enumerations: a platform, a model and tools that write down what
happened to them, so that it can be read after the process that did it was killed."""

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
from pydantic import BaseModel

from agent_core.context.surroundings import strip_surroundings
from agent_core.messages import Message, Repetition, Text, ToolCall, ToolResult, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, TextDelta
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.orchestrator import work
from agent_core.policy import Mode, Verdict
from agent_core.questions import Decision, Input, Offer
from agent_core.scope import Scope
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.toolbox import Prepared, Toolbox, bind
from gateway.access.access import Access, AllowLists
from gateway.conversation.agent import PolicyContext
from gateway.conversation.host import Host
from gateway.conversation.services import Services
from gateway.messages import (
    Attachment,
    ButtonPressed,
    CommandGiven,
    Conversation,
    Inbound,
    MessageReceived,
    Sender,
)
from gateway.ports import Accept
from gateway.store.audit_chain import AuditSigner
from gateway.store.port import Store
from gateway.store.rows import AcquiredConversation, Changes, ConversationSettings, Lease
from gateway.store.sqlite import SqliteStore
from gateway.views import Abilities, Card, View, show_doubt
from gateway.wiring.features import load_features
from tests.fakes.waiting import PATIENCE

SIGNER = AuditSigner(("a key of the tests",))
ANN = Sender(platform="test", id="ann", name="Ann")
BOB = Sender(platform="test", id="bob", name="Bob")
ROOM = Conversation(platform="test", account="a", channel="room", private=True)
_view = msgspec.json.Decoder(View).decode


class Ledger:
    """What happened, a JSON object a line; survives the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.waiters: list[asyncio.Event] = []

    def note(self, what: str, **fields: object) -> None:
        line = json.dumps({"what": what, **fields}).encode() + b"\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, line)
        os.close(fd)
        for waiter in self.waiters:
            waiter.set()

    def all(self, what: str | None = None) -> list[dict]:
        if not self._path.exists():
            return []
        lines = [json.loads(line) for line in self._path.read_text().splitlines()]
        return [line for line in lines if what is None or line["what"] == what]

    def read_screen(self, where: Conversation | None = None) -> dict[str, View]:
        """Native messages as people see them at the end, by id: of all chats, or of one."""
        return {
            line["id"]: _view(json.dumps(line["view"]).encode())
            for line in self.all()
            if line["what"] in ("send", "edit") and (where is None or line["to"] == where.id)
        }


class Points:
    """Counts the points of a run; at the chosen one it kills the process or does something."""

    def __init__(self) -> None:
        self.count = 0
        self.kill_at: set[int] = set()
        self.at = -1
        self.do: Callable[[], None] | None = None
        self.names: list[str] = []

    def hit(self, name: str) -> None:
        self.count += 1
        self.names.append(name)
        if self.count in self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count == self.at and self.do is not None:
            self.do()


class LedgerAdapter:
    """A platform without send keys."""

    platform = "test"
    routes = ()
    last_contact = 1.0

    def __init__(self, ledger: Ledger, points: Points, abilities: Abilities | None = None) -> None:
        self._ledger, self._points = ledger, points
        self.abilities = abilities or Abilities(edit_interval=0.01)
        self.count = 0

    async def run(self, accept: Accept) -> None:
        await asyncio.Event().wait()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        return (msgspec.json.encode(show_doubt(view)),)

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        self._points.hit("send")
        self.count += 1
        native = f"{os.getpid()}-{self.count}"
        self._ledger.note("send", to=conversation.id, id=native, view=json.loads(payload))
        await asyncio.sleep(0)
        self._points.hit("sent")
        return native

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        self._points.hit("edit")
        self._ledger.note("edit", to=conversation.id, id=native, view=json.loads(payload))
        await asyncio.sleep(0)
        self._points.hit("edited")

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        self._ledger.note("draft", text=text)

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        self._ledger.note("tell", press=press, text=text)

    async def receipt(self, conversation: Conversation, message: str) -> None:
        self._ledger.note("receipt", message=message)

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        to.write(b"file")


class Nothing(BaseModel):
    """No arguments."""

    text: str = ""


class Ask(BaseModel):
    """A question."""

    text: str
    options: list[str] = []


class ScriptedAgent:
    """The real loop over a model whose answers follow from the conversation alone.

    A user text like `do note deploy|look` asks for rounds of calls: `|` parts rounds, spaces the
    calls of a round. `deploy` needs approval, `ship` too, of the file `script` as it is, `note` is
    an effect, `add` idempotent, `look` pure;
    `pick` and `tell` ask the person.
    """

    def __init__(self, ledger: Ledger, points: Points, folder: Path) -> None:
        self._ledger, self._points, self._folder = ledger, points, folder
        self.delays: dict[str, float] = {}
        self.gates: dict[str, asyncio.Event] = {}
        """A tool of this name ends once its event is set."""
        self.toolbox = Toolbox(
            [
                self._tool("look", "pure"),
                self._tool("add", "idempotent"),
                self._tool("note", "effect"),
                self._tool("deploy", "effect"),
                msgspec.structs.replace(self._tool("ship", "effect"), bind=self._read_script),
                Tool(
                    name="pick", description="Ask.", arguments=Ask, repetition="pure",
                    access="person", call=self._never, interactive=True,
                    question=lambda a: Decision(text=a.text, options=tuple(a.options)),
                ),
                Tool(
                    name="tell", description="Ask.", arguments=Ask, repetition="pure",
                    access="person", call=self._never, interactive=True,
                    question=lambda a: Input(text=a.text),
                ),
            ]
        )  # fmt: skip

    def _read_script(self, arguments: BaseModel, workspace: Path) -> str:
        script = self._folder / "script"
        return script.read_text() if script.exists() else ""

    def _tool(self, name: str, repetition: Repetition) -> Tool:
        async def call(arguments: BaseModel, context: ToolContext) -> str:
            self._points.hit(f"tool {name}")
            self._ledger.note("tool", name=name, key=context.key, text=arguments.text)
            if name in self.delays:
                await asyncio.sleep(self.delays[name])
            if name in self.gates:
                await self.gates[name].wait()
            self._points.hit(f"tool {name} done")
            return f"{name} ok"

        return Tool(
            name=name, description=name, arguments=Nothing, repetition=repetition,
            access="write", call=call,
        )  # fmt: skip

    async def _never(self, arguments: BaseModel, context: ToolContext) -> str:
        raise AssertionError("a question is never called")

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return Brief(
            text=text, system="s", model="m", tools=self.toolbox.names,
            workspace=str(self._folder), cache_key=conversation.id,
        )  # fmt: skip

    def workspace(self, conversation: Conversation) -> Path:
        return self._folder

    def picture(self, conversation: Conversation, path: str) -> None:
        return None

    def permission(self, conversation: Conversation, settings: object, role: str) -> Mode:
        return "ask"

    def model_name(self, settings: ConversationSettings) -> str:
        return "scripted"

    async def list_models(self) -> tuple[str, ...]:
        return ()

    async def check_model(self, name: str, language: str) -> str:
        return ""

    def tidy(self, before: float) -> int:
        return 0

    def holds(self, turn: str) -> bool:
        return False

    def end_turn(self, turn: str) -> None:
        """Nothing waits for it."""

    def hands(self, circumstances: PolicyContext) -> Hands:
        def judge(item: Prepared) -> Verdict:
            known = any(rule.tool == item.tool.name for rule in circumstances.settings().rules)
            ask = item.tool.name in ("deploy", "ship") and not known
            return Verdict(
                ruling="ask" if ask else "allow", rule="t", reason="test", risk="medium",
                digest=bind(item, self._folder), offers=tuple(
                    Offer(choice=choice, tool=item.tool.name, pattern=f"= {item.arguments.text}")
                    for choice in ("conversation", "always")
                ),
            )  # fmt: skip

        return Hands(
            complete=self.complete, toolbox=self.toolbox, judge=judge, live=circumstances.output
        )

    async def code(
        self, scope: Scope, brief: Brief, hands: Hands,
        history: tuple[Message, ...], past: tuple[Message, ...],
    ) -> TurnResult:  # fmt: skip
        return await work(scope, brief, hands, history, past)

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self._points.hit("model")
        self._ledger.note("model", n=len(request.messages))
        check_order(request.messages)
        if "model" in self.delays:
            await asyncio.sleep(self.delays["model"])
        await asyncio.sleep(0)
        parts = tuple(self._script(request.messages))
        for part in parts:
            if isinstance(part, Text):
                on_delta(TextDelta(text=part.text))
        if "growing" in self.delays:  # people see it grow
            await asyncio.sleep(self.delays["growing"])
        self._points.hit("model done")
        finish = "tool_calls" if any(isinstance(p, ToolCall) for p in parts) else "stop"
        return ModelReply(parts=parts, model="m", provider="scripted", finish=finish)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        asked = [
            n for n, m in enumerate(messages) if m.role == "user" and _words(m).startswith("do ")
        ]
        users = [n for n, m in enumerate(messages) if m.role == "user"]
        if not asked or _ended(messages[asked[-1] :]):
            return [Text(text=f"ack {_words(messages[users[-1]])}")]
        start = asked[-1]
        rounds = _words(messages[start])[3:].split("\n")[0].split("|")
        done = sum(1 for m in messages[start:] if m.role == "tool")
        if done < len(rounds):
            return [self._call(n, done, word) for n, word in enumerate(rounds[done].split())]
        results = [
            p.content for m in messages[start:] for p in m.parts if isinstance(p, ToolResult)
        ]
        said = [_words(messages[n]) for n in users if n > start]
        return [
            Text(text=f"done {_words(messages[start])[3:]}: {'; '.join(results)} {' '.join(said)}")
        ]

    def _call(self, n: int, round_: int, word: str) -> ToolCall:
        if word in ("pick", "tell"):
            arguments = {"text": "which?", "options": ["red", "blue"]}
        else:
            arguments = {"text": word}
        return ToolCall(id=f"c{round_}{n}", name=word, arguments=json.dumps(arguments))


def _words(message: Message) -> str:
    """What was said, as it was, without the name that stands before it in a group."""
    words = strip_surroundings(text_of(message))
    return words.removeprefix("[Ann] ").removeprefix("[Bob] ")


def _ended(messages: Sequence[Message]) -> bool:
    """The script was answered, or stopped."""
    return any(
        m.role == "assistant" and not any(isinstance(p, ToolCall) for p in m.parts)
        for m in messages
    )


def check_order(messages: Sequence[Message]) -> None:
    """Every call has its result directly behind it, and no two assistant messages meet."""
    for n, message in enumerate(messages):
        calls = [p.id for p in message.parts if isinstance(p, ToolCall)]
        if calls:
            results = [p.call_id for p in messages[n + 1].parts if isinstance(p, ToolResult)]
            assert results == calls, (calls, results)
        if n and message.role == "assistant":
            assert messages[n - 1].role != "assistant", messages
    assert messages[-1].role in ("user", "tool")


class PointedStore:
    """A store with points before and after each write."""

    def __init__(self, store: Store, points: Points) -> None:
        self._store, self._points = store, points

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def accept(self, inbounds: Sequence[Inbound]) -> object:
        self._points.hit("accept")
        done = await self._store.accept(inbounds)
        self._points.hit("accepted")
        return done

    async def take_in(
        self, inbounds: Sequence[Inbound], free: frozenset[str], owner: str, ttl: float
    ) -> object:
        self._points.hit("accept")
        done = await self._store.take_in(inbounds, free, owner, ttl)
        self._points.hit("accepted")
        return done

    async def acquire(
        self, conversation: str, owner: str, ttl: float
    ) -> AcquiredConversation | None:
        self._points.hit("acquire")
        opened = await self._store.acquire(conversation, owner, ttl)
        self._points.hit("acquired")
        return opened

    def submit(self, lease: Lease, changes: Changes) -> "asyncio.Future[None]":
        self._points.hit("commit")
        future = self._store.submit(lease, changes)
        future.add_done_callback(lambda _: self._points.hit("committed"))
        return future

    def release(self, lease: Lease, seen: int, changes: Changes) -> "asyncio.Future[bool]":
        self._points.hit("release")
        future = self._store.release(lease, seen, changes)
        future.add_done_callback(lambda _: self._points.hit("released"))
        return future


class Life:
    """One life of a gateway over a folder: the same world goes on in the next one."""

    def __init__(self, folder: Path, open_store: Callable[[Path], Awaitable[Store]] | None = None):
        self.folder = folder
        self.ledger = Ledger(folder / "ledger.jsonl")
        self.points = Points()
        self.agent = ScriptedAgent(self.ledger, self.points, folder)
        self.adapter = LedgerAdapter(self.ledger, self.points)
        self.host: Host
        self.services: Services
        self.open_store = open_store or (lambda f: SqliteStore.open(f / "store.db"))
        self.ttl = 30.0
        self.owner = "r1"
        self.give_up_after = 3
        self.acted = True
        self.prepares: list[Callable[[], None]] = []
        """Called when all stands and nothing has begun, as `prepare` of `living`."""

    @contextlib.asynccontextmanager
    async def living(self, prepare: Callable[[], None] = lambda: None):
        """One life; `prepare` is called when all stands and nothing has begun."""
        raw = await self.open_store(self.folder)
        self.store = PointedStore(raw, self.points)
        people = AllowLists(allowed=frozenset({"ann", "bob"}), admins=frozenset({"root"}))
        self.host = Host(
            lambda ports: Services(
                store=self.store, adapters={"test": self.adapter}, agent=self.agent,
                access=Access({"test": people}, {}), spawn=ports.spawn, alarm=ports.alarm,
                deliver=ports.deliver, owner=self.owner, signer=SIGNER, ttl=self.ttl,
                cancel_patience=0.5, give_up_after=self.give_up_after,
            ), load_features(),
        )  # fmt: skip
        self.services = self.host.services
        ready = asyncio.Event()
        for one in (*self.prepares, prepare):
            one()
        task = self.task = asyncio.create_task(self.host.run(ready))
        try:
            await asyncio.wait({task, started := asyncio.create_task(ready.wait())},
                               return_when="FIRST_COMPLETED")  # fmt: skip
            started.cancel()
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await raw.close()

    def equip(self, **services: object) -> None:
        """Other services for all sessions: while none has begun, as in `prepares`. What an earlier
        life left begins with this one, and would keep those that it began with."""
        assert not self.host.sessions and not self.host._starting, "some began without them"
        self.host.services = self.services = dataclasses.replace(self.services, **services)

    # ---- what people do ------------------------------------------------------------------

    async def command(self, event: str, line: str) -> None:
        name, _, arguments = line.partition(" ")
        given = CommandGiven(
            conversation=ROOM, sender=ANN, event=event, message=event, name=name,
            arguments=arguments,
        )  # fmt: skip
        await self.host.accept([given])

    async def say(
        self, event: str, text: str, sender: Sender = ANN, where: Conversation = ROOM
    ) -> None:
        await self.host.accept(
            [
                MessageReceived(
                    conversation=where, sender=sender, event=event, message=event, text=text
                )
            ]
        )

    async def press(
        self,
        event: str,
        token: str,
        sender: Sender = ANN,
        where: Conversation = ROOM,
        text: str = "",
    ) -> None:
        await self.host.accept(
            [
                ButtonPressed(
                    conversation=where,
                    sender=sender,
                    event=event,
                    message="",
                    token=token,
                    press=event,
                    text=text,
                )
            ]
        )

    def screen(self, where: Conversation = ROOM) -> dict[str, View]:
        """Native messages as people see them now, by id."""
        return self.ledger.read_screen(where)

    def cards(self, where: Conversation = ROOM) -> list[Card]:
        return [v for v in self.screen(where).values() if isinstance(v, Card)]

    async def until(self, condition: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait until `condition` holds; looked at when the ledger grows or a session ends."""
        event = asyncio.Event()
        self.ledger.waiters.append(event)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    event.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.02):
                            await event.wait()
        finally:
            self.ledger.waiters.remove(event)

    async def quiet(self, seconds: float = PATIENCE) -> None:
        """Wait until no session is left."""
        await self.until(lambda: not self.host.sessions and not self.host._starting, seconds)
