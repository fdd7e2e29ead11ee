"""A script with three calls, one of which a person is asked about, killed at every point: before and
after each commit, tool, send and edit. It is begun once, each call takes effect at most once, and
the model is told what became of all of them."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.messages import Message, Text, ToolCall
from agent_core.orchestration.brief import Brief, Hands
from agent_core.policy import Verdict
from agent_core.tools.code.script.execute_script import NAME, script_tools
from agent_core.tools.code.script.running import RunningScripts
from agent_core.tools.toolbox import Toolbox, bind
from gateway.conversation.agent import PolicyContext
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.views import ApprovalCard
from gateway.views import ReplyView as Answer
from tests.fakes.lives import Prepare, count_points, killed_everywhere
from tests.fakes.sandboxes import end_sandboxes, unsafe_sandbox
from tests.fakes.world import ROOM, Ledger, Life, Points, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import ON_BOTH_STORES, approve_and_wait, open_card

KINDS = {"list_files": "pure", "write_file": "effect", "run_command": "effect"}
CODE = """
from turnkeeper import *
with open("began", "a") as file:
    file.write("x")
print(write_file("a.txt", "noted"))
print(run_command("deploy"))
print(list_files())
"""


@pytest.fixture(autouse=True)
async def _sandboxes() -> AsyncIterator[None]:
    """No sandbox outlives the test that used it."""
    yield
    await end_sandboxes()


class CallingAgent(ScriptedAgent):
    """Every turn begins with a script. Its tools only note that they were called; `run_command`
    needs a person."""

    def __init__(self, ledger: Ledger, points: Points, folder: Path) -> None:
        super().__init__(ledger, points, folder)
        self.scripts = RunningScripts()
        sandbox = unsafe_sandbox()
        tools = [self._tool(name, kind) for name, kind in KINDS.items()]
        self.toolbox = Toolbox((*tools, *script_tools(sandbox, self.scripts, 30)))

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        call = ToolCall(id="direct-1", name=NAME, arguments=json.dumps({"code": CODE}))
        return replace(super().brief(conversation, settings, text), direct=call)

    def hands(self, circumstances: PolicyContext) -> Hands:
        def judge(item) -> Verdict:  # type: ignore[no-untyped-def]
            asks = item.tool.name == "run_command"
            digest = bind(item, self._folder)
            return Verdict(ruling="ask" if asks else "allow", rule="t", reason="", digest=digest)

        return replace(super().hands(circumstances), judge=judge)

    def holds(self, turn: str) -> bool:
        return any(token.startswith(turn) for token in self.scripts.tokens)

    def end_turn(self, turn: str) -> None:
        self.scripts.end_turn(turn)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        return [Text(text=f"told {messages[-1].parts[0].content}")]  # type: ignore[union-attr]


def prepare(life: Life) -> None:
    life.agent = CallingAgent(life.ledger, life.points, life.folder)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    final = [v for v in screen.values() if isinstance(v, Answer)]
    assert len([v for v in final if not v.note]) <= 1 <= len(final), f"{label}: {final}"
    said = final[-1].text
    runs = Counter(line["name"] for line in ledger.all("tool"))
    began = folder / "began"
    assert not began.exists() or began.read_text() == "x", f"{label}: it was begun again"
    assert max(runs.values(), default=0) <= 1, f"{label}: {runs}"
    if "Outcome unknown" not in said:
        told = json.loads(said.removeprefix("told "))
        assert told["stdout"] == "write_file ok\nrun_command ok\nlist_files ok\n", (
            f"{label}: {told}"
        )
        assert set(runs) == set(KINDS), f"{label}: {runs}"
        return
    lines = said.splitlines()
    for name in set(runs) - {"list_files"}:
        at = next(n for n, line in enumerate(lines) if f". {name} {{" in line)
        assert lines[at + 1].strip().startswith((f"ok: {name} ok", "Outcome unknown")), said
    cards = [view for view in screen.values() if isinstance(view, ApprovalCard)]
    if len(cards) == 1:  # of one that was sent twice, the first copy may stand
        assert cards[0].state in ("approved", "cancelled"), f"{label}: {cards}"


@pytest.mark.pick
@pytest.mark.timeout(240)
@some_and_every()
@ON_BOTH_STORES
def test_a_kill_at_any_point_of_a_script(prepare_store: Prepare, some: int) -> None:

    def prepare_both(life: Life) -> None:
        prepare_store(life)
        prepare(life)

    points = count_points(approve_and_wait, prepare_both)
    assert points["count"] > 30, points
    killed_everywhere(points, approve_and_wait, check, prepare_both, some=some)


async def test_a_stop_ends_the_script_that_waits_and_its_question(tmp_path: Path) -> None:
    life = Life(tmp_path)
    prepare(life)
    agent = life.agent
    assert isinstance(agent, CallingAgent)
    async with life.living():
        await life.say("m1", "work")
        await life.until(lambda: open_card(life))
        await life.quiet()
        (token,) = agent.scripts.tokens
        held = agent.scripts.take(token)
        assert held is not None and not held.gone
        agent.scripts.hold(token, held)
        await life.command("c1", "stop")
        await life.until(lambda: open_card(life) is None)
        await life.quiet()
        assert await held.command.wait(5) is not None, "its process is gone"
        assert not agent.scripts.tokens
        assert [line["name"] for line in life.ledger.all("tool")] == ["write_file"]
        (seen,) = await life.store.thread(ROOM.id, ((0, 1),))
        result = str(seen)
        assert "Cancelled by the user" in result and "ok: write_file ok" in result


async def test_others_are_heard_while_a_script_waits(tmp_path: Path) -> None:
    life = Life(tmp_path)
    prepare(life)
    agent = life.agent
    assert isinstance(agent, CallingAgent)
    async with life.living():
        await life.say("m1", "work")
        await life.until(lambda: open_card(life))
        await life.quiet()
        await life.say("m2", "work")
        await life.until(lambda: len(life.cards()) == 2)
        await life.quiet()
        assert len(agent.scripts.tokens) == 2, "the first gave the lane back"
        for n, asked in enumerate(life.cards()):
            await life.press(f"p{n}", asked.buttons[0].token)
            await life.until(lambda n=n: len(finals(life)) == n + 1)
        assert all('"success": true' in one.text for one in finals(life))


def finals(life: Life) -> list[Answer]:
    views = life.screen().values()
    return [one for one in views if isinstance(one, Answer) and one.state == "final"]
