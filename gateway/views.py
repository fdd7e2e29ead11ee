"""Semantic views, never a generic card tree; adapters render them.

Vocabulary: imports nothing of ours. Texts are Markdown. A view is a complete state: a newer one
replaces the older one in the same native message. `language` is that of its reader, also for words
that a renderer adds (`gateway.texts`). `doubt` says that it was possibly sent twice, or after one
that was lost; `show_doubt` puts it into the text.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeGuard, assert_never, cast

from msgspec import Struct
from msgspec.structs import replace

ReplyState = Literal["streaming", "final", "stopped"]
LineState = Literal["running", "done", "failed", "waiting", "denied", "unknown", "stopped"]
CardState = Literal["open", "approved", "denied", "answered", "expired", "cancelled"]
StepState = Literal["pending", "running", "done", "failed", "skipped"]
PlanState = Literal["open", "running", "done", "failed", "stopped"]
Tone = Literal["info", "warning", "error"]
Fate = Literal["", "undone", "retried"]


LINE_MARKS: dict[LineState, str] = {
    "waiting": "☐",
    "running": "◐",
    "done": "☑",
    "failed": "✕",
    "denied": "✕",
    "stopped": "✕",
    "unknown": "?",
}
"""The state marks, the same everywhere."""
CARD_MARKS: dict[CardState, str] = {
    "open": "☐",
    "approved": "☑",
    "answered": "☑",
    "denied": "✕",
    "expired": "✕",
    "cancelled": "✕",
}
STEP_MARKS: dict[StepState, str] = {
    "pending": "☐",
    "running": "◐",
    "done": "☑",
    "failed": "✕",
    "skipped": "–",
}
PLAN_MARKS: dict[PlanState, str] = {
    "open": "☐",
    "running": "◐",
    "done": "☑",
    "failed": "✕",
    "stopped": "✕",
}
ENDED: frozenset[StepState] = frozenset({"done", "failed", "skipped"})
"""States of a finished step."""


class ReplyView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reply"):
    """The answer; streamed, its last edit is the final answer. Nothing else lives here.

    `note` is a fixed line below it (marked stopped, possibly sent twice)."""

    text: str
    state: ReplyState = "final"
    note: str = ""
    language: str = ""
    doubt: str = ""


class ToolLine(Struct, frozen=True, kw_only=True):
    """A tool call as people see it. `output`: its result, foldable."""

    call_id: str
    tool: str
    summary: str
    state: LineState
    output: str = ""


class Activity(Struct, frozen=True, kw_only=True, tag_field="kind", tag="activity"):
    """The agent's activity: tool lines, in order; `words` are its words between them. `note`: the
    outcome, with the `buttons` for it. `over`: the answer is complete, so that successful calls can
    fold."""

    lines: tuple[ToolLine, ...]
    words: str = ""
    note: str = ""
    language: str = ""
    doubt: str = ""
    buttons: tuple["Button", ...] = ()
    over: bool = False


class ActivityNote(Struct, frozen=True, kw_only=True):
    """A note that a feature adds below the tool lines."""

    note: str
    buttons: tuple["Button", ...] = ()


class ProposalLine(Struct, frozen=True, kw_only=True):
    """A call that waits for approval, in full. `preview`: the tool's own description of the effect,
    such as a file's diff; older versions used `detail`."""

    tool: str
    arguments: str
    reason: str
    risk: Literal["low", "medium", "high"]
    detail: str = ""
    preview: str = ""


class Button(Struct, frozen=True, kw_only=True):
    """A native button. Its `token` comes back in ButtonPressed; with a `url` it opens that, and
    nothing comes back."""

    label: str
    token: str = ""
    style: Literal["plain", "good", "bad"] = "plain"
    url: str = ""


class MentionedPerson(Struct, frozen=True, kw_only=True):
    """A person to notify of a view: the platform's `id`, prefixed with `@` for a role or user
    group. `name`: where it is known."""

    id: str
    name: str = ""


class ApprovalCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """Asks whether calls may run. `rule`: the extent of 'always', `here`: that of 'in this
    conversation'. `outcome`, once decided: the decision, by whom, and when."""

    question: str
    asker: str
    proposals: tuple[ProposalLine, ...]
    state: CardState = "open"
    buttons: tuple[Button, ...] = ()
    rule: str = ""
    outcome: str = ""
    language: str = ""
    doubt: str = ""
    here: str = ""
    mentions: tuple[MentionedPerson, ...] = ()


class ChoiceCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="choice"):
    """Asks for one of several options. `heading`: the first line of `text`, if it stays when the
    rest is redrawn. `token`: comes back with free text, "" where that is no answer."""

    question: str
    text: str
    state: CardState = "open"
    buttons: tuple[Button, ...] = ()
    outcome: str = ""
    language: str = ""
    doubt: str = ""
    heading: str = ""
    token: str = ""


class FormCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="form"):
    """Asks for free text. `token` comes back in FormSubmitted; in a private chat the next plain
    message answers it too, elsewhere a reply to it."""

    question: str
    text: str
    token: str
    state: CardState = "open"
    outcome: str = ""
    language: str = ""
    doubt: str = ""


Card: TypeAlias = ApprovalCard | ChoiceCard | FormCard
"""A question that somebody must answer."""


