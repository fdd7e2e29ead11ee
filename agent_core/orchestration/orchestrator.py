"""The turn's code: a request that takes several steps gets a plan, which is worked off and
checked step by step; any other goes straight to the loop.

Messages are only ever appended: each call begins with the whole of one before it, also where
steps run at once (they share what was there when they began).
"""

from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_core.context.transcript import settled
from agent_core.errors import BudgetExceeded, ModelFailed, TimedOut
from agent_core.events import (
    ErrorMet,
    ParallelBegan,
    ParallelEnded,
    ParallelTaskEnded,
    PlanMade,
    Routed,
    StageEntered,
    StepBegan,
    StepEnded,
    TodoChanged,
)
from agent_core.messages import Message, ToolCall, text_of, user
from agent_core.models.port import Reply, Request
from agent_core.orchestration.asides import silent, spoken
from agent_core.orchestration.executor import Brief, Hands, Result, react
from agent_core.orchestration.plan import Plan, Step, active_context, checklist, moved
from agent_core.orchestration.planner import draft, redraft
from agent_core.orchestration.verify import Finding, verify
from agent_core.scope import Scope

MAX_REPLANS = 3
FEWEST = 2
"""Steps that make a plan."""

GO_ON = "[Going on]\nThe turn was cut off here. Go on with the request from what is done already."
WORK = """\
{context}

Now do this step and nothing else:
{id}: {description}{outcome}

End with a short report of what came out: later steps build on it, the person does not read it."""
OUTCOME = "\nExpected outcome: {outcome}"
FINISH = """\
[Finishing]
{checklist}

The plan is at its end. Write the answer to the request for the person now, from what the steps \
gave; say plainly what failed or was left out. Call no tool, do not describe the plan."""


class _Done(Struct, frozen=True, kw_only=True):
    """A step that is over."""

    result: Result
    finding: Finding


async def work(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
) -> Result:
    """Answer `brief.text` after `history`, the way that `brief.route` says. `past`: what the
    turn did already, where it goes on from its records: then without a plan."""
    if past and past[-1].role == "assistant":
        past = (*past, user(GO_ON))
    if brief.route != "planned" or past:
        return await react(scope, brief, hands, history, past)
    drafted = await draft(scope.child("plan"), brief, hands, history)
    if drafted.plan is None or len(drafted.plan.steps) < FEWEST:
        scope.emit(Routed(route="simple", why="No plan was made for it."))
        return await react(scope.child("direct"), brief, hands, history)
    scope.emit(Routed(route="planned"))
    return await _Planned(scope, brief, hands, history, drafted.messages).run(drafted.plan)


