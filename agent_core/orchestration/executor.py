"""The ReAct loop: reason, act, wait, complete. Plain code over a scope."""

from functools import partial
from typing import Literal

from msgspec.structs import replace

from agent_core.context.budget import Budget
from agent_core.context.compression import SummaryRequest, Window
from agent_core.context.prompt import prefix_hash
from agent_core.context.stuck import VARY, Watch
from agent_core.errors import BudgetExceeded, CallsExceeded, Cut, ModelFailed, TimedOut
from agent_core.events import ErrorMet
from agent_core.guardrails.answers import ReplyRedactor
from agent_core.messages import (
    Message,
    ToolCall,
    calls_of,
    text_of,
    user,
)
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, ToolChoice
from agent_core.orchestration.acting import act
from agent_core.orchestration.brief import Brief, Hands, LoopResult
from agent_core.orchestration.plan import Plan, title
from agent_core.scope import Scope
from agent_core.skills.built_in.task_planning import read_steps
from agent_core.skills.direct import make_reply
from agent_core.tools.finding.argument_depth import legible
from agent_core.tools.finding.tools import unwrap_calls
from agent_core.tools.turn.terminate import final_words

REFRESH = 5
"""Rounds after which servers are asked for their tools again."""


async def react(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
    window: Window | None = None,
) -> LoopResult:
    """Answer `brief.text` after `history`. `past`: what this turn did already, where it goes on
    from its records instead of from its code. `window`: what the model sees of it all."""
    new, watch, budget = [brief.make_request(), *past], Watch(), Budget(brief.max_turns)
    window = window or make_window(brief, hands)
    for n in range(1, brief.max_rounds + 1):
        turn_round = scope.child(f"round-{n}")
        if n % REFRESH == 0:
            hands.toolbox.shelf.refresh()
        try:
            seen = await window.fit(
                turn_round, (*history, *new), make_summary_request(brief, hands)
            )
            if brief.direct is not None and n == 1 and not past:
                reply = await turn_round.model(partial(make_reply, brief.direct), apart=True)
            else:
                reply = await think(turn_round, brief, hands, seen)
        except (Cut, CallsExceeded) as error:
            how: Literal["cut", "spent"] = "cut" if isinstance(error, Cut) else "spent"
            return LoopResult(text="", messages=tuple(new), finish=how, why=str(error))
        except (ModelFailed, TimedOut, BudgetExceeded) as error:
            turn_round.emit(ErrorMet(text=str(error), phrases=error.phrases))
            return LoopResult(text="", messages=tuple(new), finish="error", why=str(error))
        answer = Message(role="assistant", parts=reply.parts)
        new.append(answer)
        window.count(reply, len(history) + len(new))
        calls = calls_of(answer)
        if not calls:
            return LoopResult(text=text_of(answer), messages=tuple(new))
        results = await act(turn_round, brief, hands, calls)
        new.append(Message(role="tool", parts=results))
        if last := final_words(calls, results, text_of(answer)):
            return LoopResult(text=text_of(last[0]), messages=(*new, *last))
        if brief.plans and (steps := read_steps(calls, results)):
            plan = Plan(title=title(brief.said or brief.text), steps=steps)
            return LoopResult(text="", messages=tuple(new), finish="planned", plan=plan)
        state = watch.note(text_of(answer), hands.toolbox.select_lasting(calls), results)
        if state == "stuck":
            return LoopResult(text="", messages=tuple(new), finish="stuck", why=watch.why)
        said = await turn_round.steer()
        told = (VARY if state else "", budget.warn(turn_round, reply), "\n".join(said))
        if words := "\n\n".join(filter(None, told)):
            new.append(user(words))
    seen = window.see((*history, *new))
    return await sum_up(scope.child("summary"), brief, hands, seen, new)


def make_window(brief: Brief, hands: Hands) -> Window:
    """What a model sees in the turn of `brief`: everything, at first."""
    tools = hands.toolbox.weight(brief.tools) if brief.room.limit else 0
    return Window(brief.room, len(brief.system) + tools, brief.text)


def make_summary_request(brief: Brief, hands: Hands) -> SummaryRequest:
    """How a summary of older messages is asked for in the turn of `brief`."""
    return SummaryRequest(complete=hands.complete, limit=brief.limit, flush=hands.flush)


async def sum_up(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    seen: tuple[Message, ...],
    new: list[Message],
) -> LoopResult:
    """No rounds are left: one more call, in which no tool may be called."""
    try:
        reply = await think(scope, brief, hands, seen, "none")
    except Cut as error:
        return LoopResult(text="", messages=tuple(new), finish="cut", why=str(error))
    except (ModelFailed, TimedOut, BudgetExceeded) as error:
        scope.emit(ErrorMet(text=str(error), phrases=error.phrases))
        return LoopResult(text="", messages=tuple(new), finish="error")
    said = tuple(part for part in reply.parts if not isinstance(part, ToolCall))
    answer = Message(role="assistant", parts=said)
    messages = (*new, answer) if said else tuple(new)
    return LoopResult(text=text_of(answer), messages=messages, finish="limit")


async def think(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    messages: tuple[Message, ...],
    choice: ToolChoice = "auto",
) -> ModelReply:
    """One call of the turn's model. With `choice` none it is the last one of its kind: it is made
    although the turn's calls are used up."""
    request = ModelRequest(
        model=brief.model,
        system=brief.system,
        messages=messages,
        tools=hands.toolbox.specs(brief.tools),
        tool_choice=choice,
        cache_key=brief.cache_key,
    )
    last = choice == "none"
    prefix = prefix_hash(brief.system, hands.toolbox.digest(brief.tools), messages)

    async def call(on_delta: OnDelta) -> ModelReply:
        words = hands.hides() if hands.hides is not None else None
        if words is None or words.empty:
            reply = await hands.complete(brief.model, request, on_delta)
        else:
            answer = ReplyRedactor(words, on_delta)
            reply = answer.whole(await hands.complete(brief.model, request, answer.add))
        return replace(unwrap_calls(legible(reply)), prefix=prefix)

    return await scope.model(call, limit=brief.limit, ends=_has_no_calls, apart=last)


def _has_no_calls(reply: ModelReply) -> bool:
    return not any(isinstance(part, ToolCall) for part in reply.parts)
