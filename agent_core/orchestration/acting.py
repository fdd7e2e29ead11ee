"""Runs the calls of one answer: judged, asked about where a person has to be, journaled."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from agent_core.context.data_marks import make_seal
from agent_core.errors import AgentError, ToolFailed
from agent_core.events import OutputAdded, ToolProgressed
from agent_core.guardrails.answers import redact_proposal
from agent_core.guardrails.guard import work_on_text
from agent_core.guardrails.redaction import Redactions, StreamRedactor
from agent_core.inner_calls import REQUEST
from agent_core.journal import Outcome
from agent_core.messages import (
    ToolCall,
    ToolOutput,
    ToolResult,
    wrap_output,
)
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.made_calls import make_calls
from agent_core.phrases import phrase
from agent_core.policy import Bond, Verdict
from agent_core.questions import Answer, Approval, Decision, Proposal
from agent_core.scope import Scope
from agent_core.text import clean, clean_json
from agent_core.tools import planning
from agent_core.tools.ask import make_question
from agent_core.tools.contract import Caller, InnerCall, Tool, ToolContext
from agent_core.tools.finding.mcp_tools import look_up
from agent_core.tools.paths import locate_inside
from agent_core.tools.toolbox import Prepared, UnfitCall, bind_digest, is_bound, run
from agent_core.tools.turn.tool import TurnCallable, TurnTool

ASKED_NOW = (
    "Not run: what it may run, or what is allowed here, changed since it was judged. Call it again "
    "if it is still wanted; then the person is asked."
)
MAX_CARDS = 3
"""Maximum cards of one call whose files change after each approval."""
NOT_ENTERED = "Not run: the person did not do what the tool needs first. Go on without it."
MAX_ENTRIES = 3
"""Maximum attempts of a person to do what one call requires first."""
GRACE = 5.0
"""Seconds beyond a tool's own limit, in which it ends itself, until its run is given up."""
CALLER_GONE = "Not run: the script that asked for it has ended."


async def act(
    scope: Scope,
    brief: Brief,
    hands: Hands,
    calls: tuple[ToolCall, ...],
    caller: Caller | None = None,
) -> tuple[ToolResult, ...]:
    """Run the calls of one answer: at once where the policy allows, in parallel where possible,
    after an approval where required. Results in call order. `caller`: the requester, if it is no
    model."""
    foreign = await look_up(scope, hands.toolbox.registry, brief.reach, calls)
    ready = tuple(_prepare_call(brief, hands, call, foreign) for call in calls)
    fit = [item for item in ready if isinstance(item, Prepared)]
    verdicts = dict(
        zip(
            (item.call.id for item in fit),
            await scope.once(
                "policy", partial(_judge_calls, brief, hands, fit), kind=list[Verdict]
            ),
            strict=True,
        )
    )
    apart = _runs_apart(fit, verdicts)
    worker = _Worker(scope, brief, hands, verdicts, caller, apart=apart)
    results = {item.call.id: worker.refuse(item) for item in ready if isinstance(item, UnfitCall)}
    asked = [item for item in fit if _rule_item(item, verdicts) == "ask"]
    branches: dict[str, Callable[[Scope], Awaitable[dict[str, ToolResult]]]] = {}
    for item in fit:
        if item not in asked:
            branches[f"call-{item.call.id}"] = partial(worker.handle_call, item)
    if asked:
        branches["approval"] = partial(worker.after_approval, asked)
    if any(item.tool.interactive for item in fit) or worker.apart:
        for name, branch in branches.items():
            results |= await branch(scope.child(name))
    else:
        for part in (await scope.parallel(branches)).values():
            results |= part
    return tuple(results[call.id] for call in calls)


def _prepare_call(
    brief: Brief, hands: Hands, call: ToolCall, foreign: dict[str, Tool]
) -> Prepared | UnfitCall:
    if call.name == planning.NAME and not brief.plans:
        return UnfitCall(call=call, text=planning.WITHIN)
    return hands.toolbox.prepare(call, brief.tools, brief.reach, foreign)


