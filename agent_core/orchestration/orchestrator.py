"""The turn's code: a request that takes several steps gets a plan, which is worked off and
checked step by step; any other goes straight to the loop.

Messages are only ever appended: each call begins with the whole of one before it, also where
steps run at once (they share what was there when they began).
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_core.context import todo
from agent_core.context.compression import Window
from agent_core.context.transcript import settled
from agent_core.errors import BudgetExceeded, Cut, ModelFailed, TimedOut
from agent_core.events import (
    ErrorMet,
    ParallelBegan,
    ParallelEnded,
    ParallelTaskEnded,
    PlanMade,
    Routed,
    StageEntered,
    StatusShown,
    StepBegan,
    StepEnded,
    TodoChanged,
)
from agent_core.messages import Message, text_of, user
from agent_core.orchestration.asides import silent, spoken
from agent_core.orchestration.brief import Brief, Hands, Result, Spell
from agent_core.orchestration.edits import apply
from agent_core.orchestration.executor import asking, looking, react, sum_up, think
from agent_core.orchestration.plan import Plan, Step, active_context, checklist, moved
from agent_core.orchestration.planner import after_failure, after_wish, draft, redraft
from agent_core.orchestration.routes.routing import routed
from agent_core.orchestration.verify import Finding, verify
from agent_core.questions import PlanReview
from agent_core.scope import Scope

MAX_REVIEWS = 10
"""Times that a person may have the plan changed before it runs."""
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
    """A step that is over. `finding` None: a person skipped it."""

    spell: Spell
    finding: Finding | None

    @property
    def state(self) -> Literal["done", "failed", "skipped"]:
        if self.finding is None:
            return "skipped"
        return "done" if self.finding.ok else "failed"

    @property
    def note(self) -> str:
        return self.finding.why if self.finding is not None else ""


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
    if brief.routing == "llm" and brief.route != "research" and not past:
        brief = replace(brief, route=await routed(scope, brief, hands))
    if brief.route == "research" and hands.research is not None and not past:
        from agent_core.research.tool import research  # costs as much as all the rest

        return await research(scope, brief, hands, history, hands.research)
    if brief.route != "planned" or past:
        return await _direct(scope, brief, hands, history, past)
    window = looking(brief, hands)
    seen = await window.fit(scope.child("plan-fit"), history, asking(brief, hands))
    drafted = await draft(scope.child("plan"), brief, hands, seen)
    if drafted.plan is None or len(drafted.plan.steps) < FEWEST:
        scope.emit(Routed(route="simple", why="No plan was made for it."))
        return await _direct(scope.child("direct"), replace(brief, plans=False), hands, history)
    scope.emit(Routed(route="planned"))
    planned = _Planned(scope, brief, hands, (history, drafted.messages), window)
    return kept(await planned.run(drafted.plan), history, window)


async def _direct(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    history: tuple[Message, ...],
    past: tuple[Message, ...] = (),
) -> Result:
    """The loop alone; it may turn out that it takes a plan, or get stuck and need one."""
    window = looking(brief, hands)
    spell = await react(scope, brief, hands, history, past, window)
    if spell.finish == "planned" and spell.plan is not None:
        scope.emit(Routed(route="planned", why="The model made a plan."))
        told = (history, spell.messages)
        planned = _Planned(scope.child("planned"), brief, hands, told, window)
        return kept(await planned.run(spell.plan), history, window)
    if spell.finish == "spent":
        done = spell.messages
        seen = window.see((*history, *done))
        spell = await sum_up(scope.child("spent"), brief, hands, seen, list(done))
    if spell.finish != "stuck":
        return kept(ended(spell), history, window)
    scope.emit(StatusShown(text=f"Stuck: {spell.why}."), "stuck")
    thread = settled(spell.messages)
    seen = window.see((*history, *thread))
    drafted = await draft(scope.child("rescue"), brief, hands, seen, spell.why)
    if drafted.plan is None:
        scope.emit(ErrorMet(text=f"This led nowhere ({spell.why}). Ask in another way."), "stuck")
        return Result(text="", messages=thread, finish="error")
    scope.emit(Routed(route="planned", why=spell.why))
    thread = (*thread, *drafted.messages)
    planned = _Planned(scope.child("planned"), brief, hands, (history, thread), window)
    return kept(await planned.run(drafted.plan), history, window)


def kept(result: Result, history: tuple[Message, ...], window: Window) -> Result:
    """`result` with what the model saw, where that is not all of it any more."""
    if not window.compressed:
        return result
    return replace(result, seen=window.see((*history, *result.messages)))


def ended(spell: Spell) -> Result:
    """What a turn ends with whose loop went so."""
    finish: Literal["stop", "limit", "error"] = "stop"
    if spell.finish in ("limit", "spent", "error"):
        finish = "error" if spell.finish == "error" else "limit"
    return Result(text=spell.text, messages=spell.messages, finish=finish)


class _Planned:
    """A planned turn under way. `told`: what was said before it, and the thread, which is what
    it adds to the transcript."""

    def __init__(
        self,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        told: tuple[tuple[Message, ...], tuple[Message, ...]],
        window: Window,
    ) -> None:
        self._scope = scope
        self._brief = brief
        self._hands = hands
        self._quiet = silent(hands)
        self._history, self._thread = told
        self._window = window
        self._looks = self._taken = self._replans = 0

    async def run(self, plan: Plan) -> Result:
        """Work `plan` off, with re-plans where a step fails, and write the answer."""
        self._tell(plan)
        if self._brief.review:
            reviewed = await self._reviewed(plan)
            if reviewed is None:
                return Result(text="", messages=self._thread)
            plan = reviewed
        plan = await self._amended(plan)
        while ready := plan.ready:
            done = await self._wave(plan, ready)
            for step in ready:
                one = done[step.id]
                self._thread = (*self._thread, *settled(one.spell.messages))
                plan = moved(plan, step.id, one.state, one.note)
            names = "+".join(step.branch for step in ready)
            self._scope.emit(TodoChanged(text=checklist(plan)), f"todo:{names}")
            if any(one.spell.finish == "spent" for one in done.values()):
                return await self._finish(self._given_up(plan))
            if any(one.spell.finish == "error" for one in done.values()):
                return Result(text="", messages=self._thread, finish="error")
            plan = await self._amended(plan)
            if {s.id for s in plan.of("failed")} & {s.id for s in ready}:
                made = await self._again(plan)
                if made is None:
                    return await self._finish(self._given_up(plan))
                plan = await self._amended(made)
        self._scope.emit(StageEntered(name="finalizing"), "finalizing")
        return await self._finish(plan)

    @property
    def _seen(self) -> tuple[Message, ...]:
        """What the model sees of all that was said."""
        return self._window.see((*self._history, *self._thread))

    async def _fit(self, name: str) -> None:
        """Summarise the older part of it where it is too long."""
        said = (*self._history, *self._thread)
        await self._window.fit(self._scope.child(name), said, asking(self._brief, self._hands))

    async def _reviewed(self, plan: Plan) -> Plan | None:
        """The plan as a person wants it, None if they do not."""
        for n in range(1, MAX_REVIEWS + 1):
            steps = tuple(step.description for step in plan.steps)
            answer = await self._scope.ask(PlanReview(title=plan.title, steps=steps), f"review-{n}")
            plan = await self._amended(plan)
            if answer.allowed:
                return plan
            if answer.choice != "edit":
                return None
            thread = (*self._seen, after_wish(plan, answer.text))
            name = f"review-{n}"
            drafted = await redraft(self._scope.child(name), self._brief, self._hands, thread, plan)
            self._thread = (*self._thread, *drafted.messages)
            if drafted.plan is not None:
                plan = drafted.plan
            self._tell(plan, name)
        return None

    async def _amended(self, plan: Plan) -> Plan:
        """`plan` with what people changed of it since the last look."""
        self._looks += 1
        edits = await self._scope.amendments(f"edits-{self._looks}")
        fresh, self._taken = edits[self._taken :], len(edits)
        workspace, turn = Path(self._brief.workspace), self._scope.turn_id
        read = partial(asyncio.to_thread, todo.ticks, workspace, turn)
        ids = await self._scope.once(f"todo-read-{self._looks}", read, kind=list[str])
        after = todo.ticked(apply(plan, fresh), ids)
        if after != plan:
            self._tell(after, f"edited-{self._looks}")
        put = partial(asyncio.to_thread, todo.write, workspace, turn, after)
        await self._scope.once(f"todo-put-{self._looks}", put, kind=bool)
        return after

    async def _wave(self, plan: Plan, ready: tuple[Step, ...]) -> dict[str, _Done]:
        """Work on steps that do not need each other, all at once."""
        ids = tuple(step.id for step in ready)
        name = "+".join(step.branch for step in ready)
        for step in ready:
            began = StepBegan(id=step.id, description=step.description)
            self._scope.emit(began, f"step:{step.branch}")
            plan = moved(plan, step.id, "running")
        await self._fit(f"fit-{name}")
        if len(ready) > 1:
            self._scope.emit(ParallelBegan(steps=ids), f"parallel:{name}")
        await self._scope.show()
        branches = {s.branch: partial(self._step, s, plan, len(ready) > 1) for s in ready}
        done = await self._scope.parallel(branches)
        if len(ready) > 1:
            self._scope.emit(ParallelEnded(steps=ids), f"parallel-end:{name}")
        return {step.id: done[step.branch] for step in ready}

    async def _step(self, step: Step, plan: Plan, among: bool, scope: Scope) -> _Done:
        """Do one step and check it. `among`: others run beside it, so that it is shown by
        itself that it is over."""
        outcome = OUTCOME.format(outcome=step.outcome) if step.outcome else ""
        text = WORK.format(
            context=active_context(plan), id=step.id, description=step.description, outcome=outcome
        )
        rounds = self._brief.step_rounds
        brief = replace(self._brief, text=text, pictures=(), plans=False, max_rounds=rounds)
        spell = await react(scope, brief, self._quiet, self._seen)
        await scope.show()  # what it found stands before it is judged
        done = _Done(spell=spell, finding=await self._found(step, spell, brief, scope))
        scope.emit(StepEnded(id=step.id, state=done.state, note=done.note))
        if among:
            scope.emit(ParallelTaskEnded(id=step.id))
            await scope.show()
        return done

    async def _found(self, step: Step, spell: Spell, brief: Brief, scope: Scope) -> Finding | None:
        match spell.finish:
            case "cut":
                return None
            case "error":
                return Finding(ok=False)
            case "stuck" | "spent":
                return Finding(ok=False, why=spell.why)
            case _:
                try:
                    check = scope.child("check")
                    return await verify(check, step, ended(spell), brief, self._hands)
                except Cut:
                    return None

    async def _again(self, plan: Plan) -> Plan | None:
        """A new plan for what is left, None if there is none or no more may be made."""
        self._replans += 1
        n = self._replans
        if n > self._brief.max_replans:
            return None
        self._scope.emit(StageEntered(name="replanning"), f"replanning-{n}")
        thread = (*self._seen, after_failure(plan))
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

    def _tell(self, plan: Plan, name: str = "") -> None:
        n = plan.revision
        made = PlanMade(title=plan.title, steps=plan.steps, revision=n)
        self._scope.emit(made, f"plan-{name or n}")
        self._scope.emit(TodoChanged(text=checklist(plan)), f"todo-{name or n}")

    async def _finish(self, plan: Plan) -> Result:
        """Write the answer: the only words of the turn that stream into it."""
        await self._scope.show()
        await self._fit("fit-final")
        ask = user(FINISH.format(checklist=checklist(plan)))
        messages = (*self._thread, ask)
        scope = self._scope.child("final")
        try:
            reply = await think(scope, self._brief, self._hands, (*self._seen, ask), "none")
        except (ModelFailed, TimedOut, BudgetExceeded) as error:
            scope.emit(ErrorMet(text=str(error)))
            return Result(text="", messages=messages, finish="error")
        text = text_of(Message(role="assistant", parts=reply.parts))
        return Result(text=text, messages=(*messages, spoken(reply)))
