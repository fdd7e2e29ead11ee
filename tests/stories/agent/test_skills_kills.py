"""A turn that begins with a skill, killed at every point: before and after each commit, call of the
model, tool, send and edit. The skill goes on where it was: no answer is asked for again that was
recorded, and no effect is made twice."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agent_core.context.surroundings import strip_surroundings
from agent_core.messages import Message, Text, ToolCall, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief, Hands
from agent_core.policy import Verdict
from agent_core.skills.contract import (
    Category,
    SkillContext,
    SkillMetadata,
    ToolSkill,
    Values,
    fields,
    text,
)
from agent_core.skills.registry import Skills
from agent_core.skills.tools import skill_tools
from agent_core.tools.toolbox import Toolbox
from gateway.conversation.agent import PolicyContext
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.views import ReplyView as Answer
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import Ledger, Life, Points, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import approve_and_wait


async def outer(context: SkillContext, params: Values) -> Values:
    """Everything that a skill can do, one after another."""
    first = await context.think("pro", f"first of {params['what']}")
    await context.tool("note", {"text": "noted"})
    inner = await context.invoke_skill("inner", {"what": first})
    await context.tool("deploy", {"text": "deployed"})
    last = await context.think("pro", "last")
    return {"done": f"{inner['done']}, {last}"}


async def inner(context: SkillContext, params: Values) -> Values:
    """Works for the other one."""
    thought = await context.think("max", f"within {params['what']}")
    await context.tools((("add", {"text": "added"}), ("look", {"text": "looked"})))
    return {"done": thought}


def skill(name: str, run: object) -> ToolSkill:
    category: Category = "automation"
    about = SkillMetadata(
        id=name, description=name, category=category,
        parameters=fields({"what": text("")}), output_schema=fields({"done": text("")}),
    )  # fmt: skip
    return ToolSkill(metadata=about, run=run)  # type: ignore[arg-type]


class SkillAgent(ScriptedAgent):
    """Every turn begins with the skill `outer`."""

    def __init__(self, ledger: Ledger, points: Points, folder: Path) -> None:
        super().__init__(ledger, points, folder)
        skills = Skills((skill("outer", outer), skill("inner", inner)))
        self.toolbox = Toolbox((*self.toolbox.tools, *skill_tools(skills)))

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        arguments = json.dumps({"skill_id": "outer", "params": {"what": text}})
        call = ToolCall(id="direct-1", name="invoke_skill", arguments=arguments)
        return replace(super().brief(conversation, settings, text), direct=call)

    def hands(self, circumstances: PolicyContext) -> Hands:
        hands = super().hands(circumstances)
        may = Verdict(ruling="allow", rule="read", reason="")
        skilled = ("invoke_skill",)
        return replace(
            hands, judge=lambda item: may if item.tool.name in skilled else hands.judge(item)
        )

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        asked = strip_surroundings(text_of(request.messages[-1])) or "answer"
        self._ledger.note("thought", of=asked.split(" of ")[0].split(" within")[0])
        return await super().complete(name, request, on_delta)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        last = messages[-1]
        if last.role == "tool":
            return [Text(text=f"told {last.parts[0].content}")]  # type: ignore[union-attr]
        return [Text(text=f"[{strip_surroundings(text_of(last))}]")]


def prepare(life: Life) -> None:
    life.agent = SkillAgent(life.ledger, life.points, life.folder)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    final = [v for v in screen.values() if isinstance(v, Answer)]
    assert len([v for v in final if not v.note]) <= 1 <= len(final), f"{label}: {final}"
    said = final[-1].text
    assert said.startswith("told "), f"{label}: {said}"
    runs = Counter(line["name"] for line in ledger.all("tool"))
    assert runs["note"] <= 1 and runs["deploy"] <= 1, f"{label}: {runs}"
    thoughts = Counter(line["of"] for line in ledger.all("thought"))
    again = {of for of, count in thoughts.items() if count > 1}
    assert len(again) <= 1 and max(thoughts.values()) <= 2, f"{label}: {thoughts}"
    if "Outcome unknown" in said:
        return
    assert msgspec.json.decode(said.removeprefix("told ")) == {
        "done": "[within [first of work]], [last]"
    }, f"{label}: {said}"
    assert runs["note"] == runs["deploy"] == 1, f"{label}: {runs}"
    keys = {line["key"] for line in ledger.all("tool") if line["name"] == "add"}
    assert len(keys) == 1, f"{label}: an idempotent call is made again under its key: {keys}"


@pytest.mark.timeout(240)
@some_and_every()
def test_a_kill_at_any_point_of_a_skill(some: int) -> None:
    points = count_points(approve_and_wait, prepare)
    assert points["count"] > 40, points
    killed_everywhere(points, approve_and_wait, check, prepare, some=some)
