"""The ReAct loop: reason, act, wait, complete. Plain code over a scope."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.context.budget import Budget
from agent_core.context.compression import Asking, Flush, Window
from agent_core.context.room import Room
from agent_core.context.stuck import VARY, Watch
from agent_core.errors import AgentError, BudgetExceeded, CallsExceeded, Cut, ModelFailed, TimedOut
from agent_core.events import ErrorMet, OutputAdded
from agent_core.journal import Outcome
from agent_core.memory.port import Memory
from agent_core.messages import (
    Message,
    Output,
    ToolCall,
    ToolResult,
    calls_of,
    text_of,
    user,
)
from agent_core.models.port import OnDelta, Reply, Request, ToolChoice, ToolSpec
from agent_core.orchestration.plan import Plan, title
from agent_core.policy import Verdict
from agent_core.questions import Answer, Approval, Proposal
from agent_core.research.means import Means
from agent_core.scope import Scope
from agent_core.tools import planning
from agent_core.tools.contract import Tool, ToolContext, TurnCallable
from agent_core.tools.finding.foreign import looked_up
from agent_core.tools.finding.tools import meant
from agent_core.tools.finding.toolsets import Reach
from agent_core.tools.hooks import Hooks
from agent_core.tools.toolbox import Prepared, Toolbox, Unfit, run
from agent_core.tools.turn.terminate import ending

REFRESH = 5
"""Rounds after which servers are asked for their tools again."""
Complete: TypeAlias = Callable[[str, Request, OnDelta], Awaitable[Reply]]
Judge: TypeAlias = Callable[[Prepared], Verdict]
Live: TypeAlias = Callable[[OutputAdded], None]


class Brief(Struct, frozen=True, kw_only=True):
    """Everything that a turn reads and that is not an argument, recorded at its start.

    `text` is what the model reads; `said` what the person wrote, for surfaces that show it.
    `model`: a tier or `provider/model`. `tools`: names that are offered. `limit`: seconds a
    model call may take.
    """

    text: str
    system: str
    model: str
    tools: tuple[str, ...]
    workspace: str
    max_rounds: int = 30
    limit: float = 600.0
    cache_key: str = ""
    said: str = ""
    route: Literal["simple", "planned", "research"] = "simple"
    routing: Literal["rules", "llm"] = "rules"
    """`llm`: a model is asked whether the request is one for research."""
    review: bool = False
    """A plan is shown to a person before it is worked off."""
    max_turns: int = 90
    """Model calls of the whole turn."""
    max_replans: int = 3
    step_rounds: int = 20
    room: Room = Room()
    reach: Reach | None = None
    """What may be found and called besides `tools`; None: nothing."""
    more: tuple[ToolSpec, ...] = ()
    """Servers' tools among `tools`, as they were when the turn began."""
    most_messages: int = 0
    """Of the history; older ones are left out. 0: none are."""
    plans: bool = True
    """`task_planning` may turn what is done here into a plan."""
    recalled: str = ""
    """What `text` ends with that nobody said: what is remembered."""


class Hands(Struct, frozen=True, kw_only=True):
    """What a turn works with, live: the models, the tools, the policy."""

    complete: Complete
    toolbox: Toolbox
    judge: Judge
    live: Live
    hooks: Hooks = Hooks()
    flush: Flush | None = None
    """Is called before older messages are summarised."""
    research: Means | None = None
    """None: nothing can be looked up on the web."""
    memory: Memory | None = None


class Result(Struct, frozen=True, kw_only=True):
    """What a turn ends with: the answer, and what it adds to the transcript. `seen`: what the
    model saw in all, where its history was compressed."""

    text: str
    messages: tuple[Message, ...]
    seen: tuple[Message, ...] = ()
    finish: Literal["stop", "limit", "error"] = "stop"


class Spell(Struct, frozen=True, kw_only=True):
    """How a loop went: its words, its messages, and why it ended. `cut`: a person skipped it;
    `stuck`: it goes in circles; `spent`: the turn's model calls are used up; `planned`: it made `plan`, which is to be worked off."""

    text: str
    messages: tuple[Message, ...]
    finish: Literal["stop", "limit", "error", "cut", "stuck", "spent", "planned"] = "stop"
    why: str = ""
    plan: Plan | None = None


