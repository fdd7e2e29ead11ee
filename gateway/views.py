"""What people see: semantic views, never a generic card tree. Adapters render them.

Vocabulary: imports nothing of ours. Texts are markdown. A view is a whole state: sending a
newer one replaces the older one in the same native message. `language` is that of the person it
is for: what a renderer adds in words (`gateway.texts`) is said in it. `doubt` says that it was
possibly sent twice, or after one that was lost; `show_doubt` puts it where people read it.
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
"""The state marks, the same wherever a state is shown."""
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
"""States in which a step is over."""


class ReplyView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reply"):
    """The answer; streamed, its last edit is the final answer. Nothing else lives here.

    `note` is a fixed line below it (marked stopped, possibly sent twice)."""

    text: str
    state: ReplyState = "final"
    note: str = ""
    language: str = ""
    doubt: str = ""


class ToolLine(Struct, frozen=True, kw_only=True):
    """One tool call as people see it. `output` is what it gave, foldable."""

    call_id: str
    tool: str
    summary: str
    state: LineState
    output: str = ""


class Activity(Struct, frozen=True, kw_only=True, tag_field="kind", tag="activity"):
    """What the agent does: tool lines, in order; `words` are what it said between them. `note`:
    what came of it all, with the `buttons` for that. `over`: the answer stands, so that nobody
    needs what went well at length."""

    lines: tuple[ToolLine, ...]
    words: str = ""
    note: str = ""
    language: str = ""
    doubt: str = ""
    buttons: tuple["Button", ...] = ()
    over: bool = False


class ActivityNote(Struct, frozen=True, kw_only=True):
    """What a feature adds below the tool lines."""

    note: str
    buttons: tuple["Button", ...] = ()


class ProposalLine(Struct, frozen=True, kw_only=True):
    """One call that waits for approval, in full. `preview`: what the tool says that it would do,
    the change of a file for one; `detail` has it of an older version."""

    tool: str
    arguments: str
    reason: str
    risk: Literal["low", "medium", "high"]
    detail: str = ""
    preview: str = ""


class Button(Struct, frozen=True, kw_only=True):
    """A native button; `token` comes back in ButtonPressed. With a `url` it opens that, and
    nothing comes back."""

    label: str
    token: str = ""
    style: Literal["plain", "good", "bad"] = "plain"
    url: str = ""


class MentionedPerson(Struct, frozen=True, kw_only=True):
    """Somebody who is to hear of a view: the platform's `id`, with `@` in front that of a role or
    user group. `name`: where it is known."""

    id: str
    name: str = ""


class ApprovalCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """May these calls run? `rule`: what 'always' would cover, `here`: what 'in this conversation'
    would. After the decision `outcome` says what was decided, by whom, when."""

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
    """Which of these? `heading`: the first line of `text` where that stays when the rest is drawn
    anew. `token`: comes back with words of one's own, "" where these are no answer."""

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
    """Please write something. `token` comes back in FormSubmitted; in a private chat the next
    plain message answers it too, elsewhere a reply to it."""

    question: str
    text: str
    token: str
    state: CardState = "open"
    outcome: str = ""
    language: str = ""
    doubt: str = ""


Card: TypeAlias = ApprovalCard | ChoiceCard | FormCard
"""What somebody has to answer."""


class PlanStep(Struct, frozen=True, kw_only=True):
    """One step of a plan. `note` is a word on how it went, `skip` the token of a button that would
    skip it, "" once it is over."""

    id: str
    text: str
    state: StepState = "pending"
    note: str = ""
    skip: str = ""


class PlanView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan"):
    """What the agent is about to do, step by step; a checklist that ticks while it runs."""

    title: str
    steps: tuple[PlanStep, ...]
    state: PlanState = "running"
    buttons: tuple[Button, ...] = ()
    outcome: str = ""
    language: str = ""
    doubt: str = ""


class MediaFile(Struct, frozen=True, kw_only=True):
    """A file that the agent gives out. `ref` names a kept copy that never changes; `size` in
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
    """What a job found, delivered by itself. `note` is a fixed line below it."""

    title: str
    text: str
    note: str = ""
    language: str = ""
    doubt: str = ""


class Notice(Struct, frozen=True, kw_only=True, tag_field="kind", tag="notice"):
    """A short word from the gateway itself: what happened, what to do. A `quiet` one rings
    nowhere. `buttons`: what can be done about a turn that failed or stopped, while it is the
    last one; or what can be opened."""

    text: str
    tone: Tone = "info"
    quiet: bool = False
    doubt: str = ""
    buttons: tuple[Button, ...] = ()
    mentions: tuple[MentionedPerson, ...] = ()


class SaidView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="said"):
    """What a person wrote, for surfaces that do not show it by themselves (web). `fate`: what
    became of all that the turn shows, where it holds no longer. `files`: the pictures that came
    along."""

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
    """`view` with each of its texts as `rewrite` has it; itself if none changes."""
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
    """The view waits for somebody's press or words."""
    return isinstance(view, Card) and view.state == "open"


def show_doubt(view: View) -> View:
    """`view` with its doubt among its words; itself if there is none."""
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
    """What an adapter can do, as values; never found out by calling and failing."""

    drafts: bool = False
    """Shows text while it grows in private chats without sending a message (`draft`)."""
    edits: bool = True
    reads_views: bool = False
    """The surface reads views from the store itself: nothing is sent (web)."""
    replies: bool = False
    """Shows a message as a reply to another one (`send` with `answers`)."""
    task_threads: bool = False
    """A thread in a group is about one task, though there are replies too: what the one who is
    asked writes there answers."""
    own_messages: bool = True
    """The surface shows what a person wrote by itself."""
    edit_interval: float = 1.0
    """Least seconds between two edits or drafts in one chat."""
    send_timeout: float = 20.0
    """Most seconds one call may take; less than a lease."""
    recalls: float = 0.0
    """Seconds for which the platform knows a named send (ports.Recalling): within them none is
    ever in doubt."""
