"""Views as a pure fold over a turn's journal records, in commit order.

The version of a view is the number of records that changed it, so a resume needs nothing but
the records: same views, same versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace as with_

from agent_core import ambient
from agent_core.context.transcript import is_aside
from agent_core.events import (
    AgentEvent,
    Compressed,
    ErrorMet,
    ResearchMoved,
    SourceFound,
    StatusShown,
    ToolProgressed,
)
from agent_core.inner_calls import REQUEST
from agent_core.journal import (
    Amended,
    Answered,
    Began,
    Emitted,
    Finished,
    Noted,
    QuestionAsked,
    Record,
    Replied,
    Steered,
    Stopped,
    ToolFinished,
    ToolStarted,
)
from agent_core.messages import Message, Picture, ToolCall, calls_of, text_of
from agent_core.orchestration.made_calls import CALLS
from agent_core.questions import (
    HOSTS,
    Answer,
    Approval,
    Choice,
    Decision,
    Input,
    PlanReview,
    list_choices,
)
from agent_core.tools import ask
from gateway.command_texts import OwnText
from gateway.delivery import reasons
from gateway.delivery.failures import describe_error
from gateway.delivery.lines import end_of, make_line, mark_line, move_lines, output_of
from gateway.delivery.phrasing import say_phrase
from gateway.delivery.plan_view import (
    Course,
    PlanEvent,
    apply_edit,
    apply_plan_event,
    finish_plan,
    render_plan,
)
from gateway.delivery.research_view import add_source, apply_research_event, finish_research
from gateway.messages import button_token, turn_token
from gateway.moment_texts import mark_moment
from gateway.texts import Key, say
from gateway.views import (
    Activity,
    ActivityNote,
    ApprovalCard,
    Button,
    CardState,
    ChoiceCard,
    FormCard,
    LineState,
    Media,
    MediaFile,
    Notice,
    PlanView,
    ProposalLine,
    ReplyView,
    SaidView,
    ToolLine,
    View,
    awaits_answer,
)

FoldEvent: TypeAlias = Callable[[AgentEvent, str], View | ActivityNote]
"""Folds an event into a view of its own, or into a note below tool lines, in a language. Pure."""
EventFolds: TypeAlias = Mapping[type[Struct], tuple[str, FoldEvent]]
"""The folds of features, by type of event; the name is the prefix of their views' names."""
OWN_EVENTS: frozenset[type] = frozenset(
    (
        ErrorMet,
        Compressed,
        StatusShown,
        ToolProgressed,
        ResearchMoved,
        SourceFound,
        *get_args(PlanEvent),
    )
)
"""Events that every fold shows, so no feature does."""

HEARD = "heard"
"""Key of the note that keeps the words of a voice note."""
_SHOWN = frozenset({ask.NAME, *ask.ALSO, "memory", "schedule_job", "todo"})
"""Tools that are shown by a card or a notice alone, without a tool line."""
_APPROVED: dict[Choice, Key] = {
    "conversation": "approved_conversation",
    "always": "approved_always",
}
Action = Literal["retry", "continue"]
OFFERS: dict[Action, Key] = {"retry": "turn_retry", "continue": "turn_continue"}
"""Buttons offered on a finished turn."""
STOPPED: dict[str, tuple[Action, ...]] = {
    "stop": ("continue", "retry"),
    "interrupt": (),
    "dead": ("retry",),
    "error": ("retry",),
}
"""Texts by the reason for which a turn was stopped."""
LINKED: dict[str, tuple[tuple[Key, ...], tuple[Key, ...]]] = {
    "app": (("app_shown", "app_open"), ("app_here",)),
    "browser": (("browser_shown", "browser_watch"), ("browser_here",)),
}
"""Texts and button labels of a link that everybody can open, and of one for the gateway's machine
alone."""
REFUSED = frozenset({"fault_guard_message", "fault_guard_answer"})
"""Failures that asking again would meet again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One view of a turn and how often it changed."""

    view: View
    version: int
    final: bool = False


class _Shown(Struct):
    """The part of a turn's brief that its person sees."""

    said: str = ""
    pictures: tuple[Picture, ...] = ()


def _show_said(record: Began, name: str) -> SaidView:
    """Build the view of the message that began the turn, with its pictures in place of their
    names."""
    brief = msgspec.json.decode(record.value, type=_Shown)
    files = tuple(
        MediaFile(ref=one.ref, name=PurePosixPath(one.path).name, mime=one.mime, size=one.size)
        for one in brief.pictures
    )
    named = {f"[{file.name}]" for file in files}
    text = "\n".join(line for line in brief.said.split("\n") if line not in named)
    return SaidView(name=name, text=text, files=files)


