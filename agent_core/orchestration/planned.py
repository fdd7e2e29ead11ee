"""A running plan: its steps carried out, checked, re-planned after a failure, and summed up.

Messages are only appended: each call begins with the whole of an earlier one, also when steps run
in parallel (each sees the thread from when the first of them began, and what it builds on).
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_core.context import todo
from agent_core.context.compression import Window
from agent_core.context.transcript import settle_messages
from agent_core.errors import BudgetExceeded, Cut, ModelFailed, TimedOut
from agent_core.events import (
    ErrorMet,
    ParallelBegan,
    ParallelEnded,
    ParallelTaskEnded,
    PlanMade,
    StageEntered,
    StatusShown,
    StepBegan,
    StepEnded,
    TodoChanged,
)
from agent_core.messages import Message, user
from agent_core.orchestration.brief import Brief, Hands, LoopResult, TurnResult
from agent_core.orchestration.edits import apply
from agent_core.orchestration.executor import react, write_answer
from agent_core.orchestration.fitting import make_summary_request
from agent_core.orchestration.plan import (
    Plan,
    Step,
    active_context,
    checklist,
    find_parallel,
    set_step_state,
)
from agent_core.orchestration.planner import Drafted, after_failure, after_wish, redraft
from agent_core.orchestration.side_calls import hush
from agent_core.orchestration.verify import StepVerdict, verify
from agent_core.questions import PlanReview
from agent_core.scope import Scope

MAX_REVIEWS = 10
"""Times that a person may have the plan changed before it runs."""

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


class _EndedStep(Struct, frozen=True, kw_only=True):
    """An ended step. `finding` None: a person skipped it."""

    result: LoopResult
    finding: StepVerdict | None

    @property
    def state(self) -> Literal["done", "failed", "skipped"]:
        if self.finding is None:
            return "skipped"
        return "done" if self.finding.ok else "failed"

    @property
    def note(self) -> str:
        return self.finding.why if self.finding is not None else ""


class _Wave(Struct, frozen=True, kw_only=True):
    """Concurrent steps: the plan as they began, what each needs by id, and the ended ones.
    `is_parallel`: several began at once, and are shown so."""

    plan: Plan
    needs: dict[str, frozenset[str]]
    done: dict[str, _EndedStep]
    is_parallel: bool


class PlannedTurn:
    """A running planned turn. `told`: the earlier history, and the thread, which it adds to the
    transcript."""

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
        self._quiet = hush(hands)
        self._history, self._thread = told
        self._window = window
        self._looks = self._taken = self._replans = 0

    async def run(self, plan: Plan) -> TurnResult:
        """Work `plan` off, with re-plans where a step fails, and write the answer."""
        self._tell(plan)
        if self._brief.review:
            reviewed = await self._review_plan(plan)
            if reviewed is None:
                return TurnResult(text="", messages=self._thread)
            plan = reviewed
        plan = await self._apply_amendments(plan)
        while plan.ready:
            name = "+".join(step.branch for step in plan.ready)
            done = await self._wave(plan, name)
            for step_id, one in done.items():
                self._thread = (*self._thread, *settle_messages(one.result.messages))
                plan = set_step_state(plan, step_id, one.state, one.note)
            self._scope.emit(TodoChanged(text=checklist(plan)), f"todo:{name}")
            if any(one.result.finish == "spent" for one in done.values()):
                return await self._finish(self._give_up_rest(plan))
            if any(one.result.finish == "error" for one in done.values()):
                # another plan does not help if a model failed; report the finished work
                return await self._finish(self._give_up_rest(plan))
            plan = await self._apply_amendments(plan)
            if {s.id for s in plan.select("failed")} & done.keys():
                made = await self._plan_again(plan)
                if made is None:
                    return await self._finish(self._give_up_rest(plan))
                plan = await self._apply_amendments(made)
        self._scope.emit(StageEntered(name="finalizing"), "finalizing")
        return await self._finish(plan)

    @property
    def _seen(self) -> tuple[Message, ...]:
        """The model's view of history and thread."""
        return self._window.see((*self._history, *self._thread))

    async def _fit(self, name: str) -> None:
        """Summarise its older part if it is too long."""
        said = (*self._history, *self._thread)
        await self._window.fit(
            self._scope.child(name), said, make_summary_request(self._brief, self._hands)
        )

    async def _review_plan(self, plan: Plan) -> Plan | None:
        """The plan as a person wants it, None if they do not."""
        for n in range(1, MAX_REVIEWS + 1):
            steps = tuple(step.description for step in plan.steps)
            answer = await self._scope.ask(PlanReview(title=plan.title, steps=steps), f"review-{n}")
            plan = await self._apply_amendments(plan)
            if answer.allowed:
                return plan
            if answer.choice != "edit":
                return None
            name, ask = f"review-{n}", after_wish(plan, answer.text)
            drafted = await self._redraft(name, ask, plan)
            self._thread = (*self._thread, *drafted.messages)
            if drafted.plan is not None:
                plan = drafted.plan
            self._tell(plan, name)
        return None

    async def _apply_amendments(self, plan: Plan) -> Plan:
        """Apply people's edits since the last look."""
        self._looks += 1
        edits = await self._scope.amendments(f"edits-{self._looks}")
        fresh, self._taken = edits[self._taken :], len(edits)
        workspace, turn = Path(self._brief.workspace), self._scope.turn_id
        read = partial(asyncio.to_thread, todo.read_ticks, workspace, turn)
        ids = await self._scope.once(f"todo-read-{self._looks}", read, kind=list[str])
        after = todo.tick_steps(apply(plan, fresh), ids)
        if after != plan:
            self._tell(after, f"edited-{self._looks}")
        put = partial(asyncio.to_thread, todo.write, workspace, turn, after)
        await self._scope.once(f"todo-put-{self._looks}", put, kind=bool)
        return after

    async def _wave(self, plan: Plan, name: str) -> dict[str, _EndedStep]:
        """Run all steps that are ready, and those that need only some of them, each as soon as it
        can begin. Return those that were begun, in the plan's order."""
        needs, done = find_parallel(plan), dict[str, _EndedStep]()
        steps = {step.id: step for step in plan.steps if step.id in needs}
        ready = tuple(step.id for step in plan.ready)
        for step_id in ready:
            plan = self._begin_step(plan, steps[step_id], self._scope)
        await self._fit(f"fit-{name}")
        if len(ready) > 1:
            self._scope.emit(ParallelBegan(steps=ready), f"parallel:{name}")
        await self._scope.show()
        wave = _Wave(plan=plan, needs=needs, done=done, is_parallel=len(ready) > 1)
        branches = {s.branch: partial(self._take_step_in_turn, wave, s) for s in steps.values()}
        after = {steps[n].branch: [steps[m].branch for m in needs[n]] for n in steps}
        await self._scope.parallel(branches, after)
        ended = tuple(step_id for step_id in steps if step_id in done)
        if wave.is_parallel:
            self._scope.emit(ParallelEnded(steps=ended), f"parallel-end:{name}")
        return {step_id: done[step_id] for step_id in ended}

    def _begin_step(self, plan: Plan, step: Step, scope: Scope) -> Plan:
        scope.emit(StepBegan(id=step.id, description=step.description), f"step:{step.branch}")
        return set_step_state(plan, step.id, "running")

    async def _take_step_in_turn(self, wave: "_Wave", step: Step, scope: Scope) -> None:
        """Run a step of a wave, if it is still to be done when its dependencies are done. Its view
        depends on these steps alone."""
        plan, seen = wave.plan, self._seen
        if needs := wave.needs[step.id]:
            asked = f"begins-{self._looks}"  # anew in each wave: it may have to wait more than once
            if not await scope.once(asked, partial(self._goes_on, wave, needs), kind=bool):
                return
            known = [(n, wave.done[n]) for n in wave.needs if n in needs]
            for step_id, one in known:
                plan = set_step_state(plan, step_id, one.state, one.note)
            told = (m for _, one in known for m in settle_messages(one.result.messages))
            seen = self._window.see((*self._history, *self._thread, *told))
            plan = self._begin_step(plan, step, scope)
            await scope.show()
        wave.done[step.id] = await self._step(step, plan, seen, scope)
        if wave.is_parallel:
            scope.emit(ParallelTaskEnded(id=step.id))
            await scope.show()

    def _goes_on(self, wave: "_Wave", needs: frozenset[str]) -> bool:
        """Return True if nothing requires a look at the plan: no failure, no wish."""
        well = all(one.state != "failed" for one in wave.done.values())
        return well and needs <= wave.done.keys() and not self._scope.was_amended(self._taken)

    async def _step(
        self, step: Step, plan: Plan, seen: tuple[Message, ...], scope: Scope
    ) -> _EndedStep:
        """Do one step and check it."""
        outcome = OUTCOME.format(outcome=step.outcome) if step.outcome else ""
        text = WORK.format(
            context=active_context(plan), id=step.id, description=step.description, outcome=outcome
        )
        whole, rounds = self._brief.request_text(), self._brief.step_rounds
        brief = replace(
            self._brief, text=text, whole=whole, pictures=(), plans=False, max_rounds=rounds
        )
        result = await react(scope, brief, self._quiet, seen)
        await scope.show()  # findings are saved before the step is judged
        done = _EndedStep(result=result, finding=await self._judge_step(step, result, brief, scope))
        scope.emit(StepEnded(id=step.id, state=done.state, note=done.note))
        if self._brief.debug:
            judged = f"{step.id}: {done.state}, {len(result.messages)} messages, {result.finish}"
            scope.emit(StatusShown(text=judged, phase="verify"))
        return done

    async def _judge_step(
        self, step: Step, result: LoopResult, brief: Brief, scope: Scope
    ) -> StepVerdict | None:
        match result.finish:
            case "cut":
                return None
            case "error":
                return StepVerdict(ok=False)
            case "stuck" | "spent":
                return StepVerdict(ok=False, why=result.why)
            case _:
                try:
                    check = scope.child("check")
                    return await verify(check, step, result.to_turn(), brief, self._hands)
                except Cut:
                    return None

    async def _plan_again(self, plan: Plan) -> Plan | None:
        """Return a new plan for what is left, None if there is none or no more may be made."""
        self._replans += 1
        n = self._replans
        if n > self._brief.max_replans:
            return None
        self._scope.emit(StageEntered(name="replanning"), f"replanning-{n}")
        drafted = await self._redraft(f"replan-{n}", after_failure(plan), plan)
        self._thread = (*self._thread, *drafted.messages)
        if drafted.plan is not None:
            self._tell(drafted.plan)
        return drafted.plan

    async def _redraft(self, name: str, ask: Message, plan: Plan) -> Drafted:
        said = (*self._history, *self._thread)
        means = (self._brief, self._hands, self._window)
        return await redraft(self._scope.child(name), means, said, ask, plan)

    def _give_up_rest(self, plan: Plan) -> Plan:
        """Skip the steps that have not begun."""
        for step in plan.select("pending"):
            self._scope.emit(StepEnded(id=step.id, state="skipped"), f"dropped:{step.id}")
            plan = set_step_state(plan, step.id, "skipped")
        self._scope.emit(StageEntered(name="giving_up"), "giving_up")
        return plan

    def _tell(self, plan: Plan, name: str = "") -> None:
        n = plan.revision
        made = PlanMade(title=plan.title, steps=plan.steps, revision=n)
        self._scope.emit(made, f"plan-{name or n}")
        self._scope.emit(TodoChanged(text=checklist(plan)), f"todo-{name or n}")

    async def _finish(self, plan: Plan) -> TurnResult:
        """Write the answer: the only words of the turn that stream into it."""
        await self._scope.show()
        ask = user(FINISH.format(checklist=checklist(plan)))
        scope, messages = self._scope.child("final"), [*self._thread, ask]
        try:
            ended = await write_answer(
                scope, self._brief, self._hands, self._history, messages, self._window
            )
            return ended.to_turn()
        except (ModelFailed, TimedOut, BudgetExceeded) as error:
            scope.emit(ErrorMet(text=str(error), phrases=error.phrases))
            return TurnResult(text="", messages=tuple(messages), finish="error")
