"""The agent's questions to people, and their answers."""

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
    """The extent of a rule, as a value beside its text: as `phrase` says, or exactly one call, or
    with `risk` all calls of the tool at that risk. `words` is the call's command, or its arguments
    as JSON. `bound`: while the files that it may run are unchanged; `files` names them if they are
    few."""

    phrase: Phrase | None = None
    words: str = ""
    background: bool = False
    bound: bool = False
    risk: Risk | None = None
    files: tuple[str, ...] = ()


class Offer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule that the answer `choice` stores for a call: the same value from the policy over the
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
    """The rules that lasting answers store; a choice without one is not offered."""
    rule: str = ""
    """Of an older version: the rule that 'always' would store."""
    detail: str = ""
    """Further details for the person: working folder, isolation, a diff."""
    line: str = ""
    """The policy's line that asks (Verdict.rule), "" if not known."""
    why: Phrase | None = None
    """`reason` as a value; None from older versions and hooks."""
    notes: tuple[Phrase, ...] = ()
    """The policy's notes in `detail`, in order."""
    preview: str | Phrase = ""
    """The tool's part of `detail`."""
    covers: Coverage | None = None
    """The extent of `rule`."""

    def list_offers(self) -> tuple[Offer, ...]:
        """Return the rules that answers would store, also from an older version."""
        if self.offers or not self.rule:
            return self.offers
        if self.line != HOSTS:
            one = Offer(choice="always", tool=self.tool, pattern=self.rule, covers=self.covers)
            return (one,)
        return offer_hosts(pattern.removeprefix(HOST) for pattern in self.rule.split())


def offer_hosts(hosts: Iterable[str]) -> tuple[Offer, ...]:
    """Offer to open these hosts, each by itself, for every caller."""
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
    """The characters of a text, from `start` up to `end`, that tell the moment `at` (seconds since
    1970)."""

    at: int
    start: int
    end: int


class Decision(Struct, frozen=True, kw_only=True, tag_field="kind", tag="decision"):
    """Asks for one of several options.

    `lead` and `hints`: text above and below, in the person's language. `labels`: names of options,
    where they are the gateway's own. `first`: how the first option is emphasised, if it does more
    than the others. `free`: free text is an answer too. `times`: the moments in the text, in order.
    `awaits`: the event that takes the first option in the person's stead. `folds`: once decided,
    its first line is enough.
    """

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
    """Asks whether to carry out a plan. `steps`: their tasks, in order."""

    title: str
    steps: tuple[str, ...]
    expires: float = 0.0

    @property
    def text(self) -> str:
        """The plan in one line."""
        return f"{self.title}: {'; '.join(self.steps)}"


Question: TypeAlias = Approval | Decision | Input | PlanReview


class Answer(Struct, frozen=True, kw_only=True):
    """A person's answer, or its stand-in when none came.

    Approval: `choice` is once / conversation / always / deny; `text` the reason of a denial.
    Decision and Input: `choice` is once and `text` the option or the words. PlanReview: `choice` is
    once, or edit and `text` what to change, or deny. No answer: `choice` is expired or cancelled.
    `by` and `at` (seconds since 1970) go into the audit and the card. `said`: shown to people where
    `text` describes files or a voice note for the model; `heard`: the transcript.
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