class PlanStep(Struct, frozen=True, kw_only=True):
    """A step of a plan. `note`: its outcome in a few words; `skip`: the token of its Skip button,
    "" once it is over."""

    id: str
    text: str
    state: StepState = "pending"
    note: str = ""
    skip: str = ""


class PlanView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan"):
    """The agent's plan as a checklist that is ticked off while it runs."""

    title: str
    steps: tuple[PlanStep, ...]
    state: PlanState = "running"
    buttons: tuple[Button, ...] = ()
    outcome: str = ""
    language: str = ""
    doubt: str = ""


class MediaFile(Struct, frozen=True, kw_only=True):
    """A file that the agent sends. `ref` names a stored copy that never changes; `size` in
    bytes."""

    ref: str
    name: str
    mime: str
    size: int

    @property
    def picture(self) -> bool:
        """People see it at once rather than download it."""
        return self.mime in ("image/png", "image/jpeg", "image/webp", "image/gif")


class Media(Struct, frozen=True, kw_only=True, tag_field="kind", tag="media"):
    """Files for the person, with a word on them."""

    files: tuple[MediaFile, ...]
    caption: str = ""
    language: str = ""
    doubt: str = ""


class ReportView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="report"):
    """A job's report, sent unasked. `note` is a fixed line below it."""

    title: str
    text: str
    note: str = ""
    language: str = ""
    doubt: str = ""


class Notice(Struct, frozen=True, kw_only=True, tag_field="kind", tag="notice"):
    """A short message of the gateway: what happened, what to do. A `quiet` one does not notify.
    `buttons`: what can be done about the newest failed or stopped turn, or opened."""

    text: str
    tone: Tone = "info"
    quiet: bool = False
    doubt: str = ""
    buttons: tuple[Button, ...] = ()
    mentions: tuple[MentionedPerson, ...] = ()


class SaidView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="said"):
    """A person's message, for surfaces that do not show it themselves (web). `fate`: why the turn
    no longer counts, e.g. undone; `files`: pictures that came with it."""

    name: str
    text: str
    fate: Fate = ""
    files: tuple[MediaFile, ...] = ()


View: TypeAlias = (
    ReplyView
    | Activity
    | PlanView
    | ApprovalCard
    | ChoiceCard
    | FormCard
    | Media
    | ReportView
    | Notice
    | SaidView
)


_NO_TEXTS = frozenset(
    {"token", "question", "call_id", "id", "ref", "mime", "language", "state", "style", "tool"}
    | {"risk", "tone", "fate"}
)
"""Fields that hold no words for people."""


def rewrite_texts(view: View, rewrite: Callable[[str], str]) -> View:
    """Return `view` with `rewrite` applied to each of its texts; `view` itself if none changes."""
    made = _rewrite_value(view, rewrite)
    return view if made == view else cast(View, made)


def _rewrite_value(value: object, rewrite: Callable[[str], str]) -> object:
    match value:
        case str():
            return rewrite(value)
        case tuple():
            return tuple(_rewrite_value(one, rewrite) for one in value)
        case Struct():
            names = [name for name in value.__struct_fields__ if name not in _NO_TEXTS]
            made = {name: _rewrite_value(getattr(value, name), rewrite) for name in names}
            return replace(value, **made)
        case _:
            return value


def awaits_answer(view: View) -> TypeGuard[Card]:
    """True if the view waits for somebody's press or words."""
    return isinstance(view, Card) and view.state == "open"


def asks_people(view: View) -> bool:
    """True if the view waits for somebody's decision, a plan's for whether to run it too."""
    return awaits_answer(view) or (isinstance(view, PlanView) and view.state == "open")


def show_doubt(view: View) -> View:
    """Return `view` with its doubt in its text; `view` itself without one."""
    if isinstance(view, SaidView) or not view.doubt:
        return view
    doubt = view.doubt
    match view:
        case ReplyView() | ReportView():
            return replace(view, note=f"{view.note} {doubt}".strip(), doubt="")
        case Media():
            return replace(view, caption=f"{view.caption}\n{doubt}".strip(), doubt="")
        case Notice() | ChoiceCard() | FormCard():
            return replace(view, text=f"{view.text}\n{doubt}", doubt="")
        case Activity():
            return replace(view, words=f"{view.words}\n{doubt}".strip(), doubt="")
        case ApprovalCard() | PlanView():
            return replace(view, outcome=f"{view.outcome}\n{doubt}".strip(), doubt="")
    assert_never(view)


class Abilities(Struct, frozen=True, kw_only=True):
    """The abilities of an adapter, as values; never found out by calling and failing."""

    drafts: bool = False
    """Shows text while it grows in private chats without sending a message (`draft`)."""
    edits: bool = True
    reads_views: bool = False
    """The surface reads views from the store itself: nothing is sent (web)."""
    replies: bool = False
    """Shows a message as a reply to another one (`send` with `answers`)."""
    task_threads: bool = False
    """A thread in a group is about one task, although the platform has replies too: a message of
    the asked person in it is an answer."""
    own_messages: bool = True
    """The surface itself shows what a person wrote."""
    edit_interval: float = 1.0
    """Least seconds between two edits or drafts in one chat."""
    send_timeout: float = 20.0
    """Most seconds one call may take; less than a lease."""
    recalls: float = 0.0
    """Seconds for which the platform recognises a named send (ports.Recalling); within them no send
    is in doubt."""