@dataclass(slots=True, kw_only=True)
class ViewFold:
    """Folds the events of one turn into its views. `said`: the surface does not show people's
    messages itself; `events`: the folds of features for other events; `private`: whether it is a
    private chat, None if unknown."""

    asker: str = ""
    language: str = ""
    said: bool = False
    turn: str = ""
    private: bool | None = None
    course: Course | None = None
    offers: bool = True
    """True if a failed or stopped turn gets buttons."""
    events: EventFolds = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    _cards: dict[str, str] = field(default_factory=dict)
    _labels: dict[str, dict[str, str]] = field(default_factory=dict)
    _heads: dict[str, str] = field(default_factory=dict)
    """Headings of questions that fold once they are decided."""
    _failure: tuple[str, ErrorMet] | None = None

    def add(self, record: Record) -> tuple[str, ...]:
        """Take one more record; the names of the views it changed."""
        match record:
            case Began() | Steered() | Noted():
                return self._fold_words(record)
            case Replied() if is_aside(record):
                return ()  # calls of an answer beside the conversation are never run
            case Replied():
                return self._fold_reply(Message(role="assistant", parts=record.reply.parts))
            case ToolStarted():
                return self._show_began(record.call)
            case ToolFinished():
                output = self._output(record)
                changed = self._line(record.call_id, end_of(record), output)
                return (*changed, *self._fold_files(record), *self._fold_link(record))
            case QuestionAsked():
                return self._fold_question(record)
            case Answered():
                return self._fold_answer(record.asked, record.answer)
            case Emitted():
                return self._fold_event(record)
            case Amended() if self.course is not None:
                return self._course(apply_edit(self.course, record.edit))
            case Finished():
                return self._fold_end(record)
            case Stopped():
                return self._fold_stop(record)
            case _:
                return ()

    def _fold_event(self, record: Emitted) -> tuple[str, ...]:
        match record.event:
            case ErrorMet() as met:
                notice = Notice(text=describe_error(met, self.language), tone="error")
                self._failure = (f"notice:{record.key}", met)
                return self._set(f"notice:{record.key}", notice, True)
            case Compressed() if "compressed" not in self.shapes:
                notice = Notice(text=say("compressed", self.language), quiet=True)
                return self._set("compressed", notice, True)
            case StatusShown(phase=phase, text=text) if phase:
                line = ToolLine(call_id=record.key, tool=phase, summary=text, state="done")
                activity = self._activity()
                return self._set("activity", with_(activity, lines=(*activity.lines, line)))
            case ToolProgressed() as far:
                return self._line(far.call_id, "running", far.text)
            case ResearchMoved() as moved:
                return self._set(
                    "research", apply_research_event(self._now("research"), moved, self.language)
                )
            case SourceFound() as found:
                return self._set("activity", add_source(self._activity(), found))
            case event if isinstance(event, PlanEvent):
                return self._course(apply_plan_event(self.course, event))
            case event if known := self.events.get(type(event)):
                name, fold_event = known
                made = fold_event(event, self.language)
                if isinstance(made, ActivityNote):
                    view = with_(self._activity(), note=made.note, buttons=made.buttons)
                    return self._set("activity", view)
                return self._set(f"{name}:{record.key}", made, True)
            case _:
                return ()

    def _fold_words(self, record: Began | Steered | Noted) -> tuple[str, ...]:
        """Show people's messages, also those sent during the turn, if the surface does not."""
        match record:
            case Began() if self.said:
                said = _show_said(record, self.asker)
                return self._set("said", said, final=True) if said.text or said.files else ()
            case Steered() if self.said:
                told = [SaidView(name=self.asker, text=text) for text in record.texts if text]
                names = (
                    self._set(f"said:{record.key}:{n}", one, True) for n, one in enumerate(told)
                )
                return sum(names, ())
            case Noted(key=key) if key.rpartition("/")[2] == REQUEST:
                return self._add_line(msgspec.json.decode(record.value, type=ToolCall))
            case Noted(key=key) if key == HEARD:
                text = say("heard", self.language, text=msgspec.json.decode(record.value, type=str))
                return self._set(HEARD, Notice(text=text, quiet=True), True)
            case _:
                return ()

    def _set(self, name: str, view: View, final: bool = False) -> tuple[str, ...]:
        old = self.shapes.get(name)
        version = old.version + 1 if old else 1
        self.shapes[name] = Shape(view=view, version=version, final=final)
        return (name,)

    def _fold_reply(self, message: Message) -> tuple[str, ...]:
        called = calls_of(message)
        calls = [call for call in called if call.name not in _SHOWN]
        if not calls and not (called and text_of(message)):
            return ()
        activity = self._activity()
        lines = tuple(map(make_line, calls))
        words = text_of(message) or activity.words
        return self._set("activity", with_(activity, lines=(*activity.lines, *lines), words=words))

    def _show_began(self, call: ToolCall) -> tuple[str, ...]:
        """A call that no model wrote, but a skill, has no line before it begins."""
        activity = self._activity()
        known = any(line.call_id == call.id for line in activity.lines)
        if known or not call.id.startswith(CALLS):
            return self._line(call.id, "running")
        return self._add_line(call)

    def _add_line(self, call: ToolCall) -> tuple[str, ...]:
        activity = self._activity()
        return self._set("activity", with_(activity, lines=(*activity.lines, make_line(call))))

    def _output(self, record: ToolFinished) -> str:
        """Return a call's output for people, without what its state or its card already says."""
        if record.outcome == "unknown":
            return say("outcome_unknown", self.language)
        waiting = {line.call_id for line in self._activity().lines if line.state == "waiting"}
        known = record.outcome == "denied" and record.call_id in waiting
        return "" if known else output_of(record, self.language)

    def _line(self, call_id: str, state: LineState, output: str = "") -> tuple[str, ...]:
        activity = self._activity()
        lines = mark_line(activity.lines, call_id, state, output)
        if lines == activity.lines:
            return ()
        return self._set("activity", with_(activity, lines=lines))

    def _course(self, course: Course | None, final: bool = False) -> tuple[str, ...]:
        """Update the plan's view; () if it does not change."""
        self.course = course
        if course is None:
            return ()
        shape, view = self.shapes.get("plan"), render_plan(course, self.turn, self.language)
        same = shape is not None and shape.view == view and not final
        return () if same else self._set("plan", view, final)

    def _plan_ended(self, state: Literal["done", "failed", "stopped"]) -> tuple[str, ...]:
        research, course = self._now("research"), self.course
        view = finish_research(research, state) if research is not None else None
        changed = self._set("research", view, True) if view is not None else ()
        return (*changed, *self._course(course and finish_plan(course, state), True))

    def _now(self, name: str) -> View | None:
        shape = self.shapes.get(name)
        return shape.view if shape is not None else None

    def _fold_files(self, record: ToolFinished) -> tuple[str, ...]:
        if not record.files:
            return ()
        files = tuple(msgspec.convert(f, MediaFile, from_attributes=True) for f in record.files)
        media = Media(files=files, caption=record.caption, language=self.language)
        return self._set(f"media:{record.key}", media, True)

    def _fold_link(self, record: ToolFinished) -> tuple[str, ...]:
        """Show a link, with a button if it opens from everywhere."""
        if (link := record.link) is None:
            return ()
        keys = LINKED[link.of][0 if link.public else 1]
        text = say(keys[0], self.language, name=link.name, link=link.url)
        buttons = tuple(Button(label=say(key, self.language), url=link.url) for key in keys[1:])
        return self._set(f"link:{record.key}", Notice(text=text, buttons=buttons), True)

    def _activity(self) -> Activity:
        view = self._now("activity")
        return view if isinstance(view, Activity) else Activity(lines=(), language=self.language)

    def _fold_question(self, record: QuestionAsked) -> tuple[str, ...]:
        name = f"ask:{record.key}"
        self._cards[record.key] = name
        question = record.question
        changed: tuple[str, ...] = ()
        card: View
        match question:
            case Approval():
                for proposal in question.proposals:
                    changed = self._line(proposal.call_id, "waiting") or changed
                card = self._approval(record.id, question)
            case Decision():
                self._labels[record.key] = {
                    option: say_phrase(label, self.language)
                    for option, label in question.labels.items()
                }
                text = self._compose(question)
                if question.folds:
                    self._heads[record.key] = text.partition("\n")[0]
                card = ChoiceCard(
                    question=record.id,
                    text=text,
                    buttons=tuple(
                        Button(
                            label=self._labels[record.key].get(option, option),
                            token=button_token(record.id, str(n)),
                            style="plain" if n else question.first,
                        )
                        for n, option in enumerate(question.options)
                    ),
                    language=self.language,
                    token=button_token(record.id, "text") if question.free else "",
                )
            case PlanReview():
                self._cards[record.key] = "plan"
                course = self.course
                return self._course(course and with_(course, asking=record.id, outcome=""))
            case Input():
                token = button_token(record.id, "text")
                card = FormCard(
                    question=record.id,
                    text=self._compose(question),
                    token=token,
                    language=self.language,
                )
        return (*changed, *self._set(name, card))

    def _compose(self, question: Decision | Input) -> str:
        lead = (say_phrase(one, self.language) for one in question.lead)
        hints = (say_phrase(one, self.language) for one in question.hints)
        text = _mark_times(question) if isinstance(question, Decision) else question.text
        return "\n".join((*lead, text, *hints))

    def _approval(self, question: str, approval: Approval) -> ApprovalCard:
        language = self.language
        what = "hosts" if all(one.line == HOSTS for one in approval.proposals) else "approve"
        offers = [
            (f"{what}_once", "once", "good"),
            *((f"{what}_{one}", one, "plain") for one in list_choices(approval.proposals)),
            ("deny", "deny", "bad"),
        ]
        return ApprovalCard(
            question=question,
            asker=self.asker,
            proposals=tuple(
                ProposalLine(
                    tool=one.tool,
                    arguments=one.arguments,
                    reason=reasons.describe_reason(one, language),
                    risk=one.risk,
                    detail=reasons.describe_detail(one, language),
                    preview=reasons.describe_preview(one, language),
                )
                for one in approval.proposals
            ),
            buttons=tuple(
                Button(
                    label=say(label, language),  # type: ignore[arg-type]  # keys of texts
                    token=button_token(question, choice),
                    style=style,  # type: ignore[arg-type]
                )
                for label, choice, style in offers
            ),
            rule=self._describe_always(approval),
            here=reasons.describe_choice(approval.proposals, "conversation", language),
            language=language,
        )

    def _describe_always(self, approval: Approval) -> str:
        """Describe what 'always' covers, and where it holds for the asker."""
        told = reasons.describe_choice(approval.proposals, "always", self.language)
        if not told or self.private is None:
            return told
        key: Key = "covers_private" if self.private else "covers_group"
        return say(key, self.language, rule=told, name=self.asker)

    def _show_change(self, asked: str, answer: Answer) -> tuple[str, ...]:
        """Show the words that change a plan, if the surface does not: the next plan hides them."""
        if not self.said or answer.choice != "edit" or not answer.text:
            return ()
        said = SaidView(name=answer.name or answer.by, text=answer.text)
        return self._set(f"said:{asked}", said, True)

    def _fold_answer(self, asked: str, answer: Answer) -> tuple[str, ...]:
        name = self._cards.get(asked, f"ask:{asked}")
        shape = self.shapes.get(name)
        if shape is None:
            return ()
        changed: tuple[str, ...] = ()
        view = shape.view
        once: Key = "plan_went" if isinstance(view, PlanView) else "approved"
        text = self._labels.get(asked, {}).get(answer.text, answer.said or answer.text)
        answer = with_(answer, text=text)
        if answer.heard:
            spoken = Notice(text=say("heard", self.language, text=answer.heard), quiet=True)
            changed = self._set(f"{HEARD}:{asked}", spoken, True)
        state, outcome = _outcome(answer, self.language, once)
        match view:
            case ApprovalCard() if answer.allowed:
                changed += self._fold_resume()
                view = with_(view, state="approved", buttons=(), outcome=outcome)
            case ApprovalCard() | ChoiceCard():
                view = with_(view, state=state, buttons=(), outcome=outcome)
                if asked in self._heads:
                    view = with_(view, text=self._heads[asked])
            case FormCard():
                view = with_(view, state=state, outcome=outcome)
            case PlanView() if self.course is not None:
                word = outcome if answer.choice in ("once", "edit") else ""
                said = self._show_change(asked, answer)
                return (*said, *self._course(with_(self.course, asking="", outcome=word)))
            case _:
                pass
        return (*changed, *self._set(name, view, True))

    def _fold_resume(self) -> tuple[str, ...]:
        activity = self._activity()
        lines = move_lines(activity.lines, {"waiting"}, "running")
        same = lines == activity.lines
        return () if same else self._set("activity", with_(activity, lines=lines))

    def _fold_end(self, record: Finished) -> tuple[str, ...]:
        failed = record.finish == "error"
        changed = (*self._plan_ended("failed" if failed else "done"), *self._seal("stopped"))
        if not failed and any(line.output for line in self._activity().lines):
            changed = (*changed, *self._set("activity", with_(self._activity(), over=True), True))
        if failed:
            changed = (*changed, *self._offer_again())
        if failed and not record.text:
            if not record.partial:
                return changed
            begun = ReplyView(text=record.partial, state="stopped", language=self.language)
            return (*changed, *self._set("reply", begun, True))
        reply = ReplyView(text=record.text or say("empty", self.language), language=self.language)
        if record.finish != "limit":
            return (*changed, *self._set("reply", reply, True))
        note = say("limit_note", self.language)
        return (*changed, *self._set_short(reply, note, "continue"))

    def _offer_again(self) -> tuple[str, ...]:
        """Offer buttons on the view that ended the turn; reaching a budget is no failure."""
        if self._failure is None:
            return ()
        name, met = self._failure
        keys, shape = {one.key for one in met.phrases}, self.shapes.get(name)
        view = shape.view if shape is not None else None  # a job's fold shows no such notice
        if keys & REFUSED or not isinstance(view, Notice):
            return ()
        buttons = self._buttons("retry" if keys else "continue")
        return self._set(name, with_(view, buttons=buttons), True) if buttons else ()

    def _set_short(self, reply: ReplyView, note: str, *offers: Action) -> tuple[str, ...]:
        """Show the answer of a turn that was cut short, with `note` and the buttons offered."""
        buttons = self._buttons(*offers)
        if not buttons:
            return self._set("reply", with_(reply, note=note), True)
        notice = Notice(text=note, quiet=True, buttons=buttons)
        return (*self._set("reply", reply, True), *self._set("stopped", notice, True))

    def _buttons(self, *offers: Action) -> tuple[Button, ...]:
        return tuple(
            Button(label=say(OFFERS[one], self.language), token=turn_token(self.turn, one))
            for one in (offers if self.offers else ())
        )

    def _fold_stop(self, record: Stopped) -> tuple[str, ...]:
        changed = (*self._plan_ended("stopped"), *self._seal("stopped"))
        withdrawn = False
        for asked, name in self._cards.items():
            view = self.shapes[name].view
            if awaits_answer(view):
                withdrawn = True
                changed = (*changed, *self._fold_answer(asked, Answer(choice="cancelled")))
        if record.partial:
            key: Key = "interrupted_note" if record.reason == "interrupt" else "stopped_note"
            note = record.text or say(key, self.language)
            reply = ReplyView(text=record.partial, state="stopped", language=self.language)
            return (*changed, *self._set_short(reply, note, *STOPPED[record.reason]))
        if not record.text and (withdrawn or record.reason == "interrupt"):
            return changed  # a withdrawn card says why, as does the newer message
        text = record.text or say("stopped", self.language)
        tone = "info" if record.reason in ("stop", "interrupt") else "error"
        buttons = self._buttons(*STOPPED[record.reason])
        notice = Notice(text=text, tone=tone, buttons=buttons)  # type: ignore[arg-type]
        return (*changed, *self._set("stopped", notice, True))

    def _seal(self, state: LineState) -> tuple[str, ...]:
        """End all running lines: the turn is over."""
        activity = self._activity()
        lines = move_lines(activity.lines, {"running", "waiting"}, state)
        shape = self.shapes.get("activity")
        if shape is None:
            return ()
        if lines == activity.lines:
            self.shapes["activity"] = replace(shape, final=True)
            return ()
        return self._set("activity", with_(activity, lines=lines), True)


def _mark_times(question: Decision) -> str:
    """The question's text with its moments as values."""
    text, at = "", 0
    for one in question.times:
        if at <= one.start < one.end <= len(question.text):
            words = question.text[one.start : one.end]
            text += question.text[at : one.start] + mark_moment(one.at, words)
            at = one.end
    return text + question.text[at:]


def _outcome(answer: Answer, language: str, once: Key) -> tuple[CardState, str]:
    name = answer.name or answer.by
    when = OwnText(mark_moment(answer.at, f"{ambient.utc(answer.at):%Y-%m-%d %H:%M} UTC"))
    match answer.choice:
        case "expired":
            return "expired", say("expired", language)
        case "cancelled":
            return "cancelled", say("cancelled", language)
        case "deny":
            why = f" {say('denied_why', language, why=answer.text)}" if answer.text else ""
            return "denied", say("denied", language, name=name, when=when, why=why)
        case _ if answer.text:
            return "answered", say("answered", language, name=name, text=answer.text)
        case _:
            key = _APPROVED.get(answer.choice, once)
            return "answered", say(key, language, name=name, when=when)
