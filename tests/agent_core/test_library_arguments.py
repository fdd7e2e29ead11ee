"""The library: turns that nobody reads to their end, and arguments of another kind than they are."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from agent_core import Agent
from agent_core.errors import Misuse
from agent_core.library.agentic import AgenticLoop
from agent_core.messages import Text
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.settings import SettingsError


class Echo:
    """A model that says the last message after some steps, or what it is given."""

    provider = "echo"

    def __init__(self, *, steps: int = 3, waits: bool = False, made: object = None) -> None:
        self._steps, self._made = steps, made
        self.held = asyncio.Event()
        self._waits, self.cancelled = waits, 0

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> Any:
        said = next(part for part in request.messages[-1].parts if isinstance(part, Text))
        text = said.text.split("\n")[0]
        for _ in range(self._steps):
            await asyncio.sleep(0)
        if self._waits and text == "wait":
            try:
                await self.held.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self._made is not None:
            return self._made
        return ModelReply(parts=(Text(text=text),), model="m", provider="echo")

    async def close(self) -> None: ...


def make(model: Echo, **more: Any) -> Agent:
    return Agent(model=model, plans=False, zone="", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("read", range(6))
@pytest.mark.parametrize("steps", [0, 1, 9])
async def test_a_turn_that_is_read_no_further_is_over(read: int, steps: int) -> None:
    """By a break, or a generator that is dropped; the next one begins at once, streamed or not."""
    agent = make(Echo(steps=steps))
    for n in range(2):
        seen = 0
        async for _ in agent.stream("one"):
            seen += 1
            if seen > read:
                break
        assert await agent.achat(f"two {n}") == f"two {n}"
        events = agent.stream("one")
        await anext(events)
        del events
        assert [one async for one in agent.stream("three")]


async def test_what_such_a_turn_waited_for_is_cancelled() -> None:
    model = Echo(waits=True)
    agent = make(model)
    events = agent.stream("wait")
    pending = asyncio.ensure_future(anext(events))
    for _ in range(50):
        await asyncio.sleep(0)
    pending.cancel()
    await asyncio.wait([pending])
    del events, pending
    gc.collect()
    assert await agent.achat("two") == "two" and model.cancelled == 1


async def test_one_that_is_still_read_is_waited_for_by_nobody() -> None:
    agent = make(Echo())
    events = agent.stream("one")
    await anext(events)
    with pytest.raises(Misuse, match="is running"):
        await agent.achat("two")
    assert [one async for one in events]
    first = asyncio.ensure_future(agent.achat("three"))  # no stream, after one that is over
    await asyncio.sleep(0)
    with pytest.raises(Misuse, match="is running"):
        await agent.achat("four")
    assert await first == "three"


NONE_OF_THEM: dict[str, tuple[object, ...]] = {
    "model": (None, 5, "", object()),
    "system": (5, b"x", ["x"]),
    "journal": (5, b"x", ""),
    "workspace": (5, None, ""),
    "on_question": (5, "yes"),
    "memory": (5, "MEMORY.md"),
    "approval_seconds": ("60", -1, 0, float("nan")),
    "answer_seconds": ("60", -1),
    "pre_tool_call": (5,),
    "post_tool_call": ([print],),
    "verify_step": ("x",),
    "callbacks": (5, [print]),
    "step_callback": (5, "print"),
}
CASES = [(name, value) for name, values in NONE_OF_THEM.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_an_argument_of_another_kind_is_told_at_once(name: str, value: object) -> None:
    with pytest.raises(Misuse, match=f"^{name} is "):
        Agent(**{"model": Echo(), name: value})  # type: ignore[arg-type]


async def test_folders_may_be_given_as_text(tmp_path: Path) -> None:
    agent = make(Echo(), journal=str(tmp_path / "journal"), workspace=str(tmp_path))
    assert await agent.achat("one") == "one"
    assert list((tmp_path / "journal").iterdir()) and agent.workspace == tmp_path


@pytest.mark.parametrize(
    "given",
    [
        {"conversation_history": 5},
        {"conversation_history": "hello"},
        {"conversation_history": {"role": "user", "content": "hello"}},
        {"system_message": 5},
        {"task_id": 5},
    ],
)
async def test_a_turns_argument_of_another_kind_is_told(given: dict[str, Any]) -> None:
    agent = make(Echo())
    with pytest.raises(Misuse, match="not "):
        await agent.run_conversation("hello", **given)
    with pytest.raises(Misuse, match="name is text"):
        await agent.execute_tool(5)  # type: ignore[arg-type]
    assert await agent.achat("one") == "one"


@pytest.mark.parametrize("said", [5, "hello", [5], [{"role": "x"}], {"role": "user"}])
async def test_a_loops_history_is_one_of_messages(said: Any, tmp_path: Path) -> None:
    loop = AgenticLoop(make(Echo(), workspace=tmp_path))
    loop.activate()
    with pytest.raises(Misuse, match="history"):
        await loop.aprocess_request("hello", said)
    assert (await loop.aprocess_request("hello"))["success"]


def test_what_is_no_agent_and_no_tool_is_told() -> None:
    with pytest.raises(Misuse, match="made of an Agent"):
        AgenticLoop("pro")  # type: ignore[arg-type]
    agent = make(Echo())
    for odd in (5, print, None):
        with pytest.raises(Misuse, match="is no tool"):
            agent.add_tools(odd)  # type: ignore[arg-type]
    loop = AgenticLoop(agent)
    given: tuple[tuple[Any, ...], ...] = (
        (5, print, "d", {}), ("two words", print, "d", {}), ("look", 5, "d", {}),
        ("look", lambda: 1, "d", 5), ("look", lambda: 1, "d", ["x"]),
    )  # fmt: skip
    for one in given:
        with pytest.raises(Misuse):
            loop.register_tool(*one)
    assert agent.toolbox.names == ()


@pytest.mark.parametrize("mcp", [5, None, "notes", {"name": "notes"}, [5], ["notes"]])
async def test_servers_are_given_in_a_list(mcp: Any) -> None:
    with pytest.raises(Misuse, match="mcp is a list of servers"):
        await Agent.create(model=Echo(), mcp=mcp)


@pytest.mark.parametrize("made", ["hello", 5, {"content": "hello"}])
async def test_a_model_that_returns_no_reply_is_told(made: object) -> None:
    with pytest.raises(Misuse, match="returns a ModelReply, not "):
        await make(Echo(made=made)).achat("one")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai/gpt-5.6", "set OPENAI_API_KEY"),
        ("nobody/gpt", "no such provider"),
        ("gpt-5.6", "name a tier or provider/model"),
        ("openai/", "name a tier or provider/model"),
    ],
)
async def test_the_demo_model_passes_for_no_other(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(SettingsError, match=said):
        await Agent(model=name, plans=False).achat("one")
    async with Agent(model="pro", plans=False) as agent:
        assert "demo model" in await agent.achat("one")