async def _judge_calls(brief: Brief, hands: Hands, items: list[Prepared]) -> list[Verdict]:
    """Judge each call by the hooks, otherwise by the policy, and add the details for a person who
    is asked."""
    workspace, verdicts = Path(brief.workspace), []
    if hands.refresh is not None:
        await hands.refresh()
    if hands.snapshot is not None and any(map(_may_change, items)):
        await hands.snapshot()
    for call in items:
        item = await bind_digest(call, workspace, _find_bond(hands, call))
        if why := await hands.hooks.veto(item, workspace):
            verdicts.append(Verdict(ruling="deny", rule="hook", reason=why))
            continue
        verdict = hands.judge(item)
        if hands.guard is not None:
            verdict = await hands.guard.check_call(item, verdict)
        if verdict.ruling == "ask" and item.tool.preview is not None:
            shown = await asyncio.to_thread(item.tool.preview, item.arguments, workspace)
            detail = "\n".join(filter(None, (verdict.detail, str(shown))))
            verdict = replace(verdict, detail=detail, preview=shown)
        verdicts.append(verdict)
    return verdicts


def _find_bond(hands: Hands, item: Prepared) -> Bond | None:
    return hands.bond(item) if hands.bond is not None else None


def _runs_apart(items: list[Prepared], verdicts: dict[str, Verdict]) -> bool:
    """The calls run one after the other: one of them holds for the files as they are, and another
    one could change them meanwhile."""
    changing = list(filter(_may_change, items))
    bound = any(verdicts[item.call.id].bound for item in items)
    asked = [item for item in changing if verdicts[item.call.id].ruling == "ask"]
    named = [_name_file(item) for item in asked if hasattr(item.arguments, "path")]
    return (bound and len(changing) > 1) or len(set(named)) < len(named)


def _name_file(item: Prepared) -> str:
    """The file that the call changes, however it spells it."""
    return os.path.normpath(locate_inside(str(getattr(item.arguments, "path", ""))))


def _may_change(item: Prepared) -> bool:
    """Return True if it might change files of the workspace."""
    tool = item.tool
    reads = tool.looks is not None and tool.looks(item.arguments)
    return tool.access in ("write", "shell") and not reads


def _rule_item(item: Prepared, verdicts: dict[str, Verdict]) -> str:
    ruling = verdicts[item.call.id].ruling
    return "allow" if item.tool.question is not None and ruling == "ask" else ruling


