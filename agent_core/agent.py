"""The agent as a library: the same durable turn without a gateway.

    agent = Agent(model="openai/gpt-5.6-terra", tools=[my_tool])
    print(agent.chat("What is new?"))

Sources of the names: `chat` and `run_conversation` as in many agent libraries; failures are
`agent_core.errors`, never an SDK's.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from agent_core import ambient
from agent_core.context.narrate import events_of, question_text
from agent_core.context.prompt import system_prompt
from agent_core.errors import Misuse, Parked
from agent_core.events import AgentEvent, Completed, ReasoningAdded, TokenAdded
from agent_core.journal import Answered, Asked, Began, Finished, Journal, Record
from agent_core.journal_file import FileJournal
from agent_core.library.records import Start, ending_of, usage_of
from agent_core.mcp.servers import Servers
from agent_core.mcp.settings import Given, parse_servers
from agent_core.messages import Message
from agent_core.models.port import Model, OnDelta, Reply, Request, Usage
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.brief import Result as Ending
from agent_core.orchestration.drive import drive
from agent_core.orchestration.orchestrator import work
from agent_core.orchestration.routes.classifier import classify
from agent_core.policy import Situation, Verdict, decide
from agent_core.questions import Answer, Question
from agent_core.scope import Scope, Turn
from agent_core.tools.contract import Tool
from agent_core.tools.finding.tools import finding_tools
from agent_core.tools.hooks import Hooks, PostHook, PreHook
from agent_core.tools.toolbox import Prepared, Toolbox, bind

log = logging.getLogger("turnkeeper.agent")

OnQuestion = Callable[[Question], Answer | str | Awaitable[Answer | str]]
Callback = Callable[..., object]
CALLBACKS: dict[str, tuple[str, ...]] = {
    "stream_delta_callback": ("token",),
    "reasoning_callback": ("reasoning",),
    "thinking_callback": ("reasoning",),
    "tool_gen_callback": ("tool_call",),
    "tool_progress_callback": ("tool_call", "tool_result", "terminal_output"),
    "clarify_callback": ("interrupt",),
    "step_callback": ("tool_result", "complete"),
    "status_callback": ("status", "error", "budget", "usage"),
}
"""Keyword arguments of Agent, and the events that each of them gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a conversation's turn ended. `cost` is in US dollars, None where it is not known."""

    final_response: str
    messages: tuple[Message, ...]
    usage: Usage
    task_id: str
    finish_reason: Literal["stop", "limit", "error"]
    cost: float | None = None

    def to_dict(self) -> dict[str, object]:
        """The same as plain values."""
        return {
            **asdict(self),
            "messages": msgspec.to_builtins(self.messages),
            "usage": msgspec.to_builtins(self.usage),
        }


