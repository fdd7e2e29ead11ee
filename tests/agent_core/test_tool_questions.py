"""Questions that anybody's tools make: one that cannot be put fails its call, and nothing else."""

import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent_core import Agent
from agent_core.questions import Approval, Decision, Input, Question
from agent_core.tools.contract import Tool, ToolContext
from tests.agent_core.library_rig import provider
from tests.fakes.model_server import Call, ModelServer, Say


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    monkeypatch.chdir(tmp_path)
    server = ModelServer()
    server.url = await server.start()  # type: ignore[attr-defined]
    yield server
    await server.close()


class Wish(BaseModel):
    """Arguments of the tool."""

    wish: str = ""


async def never(arguments: Wish, context: ToolContext) -> str:
    raise AssertionError("a question is never run")


def asking(make: Callable[[Wish], object]) -> Tool:
    return Tool(
        name="pick", description="Ask.", arguments=Wish, repetition="pure", access="person",
        call=never, question=make,
    )  # type: ignore[arg-type]  # fmt: skip


def fail(wish: Wish) -> Question:
    raise KeyError("no such list")


UNFIT: dict[str, Callable[[Wish], object]] = {
    "text for seconds": lambda wish: Input(text="?", expires="5 min"),  # type: ignore[arg-type]
    "an infinity": lambda wish: Input(text="?", expires=float("inf")),
    "no number": lambda wish: Decision(text="?", options=("a",), expires=float("nan")),
    "the past": lambda wish: Input(text="?", expires=-5.0),
    "no text": lambda wish: Input(text=None),  # type: ignore[arg-type]
    "options that are none": lambda wish: Decision(text="?", options=(1, None)),  # type: ignore[arg-type]
    "a function": lambda wish: Decision(text="?", options=(print,)),  # type: ignore[arg-type]
    "words": lambda wish: "Which?",
    "nothing": lambda wish: None,
    "another value": lambda wish: Wish(),
    "an error": fail,
    "no proposals": lambda wish: Approval(proposals=(5,)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("how", UNFIT)
async def test_a_question_that_cannot_be_put_fails_its_call_alone(
    server: ModelServer, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Question] = []

    def answer(question: Question) -> str:
        asked.append(question)
        return "blue"

    server.script(Call("pick", "{}"), Say("Done."))
    with caplog.at_level(logging.WARNING):
        async with Agent(
            model=provider(server), tools=[asking(UNFIT[how])], on_question=answer
        ) as agent:
            result = await agent.run_conversation("pick one")
    assert result.final_response == "Done." and not asked
    told = server.requests[-1].body["messages"][-1]["content"]
    assert "could not be put to the person" in told
    own_fault = how in ("a function", "another value", "an error")
    assert any(one.exc_info for one in caplog.records) is own_fault, caplog.text


async def test_a_question_of_a_tool_is_put(server: ModelServer) -> None:
    server.script(Call("pick", "{}"), Say("Done."))
    make = lambda wish: Decision(text="Which?", options=("red", "blue"), expires=60)  # noqa: E731
    async with Agent(
        model=provider(server), tools=[asking(make)], on_question=lambda question: "blue"
    ) as agent:
        await agent.run_conversation("pick one")
    assert server.requests[-1].body["messages"][-1]["content"] == "blue"