class _Planned:
    """A planned turn under way. `thread`: what it adds to the transcript."""

    def __init__(
        self,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        history: tuple[Message, ...],
        thread: tuple[Message, ...],
    ) -> None:
        self._scope = scope
        self._brief = brief
        self._hands = hands
        self._quiet = silent(hands)
        self._history = history
        self._thread = thread

    async def run(self, plan: Plan) -> Result:
        """Work `plan` off, with re-plans where a step fails, and write the answer."""
        self._tell(plan)
        while ready := plan.ready:
            done = await self._wave(plan, ready)
            for step in ready:
                result, finding = done[step.id].result, done[step.id].finding
                state: Literal["done", "failed"] = "done" if finding.ok else "failed"
                self._thread = (*self._thread, *settled(result.messages))
                plan = moved(plan, step.id, state, finding.why)
            names = "+".join(step.id for step in ready)
            self._scope.emit(TodoChanged(text=checklist(plan)), f"todo:{names}")
            if any(one.result.finish == "error" for one in done.values()):
                return Result(text="", messages=self._thread, finish="error")
            if any(not one.finding.ok for one in done.values()):
                made = await self._again(plan)
                if made is None:
                    return await self._finish(self._given_up(plan))
                plan = made
        self._scope.emit(StageEntered(name="finalizing"), "finalizing")
        return await self._finish(plan)

    async def _wave(self, plan: Plan, ready: tuple[Step, ...]) -> dict[str, _Done]:
        """Work on steps that do not need each other, all at once."""
        ids = tuple(step.id for step in ready)
        name = "+".join(ids)
        for step in ready:
            self._scope.emit(StepBegan(id=step.id, description=step.description), f"step:{step.id}")
            plan = moved(plan, step.id, "running")
        if len(ready) > 1:
            self._scope.emit(ParallelBegan(steps=ids), f"parallel:{name}")
        await self._scope.show()
        branches = {f"step-{s.id}": partial(self._step, s, plan, len(ready) > 1) for s in ready}
        done = await self._scope.parallel(branches)
        if len(ready) > 1:
            self._scope.emit(ParallelEnded(steps=ids), f"parallel-end:{name}")
        return {step.id: done[f"step-{step.id}"] for step in ready}

    async def _step(self, step: Step, plan: Plan, among: bool, scope: Scope) -> _Done:
        """Do one step and check it. `among`: others run beside it, so that it is shown by
        itself that it is over."""
        outcome = OUTCOME.format(outcome=step.outcome) if step.outcome else ""
        text = WORK.format(
            context=active_context(plan), id=step.id, description=step.description, outcome=outcome
        )
        brief = replace(self._brief, text=text)
        result = await react(scope, brief, self._quiet, (*self._history, *self._thread))
        await scope.show()  # what it found stands before it is judged
        if result.finish == "error":
            finding = Finding(ok=False)
        else:
            finding = await verify(scope.child("check"), step, result, brief, self._hands)
        state: Literal["done", "failed"] = "done" if finding.ok else "failed"
        scope.emit(StepEnded(id=step.id, state=state, note=finding.why))
        if among:
            scope.emit(ParallelTaskEnded(id=step.id))
            await scope.show()
        return _Done(result=result, finding=finding)

    async def _again(self, plan: Plan) -> Plan | None:
        """A new plan for what is left, None if there is none or no more may be made."""
        n = plan.revision + 1
        if n > MAX_REPLANS:
            return None
        self._scope.emit(StageEntered(name="replanning"), f"replanning-{n}")
        thread = (*self._history, *self._thread)
        drafted = await redraft(
            self._scope.child(f"replan-{n}"), self._brief, self._hands, thread, plan
        )
        self._thread = (*self._thread, *drafted.messages)
        if drafted.plan is not None:
            self._tell(drafted.plan)
        return drafted.plan

    def _given_up(self, plan: Plan) -> Plan:
        """`plan` without what has not begun."""
        for step in plan.of("pending"):
            self._scope.emit(StepEnded(id=step.id, state="skipped"), f"dropped:{step.id}")
            plan = moved(plan, step.id, "skipped")
        self._scope.emit(StageEntered(name="giving_up"), "giving_up")
        return plan

    def _tell(self, plan: Plan) -> None:
        n = plan.revision
        made = PlanMade(title=plan.title, steps=plan.steps, revision=n)
        self._scope.emit(made, f"plan-{n}")
        self._scope.emit(TodoChanged(text=checklist(plan)), f"todo-{n}")

    async def _finish(self, plan: Plan) -> Result:
        """Write the answer: the only words of the turn that stream into it."""
        await self._scope.show()
        ask = user(FINISH.format(checklist=checklist(plan)))
        messages = (*self._thread, ask)
        request = Request(
            model=self._brief.model,
            system=self._brief.system,
            messages=(*self._history, *messages),
            tools=self._hands.toolbox.specs(self._brief.tools),
            tool_choice="none",
            cache_key=self._brief.cache_key,
        )
        scope = self._scope.child("final")
        call = partial(self._hands.complete, request.model, request)
        try:
            reply = await scope.model(call, limit=self._brief.limit, ends=_has_no_calls)
        except (ModelFailed, TimedOut, BudgetExceeded) as error:
            scope.emit(ErrorMet(text=str(error)))
            return Result(text="", messages=messages, finish="error")
        text = text_of(Message(role="assistant", parts=reply.parts))
        return Result(text=text, messages=(*messages, spoken(reply)))


def _has_no_calls(reply: Reply) -> bool:
    return not any(isinstance(part, ToolCall) for part in reply.parts)