class _Worker:
    """Runs the calls of one round; `scope` is the round's."""

    def __init__(
        self,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        verdicts: dict[str, Verdict],
        caller: Caller | None,
        *,
        apart: bool,
    ) -> None:
        self.apart = apart
        self._scope = scope
        self._caller = caller
        self._brief = brief
        self._hands = hands
        self._verdicts = verdicts

    def refuse(self, item: UnfitCall) -> ToolResult:
        """The result of a call that cannot run."""
        return self._scope.settle(item.call, ToolOutput(text=item.text, shown=item.shown))

    async def handle_call(self, item: Prepared, scope: Scope) -> dict[str, ToolResult]:
        """A call that needs no approval: a question, a refusal, or a run."""
        verdict = self._verdicts[item.call.id]
        if verdict.ruling == "deny":
            shown = phrase("why_denied", why=verdict.why or verdict.reason)
            result = scope.settle(item.call, ToolOutput(text=str(shown), shown=shown), "denied")
        elif item.tool.question is not None:
            try:
                asked = make_question(item.tool, item.arguments)
            except ToolFailed as error:
                return {item.call.id: scope.settle(item.call, str(error))}
            content, outcome = _read_answer(await scope.ask(asked))
            result = scope.settle(item.call, content, outcome)
        else:
            result = await self._run(item, scope, "")
        return {item.call.id: result}

    async def after_approval(self, items: list[Prepared], scope: Scope) -> dict[str, ToolResult]:
        """Run the calls of a batch that need approval, on one card. Calls that changed meanwhile
        get a new card, a few times."""
        done: dict[str, ToolResult] = {}
        for n in range(MAX_CARDS):
            level = scope.child(f"again-{n}") if n else scope
            asked = [item for item in items if self._verdicts[item.call.id].ruling == "ask"]
            for item in items:
                if item not in asked:  # judged again, and no longer to be asked about
                    done |= await self.handle_call(item, level.child(f"call-{item.call.id}"))
            answer = await self._ask_person(level, asked) if asked else None
            if answer is None:
                return done
            gone = self._caller is not None and self._caller.gone
            if not answer.allowed or gone:
                why = CALLER_GONE if answer.allowed else _describe_denial(answer)
                outcome: Outcome = "failed" if answer.allowed else "denied"
                return done | {
                    item.call.id: level.settle(item.call, why, outcome) for item in asked
                }
            ran = await self._run_all(level, asked, last=n == MAX_CARDS - 1)
            done |= ran
            items = [item for item in asked if item.call.id not in ran]
            if not items:
                break
            await self._judge_changed(level, items)
        return done

    async def _ask_person(self, scope: Scope, items: list[Prepared]) -> Answer:
        if self._caller is not None:
            self._caller.pause()
        proposals = tuple([await self._proposal(item) for item in items])
        answer = await scope.ask(Approval(proposals=proposals))
        if self._caller is not None:
            self._caller.resume()  # not if the turn parks: there is no answer then
        return answer

    async def _run_all(
        self, scope: Scope, items: list[Prepared], *, last: bool
    ) -> dict[str, ToolResult]:
        """Run the calls that still are what was approved; with the `last` card all of them, of
        which changed ones are refused."""
        if self.apart:  # one call may change what another's approval covers
            done = {}
            for item in items:
                if last or not await self._is_changed(scope, item):
                    done[item.call.id] = await self._run_approved(scope, item)
            return done
        ready = [item for item in items if last or not await self._is_changed(scope, item)]
        found = await scope.parallel(
            {
                f"call-{item.call.id}": partial(self._run, item, approved=self._digest(item))
                for item in ready
            }
        )
        return {item.call.id: found[f"call-{item.call.id}"] for item in ready}

    async def _run_approved(self, scope: Scope, item: Prepared) -> ToolResult:
        return await self._run(item, scope.child(f"call-{item.call.id}"), self._digest(item))

    def _digest(self, item: Prepared) -> str:
        return self._verdicts[item.call.id].digest

    async def _is_changed(self, scope: Scope, item: Prepared) -> bool:
        """Return True if the call is no longer what was approved; False for one that has begun."""
        begun = scope.child(f"call-{item.call.id}").has_begun(item.call)

        async def look() -> bool:
            if begun or isinstance(item.tool, TurnTool):
                return False
            workspace, bond = Path(self._brief.workspace), _find_bond(self._hands, item)
            return not await is_bound(item, workspace, self._digest(item), bond)

        return await scope.once(f"changed-{item.call.id}", look, kind=bool)

    async def _judge_changed(self, scope: Scope, items: list[Prepared]) -> None:
        judge = partial(_judge_calls, self._brief, self._hands, items)
        judged = await scope.once("policy-again", judge, kind=list[Verdict])
        for item, verdict in zip(items, judged, strict=True):
            notes = (phrase("changed_since"), *verdict.notes)
            detail = "\n".join(filter(None, (str(notes[0]), verdict.detail)))
            self._verdicts[item.call.id] = replace(verdict, notes=notes, detail=detail)

    async def _run(self, item: Prepared, scope: Scope, approved: str) -> ToolResult:
        """Run one call. `approved`: the digest that a person allowed, "" if nobody was asked."""
        if isinstance(item.tool, TurnTool) and item.tool.works_by_turn(item.arguments):
            return await self._run_turn_tool(item.tool.run_in_turn, item, scope)
        if item.tool.entrance is not None and not await _enter(item, item.tool.entrance, scope):
            return scope.settle(item.call, NOT_ENTERED, "denied")
        holder = item.tool.holder
        most = item.tool.limit + GRACE + self._hands.hooks.slack if holder is None else None
        work = partial(self._run_tool, item, scope, approved)
        return await scope.tool(item.call, item.tool.repetition, work, most, holder)

    async def _run_tool(
        self, item: Prepared, scope: Scope, approved: str, token: str
    ) -> str | ToolOutput:
        """Run the tool, its output shown and returned without secrets. `token`: the run's key."""
        hides, holder = self._hands.hides, item.tool.holder

        def show(text: str) -> None:
            self._hands.live(OutputAdded(call_id=item.call.id, text=clean(text)))

        redactor = StreamRedactor(hides().with_shapes(), show) if hides is not None else None
        output = redactor.add if redactor is not None else show
        context = self._make_context(item, scope, token, output)
        begun = holder is not None and holder.holds(token)  # it was approved, and runs
        try:
            if not begun and not approved:
                await self._judge_again(item)
            bound, bond = "" if begun else approved, _find_bond(self._hands, item)
            gave = await run(item, context, bound, self._find_rewriter(item), bond)
            gave = _add_news(gave, self._hands.news)
            if hides is not None:
                gave = _hide_page(gave, hides())
            return _seal(gave) if _reads_strangers(item) else gave
        finally:
            if redactor is not None:
                redactor.end()

    def _make_context(
        self, item: Prepared, scope: Scope, token: str, output: Callable[[str], None]
    ) -> ToolContext:
        return ToolContext(
            workspace=Path(self._brief.workspace),
            key=token,
            limit=item.tool.limit,
            output=output,
            hosts=self._hands.hosts(),
            invoke=partial(self._invoke, item, scope),
            progress=partial(self._show_progress, item, scope),
            ask=lambda name, asked: scope.child(item.call.id).ask(asked, name),
            most=self._brief.most_observed,
        )

    def _find_rewriter(self, item: Prepared) -> Callable[[str], Awaitable[str]] | None:
        """Return what hooks, secrets and guardrails make of the result, None if there are none."""
        workspace = Path(self._brief.workspace)
        hooks, hides, guard = self._hands.hooks, self._hands.hides, self._hands.guard
        if not hooks.post and hides is None and guard is None:
            return None

        async def rewrite(text: str) -> str:
            text = await hooks.rewrite(item, workspace, text)
            text = hides().hide(text) if hides is not None else text
            return text if guard is None else await guard.mark_output(item.tool.name, text)

        return rewrite

    async def _judge_again(self, item: Prepared) -> None:
        """Judge again right before the run: grants, and permissions to run unasked, must still
        hold. Raises ToolFailed."""
        if item.tool.access in ("read", "person"):
            return
        if self._hands.refresh is not None:
            await self._hands.refresh()
        workspace, bond = Path(self._brief.workspace), _find_bond(self._hands, item)
        verdict = self._hands.judge(await bind_digest(item, workspace, bond))
        if verdict.ruling == "ask":
            raise ToolFailed(ASKED_NOW)
        if verdict.ruling == "deny":
            raise ToolFailed(str(phrase("why_denied", why=verdict.why or verdict.reason)))

    async def _invoke(
        self, item: Prepared, scope: Scope, inner: InnerCall, caller: Caller
    ) -> ToolResult:
        """A call that a running call makes."""
        own = scope.child(item.call.id).child(str(inner.n))
        (call,) = await make_calls(own, ((inner.name, clean_json(inner.arguments)),))
        call = await own.once(REQUEST, lambda: call, kind=ToolCall)
        (result,) = await act(own, self._brief, self._hands, (call,), caller)
        return result

    async def _show_progress(self, item: Prepared, scope: Scope, n: int, text: str) -> None:
        hides = self._hands.hides
        text = hides().with_shapes().hide(text) if hides is not None else text
        far = ToolProgressed(call_id=item.call.id, text=text)
        scope.child(item.call.id).emit(far, f"progress-{n}")
        await scope.show()

    async def _run_turn_tool(
        self, run_in_turn: TurnCallable, item: Prepared, scope: Scope
    ) -> ToolResult:
        """Run a turn tool's call; its effects are in the records that it makes."""
        try:
            said = await run_in_turn(item.arguments, scope, self._brief, self._hands)
        except AgentError as error:
            result = scope.settle(item.call, str(error))
        else:
            result = scope.settle(item.call, said, "ok")
        await scope.show()  # a link with its line end, before the model continues
        return result

    async def _proposal(self, item: Prepared) -> Proposal:
        proposal = self._propose(item, self._verdicts[item.call.id])
        if self._hands.hides is None:
            return proposal
        words = self._hands.hides().with_shapes()
        redact = partial(redact_proposal, proposal, words)
        return await work_on_text(len(proposal.arguments), redact)

    def _propose(self, item: Prepared, verdict: Verdict) -> Proposal:
        return Proposal(
            call_id=item.call.id,
            tool=item.tool.name,
            arguments=item.call.arguments,
            digest=verdict.digest,
            risk=verdict.risk,
            reason=verdict.reason,
            offers=verdict.offers,
            detail=verdict.detail,
            line=verdict.rule,
            why=verdict.why,
            notes=verdict.notes,
            preview=verdict.preview,
        )