async def react(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
    window: Window | None = None,
) -> Spell:
    """Answer `brief.text` after `history`. `past`: what this turn did already, where it goes on
    from its records instead of from its code. `window`: what the model sees of it all."""
    new, watch, budget = [user(brief.text), *past], Watch(), Budget(brief.max_turns)
    window = window or looking(brief, hands)
    for n in range(1, brief.max_rounds + 1):
        turn_round = scope.child(f"round-{n}")
        if n % REFRESH == 0:
            hands.toolbox.shelf.refresh()
        try:
            seen = await window.fit(turn_round, (*history, *new), asking(brief, hands))
            reply = await _think(turn_round, brief, hands, seen)
        except (Cut, CallsExceeded) as error:
            how: Literal["cut", "spent"] = "cut" if isinstance(error, Cut) else "spent"
            return Spell(text="", messages=tuple(new), finish=how, why=str(error))
        except (ModelFailed, TimedOut, BudgetExceeded) as error:
            turn_round.emit(ErrorMet(text=str(error)))
            return Spell(text="", messages=tuple(new), finish="error", why=str(error))
        answer = Message(role="assistant", parts=reply.parts)
        new.append(answer)
        window.count(reply, len(history) + len(new))
        calls = calls_of(answer)
        if not calls:
            return Spell(text=text_of(answer), messages=tuple(new))
        results = await act(turn_round, brief, hands, calls)
        new.append(Message(role="tool", parts=results))
        if last := ending(calls, results, text_of(answer)):
            return Spell(text=text_of(last[0]), messages=(*new, *last))
        if brief.plans and (steps := planning.planned(calls, results)):
            plan = Plan(title=title(brief.said or brief.text), steps=steps)
            return Spell(text="", messages=tuple(new), finish="planned", plan=plan)
        state = watch.note(text_of(answer), hands.toolbox.lasting(calls), results)
        if state == "stuck":
            return Spell(text="", messages=tuple(new), finish="stuck", why=watch.why)
        said = await turn_round.steer()
        told = (VARY if state else "", budget.warn(turn_round, reply), "\n".join(said))
        if words := "\n\n".join(filter(None, told)):
            new.append(user(words))
    seen = window.see((*history, *new))
    return await sum_up(scope.child("summary"), brief, hands, seen, new)


def looking(brief: Brief, hands: Hands) -> Window:
    """What a model sees in the turn of `brief`: everything, at first."""
    tools = msgspec.json.encode(hands.toolbox.specs(brief.tools)) if brief.room.limit else b""
    return Window(brief.room, len(brief.system) + len(tools))


def asking(brief: Brief, hands: Hands) -> Asking:
    """How a summary of older messages is asked for in the turn of `brief`."""
    return Asking(complete=hands.complete, limit=brief.limit, flush=hands.flush)


async def sum_up(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    seen: tuple[Message, ...],
    new: list[Message],
) -> Spell:
    """No rounds are left: one more call, in which no tool may be called."""
    try:
        reply = await _think(scope, brief, hands, seen, "none")
    except Cut as error:
        return Spell(text="", messages=tuple(new), finish="cut", why=str(error))
    except (ModelFailed, TimedOut, BudgetExceeded) as error:
        scope.emit(ErrorMet(text=str(error)))
        return Spell(text="", messages=tuple(new), finish="error")
    said = tuple(part for part in reply.parts if not isinstance(part, ToolCall))
    answer = Message(role="assistant", parts=said)
    messages = (*new, answer) if said else tuple(new)
    return Spell(text=text_of(answer), messages=messages, finish="limit")


async def _think(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    messages: tuple[Message, ...],
    choice: ToolChoice = "auto",
) -> Reply:
    request = Request(
        model=brief.model,
        system=brief.system,
        messages=messages,
        tools=hands.toolbox.specs(brief.tools),
        tool_choice=choice,
        cache_key=brief.cache_key,
    )
    last = choice == "none"

    async def call(on_delta: OnDelta) -> Reply:
        return meant(await hands.complete(brief.model, request, on_delta))

    return await scope.model(call, limit=brief.limit, ends=_has_no_calls, apart=last)


def _has_no_calls(reply: Reply) -> bool:
    return not any(isinstance(part, ToolCall) for part in reply.parts)


async def act(
    scope: Scope, brief: Brief, hands: Hands, calls: tuple[ToolCall, ...]
) -> tuple[ToolResult, ...]:
    """Run the calls of one answer: at once where the policy allows, together where it can be,
    after a person's word where it must be. Results in call order."""
    foreign = await looked_up(scope, hands.toolbox.shelf, brief.reach, calls)
    ready = tuple(_prepared(brief, hands, call, foreign) for call in calls)
    fit = [item for item in ready if isinstance(item, Prepared)]
    verdicts = dict(
        zip(
            (item.call.id for item in fit),
            await scope.once("policy", partial(_judged, brief, hands, fit), kind=list[Verdict]),
            strict=True,
        )
    )
    worker = _Worker(scope, brief, hands, verdicts)
    results = {item.call.id: worker.refuse(item) for item in ready if isinstance(item, Unfit)}
    asked = [item for item in fit if _ruling(item, verdicts) == "ask"]
    branches: dict[str, Callable[[Scope], Awaitable[dict[str, ToolResult]]]] = {}
    for item in fit:
        if item not in asked:
            branches[f"call-{item.call.id}"] = partial(worker.one, item)
    if asked:
        branches["approval"] = partial(worker.after_approval, asked)
    if any(item.tool.interactive for item in fit):
        for name, branch in branches.items():
            results |= await branch(scope.child(name))
    else:
        for part in (await scope.parallel(branches)).values():
            results |= part
    return tuple(results[call.id] for call in calls)


