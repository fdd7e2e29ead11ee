"""What an agent may ask a person, and what a person may answer."""

from typing import Literal, TypeAlias

from msgspec import Struct

from agent_core.phrases import Phrase

Risk = Literal["low", "medium", "high"]
Choice = Literal["once", "conversation", "always", "edit", "deny", "expired", "cancelled"]


class Coverage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rule covers, as a value beside its text: what `phrase` says, or exactly one call.

    `words` is the call's command, or its arguments as JSON. `bound`: while the files that it may
    run stay as they are.
    """

    phrase: Phrase | None = None
    words: str = ""
    background: bool = False
    bound: bool = False


class Proposal(Struct, frozen=True, kw_only=True):
    """One call that waits for approval. `digest` binds the answer to what will run."""

    call_id: str
    tool: str
    arguments: str
    digest: str
    risk: Risk
    reason: str
    rule: str = ""
    """The narrowest rule that 'always' would store, in words that a person can check."""
    detail: str = ""
    """What else a person must see: working folder, isolation, a diff."""
    line: str = ""
    """The policy's line that asks (Verdict.rule), "" if not known."""
    why: Phrase | None = None
    """`reason` as a value; of an older version and of hooks there is none."""
    notes: tuple[Phrase, ...] = ()
    """What the policy says in `detail`, in order."""
    preview: str | Phrase = ""
    """What the tool says in `detail`."""
    covers: Coverage | None = None
    """What `rule` covers."""


class Approval(Struct, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """May these calls run? One question for all calls of a batch."""

    proposals: tuple[Proposal, ...]
    expires: float = 0.0
    """Seconds until the question expires; 0: the session's default."""


class Decision(Struct, frozen=True, kw_only=True, tag_field="kind", tag="decision"):
    """Which of these? `hints`: what else is said below the text, in the person's language."""

    text: str
    options: tuple[str, ...]
    expires: float = 0.0
    hints: tuple[Phrase, ...] = ()


class Input(Struct, frozen=True, kw_only=True, tag_field="kind", tag="input"):
    """Please write something."""

    text: str
    expires: float = 0.0


class PlanReview(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan"):
    """Shall this plan be worked off? `steps`: what they do, in order."""

    title: str
    steps: tuple[str, ...]
    expires: float = 0.0

    @property
    def text(self) -> str:
        """The plan in one line."""
        return f"{self.title}: {'; '.join(self.steps)}"


Question: TypeAlias = Approval | Decision | Input | PlanReview


class Answer(Struct, frozen=True, kw_only=True):
    """A person's answer, or what stands for it when none came.

    Approval: `choice` is once / conversation / always / deny; `text` the reason of a denial.
    Decision and Input: `choice` is once and `text` the option or the words.
    PlanReview: `choice` is once, or edit and `text` what to change, or deny.
    No answer: `choice` is expired or cancelled. `by` and `at` (seconds since 1970) go into the
    audit and the card.
    """

    choice: Choice
    text: str = ""
    by: str = ""
    name: str = ""
    at: float = 0.0

    @property
    def allowed(self) -> bool:
        """True if the calls may run."""
        return self.choice in ("once", "conversation", "always")
