"""LangGraph graphs as skills: real graphs, whose model and tools are the agent's, or their own."""

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from agent_core.config.declaration import SettingsError
from agent_core.errors import Parked, ToolFailed
from agent_core.journal import Replied, ToolFinished, ToolStarted
from agent_core.messages import Part, Text, ToolCall, ToolResult
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.policy import Verdict
from agent_core.skills.graphs.skill import GraphDeps, effect_skill, graph_skill
from agent_core.skills.loading import load_skills
from agent_core.skills.registry import Skills
from agent_core.skills.tools import skill_tools
from agent_core.tools.files import file_tools
from agent_core.tools.toolbox import Toolbox
from tests.agent_core.skills_rig import SkillRig
from tests.fakes.graphs import RUNS, Parts, about, only_done, own_graph, react_skill


def branches(deps: GraphDeps) -> Any:
    """Two nodes at once, and one that waits for both."""
    model = deps.model("flash")

    def asks(side: str) -> Any:
        async def node(state: Parts) -> dict[str, str]:
            return {side: (await model.ainvoke(f"{side} of {state['what']}")).text}

        return node

    async def join(state: Parts) -> dict[str, str]:
        return {"done": f"{state['left']} and {state['right']}"}

    graph = StateGraph(Parts)
    for side in ("left", "right"):
        graph.add_node(f"ask {side}", asks(side))
        graph.add_edge(START, f"ask {side}")
        graph.add_edge(f"ask {side}", "join")
    graph.add_node("join", join)
    graph.add_edge("join", END)
    return graph.compile()


class GraphRig(SkillRig):
    """Its model's answers hold calls, and follow from what was asked."""

    said: dict[str, tuple[Part, ...]]

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self.requests.append(request)
        last = request.messages[-1]
        heard = "".join(
            part.text if isinstance(part, Text) else f"{part.name}: {part.content}"
            for part in last.parts
            if isinstance(part, Text | ToolResult)
        )
        parts = next(parts for words, parts in self.said.items() if words in heard)
        return ModelReply(parts=parts, model=name, provider="p")


def calls(name: str, call_id: str = "c1", **arguments: object) -> tuple[Part, ...]:
    return (ToolCall(id=call_id, name=name, arguments=json.dumps(arguments)),)


def reacting(folder: Path) -> GraphRig:
    rig = GraphRig(folder, react_skill())
    rig.said = {
        "Note it": calls("write_file", path="note.txt", content="tea"),
        "write_file:": calls("read_file", "c2", path="note.txt"),
        "read_file:": (Text(text="It says tea."),),
    }
    return rig


async def test_a_graphs_model_and_tools_are_the_agents(tmp_path: Path) -> None:
    rig = reacting(tmp_path)
    assert await rig.invoke("reacts", what="Note it") == {"done": "It says tea."}
    assert (rig.workspace / "note.txt").read_text() == "tea"
    first, second, third = rig.requests
    assert (first.model, first.system) == ("pro", "Be brief.")
    assert {spec.name for spec in first.tools} == {"write_file", "read_file"}
    assert [one.role for one in third.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert third.messages[: len(second.messages)] == second.messages, "nothing is rewritten"
    started = [one.call.name for one in rig.disk.records if isinstance(one, ToolStarted)]
    assert started.count("write_file") == 1
    assert sum(isinstance(one, Replied) for one in rig.disk.records) >= 3


async def test_cut_after_each_record_it_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = reacting(tmp_path / "whole")
    await whole.invoke("reacts", what="Note it")
    records = whole.disk.records
    for n in range(len(records)):
        rig = reacting(tmp_path / str(n))
        rig.workspace.mkdir(parents=True)
        (rig.workspace / "note.txt").write_text("tea")
        kept = list(records[:n])
        assert await rig.invoke("reacts", kept, what="Note it") == {"done": "It says tea."}
        known = sum(isinstance(one, Replied) and bool(one.reply.model) for one in kept)
        assert len(rig.requests) == 3 - known, f"cut at {n}: none is asked for again"


async def test_a_call_waits_for_a_person_as_any_other(tmp_path: Path) -> None:
    rig = reacting(tmp_path)
    rig.verdict = Verdict(ruling="ask", rule="t", reason="")
    with pytest.raises(Parked):
        await rig.invoke("reacts", what="Note it")
    assert not (rig.workspace / "note.txt").exists()
    rig.verdict = Verdict(ruling="deny", rule="t", reason="Not here.")
    rig = reacting(tmp_path)
    rig.verdict = Verdict(ruling="deny", rule="t", reason="Not here.")
    rig.said["write_file:"] = (Text(text="It may not be."),)
    assert await rig.invoke("reacts", what="Note it") == {"done": "It may not be."}


async def test_nodes_that_run_at_once_are_kept_by_what_they_ask(tmp_path: Path) -> None:
    def rig_at(folder: Path) -> GraphRig:
        rig = GraphRig(folder, graph_skill(about("forks"), branches, end=only_done))
        rig.said = {"left": (Text(text="L"),), "right": (Text(text="R"),)}
        return rig

    whole = rig_at(tmp_path)
    assert await whole.invoke("forks", what="x") == {"done": "L and R"}
    replies = [one for one in whole.disk.records if isinstance(one, Replied)]
    assert len({one.key for one in replies}) == 2
    other = [one for one in whole.disk.records if not isinstance(one, Replied)]
    again = rig_at(tmp_path)
    found = await again.invoke("forks", [*other[:1], *reversed(replies)], what="x")
    assert found == {"done": "L and R"} and again.requests == []


async def test_a_graph_of_its_own_is_one_effect_that_is_never_run_twice(tmp_path: Path) -> None:
    RUNS.clear()
    skill, tool = effect_skill(about("own"), own_graph(), end=only_done)
    assert (tool.repetition, tool.access) == ("effect", "network")
    rig = SkillRig(tmp_path, skill, tools=(tool,))
    assert await rig.invoke("own", what="x") == {"done": "worked on x"}
    records = list(rig.disk.records)
    cut = next(n for n, one in enumerate(records) if isinstance(one, ToolFinished))
    with pytest.raises(ToolFailed, match="Outcome unknown"):
        await SkillRig(tmp_path, skill, tools=(tool,)).invoke("own", records[:cut], what="x")
    assert RUNS["work"] == 1
    skill, tool = effect_skill(about("own"), own_graph(failing=True), end=only_done)
    with pytest.raises(ToolFailed, match="ValueError: no way"):
        await SkillRig(tmp_path, skill, tools=(tool,)).invoke("own", what="x")


def test_skills_come_by_their_names(tmp_path: Path) -> None:
    here = "tests.fakes.graphs"
    skills, tools = load_skills((f"{here}:load_react", f"{here}:load_own"))
    assert [one.metadata.id for one in skills] == ["reacts", "own"]
    assert [one.name for one in tools] == ["run_own"]
    box = Toolbox((*file_tools(), *skill_tools(Skills(skills)), *tools))
    assert "run_own" in box.names
    for wrong, why in (
        ("nothing", "write package.module:function"),
        (f"{here}:absent", "cannot be loaded"),
        (f"{here}:load_nothing", "gives a skill"),
    ):
        with pytest.raises(SettingsError, match=why):
            load_skills((wrong,))
    with pytest.raises(SettingsError, match="another id"):
        load_skills((f"{here}:load_react",), ("reacts",))
