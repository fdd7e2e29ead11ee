"""The agent as a library: the same durable turn without a gateway.

    agent = Agent(model="openai/gpt-5.6-terra", tools=[my_tool])
    print(agent.chat("What is new?"))

Sources of the names: `chat` and `run_conversation` as in many agent libraries; failures are
`agent_core.errors`, never an SDK's.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from agent_core import ambient
from agent_core.errors import Misuse
from agent_core.library.state import AgentState

if TYPE_CHECKING:  # whoever imports an agent does not run one yet: the rest loads with the first
    from agent_core.events import AgentEvent
    from agent_core.library.callbacks import Callback
    from agent_core.library.result import AgentResult
    from agent_core.library.setup import Setup
    from agent_core.mcp.servers import Servers
    from agent_core.mcp.settings import Given
    from agent_core.messages import Message
    from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta
    from agent_core.models.providers import ApiMode
    from agent_core.policy import Mode, Verdict
    from agent_core.questions import Answer, Question
    from agent_core.tools.contract import Tool
    from agent_core.tools.hooks import PostHook, PreHook, VerifyHook
    from agent_core.tools.toolbox import Prepared, Toolbox

OnQuestion: TypeAlias = "Callable[[Question], Answer | str | Awaitable[Answer | str]]"


@dataclass(slots=True, kw_only=True)
class Agent:
    """An agent with tools that plans nothing it need not and asks before it acts.

    `model`: a provider (`Model`), or `provider/model` or a tier looked up in the environment's
    keys. `on_question` answers what the agent asks; without it every question counts as denied. One
    that is async has `approval_seconds`, or `answer_seconds` for what is no approval; then the
    model is told that nobody answered. None: it waits for ever. `journal`: a folder; with it a task
    that was cut off goes on under the same `task_id`. `plans`: a request for several steps gets a
    plan that is worked off and checked step by step. `callbacks`: see CALLBACKS; sync or async, an
    exception in one is logged and ends nothing. `pre_tool_call`, `post_tool_call`, `verify_step`:
    see `agent_core.tools.hooks`. `mode` ask: what changes anything is asked for; auto: only what is
    risky is. `api_mode`: how the model's provider is spoken to, whatever its address says.
    """

    model: "Model | str" = "pro"
    tools: "Iterable[Tool]" = ()
    system: str = ""
    on_question: "OnQuestion | None" = None
    journal: Path | None = None
    workspace: Path = field(default_factory=Path.cwd)
    max_rounds: int = 30
    plans: bool = True
    callbacks: "dict[str, Callback]" = field(default_factory=dict)
    history: "tuple[Message, ...]" = ()
    pre_tool_call: "PreHook | None" = None
    verify_step: "VerifyHook | None" = None
    approval_seconds: float | None = 120.0
    answer_seconds: float | None = 300.0
    post_tool_call: "PostHook | None" = None
    mode: "Mode" = "auto"
    api_mode: "ApiMode | None" = None
    state: AgentState = field(init=False, default=AgentState.IDLE)
    toolbox: "Toolbox" = field(init=False)
    _servers: "Servers | None" = field(init=False, default=None)
    _picked: "tuple[Model, str] | None" = field(init=False, default=None)

    def __post_init__(self) -> None:
        from agent_core.library.callbacks import check_names
        from agent_core.tools.toolbox import Toolbox

        check_names(self.callbacks)
        self.toolbox = Toolbox(self.tools)

    @classmethod
    async def create(cls, *, mcp: "Iterable[Given]" = (), **arguments: object) -> "Agent":
        """An agent whose model is ready: the SDK is imported beside the loop. `mcp`: servers as
        in the setting MCP_SERVERS; `close`, or the end of `async with`, in the same task, ends
        them. Those that are slow or broken are waited for only where their tools are used."""
        from agent_core.mcp.settings import parse_servers

        agent = cls(**arguments)  # type: ignore[arg-type]  # the constructor's own arguments
        await asyncio.to_thread(agent._model)
        if servers := parse_servers(mcp):
            from agent_core.mcp.servers import Servers
            from agent_core.tools.finding.tools import finding_tools
            from agent_core.tools.toolbox import Toolbox

            shelf = agent._servers = Servers(servers)
            await shelf.__aenter__()
            tools = (*agent.toolbox.tools, *finding_tools(shelf.names))
            agent.toolbox = Toolbox(tools, shelf)
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
        conversation_history: "Iterable[Message] | None" = None,
        task_id: str | None = None,
    ) -> "AgentResult":
        """One turn. With a `journal`, a `task_id` that was cut off goes on where it was, and a
        finished one returns what it returned."""
        from agent_core.library.result import AgentResult

        result: AgentResult | None = None
        async for item in self._run(user_message, system_message, conversation_history, task_id):
            if isinstance(item, AgentResult):
                result = item
        assert result is not None
        return result

    async def stream(
        self, user_message: str, task_id: str | None = None
    ) -> "AsyncIterator[AgentEvent]":
        """What happens in a turn, as it happens; ends with Completed."""
        from agent_core.library.result import AgentResult

        async with aclosing(self._run(user_message, None, self.history, task_id)) as items:
            async for item in items:
                if isinstance(item, AgentResult):
                    self.history = item.messages
                else:
                    yield item

    async def _run(
        self,
        text: str,
        system: str | None,
        history: "Iterable[Message] | None",
        task_id: str | None,
    ) -> "AsyncGenerator[AgentEvent | AgentResult, None]":
        from agent_core.library.callbacks import tell
        from agent_core.library.task import Task

        task_id = task_id or ambient.new_id()
        if self.state is AgentState.RUNNING:
            raise Misuse("this agent is running: wait for it, or make another one")
        task = Task(self._setup(text, system, task_id), task_id, tuple(history or ()))
        self.state, after = AgentState.RUNNING, AgentState.IDLE
        try:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(task.work(), name=f"agent:{task.id}")
                while (event := await task.events.get()) is not None:
                    await tell(self.callbacks, event)
                    yield event
                result = await work
            after = result.state
            yield result
        except BaseExceptionGroup as group_error:
            first = group_error.exceptions[0]
            after = AgentState.ERROR if isinstance(first, Exception) else AgentState.IDLE
            raise first from None
        finally:
            self.state = after

    def _setup(self, text: str, system: str | None, task_id: str) -> "Setup":
        from agent_core.context.prompt import system_prompt
        from agent_core.library.setup import Setup
        from agent_core.orchestration.brief import Brief, Hands
        from agent_core.orchestration.routes.classifier import classify
        from agent_core.tools.hooks import ToolHooks

        more = self._servers.list_offered(()) if self._servers is not None else ()
        brief = Brief(
            text=text,
            system=system if system is not None else self.system or system_prompt(),
            model=self.model if isinstance(self.model, str) else "",
            tools=(*self.toolbox.names, *(spec.name for spec in more)),
            more=more,
            reach=() if self._servers is not None else None,
            workspace=str(self.workspace),
            max_rounds=self.max_rounds,
            route="planned" if self.plans and classify(text) == "complex" else "simple",
            cache_key=task_id,
        )
        hands = Hands(
            complete=self._complete,
            toolbox=self.toolbox,
            judge=self._judge,
            live=lambda event: None,  # a task puts its own here
            hooks=ToolHooks(
                pre=(self.pre_tool_call,) if self.pre_tool_call else (),
                verify=(self.verify_step,) if self.verify_step else (),
                post=(self.post_tool_call,) if self.post_tool_call else (),
            ),
        )
        return Setup(brief=brief, hands=hands, answer=self._answer, journal=self.journal)

    def add_tools(self, *tools: "Tool") -> None:
        """Tools that the turns from now on have besides. Raises Misuse for a name that is taken."""
        from agent_core.tools.toolbox import Toolbox

        taken = {*self.toolbox.names}
        if twice := next((tool.name for tool in tools if tool.name in taken), ""):
            raise Misuse(f"there is a tool {twice!r} already: choose another name")
        self.toolbox = Toolbox((*self.toolbox.tools, *tools), self._servers)

    def _model(self) -> "tuple[Model, str]":
        if self._picked is None:
            if isinstance(self.model, str):
                from agent_core.models.tiers import Models
                from agent_core.settings import ModelSettings

                settings = ModelSettings.read()
                if self.api_mode is not None:
                    provider = Models(settings).find_provider(self.model)
                    settings = settings.with_mode(provider, self.api_mode)
                self._picked = Models(settings).pick(self.model)
            else:
                self._picked = (self.model, "")
        return self._picked

    async def _complete(
        self, name: str, request: "ModelRequest", on_delta: "OnDelta"
    ) -> "ModelReply":
        model, known_as = self._model()
        if known_as:
            from msgspec.structs import replace

            request = replace(request, model=known_as)
        return await model.complete(request, on_delta)

    def _judge(self, item: "Prepared") -> "Verdict":
        """The policy in the agent's mode."""
        from agent_core.policy import Situation
        from agent_core.tools.facts import judge_call

        situation = Situation(mode=self.mode, person="library", ask_all=False, rules=())
        return judge_call(item.tool, item.arguments, item.digest, situation, item.sources)

    async def _answer(self, question: "Question") -> "Answer":
        """What `on_question` says; denied where nobody can be asked."""
        from agent_core.questions import Answer

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
        choice = (
            given if approving and given in ("once", "deny") else "deny" if approving else "once"
        )
        return Answer(choice=choice, text=given, name="library", at=now)  # type: ignore[arg-type]
