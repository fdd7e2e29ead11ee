"""The ReAct loop: reason, act, wait, complete. Plain code over a scope."""

from functools import partial
from typing import Literal

from msgspec.structs import replace

from agent_core.context.budget import Budget
from agent_core.context.compression import Window
from agent_core.context.prompt import prefix_hash
from agent_core.context.stuck import VARY, Watch
from agent_core.errors import AgentError, BudgetExceeded, CallsExceeded, Cut, ModelFailed, TimedOut
from agent_core.events import ErrorMet
from agent_core.guardrails.answers import ReplyRedactor
from agent_core.guardrails.redaction import NOTHING
from agent_core.messages import (
    Message,
    Text,
    ToolCall,
    calls_of,
    text_of,
    user,
)
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, Restarted, ToolChoice
from agent_core.orchestration.acting import act
from agent_core.orchestration.brief import Brief, Hands, LoopResult
from agent_core.orchestration.cut_answers import (
    CALL_CUT,
    MAX_CONTINUED,
    NO_WORDS,
    GrowingAnswer,
    drop_cut_call,
    is_whole,
)
from agent_core.orchestration.fitting import ask_within, make_window
from agent_core.orchestration.guarding import warn_of_answer
from agent_core.orchestration.side_calls import strip_calls
from agent_core.orchestration.written_calls import read_written_calls
from agent_core.scope import Scope
from agent_core.skills.built_in.task_planning import PLANNERS, read_plan
from agent_core.skills.direct import make_reply
from agent_core.tools.finding.loose_calls import tidy_calls
from agent_core.tools.finding.tools import unwrap_calls
from agent_core.tools.turn.terminate import final_words

REFRESH = 5
"""Rounds after which servers' tools are requested again."""
FAILURES = (Cut, CallsExceeded, ModelFailed, TimedOut, BudgetExceeded)
"""Failures that end a loop without a reply of its model."""


async def react(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
    window: Window | None = None,
) -> LoopResult:
    """Answer `brief.text` after `history`. `past`: the turn's messages so far, when it continues
    from its records instead of from its code. `window`: the model's view of all of it."""
    new, watch, budget = [brief.make_request(), *past], Watch(), Budget(brief.max_turns)
    window = window or make_window(brief, hands)
    growing = GrowingAnswer()
    for n in range(1, brief.max_rounds + 1):
        turn_round = scope.child(f"round-{n}")
        if n % REFRESH == 0:
            hands.toolbox.registry.refresh()
        direct = brief.direct if n == 1 and not past else None
        try:
            reply = await _ask(turn_round, brief, hands, (*history, *new), window, direct)
        except FAILURES as error:
            return _give_up(turn_round, error, new)
        answer = Message(role="assistant", parts=reply.parts)
        new.append(answer)
        window.count(reply, len(history) + len(new))
        calls = calls_of(answer)
        if not calls:
            if ended := growing.add(turn_round, reply, new):
                return ended
            continue
        growing.clear()
        results = await act(turn_round, brief, hands, calls)
        new.append(Message(role="tool", parts=results))
        if last := final_words(calls, results, text_of(answer)):
            return LoopResult(text=text_of(last[0]), messages=(*new, *last))
        planned = brief.plans and any(call.name in PLANNERS for call in calls)
        if planned and (plan := read_plan(calls, results)) is not None:
            plan = replace(plan, title=brief.title or plan.title or brief.choose_title())
            return LoopResult(text="", messages=tuple(new), finish="planned", plan=plan)
        state = watch.note(hands.toolbox.select_lasting(calls), results)
        if state == "stuck":
            return LoopResult(text="", messages=tuple(new), finish="stuck", why=watch.why)
        said = await turn_round.steer()
        missing = CALL_CUT.format(name=reply.cut_call) if reply.cut_call else ""
        told = (missing, VARY if state else "", budget.warn(turn_round, reply), "\n".join(said))
        if words := "\n\n".join(filter(None, told)):
            new.append(user(words))
    return await sum_up(scope.child("summary"), brief, hands, history, new, window)


async def _ask(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    thread: tuple[Message, ...],
    window: Window,
    direct: ToolCall | None,
) -> ModelReply:
    """Return the model's reply to `thread`. `direct`: a call that replaces it. Raises FAILURES."""

    async def ask(part: Scope, seen: tuple[Message, ...]) -> ModelReply:
        if direct is not None:
            return await scope.model(partial(make_reply, direct), apart=True)
        return await think(part, brief, hands, seen)

    return await ask_within(scope, brief, hands, window, thread, ask)


def _give_up(scope: Scope, error: AgentError, new: list[Message]) -> LoopResult:
    """Return the result of a loop without a reply."""
    finish: Literal["cut", "spent", "error"] = "error"
    if isinstance(error, Cut | CallsExceeded):
        finish = "cut" if isinstance(error, Cut) else "spent"
    else:
        scope.emit(ErrorMet(text=str(error), phrases=error.phrases))
    return LoopResult(text="", messages=tuple(new), finish=finish, why=str(error))


async def sum_up(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    new: list[Message],
    window: Window,
) -> LoopResult:
    """Sum up when no rounds are left: one more answer, without tools."""
    try:
        ended = await write_answer(scope, brief, hands, history, new, window)
    except FAILURES as error:
        return _give_up(scope, error, new)
    return replace(ended, finish="limit") if ended.finish == "stop" else ended


async def write_answer(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    new: list[Message],
    window: Window,
) -> LoopResult:
    """Write one answer without calls to `history` and `new`, to which it is added, continued where
    it is cut. Raises like `think`."""
    growing = GrowingAnswer()

    async def ask(part: Scope, seen: tuple[Message, ...]) -> ModelReply:
        return await think(part, brief, hands, seen, "none")

    for n in range(MAX_CONTINUED + 1):
        part = scope.child(f"more-{n}") if n else scope
        reply = await ask_within(part, brief, hands, window, (*history, *new), ask)
        said = any(isinstance(one, Text) and one.text != NO_WORDS for one in reply.parts)
        if not said and reply.finish != "refused":
            break  # only calls, which are not allowed
        new.append(strip_calls(reply))
        if ended := growing.add(part, replace(reply, cut_call=""), new):
            return ended
    return LoopResult(text=growing.text, messages=tuple(new))


async def think(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    messages: tuple[Message, ...],
    choice: ToolChoice = "auto",
) -> ModelReply:
    """Call the turn's model once. With `choice` none it is a last call, made although the turn's
    calls are used up."""
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

    def is_known(name: str) -> bool:
        return hands.toolbox.can_call(name, brief.tools, brief.reach)

    async def call(on_delta: OnDelta) -> ModelReply:
        guard = hands.answer_guard
        if hands.hides is None and guard is None:
            reply = await hands.complete(brief.model, request, on_delta)
        else:
            words = hands.hides().with_shapes() if hands.hides is not None else NOTHING
            answer = ReplyRedactor(words, on_delta, guard)
            reply = await answer.finish(await hands.complete(brief.model, request, answer.add))
        read = read_written_calls(reply, is_known, messages, hands.toolbox.takes_text)
        if read is not reply:
            on_delta(Restarted())  # the shown text is a call
        read = drop_cut_call(read)
        if any(isinstance(part, ToolCall) for part in read.parts):
            read = tidy_calls(unwrap_calls(tidy_calls(read, is_known)), is_known)
        return replace(read, prefix=prefix)

    reply = await scope.model(call, limit=brief.limit, ends=is_whole, apart=last)
    if reply.flagged and reply.finish != "refused":
        warn_of_answer(scope, reply.flagged)
    return reply
