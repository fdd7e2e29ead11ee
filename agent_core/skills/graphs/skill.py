"""Skills that are LangGraph graphs (the extra `langgraph`).

`graph_skill`: a graph built with the agent's models and tools. Each of their calls is judged and
recorded by itself, so a graph interrupted by a crash continues where it was; between them its nodes
depend only on their state.

`effect_skill`: a graph built with models and tools of its own is one effect: it is judged as a call
that reaches outside, and never run twice.
"""

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec
from msgspec import Struct
from pydantic import BaseModel, JsonValue

from agent_core.errors import ToolFailed
from agent_core.settings import Tier
from agent_core.skills.contract import SkillContext, SkillMetadata, ToolSkill, Values
from agent_core.tools.contract import Tool, ToolContext

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.tools import BaseTool
    from langgraph.graph.state import CompiledStateGraph

MISSING = "LangGraph is not installed: pip install 'turnkeeper[langgraph]'."
SECONDS = 600.0
"""Seconds for a graph that is one effect."""


class GraphDeps(Struct, frozen=True, kw_only=True):
    """The means to build a graph. `model` returns the chat model of a tier; `tools`: those that the
    skill named."""

    model: "Callable[[Tier], BaseChatModel]"
    tools: "tuple[BaseTool, ...]"


Graph: TypeAlias = "CompiledStateGraph[Any, Any, Any, Any]"
Build: TypeAlias = "Callable[[GraphDeps], Graph]"
Begin: TypeAlias = Callable[[Values], Mapping[str, Any]]
"""Makes a graph's first state from the skill's input."""
End: TypeAlias = Callable[[Mapping[str, Any]], Values]
"""Makes the skill's result from the last state."""


class GraphArguments(BaseModel):
    """Arguments of a tool that runs a graph."""

    params: dict[str, JsonValue]


def keep_state(state: Mapping[str, Any]) -> Values:
    """The state itself."""
    return dict(state)


def graph_skill(
    metadata: SkillMetadata,
    build: "Build",
    *,
    tools: tuple[str, ...] = (),
    begin: Begin = keep_state,
    end: End = keep_state,
) -> ToolSkill:
    """Make a skill of the graph that `build` makes for each run. `tools`: those it may call."""

    async def run(context: SkillContext, params: Values) -> Values:
        from agent_core.skills.graphs.adapters import GraphScope, ScopeChatModel, ScopeTool

        scope = GraphScope(context)
        specs = context.hands.toolbox.specs(tools)
        graph = build(
            GraphDeps(
                model=lambda tier_name: ScopeChatModel.make(scope, tier_name),
                tools=tuple(ScopeTool.make(scope, spec) for spec in specs),
            )
        )
        return _make_plain(end(await scope.run(graph.ainvoke(begin(params)))))

    return ToolSkill(metadata=metadata, run=run, tools=tools, why_not=_why_missing)


def effect_skill(
    metadata: SkillMetadata, graph: "Graph", *, begin: Begin = keep_state, end: End = keep_state
) -> tuple[ToolSkill, Tool]:
    """Make a skill of a graph with models and tools of its own, and the tool that runs it."""
    name = f"run_{metadata.id}"

    async def call(arguments: GraphArguments, context: ToolContext) -> str:
        params = cast(Values, arguments.params)
        try:
            state = await graph.ainvoke(begin(params))
        except Exception as error:  # boundary: third-party code
            raise ToolFailed(f"The graph failed: {type(error).__name__}: {error}") from error
        return json.dumps(_make_plain(end(state)))

    async def run(context: SkillContext, params: Values) -> Values:
        return msgspec.json.decode(await context.tool(name, {"params": params}), type=Values)

    tool = Tool(
        name=name,
        description=f"{metadata.description} (a graph, as one effect)",
        arguments=GraphArguments,
        repetition="effect",
        access="network",
        call=call,
        limit=SECONDS,
    )
    return ToolSkill(metadata=metadata, run=run, tools=(name,), why_not=_why_missing), tool


def _make_plain(values: Values) -> Values:
    """Convert to plain JSON: LangChain's texts are of a type of their own. ToolFailed."""
    try:
        return cast(Values, json.loads(json.dumps(values)))
    except (TypeError, ValueError) as error:
        raise ToolFailed(f"What the graph gave is no JSON: {error}") from None


def _why_missing() -> str:
    return "" if find_spec("langgraph") is not None else MISSING
