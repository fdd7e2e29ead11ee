"""The agent as a library: the same durable turn without a gateway.

    agent = Agent(model="openai/gpt-5.6-terra", tools=[my_tool])
    print(agent.chat("What is new?"))

Sources of the names: `chat` and `run_conversation` as in many agent libraries; failures are
`agent_core.errors`, never an SDK's.
"""

import asyncio
import inspect
import json
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from agent_core import ambient
from agent_core.errors import Misuse, ToolFailed
from agent_core.library.state import AgentState

if TYPE_CHECKING:  # importing an agent does not run one: the rest is loaded with the first run
    from agent_core.events import AgentEvent
    from agent_core.library.callbacks import Callback
    from agent_core.library.history import History
    from agent_core.library.model_calls import ModelCalls
    from agent_core.library.result import AgentResult
    from agent_core.library.setup import Setup
    from agent_core.mcp.servers import Servers
    from agent_core.mcp.settings import Given
    from agent_core.memory.port import Memory
    from agent_core.messages import Message, ToolCall
    from agent_core.models.port import Model
    from agent_core.models.providers import ApiMode
    from agent_core.policy import Mode, Situation, Verdict
    from agent_core.questions import Answer, Question
    from agent_core.tools.contract import Tool
    from agent_core.tools.hooks import PostHook, PreHook, VerifyHook
    from agent_core.tools.toolbox import Prepared, Toolbox

OnQuestion: TypeAlias = "Callable[[Question], Answer | str | Awaitable[Answer | str]]"


