"""One turn of the agent, measured: over a journal in memory, with a scripted model or a real one."""

import tempfile
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_core.context.record_events import events_of
from agent_core.journal import Journal, Record, Replied, ToolFinished
from agent_core.messages import Message, Part, Text, ToolCall, text_of
from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta, TextDelta, Usage
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.drive import drive
from agent_core.orchestration.orchestrator import work
from agent_core.policy import Verdict
from agent_core.scope import Scope, Turn
from agent_core.tools.contract import Tool
from agent_core.tools.toolbox import Toolbox

BYTES = 4
"""Bytes that count as a token where a script answers."""
SYSTEM = "You are an agent. Use your tools; answer briefly."

Said = str | tuple[tuple[str, dict[str, object]], ...]
"""Words, or calls: names with arguments."""
Mind = Callable[[ModelRequest], Said]


class Scripted:
    """A model that answers by `mind`: what it is shown decides, so it is the same each time."""

    def __init__(self, mind: Mind, provider: str = "script") -> None:
        self.provider = provider
        self._mind = mind
        self._calls = 0

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        said = self._mind(request)
        parts: tuple[Part, ...]
        if isinstance(said, str):
            on_delta(TextDelta(text=said))
            parts = (Text(text=said),)
        else:
            parts = tuple(map(self._call, said))
        read = len(msgspec.json.encode((request.system, request.messages, request.tools)))
        usage = Usage(
            input_tokens=read // BYTES, output_tokens=len(msgspec.json.encode(parts)) // BYTES
        )
        return ModelReply(parts=parts, model="scripted", provider=self.provider, usage=usage)

    async def close(self) -> None: ...

    def _call(self, call: tuple[str, dict[str, object]]) -> ToolCall:
        self._calls += 1
        arguments = msgspec.json.encode(call[1]).decode()
        return ToolCall(id=f"c{self._calls}", name=call[0], arguments=arguments)


@dataclass(slots=True, kw_only=True)
class Run:
    """What one or several turns took and did. `right`: the case says so of what came out."""

    calls: int = 0
    tokens: int = 0
    tools: int = 0
    right: bool = False
    text: str = ""
    finish: str = ""
    kinds: set[str] = field(default_factory=set)
    told: str = ""
    """All that the model was shown, for what stands in no event."""

    def numbers(self) -> dict[str, int]:
        return {"calls": self.calls, "tokens": self.tokens, "tools": self.tools}


class Course:
    """A workspace and what is measured in it. `real` answers in place of every script,
    for a conversation that chose the model `name`."""

    def __init__(self, folder: Path, real: Model | None = None, name: str = "") -> None:
        self.folder = folder
        self.run = Run()
        self._real, self._name = real, name
        self._turns = 0

    def model(self, mind: Mind) -> Model:
        """The script's model, or the real one."""
        return Scripted(mind) if self._real is None else self._real

    async def turn(
        self,
        mind: Mind | Model,
        text: str,
        has: Iterable[Tool] = (),
        hands: Callable[[Hands], Hands] = lambda hands: hands,
        **brief: object,
    ) -> TurnResult:
        """Answer `text`, and count what it took. `has`: tools; `brief`: further
        fields of it."""
        model: Model = self.model(mind) if callable(mind) else mind
        box = Toolbox(has)
        asked = Brief(
            text=text,
            system=SYSTEM,
            model="pro" if self._real is None else self._name,
            tools=box.names,
            workspace=str(self.folder),
        )
        asked = replace(asked, **brief)

        async def complete(name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
            self.run.told += "\n".join(map(_shown, request.messages))
            return await model.complete(request, on_delta)

        own = Hands(
            complete=complete,
            toolbox=box,
            judge=lambda item: Verdict(ruling="allow", rule="bench", reason=""),
            live=self.live,
        )
        self._turns += 1
        return await self._driven(asked, hands(own))

    async def _driven(self, brief: Brief, hands: Hands) -> TurnResult:
        async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
            return await work(scope, brief, hands, (), past)

        journal = Journal((), self._write)
        result = await drive(Turn(f"t{self._turns}", journal, self, brief.max_turns), code)
        await journal.barrier()
        self.run.text, self.run.finish = result.text, result.finish
        return result

    async def _write(self, records: tuple[Record, ...]) -> None:
        for record in records:
            self.run.kinds |= {str(e.__struct_config__.tag) for e in events_of(record)}
            if isinstance(record, Replied):
                usage = record.reply.usage
                self.run.calls += 1
                self.run.tokens += usage.input_tokens + usage.output_tokens
            self.run.tools += isinstance(record, ToolFinished)

    def live(self, event: object) -> None:
        """Nobody watches."""

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        """Nobody speaks."""
        return ()


class Named:
    """A real model, called by the name `known_as` whatever a request has for it."""

    def __init__(self, model: Model, known_as: str) -> None:
        self.provider = model.provider
        self._model, self._known_as = model, known_as

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        return await self._model.complete(replace(request, model=self._known_as), on_delta)

    async def close(self) -> None:
        await self._model.close()


def _shown(message: Message) -> str:
    results = (getattr(part, "content", "") for part in message.parts)
    return text_of(message) + "\n".join(filter(None, results))


async def measured(
    case: Callable[[Course, bool], Awaitable[None]],
    on: bool,
    real: Model | None = None,
    name: str = "",
) -> Run:
    """What `case` took with its mechanism (`on`) or without it, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="agent-bench-") as folder:
        course = Course(Path(folder), real, name)
        await case(course, on)
        return course.run
