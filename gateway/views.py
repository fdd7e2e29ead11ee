"""What people see: semantic views, never a generic card tree. Adapters render them.

Vocabulary: imports nothing of ours. Texts are markdown. A view is a whole state: sending a
newer one replaces the older one in the same native message.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

ReplyState = Literal["streaming", "final", "stopped"]
LineState = Literal["running", "done", "failed", "waiting", "denied", "unknown", "stopped"]
CardState = Literal["open", "approved", "denied", "answered", "expired", "cancelled"]
Tone = Literal["info", "warning", "error"]


class Reply(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reply"):
    """The answer; streamed, its last edit is the final answer. Nothing else lives here.

    `note` is a fixed line below it (marked stopped, possibly sent twice)."""

    text: str
    state: ReplyState = "final"
    note: str = ""


class ToolLine(Struct, frozen=True, kw_only=True):
    """One tool call as people see it. `output` is what it gave, foldable."""

    call_id: str
    tool: str
    summary: str
    state: LineState
    output: str = ""


class Activity(Struct, frozen=True, kw_only=True, tag_field="kind", tag="activity"):
    """What the agent does: tool lines, in order; `words` are what it said between them."""

    lines: tuple[ToolLine, ...]
    words: str = ""


class ProposalLine(Struct, frozen=True, kw_only=True):
    """One call that waits for approval, in full."""

    tool: str
    arguments: str
    reason: str
    risk: Literal["low", "medium", "high"]
    detail: str = ""


class Button(Struct, frozen=True, kw_only=True):
    """A native button; `token` comes back in ButtonPressed."""

    label: str
    token: str
    style: Literal["plain", "good", "bad"] = "plain"


class ApprovalCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """May these calls run? After the decision `outcome` says what was decided, by whom, when."""

    question: str
    asker: str
    proposals: tuple[ProposalLine, ...]
    state: CardState = "open"
    buttons: tuple[Button, ...] = ()
    rule: str = ""
    outcome: str = ""


class ChoiceCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="choice"):
    """Which of these?"""

    question: str
    text: str
    state: CardState = "open"
    buttons: tuple[Button, ...] = ()
    outcome: str = ""


class FormCard(Struct, frozen=True, kw_only=True, tag_field="kind", tag="form"):
    """Please write something. `token` comes back in FormSubmitted; in a private chat the next
    plain message answers it too, elsewhere a reply to it."""

    question: str
    text: str
    token: str
    state: CardState = "open"
    outcome: str = ""


class Notice(Struct, frozen=True, kw_only=True, tag_field="kind", tag="notice"):
    """A short word from the gateway itself: what happened, what to do."""

    text: str
    tone: Tone = "info"


class Said(Struct, frozen=True, kw_only=True, tag_field="kind", tag="said"):
    """What a person wrote, for surfaces that do not show it by themselves (web)."""

    name: str
    text: str


View: TypeAlias = Reply | Activity | ApprovalCard | ChoiceCard | FormCard | Notice | Said


class Abilities(Struct, frozen=True, kw_only=True):
    """What an adapter can do, as values; never found out by calling and failing."""

    drafts: bool = False
    """Shows text while it grows in private chats without sending a message (`draft`)."""
    edits: bool = True
    reads_views: bool = False
    """The surface reads views from the store itself: nothing is sent (web)."""
    own_messages: bool = True
    """The surface shows what a person wrote by itself."""
    edit_interval: float = 1.0
    """Least seconds between two edits or drafts in one chat."""
    send_timeout: float = 20.0
    """Most seconds one call may take; less than a lease."""
