"""Real LangGraph graphs, as people's skills."""

from collections import Counter
from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from typing_extensions import TypedDict

from agent_core.skills.contract import SkillMetadata, ToolSkill, Values, fields, text
from agent_core.skills.graphs.skill import GraphDeps, effect_skill, graph_skill
from agent_core.tools.contract import Tool


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Parts(TypedDict, total=False):
    what: str
    left: str
    right: str
    done: str


def about(name: str) -> SkillMetadata:
    return SkillMetadata(
        id=name,
        description="Does it.",
        category="automation",
        parameters=fields({"what": text("What.")}),
        output_schema=fields({"done": text("")}),
    )


def react(deps: GraphDeps) -> Any:
    """The usual agent: a model that calls tools until it answers."""
    model = deps.model("pro").bind_tools(deps.tools)

    async def think(state: Talk) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(Talk)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(list(deps.tools)))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile()


def react_skill() -> ToolSkill:
    return graph_skill(
        about("reacts"),
        react,
        tools=("write_file", "read_file"),
        begin=lambda params: {"messages": [("system", "Be brief."), ("user", params["what"])]},
        end=lambda state: {"done": state["messages"][-1].text},
    )


def only_done(state: Any) -> Values:
    return {"done": state["done"]}


RUNS: Counter[str] = Counter()


def own_graph(failing: bool = False) -> Any:
    async def work(state: Parts) -> dict[str, str]:
        RUNS["work"] += 1
        if failing:
            raise ValueError("no way")
        return {"done": f"worked on {state['what']}"}

    graph = StateGraph(Parts)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile()


def load_react() -> ToolSkill:
    return react_skill()


def load_own() -> tuple[ToolSkill, Tool]:
    return effect_skill(about("own"), own_graph(), end=only_done)


def load_nothing() -> None:
    return None
