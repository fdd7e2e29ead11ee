"""The library in odd hands: each mistake is told where it is made, in words that say what to do."""

import asyncio
import dataclasses
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from agent_core import Agent, tool
from agent_core.errors import Misuse, ToolFailed
from agent_core.messages import Text, ToolCall, ToolResult
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, Usage
from agent_core.tools.ask import ask_tool
from agent_core.tools.contract import Tool


class Echo:
    """A model that says the last message, after it has waited for others."""

    provider = "echo"

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        await asyncio.sleep(0)
        said = next(part for part in request.messages[-1].parts if isinstance(part, Text))
        return ModelReply(parts=(Text(text=said.text.split("\n")[0]),), model="m", provider="echo")

    async def close(self) -> None: ...


def make(**more: Any) -> Agent:
    return Agent(model=Echo(), plans=False, zone="", **more)


async def test_an_agent_runs_one_turn_at_a_time() -> None:
    """However close together the calls are, none returns the answer to another one."""
    agent = make()
    first, second = await asyncio.gather(
        agent.achat("one"), agent.achat("two"), return_exceptions=True
    )
    assert first == "one" and isinstance(second, Misuse)
    assert await agent.achat("three") == "three" and len(agent.history) == 4


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_after_a_cancellation_at_any_step_it_goes_on(steps: int) -> None:
    agent = make()
    task = asyncio.ensure_future(agent.achat("one"))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await agent.achat("two") == "two"


@pytest.mark.parametrize("given", [None, 5, b"hi", ["hi"]])
async def test_a_message_is_text(given: Any) -> None:
    with pytest.raises(Misuse, match="a message is text"):
        await make().run_conversation(given)


async def test_a_message_of_half_a_character_is_sent_without_it() -> None:
    assert (await make().run_conversation("a\ud800b")).final_response == "a\ufffdb"


def add(a: int) -> str:
    """Add."""
    return str(a)


class Callable_:
    def __call__(self, a: int) -> str:
        return str(a)


def missing(a: "Missing") -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


def odd_type(a: Echo) -> str:
    return ""


def function_type(a: Callable[[], int]) -> str:
    return ""


def odd_default(a: object = object()) -> str:  # noqa: B008
    return ""


LIMITS: list[dict[str, Any]] = [
    {"max_rounds": 0},
    {"max_rounds": -1},
    {"max_turns": 0},
    {"max_turns": 2.5},
    {"budget": 0},
    {"budget": -1.0},
    {"budget": float("nan")},
    {"budget": float("inf")},
    {"budget": "1"},
    {"window": -1},
    {"window": "8k"},
]


@pytest.mark.parametrize("given", LIMITS)
def test_a_limit_limits(given: dict[str, Any]) -> None:
    """None of them means 'no limit' in secret."""
    with pytest.raises(Misuse, match=next(iter(given))):
        make(**given)


class Asker(Echo):
    """A model that asks a person first, then says what it was told."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        (last,) = request.messages[-1].parts
        if not isinstance(last, ToolResult):
            last = ToolCall(id="c1", name="ask_user", arguments='{"question": "Which?"}')
            return ModelReply(parts=(last,), model="m", provider="echo", finish="tool_calls")
        return ModelReply(parts=(Text(text=last.content),), model="m", provider="echo")


@pytest.mark.parametrize("given", [None, 3, True, b"red", ["red"], {"a": 1}])
async def test_an_answer_of_a_person_is_text(given: Any) -> None:
    agent = Agent(model=Asker(), tools=[ask_tool()], on_question=lambda question: given)
    with pytest.raises(Misuse, match="on_question gives a text or an Answer"):
        await agent.achat("Which?")
    agent.on_question = lambda question: "re\ud800d"
    assert await agent.achat("Which?") == "re�d"


class Nameless(Echo):
    """A model that does not say which one it is."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        usage = Usage(input_tokens=1_000, output_tokens=100)
        return ModelReply(parts=(Text(text="hi"),), model="", provider="", usage=usage)


async def test_the_tokens_of_a_nameless_model_count_and_their_cost_is_unknown() -> None:
    result = await Agent(model=Nameless(), plans=False).run_conversation("hello")
    assert result.usage.input_tokens == 1_000 and result.usage.output_tokens == 100
    assert result.cost is None


NO_TOOLS: list[Any] = [
    *(Callable_(), missing, odd_type, function_type, odd_default, functools.partial(add, 1)),
    *(print, len, int, lambda: "hi", None, "add"),
]


@pytest.mark.parametrize("given", NO_TOOLS)
def test_no_tool_can_be_made_of_it(given: Any) -> None:
    with pytest.raises(Misuse):
        tool()(given)


@pytest.mark.parametrize("given", [[add], add, ["add"], tool(add), [None]])
def test_tools_are_tools(given: Any) -> None:
    with pytest.raises(Misuse, match="tool"):
        make(tools=given)


@tool
def place(a: int, /, b: int = 2) -> str:
    return f"{a} {b}"


@tool
def names(_x: int, json: str, schema: int, copy: bool = False, model_config: int = 1) -> str:
    return f"{_x} {json} {schema} {copy} {model_config}"


@tool
def count() -> Iterator[int]:
    yield from (1, 2)


@tool
async def stream() -> AsyncIterator[int]:
    for one in (1, 2):
        yield one


@dataclasses.dataclass
class Point:
    x: int
    y: tuple[int, int]


class Made(BaseModel):
    n: int


LOOP: list[Any] = []
LOOP.append(LOOP)


@tool
def give(name: str) -> object:
    values = {
        "mapping": {"city": "Oslo", "open": True, "by": None},
        "dataclass": [Point(1, (2, 3))],
        "odd": {"when": date(2026, 1, 2), "key": Echo},
        "bytes": [b"\xff"],
        "keys": {(1, 2): "a"},
        "environment": MappingProxyType({"HOME": "/a"}),
        "model": {"at": [Made(n=1)]},
        "loop": LOOP,
        "nothing": None,
        "text": "a 'b'",
    }
    return values[name]


@pytest.mark.parametrize(
    ("made", "arguments", "said"),
    [
        (give, {"name": "mapping"}, '{"city":"Oslo","open":true,"by":null}'),
        (give, {"name": "dataclass"}, '[{"x":1,"y":[2,3]}]'),
        (give, {"name": "odd"}, f'{{"when":"2026-01-02","key":"{Echo}"}}'),
        (give, {"name": "bytes"}, '["/w=="]'),
        (give, {"name": "keys"}, '{"(1, 2)":"a"}'),
        (give, {"name": "environment"}, '{"HOME":"/a"}'),
        (give, {"name": "model"}, '{"at":[{"n":1}]}'),
        (give, {"name": "loop"}, "[[...]]"),
        (give, {"name": "nothing"}, "None"),
        (give, {"name": "text"}, "a 'b'"),
        (place, {"a": 1}, "1 2"),
        (names, {"_x": 1, "json": "j", "schema": 3, "model_config": 4}, "1 j 3 False 4"),
        (count, {}, "1\n2"),
        (stream, {}, "1\n2"),
    ],
)
async def test_odd_signatures_and_values_work(made: Tool, arguments: Any, said: str) -> None:
    agent = make(tools=[made])
    assert set(arguments) <= set(agent.toolbox.specs((made.name,))[0].parameters["properties"])  # type: ignore[call-overload]
    assert await agent.execute_tool(made.name, arguments) == said


async def test_a_tool_that_exits_has_failed() -> None:
    @tool
    def leave() -> str:
        raise SystemExit(2)

    with pytest.raises(ToolFailed, match="SystemExit: 2"):
        await make(tools=[leave]).execute_tool("leave")