@dataclass(slots=True, kw_only=True)
class Agent:
    """An agent with tools that plans nothing it need not and asks before it acts.

    `model`: a provider (`Model`), or `provider/model` or a tier looked up in the environment's
    keys. `on_question` answers what the agent asks; without it every question counts as denied.
    `journal`: a folder; with it a task that was cut off goes on under the same `task_id`.
    `plans`: a request for several steps gets a plan that is worked off and checked step by step.
    `callbacks`: see CALLBACKS; sync or async, an exception in one is logged and ends nothing.
    `pre_tool_call`, `post_tool_call`: see `agent_core.tools.hooks`.
    """

    model: Model | str = "pro"
    tools: Iterable[Tool] = ()
    system: str = ""
    on_question: OnQuestion | None = None
    journal: Path | None = None
    workspace: Path = field(default_factory=Path.cwd)
    max_rounds: int = 30
    plans: bool = True
    callbacks: dict[str, Callback] = field(default_factory=dict)
    history: tuple[Message, ...] = ()
    pre_tool_call: PreHook | None = None
    post_tool_call: PostHook | None = None
    _toolbox: Toolbox = field(init=False)
    _servers: Servers | None = field(init=False, default=None)
    _picked: tuple[Model, str] | None = field(init=False, default=None)
    _busy: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        unknown = [name for name in self.callbacks if name not in CALLBACKS]
        if unknown:
            raise Misuse(f"no callback {unknown[0]!r}; there are {', '.join(CALLBACKS)}")
        self._toolbox = Toolbox(self.tools)

    @classmethod
    async def create(cls, *, mcp: Iterable[Given] = (), **arguments: object) -> "Agent":
        """An agent whose model is ready: the SDK is imported beside the loop. `mcp`: servers as
        in the setting MCP_SERVERS; `close`, or the end of `async with`, in the same task, ends
        them. Those that are slow or broken are waited for only where their tools are used."""
        agent = cls(**arguments)  # type: ignore[arg-type]  # the constructor's own arguments
        await asyncio.to_thread(agent._model)
        if servers := parse_servers(mcp):
            shelf = agent._servers = Servers(servers)
            await shelf.__aenter__()
            tools = (*agent._toolbox.tools, *finding_tools(shelf.names))
            agent._toolbox = Toolbox(tools, shelf)
        return agent

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the servers; close the model's connections."""
        if self._servers is not None:
            await self._servers.__aexit__(None, None, None)
            self._servers = None
        if self._picked is not None:
            await self._picked[0].close()
            self._picked = None

    def chat(self, text: str) -> str:
        """The answer to `text`, after what was said before. Not inside a running loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._chat_once(text))
        raise Misuse("a loop is running here: use `await agent.achat(text)`")

    async def achat(self, text: str) -> str:
        """As `chat`, inside a running loop."""
        result = await self.run_conversation(text, conversation_history=self.history)
        self.history = result.messages
        return result.final_response

    async def _chat_once(self, text: str) -> str:
        try:
            return await self.achat(text)
        finally:
            await self.close()

    async def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Iterable[Message] | None = None,
        task_id: str | None = None,
    ) -> Result:
        """One turn. With a `journal`, a `task_id` that was cut off goes on where it was, and a
        finished one returns what it returned."""
        result: Result | None = None
        async for item in self._run(user_message, system_message, conversation_history, task_id):
            if isinstance(item, Result):
                result = item
        assert result is not None
        return result

    async def stream(
        self, user_message: str, task_id: str | None = None
    ) -> AsyncIterator[AgentEvent]:
        """What happens in a turn, as it happens; ends with Completed."""
        async for item in self._run(user_message, None, self.history, task_id):
            if isinstance(item, Result):
                self.history = item.messages
            else:
                yield item

    async def _run(
        self,
        text: str,
        system: str | None,
        history: Iterable[Message] | None,
        task_id: str | None,
    ) -> AsyncIterator[AgentEvent | Result]:
        if self._busy:
            raise Misuse("this agent is running: wait for it, or make another one")
        self._busy = True
        task = _Task(self, task_id or ambient.new_id(), tuple(history or ()))
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(task.work(text, system), name=f"agent:{task.id}")
                while (event := await task.events.get()) is not None:
                    await self._call_back(event)
                    yield event
                yield await work
        except BaseExceptionGroup as group_error:
            raise group_error.exceptions[0] from None
        finally:
            self._busy = False

    async def _call_back(self, event: AgentEvent) -> None:
        kind = event.__struct_config__.tag
        for name, callback in self.callbacks.items():
            if kind not in CALLBACKS[name]:
                continue
            words = event.text if isinstance(event, TokenAdded | ReasoningAdded) else event
            try:
                done = callback(words)
                if inspect.isawaitable(done):
                    await done
            except Exception:
                log.exception("callback_failed", extra={"callback": name})

    def _model(self) -> tuple[Model, str]:
        if self._picked is None:
            if isinstance(self.model, str):
                from agent_core.models.tiers import Models
                from agent_core.settings import ModelSettings

                self._picked = Models(ModelSettings.read()).pick(self.model)
            else:
                self._picked = (self.model, "")
        return self._picked

    async def complete(self, name: str, request: Request, on_delta: OnDelta) -> Reply:
        """Call the model."""
        model, known_as = self._model()
        if known_as:
            request = msgspec.structs.replace(request, model=known_as)
        return await model.complete(request, on_delta)

    def judge(self, item: Prepared) -> Verdict:
        """The policy: auto mode, every risky call is a question."""
        digest = bind(item, self.workspace)
        situation = Situation(mode="auto", person="library", ask_all=False, rules=())
        return decide(item.tool, item.arguments, digest, situation)

    async def answer(self, question: Question) -> Answer:
        """What `on_question` says; denied where nobody can be asked."""
        now = ambient.now()
        if self.on_question is None:
            return Answer(choice="deny", text="nobody can be asked here", name="library", at=now)
        said = self.on_question(question)
        given = await said if inspect.isawaitable(said) else said
        if isinstance(given, Answer):
            return given
        approving = question.__struct_config__.tag == "approval"
        choice = (
            given if approving and given in ("once", "deny") else "deny" if approving else "once"
        )
        return Answer(choice=choice, text=given, name="library", at=now)  # type: ignore[arg-type]


class _Task:
    """One turn of an agent, over its journal."""

    def __init__(self, agent: Agent, task_id: str, history: tuple[Message, ...]) -> None:
        self.id = task_id
        self.events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._agent = agent
        self._history = history
        self._file = FileJournal(agent.journal) if agent.journal is not None else None

    async def work(self, text: str, system: str | None) -> Result:
        try:
            records = self._file.load(self.id) if self._file is not None else ()
            journal = Journal(records, self._write)
            brief = self._brief(journal, text, system)
            ending = ending_of(records) or await self._until_end(journal, brief)
            return Result(
                final_response=ending.text,
                messages=(*self._history, *ending.messages),
                usage=usage_of(journal.records),
                task_id=self.id,
                finish_reason=ending.finish,
            )
        finally:
            self.events.put_nowait(None)

    def _brief(self, journal: Journal, text: str, system: str | None) -> Brief:
        for record in journal.records:
            if isinstance(record, Began):
                begun = msgspec.json.decode(record.value, type=Start)
                self._history = begun.history
                assert begun.brief is not None
                return begun.brief
        agent = self._agent
        more = agent._servers.offered(()) if agent._servers is not None else ()
        brief = Brief(
            text=text,
            system=system if system is not None else agent.system or system_prompt(),
            model=agent.model if isinstance(agent.model, str) else "",
            tools=(*agent._toolbox.names, *(spec.name for spec in more)),
            more=more,
            reach=() if agent._servers is not None else None,
            workspace=str(agent.workspace),
            max_rounds=agent.max_rounds,
            route="planned" if agent.plans and classify(text) == "complex" else "simple",
            cache_key=self.id,
        )
        start = Start(brief=brief, history=self._history)
        journal.defer(Began(key="began", value=msgspec.Raw(msgspec.json.encode(start))))
        return brief

    async def _until_end(self, journal: Journal, brief: Brief) -> Ending:
        agent = self._agent
        hands = Hands(
            complete=agent.complete,
            toolbox=agent._toolbox.showing(brief.more),
            judge=agent.judge,
            live=self.live,
            hooks=Hooks(
                pre=(agent.pre_tool_call,) if agent.pre_tool_call else (),
                post=(agent.post_tool_call,) if agent.post_tool_call else (),
            ),
        )

        async def code(scope: Scope, past: tuple[Message, ...]) -> Ending:
            return await work(scope, brief, hands, self._history, past)

        while True:
            journal.rewind()
            try:
                ending = await drive(Turn(self.id, journal, self, brief.max_turns), code)
            except Parked:
                await self._ask(journal)
                continue
            await journal.barrier(Finished(key="finished", text=ending.text, finish=ending.finish))
            await self._keep_messages(journal, ending)
            return ending

    async def _keep_messages(self, journal: Journal, ending: Ending) -> None:
        start = Start(brief=None, history=ending.messages)
        body = msgspec.Raw(msgspec.json.encode(start))
        await journal.barrier(Began(key="ended", value=body))

    async def _ask(self, journal: Journal) -> None:
        """Everything waits: have the questions answered, then go on from the journal."""
        for record in list(journal.records):
            if not isinstance(record, Asked):
                continue
            if journal.find(f"{record.key}#answer", Answered) is not None:
                continue
            log.info("asked", extra={"question": question_text(record.question)})
            answer = await self._agent.answer(record.question)
            await journal.barrier(
                Answered(key=f"{record.key}#answer", asked=record.key, answer=answer)
            )

    def live(self, event: AgentEvent) -> None:
        """An event that is not recorded."""
        self.events.put_nowait(event)

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        """Nobody steers a library call."""
        return ()

    async def _write(self, records: tuple[Record, ...]) -> None:
        if self._file is not None:
            await self._file.append(self.id, records)
        for record in records:
            for event in events_of(record):
                self.events.put_nowait(event)


__all__ = ["Agent", "Completed", "Result"]