@dataclass(slots=True, kw_only=True)
class Agent:
    """An agent with tools that asks before it acts, and plans requests of several steps.

    `model`: a provider (`Model`), or `provider/model` or a tier, looked up in the environment's
    keys.

    `on_question` answers the agent's questions; without it every question counts as denied. An
    async one has `approval_seconds`, or `answer_seconds` for other questions; after that the model
    is told that nobody answered. None: it waits for ever.

    `journal`: a folder; with it an interrupted task continues under the same `task_id`. `plans`: a
    request for several steps gets a plan that is carried out and checked step by step. The eight
    `…_callback`s: see `agent_core.library.callbacks`; `callbacks` gives them by name.
    `pre_tool_call`, `post_tool_call`, `verify_step`: see `agent_core.tools.hooks`.

    `mode`: ask about every change, or auto, only about risky ones. `api_mode`: the API of the
    model's provider, whatever its address says. Limits default to those of the gateway's settings:
    `max_rounds`, `max_turns` (model calls), `budget` (dollars a turn), `window` (tokens that the
    model holds). `profile`: one of `agent_core.profiles`. `memory`: see `agent_core.memory.port`;
    it adds the tool memory. `zone`: the time zone in which each message tells the time, "" to tell
    none.

    A turn without an answer raises ModelFailed, BudgetExceeded or TimedOut; `result` has the last
    one's result even then.
    """

    model: "Model | str" = "pro"
    tools: "Iterable[Tool]" = ()
    system: str = ""
    on_question: "OnQuestion | None" = None
    journal: Path | None = None
    workspace: Path = field(default_factory=Path.cwd)
    max_rounds: int | None = None
    max_turns: int | None = None
    budget: float | None = None
    window: int = 0
    profile: str = ""
    memory: "Memory | None" = None
    zone: str = "UTC"
    plans: bool = True
    callbacks: "dict[str, Callback]" = field(default_factory=dict)
    stream_delta_callback: "Callback | None" = None
    reasoning_callback: "Callback | None" = None
    thinking_callback: "Callback | None" = None
    tool_gen_callback: "Callback | None" = None
    tool_progress_callback: "Callback | None" = None
    clarify_callback: "Callback | None" = None
    step_callback: "Callback | None" = None
    status_callback: "Callback | None" = None
    history: "tuple[Message, ...]" = ()
    pre_tool_call: "PreHook | None" = None
    verify_step: "VerifyHook | None" = None
    approval_seconds: float | None = 120.0
    answer_seconds: float | None = 300.0
    post_tool_call: "PostHook | None" = None
    mode: "Mode" = "auto"
    api_mode: "ApiMode | None" = None
    state: AgentState = field(init=False, default=AgentState.IDLE)
    result: "AgentResult | None" = field(init=False, default=None)
    toolbox: "Toolbox" = field(init=False)
    _servers: "Servers | None" = field(init=False, default=None)
    _calls: "ModelCalls | None" = field(init=False, default=None)
    _streamed: "weakref.ref[AsyncGenerator[AgentEvent, None]] | None" = field(
        init=False, default=None, repr=False
    )
    _reader: "weakref.ref[AsyncGenerator[AgentEvent, None]] | None" = field(
        init=False, default=None, repr=False
    )
    _over: asyncio.Event | None = field(init=False, default=None, repr=False)

    def __new__(cls, *odd: object, **arguments: object) -> "Agent":
        """Raise Misuse for an argument that there is not, with the nearest that there is."""
        if cls.__init__ is Agent.__init__:  # otherwise another class handles its own
            from agent_core.library.arguments import check_names

            check_names(odd, arguments, [one.name for one in fields(Agent) if one.init])
        return object.__new__(cls)

    def __post_init__(self) -> None:
        from agent_core.library.arguments import (
            check_arguments,
            check_kinds,
            check_limits,
            check_tools,
            read_folder,
        )
        from agent_core.library.callbacks import CALLBACKS, CallbackTeller
        from agent_core.tools.toolbox import Toolbox

        check_kinds(lambda name: getattr(self, name))
        check_arguments(self.mode, self.api_mode, self.profile, self.zone)
        check_limits(self.max_rounds, self.max_turns, self.budget, self.window)
        self.workspace = read_folder("workspace", self.workspace)
        if self.journal is not None:
            self.journal = read_folder("journal", self.journal)
        given = ((name, getattr(self, name)) for name in CALLBACKS)
        self.callbacks = self.callbacks | {name: one for name, one in given if one is not None}
        CallbackTeller(self.callbacks)
        tools = check_tools(self.tools)
        if self.memory is not None:
            from agent_core.memory.tool import memory_tool

            tools = (*tools, memory_tool())
        self.toolbox = Toolbox(tools)

    @classmethod
    async def create(cls, *, mcp: "Iterable[Given]" = (), **arguments: object) -> "Agent":
        """Create an agent whose model is ready: the SDK is imported in a thread.

        `mcp`: servers as in the setting MCP_SERVERS, ended by `close` or by `async with`, in the
        same task. Slow or broken ones are awaited only where their tools are used.
        """
        from agent_core.library.arguments import list_servers
        from agent_core.mcp.settings import parse_servers

        servers = parse_servers(list_servers(mcp))
        agent = cls(**arguments)  # type: ignore[arg-type]  # the constructor's own arguments
        calls = await asyncio.to_thread(agent._warm)
        await calls.learn_window()
        if servers:
            from agent_core.mcp.servers import Servers
            from agent_core.tools.finding.tools import finding_tools
            from agent_core.tools.toolbox import Toolbox

            registry = agent._servers = Servers(servers)
            await registry.__aenter__()
            tools = (*agent.toolbox.tools, *finding_tools(registry.names))
            agent.toolbox = Toolbox(tools, registry)
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
        if self._calls is not None:
            await self._calls.close()
            self._calls = None

    def chat(self, text: str) -> str:
        """Return the answer to `text`, in the ongoing conversation. Not inside a running loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._chat_once(text))
        raise Misuse("a loop is running here: use `await agent.achat(text)`")

    async def achat(self, text: str) -> str:
        """Return the answer like `chat`, inside a running loop."""
        before = self.result
        try:
            result = await self.run_conversation(text, conversation_history=self.history)
        finally:
            if self.result is not None and self.result is not before:
                self.history = self.result.messages  # work done before a failure counts too
        return result.final_response

    async def execute_tool(
        self,
        name: str,
        arguments: "Mapping[str, object] | str" = "{}",
        task_id: str | None = None,
    ) -> str:
        """Run the tool `name`: judged, asked about and journaled like a call of the model. Raises
        ToolFailed if it fails or is denied."""
        from agent_core.library.arguments import check_text
        from agent_core.messages import ToolCall

        check_text("name", name)
        text = arguments if isinstance(arguments, str) else _write_json(arguments)
        call = ToolCall(id="call_1", name=name or "", arguments=text)
        async for _ in self._run("", "", (), task_id, call):
            pass
        ended = self._get_result()
        if ended.error is not None:
            raise ToolFailed(ended.final_response)
        return ended.final_response

    async def _chat_once(self, text: str) -> str:
        try:
            return await self.achat(text)
        finally:
            await self.close()

    async def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: "History | None" = None,
        task_id: str | None = None,
    ) -> "AgentResult":
        """Run one turn after `conversation_history`: messages, or dicts as OpenAI has them.

        With a `journal`, an interrupted `task_id` continues where it was, and a finished one
        returns its result. Raises an AgentError if there is no answer.
        """
        async for _ in self._run(user_message, system_message, conversation_history, task_id):
            pass
        ended = self._get_result()
        if ended.error is not None:
            raise ended.error
        return ended

    def _get_result(self) -> "AgentResult":
        assert self.result is not None
        return self.result

    def stream(self, user_message: str, task_id: str | None = None) -> "AsyncIterator[AgentEvent]":
        """Yield the events of a turn as they happen; ends with Completed. A failure is an event
        here: ErrorMet. Who reads no further ends the turn."""
        events = self._stream(user_message, task_id)
        self._streamed = weakref.ref(events)
        return events

    async def _stream(
        self, user_message: str, task_id: str | None
    ) -> "AsyncGenerator[AgentEvent, None]":
        async with aclosing(self._run(user_message, None, self.history, task_id)) as items:
            async for item in items:
                yield item
        self.history = self._get_result().messages

    async def _run(
        self,
        text: str,
        system: str | None,
        history: "History | None",
        task_id: str | None,
        call: "ToolCall | None" = None,
    ) -> "AsyncGenerator[AgentEvent, None]":
        from agent_core.library.arguments import check_text, clean_message
        from agent_core.library.callbacks import CallbackTeller, ModelAsked
        from agent_core.library.history import read_history
        from agent_core.library.task import Task

        check_text("system_message", system)
        check_text("task_id", task_id)
        text, told = clean_message(text), read_history(history)
        task_id = task_id or ambient.new_id()
        if self._reader is not None and self._reader() is None and self._over is not None:
            await self._over.wait()  # nobody reads that turn any more: it is being ended
        if self.state is AgentState.RUNNING:
            raise Misuse("this agent is running: wait for it, or make another one")
        self.state, after = AgentState.RUNNING, AgentState.IDLE
        self._reader, self._streamed = self._streamed, None
        self._over = over = asyncio.Event()
        self.result = None
        try:
            hearing = CallbackTeller(self.callbacks)
            task = Task(await self._setup(text, system, task_id, told, call), task_id, told)
            async with asyncio.TaskGroup() as group:
                work = group.create_task(task.work(), name=f"agent:{task.id}")
                while (event := await task.events.get()) is not None:
                    await hearing.hear(event)
                    if not isinstance(event, ModelAsked):
                        yield event
                self.result = await work
            after = self.result.state
        except BaseExceptionGroup as group_error:
            first = group_error.exceptions[0]
            after = AgentState.ERROR if isinstance(first, Exception) else AgentState.IDLE
            raise first from None
        finally:
            self.state = after
            over.set()

    async def _setup(
        self,
        text: str,
        system: str | None,
        task_id: str,
        told: "tuple[Message, ...]",
        call: "ToolCall | None",
    ) -> "Setup":
        from msgspec.structs import replace

        from agent_core.library.briefing import TurnOptions, make_brief
        from agent_core.library.setup import Setup
        from agent_core.memory.flush import flusher
        from agent_core.orchestration.brief import Hands
        from agent_core.tools.facts import find_call_bond
        from agent_core.tools.hooks import ToolHooks

        calls = await asyncio.to_thread(self._warm)
        options = TurnOptions(
            model=self.model if isinstance(self.model, str) else "",
            system=system if system is not None else self.system,
            profile=self.profile,
            plans=self.plans,
            zone=self.zone,
            workspace=str(self.workspace),
            rounds=self.max_rounds,
            turns=self.max_turns,
        )
        tools, remembered = (self.toolbox, self._servers), (told, self.memory)
        brief = await make_brief(text, options, calls, tools, remembered)
        hands = Hands(
            complete=calls.complete,
            toolbox=self.toolbox,
            judge=self._judge,
            live=lambda event: None,  # a task adds its own here
            hooks=ToolHooks(
                pre=(self.pre_tool_call,) if self.pre_tool_call else (),
                verify=(self.verify_step,) if self.verify_step else (),
                post=(self.post_tool_call,) if self.post_tool_call else (),
            ),
            memory=self.memory,
            bond=lambda item: find_call_bond(item.tool, item.arguments, self._look_around()),
        )
        if self.memory is not None:
            flush = flusher(self.memory, calls.complete, lambda: calls.limits.by)
            hands = replace(hands, flush=flush)
        return Setup(
            brief=replace(brief, cache_key=task_id),
            hands=hands,
            answer=self._answer,
            begin=calls.begin,
            journal=self.journal,
            call=call,
        )

    def add_tools(self, *tools: "Tool") -> None:
        """Add tools for later turns. Raises Misuse for a name that is taken."""
        from agent_core.library.arguments import check_tools
        from agent_core.tools.toolbox import Toolbox

        tools = check_tools(tools)
        taken = {*self.toolbox.names}
        if twice := next((tool.name for tool in tools if tool.name in taken), ""):
            raise Misuse(f"there is a tool {twice!r} already: choose another name")
        self.toolbox = Toolbox((*self.toolbox.tools, *tools), self._servers)

    def _warm(self) -> "ModelCalls":
        """The model, ready to be asked. Blocks where its SDK is imported first."""
        if self._calls is None:
            from agent_core.library.model_calls import ModelCalls

            calls = ModelCalls(self.model, self.api_mode, self.window, self.budget)
            calls.warm()
            self._calls = calls
        return self._calls

    def _look_around(self) -> "Situation":
        from agent_core.policy import Situation

        return Situation(mode=self.mode, person="library", ask_all=False, rules=())

    def _judge(self, item: "Prepared") -> "Verdict":
        """The policy in the agent's mode."""
        from agent_core.tools.facts import judge_call

        around = self._look_around()
        return judge_call(item.tool, item.arguments, item.digest, around, item.sources)

    async def _answer(self, question: "Question") -> "Answer":
        """Return the answer of `on_question`; denied if there is none."""
        from agent_core.library.arguments import check_answer
        from agent_core.questions import Answer, Choice

        now = ambient.now()
        if self.on_question is None:
            return Answer(choice="deny", text="nobody can be asked here", name="library", at=now)
        approving = question.__struct_config__.tag == "approval"
        said = self.on_question(question)
        limit = ambient.limit(self.approval_seconds if approving else self.answer_seconds)
        try:
            async with limit:
                given = await said if inspect.isawaitable(said) else said
        except TimeoutError:
            if not limit.expired():  # its own
                raise
            return Answer(choice="expired", name="library", at=ambient.now())
        if isinstance(given, Answer):
            return given
        if approving and given is None:
            return Answer(choice="deny", name="library", at=now)
        text = check_answer(given)
        choice: Choice = "deny" if approving and text != "once" else "once"
        return Answer(choice=choice, text=text, name="library", at=now)


def _write_json(arguments: Mapping[str, object]) -> str:
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError) as error:
        raise Misuse(f"the arguments of a tool are JSON: {error}") from None
