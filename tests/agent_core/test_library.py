"""What a turn of the library has of what the gateway's turns have, through the real OpenAI SDK."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core import Agent, tool
from agent_core.errors import BudgetExceeded, ModelFailed, ToolFailed
from agent_core.events import Completed, Interrupted, ToolAnswered, ToolCalled
from agent_core.memory.folder_memory import FolderMemory
from agent_core.messages import text_of
from agent_core.orchestration.acting import MAX_CARDS
from agent_core.questions import Approval
from agent_core.sandboxes.commands.background import Background
from agent_core.tools.ask import ask_tool
from agent_core.tools.files import file_tools
from agent_core.tools.shell import command_tools
from tests.agent_core.library_rig import provider
from tests.fakes.model_server import Call, Json, ModelServer, Say, Think
from tests.fakes.sandboxes import unsafe_sandbox

PRICES = json.dumps({"openai/m": {"input": 1_000_000, "output": 10.0}})


@tool
def look(word: str) -> str:
    """Look a word up."""
    return f"{word} means nothing"


@tool(access="network", repetition="effect")
def publish(text: str) -> str:
    """Publish a text."""
    return "published"


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    monkeypatch.chdir(tmp_path)
    server = ModelServer()
    server.url = await server.start()  # type: ignore[attr-defined]
    yield server
    await server.close()


def allow(question: object) -> str:
    return "once" if isinstance(question, Approval) else "blue"


async def test_callbacks_hear_what_their_names_say(server: ModelServer) -> None:
    heard: list[tuple[str, object]] = []

    def note(name: str) -> object:
        return lambda what: heard.append((name, what))

    names = ("stream_delta", "reasoning", "thinking", "tool_gen", "tool_progress", "clarify")
    given = {f"{name}_callback": note(name) for name in (*names, "step", "status")}
    question = Call("ask_user", '{"question": "Colour?"}', id="c2")
    server.script(Think("hm", Call("look", '{"word": "a"}', id="c1")), question, Say("Blue."))
    async with Agent(
        model=provider(server), tools=[look, ask_tool()], on_question=allow, **given
    ) as agent:
        await agent.achat("Which?")
    assert [what for name, what in heard if name == "thinking"] == [True, False]
    assert "".join(str(what) for name, what in heard if name == "reasoning") == "hm"
    assert "".join(str(what) for name, what in heard if name == "stream_delta") == "Blue."
    calls = [what for name, what in heard if name == "tool_gen"]
    assert [type(one) for one in calls] == [ToolCalled, ToolCalled]
    first = [what for name, what in heard if name == "tool_progress"][:2]
    assert [type(one) for one in first] == [ToolCalled, ToolAnswered]
    (asked,) = [what for name, what in heard if name == "clarify"]
    assert isinstance(asked, Interrupted) and asked.text == "Colour?"
    (ended,) = [what for name, what in heard if name == "step"]
    assert isinstance(ended, Completed) and ended.text == "Blue."
    stages = [what for name, what in heard if name == "status"]
    assert stages[:2] == ["thinking", "executing"] and "waiting" in stages
    assert stages[-2:] == ["thinking", "finished"]


async def test_the_cost_is_what_all_answers_took(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script(Call("look", '{"word": "a"}'), Say("Nothing.", tokens=100_000))
    async with Agent(model=provider(server), tools=[look]) as agent:
        free = await agent.run_conversation("What is a?")
    assert free.cost is None, "the price of this model is not known"
    monkeypatch.setenv("MODEL_PRICES", PRICES.replace("1000000", "0"))
    server.script(Call("look", '{"word": "a"}'), Say("Nothing.", tokens=100_000))
    async with Agent(model=provider(server), tools=[look]) as agent:
        result = await agent.run_conversation("What is a?")
    assert result.cost == pytest.approx((100_000 + 7) * 10 / 1_000_000)
    assert result.to_dict()["cost"] == result.cost


async def test_what_a_turn_may_take_ends_it(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_PRICES", PRICES)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")  # type: ignore[attr-defined]
    async with Agent(model="openai/m", budget=0.5) as agent:
        with pytest.raises(BudgetExceeded, match="0.50"):
            await agent.achat("hello")
    monkeypatch.delenv("MODEL_PRICES")
    monkeypatch.setenv("BUDGET_TURN_USD", "1")
    async with Agent(model="openai/m") as agent:
        with pytest.raises(ModelFailed, match="MODEL_PRICES"):
            await agent.achat("hello")
    assert not server.requests


async def test_a_long_history_is_summarised(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_COMPRESSION_PRESERVE_RECENT", "2")

    def answer(body: Json) -> Say:
        return Say("in short" if "You summarise" in json.dumps(body) else "Yes.")

    long = "All of this was said before. " * 200
    server.script(*[Say(f"{n} {long}") for n in range(3)], *[answer] * 9)
    async with Agent(model=provider(server), window=8_000) as agent:
        for n in range(6):
            await agent.achat(f"question {n}")
    assert "[Earlier messages, summarised]\nin short" in text_of(agent.history[0])
    assert len(server.requests[-1].raw) < 8_000 * 4


async def test_what_is_remembered_comes_along_and_is_kept(
    server: ModelServer, tmp_path: Path
) -> None:
    fact = {"action": "add", "target": "user", "text": "Likes tea."}
    server.script(Call("memory", json.dumps(fact)), Say("Noted."))
    async with Agent(model=provider(server), memory=FolderMemory(tmp_path / "m")) as agent:
        await agent.achat("I like tea.")
    assert (tmp_path / "m" / "USER.md").read_text() == "- Likes tea.\n"
    async with Agent(model=provider(server), memory=FolderMemory(tmp_path / "m")) as agent:
        await agent.achat("What do I like?")
    assert "- Likes tea." in server.requests[-1].body["messages"][-1]["content"]


async def test_a_profile_chooses_tools_and_adds_its_prompt(
    server: ModelServer, tmp_path: Path
) -> None:
    tools = [*file_tools(), look]
    async with Agent(model=provider(server), tools=tools, profile="mcp") as agent:
        await agent.achat("hello")
    body = server.requests[-1].body
    assert "tools of connected servers" in body["messages"][0]["content"]
    assert {one["function"]["name"] for one in body["tools"]} == {
        "read_file", "write_file", "list_files",
    }  # fmt: skip


async def test_each_message_tells_the_time(server: ModelServer) -> None:
    async with Agent(model=provider(server), zone="Europe/Berlin") as agent:
        await agent.achat("hello")
    assert "[Now: " in server.requests[-1].body["messages"][-1]["content"]
    async with Agent(model=provider(server), zone="") as agent:
        await agent.achat("hello")
    assert server.requests[-1].body["messages"][-1]["content"] == "hello"


async def test_a_tool_by_hand_is_judged_and_journaled(server: ModelServer, tmp_path: Path) -> None:
    ran: list[str] = []

    @tool(access="network", repetition="effect")
    def send(text: str) -> str:
        """Send a text."""
        ran.append(text)
        return "sent"

    agent = Agent(model=provider(server), tools=[send, look], journal=tmp_path / "journal")
    assert await agent.execute_tool("look", {"word": "a"}) == "a means nothing"
    with pytest.raises(ToolFailed, match="Denied"):
        await agent.execute_tool("send", {"text": "x"}, task_id="denied")
    with pytest.raises(ToolFailed, match="do not fit"):
        await agent.execute_tool("look", "{")
    with pytest.raises(ToolFailed, match="no tool"):
        await agent.execute_tool("nothing")
    agent.on_question = allow
    assert await agent.execute_tool("send", {"text": "x"}, task_id="t") == "sent"
    assert await agent.execute_tool("send", {"text": "x"}, task_id="t") == "sent"
    assert ran == ["x"], "what is in the journal is not done again"
    await agent.close()


async def test_an_approval_holds_for_the_files_that_a_command_runs(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@echo good\n")

    cards: list[object] = []

    def swap(question: object) -> str:
        cards.append(question)
        (tmp_path / "Makefile").write_text(f"all:\n\t@echo evil {len(cards)}\n")
        return "once"

    tools = command_tools(unsafe_sandbox(), Background(), 5)
    async with Agent(
        model=provider(server), tools=tools, workspace=tmp_path, on_question=swap
    ) as agent:
        with pytest.raises(ToolFailed, match="was changed after it was approved"):
            await agent.execute_tool("run_command", {"command": "make"})
    assert len(cards) == MAX_CARDS
