"""The agent's models and tools for LangChain, so that a graph's calls go over the scope.

Needs the extra `langgraph`; imported when a graph is run. A graph's nodes may run concurrently: its
calls are made one after another, and are recorded under their content, not under their order.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import msgspec
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.messages import ToolMessage as LangToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from agent_core.errors import AgentError
from agent_core.messages import Message, Part, Text, ToolCall, ToolResult, calls_of, text_of, user
from agent_core.models.port import ModelReply, ModelRequest, ToolChoice, ToolSpec
from agent_core.orchestration.acting import act
from agent_core.orchestration.side_calls import ask_aside, tier
from agent_core.scope import Scope
from agent_core.settings import Tier
from agent_core.skills.calling import call_tools
from agent_core.skills.contract import SkillContext

T = TypeVar("T")
LIMIT = 600.0
"""Seconds of one call of the model."""
CHOICES: dict[str, ToolChoice] = {"any": "required", "required": "required", "none": "none"}


class GraphScope:
    """The calls of one run of a graph. A graph runs in tasks of its own, and a scope belongs to
    one: calls come here by a queue, and are made one after another."""

    def __init__(self, context: SkillContext) -> None:
        self.context, self._scope = context, context.step("graph")
        self._seen: Counter[str] = Counter()
        self._calls: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]]
        self._calls = asyncio.Queue()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the graph's `work`, making its calls meanwhile."""
        working = asyncio.ensure_future(work)  # noqa: TID251  # a group would wrap its exception
        try:
            while True:
                coming = asyncio.ensure_future(self._calls.get())  # noqa: TID251  # ended below
                await asyncio.wait({working, coming}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    return working.result()
                await _answer(*coming.result())
        finally:
            working.cancel()
            await asyncio.wait({working})

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Return the model's answer."""
        asked = msgspec.json.encode((request.system, request.messages, request.tools))
        name = f"model-{hashlib.sha256(asked).hexdigest()[:16]}"
        call = partial(ask_aside, self.context.hands, request)
        limit = min(self.context.brief.limit, LIMIT)

        async def make() -> ModelReply:
            return await self._enter(name).model(call, limit=limit)

        return cast(ModelReply, await self._call(make))

    async def use(self, name: str, arguments: dict[str, object], call_id: str) -> ToolResult:
        """Return the tool's result; `call_id`: of the model's call, "" if the graph itself makes
        it."""
        text = msgspec.json.encode(arguments).decode()
        digest = hashlib.sha256(f"{name}{text}".encode()).hexdigest()[:16]

        async def make() -> ToolResult:
            scope = self._enter(f"tool-{call_id}" if call_id else f"made-{digest}")
            brief, hands = self.context.brief, self.context.hands
            if call_id:
                call = ToolCall(id=call_id, name=name, arguments=text)
                (result,) = await act(scope, brief, hands, (call,))
            else:
                (result,) = await call_tools(scope, brief, hands, ((name, arguments),))
            return result

        return cast(ToolResult, await self._call(make))

    async def _call(self, make: Callable[[], Awaitable[Any]]) -> object:
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait((make, answer))
        return await answer

    def _enter(self, name: str) -> Scope:
        self._seen[name] += 1
        return self._scope.child(f"{name}-{self._seen[name]}")


async def _answer(make: Callable[[], Awaitable[Any]], answer: "asyncio.Future[Any]") -> None:
    try:
        made = await make()
    except AgentError as error:  # reported to the graph, which may go on without it
        if not answer.done():
            answer.set_exception(error)
        return
    if not answer.done():
        answer.set_result(made)


class ScopeChatModel(BaseChatModel):
    """A model of the agent's: `tier_name` says which."""

    tier_name: str
    _scope: GraphScope = PrivateAttr()

    @classmethod
    def make(cls, scope: GraphScope, tier_name: Tier) -> "ScopeChatModel":
        """Make a chat model whose calls are recorded in `scope`."""
        made = cls(tier_name=tier_name)
        made._scope = scope
        return made

    @property
    def _llm_type(self) -> str:
        return "turnkeeper"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as LangChain defines it."""
        given = [convert_to_openai_tool(one) for one in tools]
        return self.bind(tools=given, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("Use ainvoke: the agent's models are asked asynchronously.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        brief = self._scope.context.brief
        system = "\n\n".join(str(one.text) for one in messages if isinstance(one, SystemMessage))
        request = ModelRequest(
            model=tier(brief.model, self.tier_name),
            system=system or brief.system,
            messages=read_messages(messages),
            tools=tuple(map(_read_spec, kwargs.get("tools") or ())),
            tool_choice=CHOICES.get(str(kwargs.get("tool_choice")), "auto"),
            cache_key=brief.cache_key,
        )
        reply = await self._scope.ask(request)
        return ChatResult(generations=[ChatGeneration(message=_make_message(reply))])


class ScopeTool(BaseTool):
    """A tool of the agent's: judged, asked about and journaled as all its calls are."""

    _scope: GraphScope = PrivateAttr()

    @classmethod
    def make(cls, scope: GraphScope, spec: ToolSpec) -> "ScopeTool":
        """Make a tool whose calls are recorded in `scope`."""
        made = cls(name=spec.name, description=spec.description, args_schema=spec.parameters)
        made._scope = scope
        return made

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Use ainvoke: the agent's tools are called asynchronously.")

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return its output, as a message if it answers a call of the model."""
        if isinstance(input, dict) and input.get("type") == "tool_call":
            result = await self._scope.use(self.name, input["args"], str(input["id"]))
            status = "error" if result.error else "success"
            return LangToolMessage(
                content=result.content, name=self.name, tool_call_id=input["id"], status=status
            )
        arguments = input if isinstance(input, dict) else {"input": input}
        return (await self._scope.use(self.name, arguments, "")).content


def read_messages(messages: Sequence[BaseMessage]) -> tuple[Message, ...]:
    """Convert a conversation to the agent's messages, without the system text."""
    found: list[Message] = []
    for one in messages:
        if isinstance(one, SystemMessage):
            continue
        made = _read_message(one)
        if found and found[-1].role == made.role:
            found[-1] = Message(role=made.role, parts=(*found[-1].parts, *made.parts))
        else:
            found.append(made)
    return tuple(found)


def _read_message(one: BaseMessage) -> Message:
    if isinstance(one, AIMessage):
        parts: list[Part] = [Text(text=str(one.text))] if one.text else []
        parts += (
            ToolCall(
                id=str(call["id"]),
                name=call["name"],
                arguments=msgspec.json.encode(call["args"]).decode(),
            )
            for call in one.tool_calls
        )
        return Message(role="assistant", parts=tuple(parts))
    if isinstance(one, LangToolMessage):
        result = ToolResult(
            call_id=one.tool_call_id,
            name=one.name or "",
            content=str(one.text),
            error=one.status == "error",
        )
        return Message(role="tool", parts=(result,))
    return user(str(one.text))


def _read_spec(tool: dict[str, Any]) -> ToolSpec:
    about = tool["function"]
    parameters = about.get("parameters") or {"type": "object", "properties": {}}
    return ToolSpec(
        name=about["name"], description=about.get("description", ""), parameters=parameters
    )


def _make_message(reply: ModelReply) -> AIMessage:
    said = Message(role="assistant", parts=reply.parts)
    calls = [
        {"name": one.name, "args": _read_arguments(one.arguments), "id": one.id}
        for one in calls_of(said)
    ]
    return AIMessage(content=text_of(said), tool_calls=calls)


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
