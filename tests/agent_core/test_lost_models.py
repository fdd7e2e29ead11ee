"""A model that is lost: its turn ends, after few calls, with a word about why."""

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.events import ErrorMet
from agent_core.journal import Emitted
from agent_core.messages import Part, ToolCall, ToolResult
from agent_core.models.port import Finish, ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import TurnResult
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
