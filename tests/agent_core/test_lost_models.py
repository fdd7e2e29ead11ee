"""A model that is lost: its turn ends, after few calls, with a word about why."""

from collections.abc import Callable
from pathlib import Path

import httpx2
import msgspec
import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.context.stuck import SAME_RESULTS
from agent_core.events import ErrorMet
from agent_core.journal import Emitted
from agent_core.messages import Part, Text, Thinking, ToolCall, ToolResult
from agent_core.models.answers.anthropic import AnthropicReader
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.openai_chat import ChatCompletionsReader
from agent_core.models.answers.openai_responses import ResponsesReader
from agent_core.models.answers.streamed_answers import PacedDeltas, feed
from agent_core.models.ollama.answer import OllamaReader
from agent_core.models.port import Finish, ModelReply, ModelRequest, OnDelta
from agent_core.models.wire import HOPELESS, Make
from agent_core.orchestration.brief import TurnResult
from agent_core.orchestration.cut_answers import MAX_CONTINUED
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.toolbox import Toolbox
from tests.agent_core.orchestrator_rig import TurnRig, purpose
from tests.agent_core.scope_rig import Disk

Reply = Callable[[ModelRequest], ModelReply]


class Nothing(BaseModel):
    """No arguments."""


async def look(arguments: BaseModel, context: ToolContext) -> str:
    return "the same as before"


LOOK = Tool(
    name="look", description="Look.", arguments=Nothing, repetition="pure", access="read", call=look
)


class LostModel(TurnRig):
    """A simple turn with one tool, whose model answers what `reply` makes of each request."""

    def __init__(self, folder: Path, reply: Reply) -> None:
        super().__init__(folder)
        self.reply = reply
        self.brief = replace(self.brief, text="look", route="simple", tools=("look",))
        self.hands = replace(self.hands, toolbox=Toolbox((LOOK,)))

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self.asked.append(purpose(request))
        self.requests.append(request)
        return self.reply(request)

    async def end(self) -> tuple[TurnResult, list[str]]:
        """How the turn ended, and which errors were told."""
        disk = Disk()
        result = await self.run(disk)
        told = (one.event for one in disk.records if isinstance(one, Emitted))
        return result, [one.phrases[0].key for one in told if isinstance(one, ErrorMet)]


def make(*parts: Part, finish: Finish = "stop") -> ModelReply:
    return ModelReply(parts=parts, model="m", provider="p", finish=finish)


def make_call(request: ModelRequest, arguments: str = "{}", name: str = "look") -> ToolCall:
    return ToolCall(id=f"c{len(request.messages)}", name=name, arguments=arguments)


async def test_errors_without_a_plan_that_helps_end_with_a_word(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> ModelReply:
        return make(make_call(request, name="nothing"), finish="tool_calls")

    world = LostModel(tmp_path, reply)
    result, told = await world.end()
    assert (result.finish, told) == ("error", ["fault_stuck"])
    assert len(world.asked) <= 8, "nothing is done over"
    answered = [part for m in result.messages for part in m.parts if isinstance(part, ToolResult)]
    assert len(answered) == 5


async def test_one_call_for_ever_ends_with_a_word(tmp_path: Path) -> None:
    world = LostModel(tmp_path, lambda asked: make(make_call(asked), finish="tool_calls"))
    result, told = await world.end()
    assert (result.finish, told) == ("error", ["fault_stuck"])
    assert len(world.asked) <= SAME_RESULTS + 3


async def test_a_call_that_is_always_cut_off_ends_with_a_word(tmp_path: Path) -> None:
    cut = '{"path": "a.txt", "content": "xxx'
    world = LostModel(tmp_path, lambda asked: make(make_call(asked, cut), finish="length"))
    result, told = await world.end()
    assert (result.text, result.finish, told) == ("", "error", ["fault_long_call"])
    assert len(world.asked) == MAX_CONTINUED + 1


async def test_no_words_stand_for_a_call_that_was_cut_off_at_the_end(tmp_path: Path) -> None:
    """Neither as the answer nor in it."""
    world = LostModel(tmp_path, lambda asked: make(make_call(asked, "{"), finish="length"))
    world.brief = replace(world.brief, max_rounds=2)
    result, told = await world.end()
    assert (result.text, result.finish, told) == ("", "limit", [])


@pytest.mark.parametrize("parts", [(), (Thinking(text="hm", provider="p"),), (Text(text=" "),)])
async def test_reasoning_that_uses_up_the_limit_is_told(
    tmp_path: Path, parts: tuple[Part, ...]
) -> None:
    world = LostModel(tmp_path, lambda asked: make(*parts, finish="length"))
    result, told = await world.end()
    assert (result.text, result.finish, told) == ("", "error", ["fault_thought_out"])
    assert len(world.asked) == 2


BLANK = {"role": "assistant", "content": [{"type": "text", "text": " \n"}], "type": "message"}
OUTPUT = {"type": "message", "content": [{"type": "output_text", "text": " \n"}]}


@pytest.mark.parametrize(
    ("reader", "answer"),
    [
        (ChatCompletionsReader, {"choices": [{"message": BLANK | {"content": " \n"}}]}),
        (AnthropicReader, BLANK | {"stop_reason": "end_turn"}),
        (ResponsesReader, {"status": "completed", "output": [OUTPUT]}),
        (OllamaReader, {"message": {"content": " \n"}, "done": True}),
    ],
)
def test_blanks_alone_are_no_answer(reader: Make, answer: dict[str, object]) -> None:
    request = ModelRequest(model="m", system="", messages=())
    fold = reader(request, "p", lambda delta: None)
    fold.add(msgspec.json.encode(answer))
    fold.ended = True
    with pytest.raises(Broken, match="fault_empty"):
        fold.reply()


async def test_a_web_page_in_place_of_a_model_is_told_as_one() -> None:
    page = httpx2.Response(200, headers={"content-type": "text/html; charset=utf-8"}, text="<html>")
    request = ModelRequest(model="m", system="", messages=())
    with pytest.raises(Broken, match="fault_page") as caught:
        deltas = PacedDeltas(lambda delta: None)
        await feed(page, ChatCompletionsReader(request, "p", deltas.add), deltas)
    assert caught.value.fault in HOPELESS
