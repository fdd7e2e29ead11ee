"""What was granted is judged again in the instant before it runs, also beside other calls of the
same answer. Generated: each order and count of calls that change what another one runs."""

import json
from itertools import permutations
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.messages import ToolCall, ToolResult
from agent_core.orchestration.acting import ASKED_NOW, act
from agent_core.orchestration.brief import Brief, Hands
from agent_core.policy import Bond, Grant, Situation, Verdict
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.facts import find_call_bond, judge_call
from agent_core.tools.files import file_tools
from agent_core.tools.toolbox import Prepared, Toolbox, bind_digest
from tests.agent_core.scope_rig import Crew, Disk, make

COMMAND = "sh x.sh"


class Command(BaseModel):
    """Arguments of a tool like run_command."""

    command: str


class World(Struct):
    """A workspace, what is in force there, and what ran."""

    folder: Path
    situation: Situation
    ran: list[str] = []
    refreshed: int = 0

    def tool(self) -> Tool[Command]:
        async def call(wanted: Command, context: ToolContext) -> str:
            self.ran.append((self.folder / "x.sh").read_text())
            return "ran"

        return Tool(
            name="run_command", description="", arguments=Command, repetition="effect",
            access="shell", call=call,
        )  # fmt: skip

    def judge(self, item: Prepared) -> Verdict:
        return judge_call(item.tool, item.arguments, item.digest, self.situation, item.sources)

    def bond(self, item: Prepared) -> Bond:
        return find_call_bond(item.tool, item.arguments, self.situation)

    async def refresh(self) -> None:
        self.refreshed += 1

    def hands(self) -> Hands:
        return Hands(
            complete=None,  # type: ignore[arg-type]  # no model is asked
            toolbox=Toolbox((self.tool(), *file_tools())), judge=self.judge, bond=self.bond,
            live=lambda event: None, refresh=self.refresh,
        )  # fmt: skip

    def brief(self) -> Brief:
        return Brief(
            text="", system="", model="m", tools=("run_command", "write_file"),
            workspace=str(self.folder),
        )  # fmt: skip

    async def act(self, *calls: ToolCall) -> tuple[ToolResult, ...]:
        _, scope = make(Disk(), Crew())
        return await act(scope, self.brief(), self.hands(), calls)


@pytest.fixture
async def world(tmp_path: Path) -> World:
    """`sh x.sh` was granted for always, as x.sh is."""
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "x.sh").write_text("old")
    made = World(folder=folder, situation=Situation(mode="auto", person="A"), ran=[])
    item = Prepared(
        call=ToolCall(id="c", name="run_command", arguments="{}"), tool=made.tool(),
        arguments=Command(command=COMMAND),
    )  # fmt: skip
    known = await bind_digest(item, folder, made.bond(item))
    verdict = made.judge(known)
    assert verdict.ruling == "ask" and verdict.always
    grant = Grant(tool="run_command", pattern=verdict.always, person="A", lasting=True)
    made.situation = replace(made.situation, rules=(grant,))
    return made


def run(n: int) -> ToolCall:
    return ToolCall(id=f"run{n}", name="run_command", arguments=json.dumps({"command": COMMAND}))


def write(name: str) -> ToolCall:
    given = json.dumps({"path": name, "content": "new"})
    return ToolCall(id=f"write-{name}", name="write_file", arguments=given)


ANSWERS = tuple(
    one
    for calls in ((run(1), write("x.sh")), (run(1), write("lib.sh")), (run(1), run(2), write("x.sh")))
    for one in permutations(calls)
)  # fmt: skip


@pytest.mark.parametrize("calls", ANSWERS)
async def test_new_content_never_runs_by_a_grant_for_the_old(
    world: World, calls: tuple[ToolCall, ...]
) -> None:
    results = dict(zip((call.id for call in calls), await world.act(*calls), strict=True))
    assert "new" not in world.ran
    order = [call.id for call in calls]
    written = next(name for name in order if name.startswith("write"))
    for name in order:
        if name.startswith("run"):
            late = order.index(name) > order.index(written)
            assert results[name].error == late
            assert (results[name].content == ASKED_NOW) == late


async def test_what_is_granted_runs_where_nothing_changed(world: World) -> None:
    (result,) = await world.act(run(1))
    assert (result.content, world.ran) == ("ran", ["old"])
    assert world.refreshed == 2, "before it is judged, and before it runs"


@pytest.mark.parametrize(
    "now",
    [
        Situation(mode="auto", person="A"),
        Situation(mode="ask", person="A"),
        Situation(mode="auto", person="B"),
        Situation(mode="auto", person="A", ask_all=True),
        Situation(mode="auto", person="A", role="viewer"),
    ],
)
async def test_what_is_no_longer_allowed_when_it_would_run_does_not(
    world: World, now: Situation
) -> None:
    """A right that ends between the judgement and the run."""
    before, count = world.judge, 0

    def judge(item: Prepared) -> Verdict:
        nonlocal count
        count += 1
        if count > 1:
            world.situation = now
        return before(item)

    _, scope = make(Disk(), Crew())
    hands = replace(world.hands(), judge=judge)
    (result,) = await act(scope, world.brief(), hands, (run(1),))
    assert result.error and world.ran == []
