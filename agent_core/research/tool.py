"""The entries to a research: the turn's own (route `research`), and the tool delegate_to_research.

The tool is a turn tool (`TurnTool.run_in_turn`): it gets the scope of its call. Each search, page
and answer of the model is a record of its own in there, so a call interrupted by a crash continues
where it was, instead of being one effect with an unknown outcome. Its result is written with the
next commit.
"""

import asyncio
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, Field

from agent_core.errors import BudgetExceeded, ModelFailed, TimedOut, ToolFailed
from agent_core.events import ErrorMet, HandedOff, Routed
from agent_core.handoffs.artifacts import MAX_FILES, PATTERNS, Artifact, collect
from agent_core.handoffs.count import count_handoff
from agent_core.messages import Message, ToolCall, user
from agent_core.models.port import ModelRequest
from agent_core.orchestration.acting import act
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.fitting import keep_view
from agent_core.orchestration.side_calls import ask_json, tier, words
from agent_core.phrases import phrase
from agent_core.policy import Verdict
from agent_core.research.depths import DepthName, Kind, ResearchDeps
from agent_core.research.prompts import REFUSED
from agent_core.research.run import Research
from agent_core.research.stages import ResearchRequest
from agent_core.scope import Scope
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.toolbox import Prepared, Toolbox
from agent_core.tools.turn.tool import TurnTool

NAME = "delegate_to_research"
DEFAULT = "default"
"""Stands for the usual patterns."""
MAX_REPORT = 9_000
"""Characters of a report in a result; the whole is in the file."""


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """Files passed along, or why there are none: both are recorded."""

    files: tuple[Artifact, ...] = ()
    why: str = ""


class ResearchArguments(BaseModel):
    """Arguments of delegate_to_research."""

    question: str = Field(min_length=1, max_length=4_000)
    kind: Kind | None = None
    depth: DepthName | None = None
    artifacts: list[str] = Field(
        default=[],
        max_length=10,
        description="Files of the workspace that are read as sources too, as patterns; "
        f"`default`: {' '.join(PATTERNS)}.",
    )


async def research(
    scope: Scope, brief: Brief, hands: Hands, history: tuple[Message, ...], deps: ResearchDeps
) -> TurnResult:
    """Answer `brief.text` with a research; files that came with it are sources too. The person
    asked for it by the mode, so only a rule against it, a hook or PERMISSION_ASK_ALL stands in
    between."""
    scope.emit(Routed(route="research"))
    try:
        if why := await _refusal(scope.child("may"), brief, hands):
            return await _report_failure(scope.child("refused"), brief, hands, history, why)
        work = Research(scope.child("research"), brief, hands, deps, steers=True)
        files = tuple(Artifact(path=path) for path in brief.files[:MAX_FILES])
        made = await work.run(history, files=files)
    except (ModelFailed, TimedOut, BudgetExceeded) as error:
        scope.emit(ErrorMet(text=str(error), phrases=error.phrases))
        return TurnResult(text="", messages=(brief.make_request(),), finish="error")
    return keep_view(TurnResult(text=made.answer, messages=made.messages), history, work.window)


def research_tool(deps: ResearchDeps) -> Tool:
    """delegate_to_research over `deps`."""

    async def run_in_turn(
        wanted: ResearchArguments, scope: Scope, brief: Brief, hands: Hands
    ) -> str:
        files = await _hand_over(wanted, scope, brief)
        own = replace(brief, text=wanted.question, said="")
        wish = ResearchRequest(kind=wanted.kind, depth=wanted.depth)
        made = await Research(scope.child("research"), own, hands, deps).run(wish=wish, files=files)
        if not made.report:
            raise ToolFailed(made.answer or "Nothing was found.")
        where = f"[The whole report was given to the person; it is in {made.path}.]"
        text = made.report if len(made.report) <= MAX_REPORT else f"{made.report[:MAX_REPORT]}\n[…]"
        return f"{text}\n{where}" if made.file is not None else text

    return TurnTool(
        name=NAME,
        description="Hand a question to the research agent: it searches the web in several "
        "rounds, reads the sources and returns a report with citations. quick: 4 sources, "
        "standard: 8, deep: 10 or more.",
        summary="a report from many sources",
        arguments=ResearchArguments,
        repetition="idempotent",
        access="network",
        run_in_turn=run_in_turn,
        rule=lambda arguments: phrase("covers_research"),
    )


async def _hand_over(wanted: ResearchArguments, scope: Scope, brief: Brief) -> tuple[Artifact, ...]:
    """Return the files that go along."""
    await count_handoff(scope)
    files: tuple[Artifact, ...] = ()
    if wanted.artifacts:
        look = partial(asyncio.to_thread, _collect_files, Path(brief.workspace), wanted.artifacts)
        found = await scope.once("artifacts", look, kind=Handed)
        if found.why:
            raise ToolFailed(found.why)
        files = found.files
    names = tuple(one.path for one in files)
    scope.emit(HandedOff(to="research", task=wanted.question[:200], files=names))
    return files


def _collect_files(workspace: Path, patterns: list[str]) -> Handed:
    try:
        usual = PATTERNS if DEFAULT in patterns else ()
        named = tuple(one for one in patterns if one != DEFAULT)
        return Handed(files=tuple(collect(workspace, (*named, *usual))))
    except ToolFailed as error:
        return Handed(why=str(error))


async def _refusal(scope: Scope, brief: Brief, hands: Hands) -> str:
    """Return the reason why the research is denied, "" if it is allowed: hooks and policy judge it
    as a call."""

    def judge(item: Prepared) -> Verdict:
        verdict = hands.judge(item)
        return replace(verdict, ruling="allow") if verdict.rule == "network" else verdict

    gate = Tool(
        name=NAME,
        description="",
        arguments=ResearchArguments,
        repetition="pure",
        access="network",
        call=_allow,
    )
    arguments = msgspec.json.encode({"question": brief.request_text()[:4_000]}).decode()
    call = ToolCall(id=f"may-{scope.turn_id[-8:]}", name=NAME, arguments=arguments)
    asked = replace(hands, toolbox=Toolbox((gate,)), judge=judge)
    (result,) = await act(scope, replace(brief, tools=(NAME,)), asked, (call,))
    return result.content if result.error else ""


async def _report_failure(
    scope: Scope, brief: Brief, hands: Hands, history: tuple[Message, ...], why: str
) -> TurnResult:
    ask = user(f"{brief.text}\n\n{REFUSED.format(why=why)}")
    request = ModelRequest(
        model=tier(brief.model, "pro"),
        system=brief.system,
        messages=(*history, ask),
        tools=hands.toolbox.specs(brief.tools),
        tool_choice="none",
        cache_key=brief.cache_key,
    )
    text, said = await ask_json(scope, hands, request, words, brief.limit)
    return TurnResult(text=text or why, messages=(ask, *said))


async def _allow(arguments: BaseModel, context: ToolContext) -> str:
    return "It may."
