"""What an agent may ask a person, and what a person may answer."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from agent_core.phrases import Phrase, phrase

Risk = Literal["low", "medium", "high"]
Choice = Literal["once", "conversation", "always", "edit", "deny", "expired", "cancelled"]


Lasting = Literal["conversation", "always"]
"""The answers that are stored."""
HOSTS = "hosts"
"""The policy's line that asks for hosts."""
NETWORK, HOST = "network", "host:"
"""The tool and the beginning of the pattern of a rule that opens a host."""


class Coverage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rule covers, as a value beside its text: what `phrase` says, or exactly one call, or
    with `risk` all calls of the tool at that risk.

    `words` is the call's command, or its arguments as JSON. `bound`: while the files that it may
    run stay as they are; `files` names them where they are few.
    """

    phrase: Phrase | None = None
    words: str = ""
    background: bool = False
    bound: bool = False
    risk: Risk | None = None
    files: tuple[str, ...] = ()


class Offer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule that the answer `choice` stores for a call: the same value from the policy over the
    card and the press to the store. `pattern` is compared as a whole."""

    choice: Lasting
    tool: str
    pattern: str
    covers: Coverage | None = None


class Proposal(Struct, frozen=True, kw_only=True):
    """One call that waits for approval. `digest` binds the answer to what will run."""

    call_id: str
    tool: str
    arguments: str
    digest: str
    risk: Risk
    reason: str
    offers: tuple[Offer, ...] = ()
    """What answers that last would store; a choice without one is not offered."""
    rule: str = ""
    """Of an older version: the rule that 'always' would store."""
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

    def list_offers(self) -> tuple[Offer, ...]:
        """What answers would store, of what an older version asked too."""
        if self.offers or not self.rule:
            return self.offers
        if self.line != HOSTS:
            one = Offer(choice="always", tool=self.tool, pattern=self.rule, covers=self.covers)
            return (one,)
        return offer_hosts(pattern.removeprefix(HOST) for pattern in self.rule.split())


def offer_hosts(hosts: Iterable[str]) -> tuple[Offer, ...]:
    """What opens these hosts, each by itself, whatever calls them."""
    choices: tuple[Lasting, ...] = ("conversation", "always")
    return tuple(
        Offer(
            choice=choice,
            tool=NETWORK,
            pattern=f"{HOST}{host}",
            covers=Coverage(phrase=phrase("covers_hosts", hosts=host)),
        )
        for host in hosts
        for choice in choices
    )


def list_choices(proposals: Iterable[Proposal]) -> tuple[Lasting, ...]:
    """The answers that last which one card may offer for all these calls."""
    offered = [{offer.choice for offer in one.list_offers()} for one in proposals]
    choices: tuple[Lasting, ...] = ("conversation", "always")
    return tuple(one for one in choices if offered and all(one in each for each in offered))


class Approval(Struct, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """May these calls run? One question for all calls of a batch."""

    proposals: tuple[Proposal, ...]
    expires: float = 0.0
    """Seconds until the question expires; 0: the session's default."""


class TimeSpan(Struct, frozen=True, kw_only=True):
    """Characters of a text, from `start` up to `end`, that tell the moment `at` (seconds since
    1970)."""

    at: int
    start: int
    end: int


class Decision(Struct, frozen=True, kw_only=True, tag_field="kind", tag="decision"):
    """Which of these? `lead` and `hints`: what else is said above and below the text, in the
    person's language. `labels`: what options are called in it, where they are ours.
    `first`: how the first option stands out, where it does something that the others do not.
    `free`: words of one's own are an answer too. `times`: the moments that the text tells, in
    order. `awaits`: the event that takes the first option in the person's stead. `folds`: once it
    is decided its first line is enough."""

    text: str
    options: tuple[str, ...]
    expires: float = 0.0
    hints: tuple[Phrase, ...] = ()
    first: Literal["plain", "good", "bad"] = "plain"
    lead: tuple[Phrase, ...] = ()
    labels: dict[str, Phrase] = {}
    free: bool = False
    times: tuple[TimeSpan, ...] = ()
    awaits: str = ""
    folds: bool = False


class Input(Struct, frozen=True, kw_only=True, tag_field="kind", tag="input"):
    """Please write something. `lead` and `hints` as in a Decision."""

    text: str
    expires: float = 0.0
    hints: tuple[Phrase, ...] = ()
    lead: tuple[Phrase, ...] = ()


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
    audit and the card. `said`: what people are shown where `text` describes files or a voice note
    for the model; `heard`: what was spoken.
    """

    choice: Choice
    text: str = ""
    by: str = ""
    name: str = ""
    at: float = 0.0
    said: str = ""
    heard: str = ""

    @property
    def allowed(self) -> bool:
        """True if the calls may run."""
        return self.choice in ("once", "conversation", "always")