async def _enter(
    item: Prepared, entrance: Callable[[], Awaitable[Decision | None]], scope: Scope
) -> bool:
    """Return True if the person has done what the call requires first."""
    own = scope.child(f"{item.call.id}-entrance")
    for n in range(MAX_ENTRIES):
        kind = cast(type[Decision | None], Decision | None)
        asked = await own.once(f"needs-{n}", entrance, kind=kind)
        if asked is None:
            return True
        answer = await own.ask(asked, f"ask-{n}")
        if answer.choice != "once" or answer.text != asked.options[0]:
            return False
    return False


def _reads_strangers(item: Prepared) -> bool:
    """Return True if the call returns untrusted words: of a file, or of a program. Content of the
    network is marked by the tools that fetch it."""
    tool = item.tool
    looks = tool.looks is not None and tool.looks(item.arguments)
    return tool.access in ("read", "shell") or (tool.access == "write" and looks)


def _seal(gave: str | ToolOutput) -> ToolOutput:
    made = wrap_output(gave)
    if made.command is not None and made.command.silent:
        return made
    return replace(made, seal=make_seal(made.text))


def _hide_page(gave: str | ToolOutput, words: Redactions) -> str | ToolOutput:
    """Redact secrets in the address of a page; its text is redacted already."""
    if not isinstance(gave, ToolOutput) or gave.browsed is None:
        return gave
    return replace(gave, browsed=replace(gave.browsed, url=words.hide(gave.browsed.url)))


def _add_news(gave: str | ToolOutput, find_news: Callable[[], str]) -> str | ToolOutput:
    """`gave` with news before it, which are for the model alone."""
    if not (news := find_news()):
        return gave
    made = wrap_output(gave)
    return replace(made, text=f"{news}{made.text}", shown=made.shown or made.text)


def _describe_denial(answer: Answer) -> str:
    match answer.choice:
        case "expired":
            return "Denied: nobody answered in time. Say what you would need."
        case "cancelled":
            return "Denied: the question was withdrawn."
        case _:
            why = f": {answer.text}" if answer.text else "."
            return f"Denied by {answer.name or answer.by}{why}"


def _read_answer(answer: Answer) -> tuple[str, Outcome]:
    match answer.choice:
        case "expired":
            return "Nobody answered in time.", "failed"
        case "cancelled" | "deny":
            return "The question was withdrawn.", "failed"
        case _:
            return answer.text, "ok"
