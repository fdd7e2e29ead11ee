"""The turn's code: a request of several steps gets a plan, any other goes to the loop, which may
still make a plan."""

from msgspec.structs import replace

from agent_core.context.transcript import settle_messages
from agent_core.events import (
    ErrorMet,
    Routed,
    StatusShown,
)
from agent_core.messages import Message, user
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.executor import react, sum_up
from agent_core.orchestration.fitting import keep_view, make_window
from agent_core.orchestration.guarding import check_request
from agent_core.orchestration.planned import PlannedTurn
from agent_core.orchestration.planner import draft
from agent_core.orchestration.routes.routing import choose_route
from agent_core.phrases import phrase
from agent_core.scope import Scope

MIN_STEPS = 2
"""Steps that make a plan."""

GO_ON = "[Going on]\nThe turn was cut off here. Go on with the request from what is done already."


async def work(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
) -> TurnResult:
    """Answer `brief.text` after `history`, by `brief.route`. `past`: the turn's messages so far,
    when it continues from its records, then without a plan."""
    if past and past[-1].role == "assistant":
        past = (*past, user(GO_ON))
    checked = brief if past else await check_request(scope, brief, hands)
    if isinstance(checked, TurnResult):
        return checked
    brief = checked
    if brief.routing == "llm" and brief.route != "research" and not past:
        brief = replace(brief, route=await choose_route(scope, brief, hands))
    if brief.debug:
        told = f"{len(history)} messages, {len(brief.tools)} tools shown, {brief.model}"
        scope.emit(StatusShown(text=told, phase="gather"), "gather")
        scope.emit(StatusShown(text=brief.route, phase="plan"), "route")
    if brief.route == "research" and hands.research is not None and not past:
        from agent_core.research.tool import research  # costs as much as everything else together

        return await research(scope, brief, hands, history, hands.research)
    if brief.route != "planned" or past:
        return await _direct(scope, brief, hands, history, past)
    window = make_window(brief, hands)
    drafted = await draft(scope.child("plan"), brief, hands, history, window)
    if drafted.plan is None or len(drafted.plan.steps) < MIN_STEPS:
        scope.emit(Routed(route="simple", why="No plan was made for it."))
        return await _direct(scope.child("direct"), replace(brief, plans=False), hands, history)
    scope.emit(Routed(route="planned"))
    planned = PlannedTurn(scope, brief, hands, (history, drafted.messages), window)
    return keep_view(await planned.run(drafted.plan), history, window)


async def _direct(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
) -> TurnResult:
    """The loop alone; it may turn out that it takes a plan, or get stuck and need one."""
    window = make_window(brief, hands)
    result = await react(scope, brief, hands, history, past, window)
    brief = replace(brief, direct=None)  # a resulting plan starts with its own steps
    if result.finish == "planned" and result.plan is not None:
        scope.emit(Routed(route="planned", why="The model made a plan."))
        told = (history, result.messages)
        planned = PlannedTurn(scope.child("planned"), brief, hands, told, window)
        return keep_view(await planned.run(result.plan), history, window)
    if result.finish == "spent":
        done = result.messages
        result = await sum_up(scope.child("spent"), brief, hands, history, list(done), window)
    if result.finish != "stuck":
        return keep_view(result.to_turn(), history, window)
    scope.emit(StatusShown(text=f"Stuck: {result.why}."), "stuck")
    thread = settle_messages(result.messages)
    failed = (*history, *thread)
    drafted = await draft(scope.child("rescue"), brief, hands, failed, window, result.why)
    if drafted.plan is None:
        stuck = phrase("fault_stuck", detail=result.why)
        scope.emit(ErrorMet(text=str(stuck), phrases=(stuck,)), "given-up")
        return TurnResult(text="", messages=thread, finish="error")
    scope.emit(Routed(route="planned", why=result.why))
    thread = (*thread, *drafted.messages)
    planned = PlannedTurn(scope.child("planned"), brief, hands, (history, thread), window)
    return keep_view(await planned.run(drafted.plan), history, window)