def _prepared(
    brief: Brief, hands: Hands, call: ToolCall, foreign: dict[str, Tool]
) -> Prepared | Unfit:
    if call.name == planning.NAME and not brief.plans:
        return Unfit(call=call, text=planning.WITHIN)
    return hands.toolbox.prepare(call, brief.tools, brief.reach, foreign)


async def _judged(brief: Brief, hands: Hands, items: list[Prepared]) -> list[Verdict]:
    """The hooks' word on each call, the policy's where they have none, and what a person who is
    asked has to see besides."""
    workspace, verdicts = Path(brief.workspace), []
    for item in items:
        if why := await hands.hooks.veto(item, workspace):
            verdicts.append(Verdict(ruling="deny", rule="hook", reason=why))
            continue
        verdict = hands.judge(item)
        if verdict.ruling == "ask" and item.tool.preview is not None:
            shown = await asyncio.to_thread(item.tool.preview, item.arguments, workspace)
            verdict = replace(verdict, detail="\n".join(filter(None, (verdict.detail, shown))))
        verdicts.append(verdict)
    return verdicts


def _ruling(item: Prepared, verdicts: dict[str, Verdict]) -> str:
    ruling = verdicts[item.call.id].ruling
    return "allow" if item.tool.question is not None and ruling == "ask" else ruling


class _Worker:
    """Runs the calls of one round; `scope` is the round's."""

    def __init__(
        self, scope: Scope, brief: Brief, hands: Hands, verdicts: dict[str, Verdict]
    ) -> None:
        self._scope = scope
        self._brief = brief
        self._hands = hands
        self._verdicts = verdicts

    def refuse(self, item: Unfit) -> ToolResult:
        """The result of a call that cannot run."""
        return self._scope.settle(item.call, item.text)

    async def one(self, item: Prepared, scope: Scope) -> dict[str, ToolResult]:
        """A call that needs no approval: a question, a refusal, or a run."""
        verdict = self._verdicts[item.call.id]
        if verdict.ruling == "deny":
            result = scope.settle(item.call, f"Denied: {verdict.reason}", "denied")
        elif item.tool.question is not None:
            answer = await scope.ask(item.tool.question(item.arguments))
            content, outcome = _heard(answer)
            result = scope.settle(item.call, content, outcome)
        else:
            result = await self._run(item, scope, "")
        return {item.call.id: result}

    async def after_approval(self, items: list[Prepared], scope: Scope) -> dict[str, ToolResult]:
        """The calls of a batch that need a person, on one card."""
        answer = await scope.ask(Approval(proposals=tuple(map(self._proposal, items))))
        if answer.allowed:
            branches = {
                f"call-{item.call.id}": partial(
                    self._approved, item, self._verdicts[item.call.id].digest
                )
                for item in items
            }
            done = await scope.parallel(branches)
            return {item.call.id: done[f"call-{item.call.id}"] for item in items}
        return {item.call.id: scope.settle(item.call, _denied(answer), "denied") for item in items}

    async def _approved(self, item: Prepared, digest: str, scope: Scope) -> ToolResult:
        return await self._run(item, scope, digest)

    async def _run(self, item: Prepared, scope: Scope, approved: str) -> ToolResult:
        if item.tool.over is not None:
            return await self._over(item.tool.over, item, scope)
        workspace = Path(self._brief.workspace)
        limit, hooks = item.tool.limit, self._hands.hooks
        rewrite = partial(hooks.rewrite, item, workspace) if hooks.post else None

        async def work(token: str) -> str | Output:
            context = ToolContext(
                workspace=workspace,
                key=token,
                limit=limit,
                output=lambda text: self._hands.live(OutputAdded(call_id=item.call.id, text=text)),
            )
            return await run(item, context, approved, rewrite)

        return await scope.tool(item.call, item.tool.repetition, work, limit + 5.0 + hooks.slack)

    async def _over(self, over: TurnCallable, item: Prepared, scope: Scope) -> ToolResult:
        """A turn tool's call; what it did stands in the records that it made."""
        try:
            said = await over(item.arguments, scope, self._brief, self._hands)
        except AgentError as error:
            return scope.settle(item.call, str(error))
        return scope.settle(item.call, said, "ok")

    def _proposal(self, item: Prepared) -> Proposal:
        verdict = self._verdicts[item.call.id]
        return Proposal(
            call_id=item.call.id,
            tool=item.tool.name,
            arguments=item.call.arguments,
            digest=verdict.digest,
            risk=verdict.risk,
            reason=verdict.reason,
            rule=verdict.always,
            detail=verdict.detail,
        )


def _denied(answer: Answer) -> str:
    match answer.choice:
        case "expired":
            return "Denied: nobody answered in time. Say what you would need."
        case "cancelled":
            return "Denied: the question was withdrawn."
        case _:
            why = f": {answer.text}" if answer.text else "."
            return f"Denied by {answer.name or answer.by}{why}"


def _heard(answer: Answer) -> tuple[str, Outcome]:
    match answer.choice:
        case "expired":
            return "Nobody answered in time.", "failed"
        case "cancelled" | "deny":
            return "The question was withdrawn.", "failed"
        case _:
            return answer.text, "ok"
