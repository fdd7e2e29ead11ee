"""The store's rows as values. JSON by msgspec; `body` fields are typed where they are read."""

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_core.journal import Record, encode
from agent_core.messages import Message
from agent_core.questions import Choice, Coverage, Question
from gateway.approvers import Deciders
from gateway.messages import Firing, Inbound
from gateway.ports import Shown
from gateway.store.spending.tally import Spent
from gateway.views import View

TurnStatus = Literal["running", "parked", "done", "cancelled", "dead"]
QuestionStatus = Literal["open", "answered", "expired", "cancelled"]
RowState = Literal["waiting", "done", "dead"]
Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges of transcript rows, each from its first to before its last, in the order they are read."""
Thread: TypeAlias = tuple[tuple[Message, ...], ...]
"""What the model sees of a conversation: the messages of each row that is shown to it."""


class Lease(Struct, frozen=True, kw_only=True):
    """The right to write one conversation. Every write carries `token`; an older one is refused.
    `nonce` tells two leases apart that a failover gave the same token."""

    conversation: str
    owner: str
    token: int
    nonce: str = ""


class AcceptedRow(Struct, frozen=True, kw_only=True):
    """What became of an inbound value: its place in the inbox, or that it was known already."""

    seq: int
    fresh: bool


class InboxRow(Struct, frozen=True, kw_only=True):
    """A stored inbound value. `seq` orders the rows of a conversation."""

    seq: int
    at: float
    inbound: Inbound


class TurnRow(Struct, frozen=True, kw_only=True):
    """A turn without its records. `code` is the version that began it (for logs, never a gate);
    `resumes` counts resumes since the last progress."""

    id: str
    status: TurnStatus
    sender: str
    sender_name: str
    language: str
    role: str
    inbox: tuple[int, ...]
    message: str
    begun: float
    code: str
    history: Spans = ()
    """The part of the transcript that the turn began with."""
    resumes: int = 0
    text: str = ""
    """The first words, for lists."""
    firing: Firing | None = None
    """What began it, where no person did."""


class RecordRow(Struct, frozen=True, kw_only=True):
    """One journal record; `n` orders the records of a turn. Encoded where it is written."""

    turn: str
    n: int
    record: Record

    def body(self) -> bytes:
        """The record as JSON."""
        return encode(self.record)


class Native(Struct, frozen=True, kw_only=True):
    """One native message: its id and the digest of the payload it shows."""

    id: str
    digest: str


class OutboxRow(Struct, frozen=True, kw_only=True):
    """The desired state of one view and what the platform has of it.

    `version` is wanted, `sent` is there. `sending` is the index of the part whose first send is
    under way (-1: none): found after a crash it means 'perhaps sent'. `final`: no newer version
    will come.
    """

    turn: str
    name: str
    position: int
    version: int
    view: View
    at: float
    final: bool = False
    sent: int = 0
    natives: tuple[Native, ...] = ()
    sending: int = -1
    doubtful: bool = False
    """A first send was cut off: it may stand there twice, and says so."""
    lost: bool = False
    """It was cut off by the connection, not by a restart."""
    rev: int = 0
    copies: int = 0
    """First sends of its present part that may have been carried out and are not known to be."""
    crashes: int = 0
    """Holders that ended in the middle of such a send."""
    anew: int = 0
    """Times that a message of it was sent again, because it was gone."""
    answers: str = ""
    """The message that its first one replies to, where several people talk."""
    given: int = 0
    """Messages of it that another view took over, or that went: what comes next is none of them."""
    spent: tuple[Native, ...] = ()
    """Messages of words that came before a call, which are to go: its tool lines say them."""

    @property
    def is_unsent(self) -> bool:
        """The platform is still to be told something of it."""
        return self.version > self.sent or self.sending >= 0 or bool(self.spent)


class Vote(Struct, frozen=True, kw_only=True):
    """One person's yes to a question that needs several. `accounts`: all that the person had."""

    accounts: tuple[str, ...]
    name: str
    choice: Choice
    at: float


class QuestionRow(Struct, frozen=True, kw_only=True):
    """A question to a person. `id` cannot be guessed; `entitled` are the sender keys whose plain
    words answer an input; `deciders` the rule that it was asked under, None for the default.
    `expires` and `remind` in seconds since 1970, 0 = never."""

    id: str
    turn: str
    key: str
    status: QuestionStatus
    question: Question
    entitled: tuple[str, ...]
    asked: float
    expires: float
    reminded: bool = False
    remind: float = 0.0
    deciders: Deciders | None = None
    escalated: bool = False
    votes: tuple[Vote, ...] = ()
    chat: str = ""
    """Address of the approvers' chat that shows it too; `relayed`: it was brought there, `told`:
    so was its end."""
    relayed: bool = False
    told: bool = False
    writes: bool = False
    """Who chooses has said that they write something else: their next plain words answer it."""
    writers: tuple[str, ...] = ()
    """Sender keys of others who may decide it and have said so: their words are an answer too."""

    @property
    def asker(self) -> str:
        """The account that asked for it."""
        return self.entitled[0] if self.entitled else ""

    @property
    def escalates(self) -> float:
        """When more people may decide, seconds since 1970; 0 = never, or they may already."""
        rule = self.deciders
        return self.asked + rule.after if rule and rule.then and not self.escalated else 0.0

    @property
    def due(self) -> float:
        """The nearest moment at which something is to be done, 0 = never."""
        if self.status != "open":
            return self.asked if self.chat and not self.told else 0.0
        remind = 0.0 if self.reminded else self.remind
        relay = self.asked if self.chat and not self.relayed else 0.0
        return min(filter(None, (self.expires, remind, relay, self.escalates)), default=0.0)


class TranscriptRow(Struct, frozen=True, kw_only=True):
    """What one ended turn adds to the conversation, or a change of what the model sees of it.

    `turn`: what the turn `turn` of `person` added. The others say in `shows` what is seen from
    here on: `new` (nothing), `undone` (all but that turn), `summary` (this row, in place of what
    was seen at the end of that turn), `resumed` (earlier rows, or this one, a copy).
    """

    n: int
    turn: str
    messages: tuple[Message, ...]
    kind: Literal["turn", "new", "undone", "summary", "resumed"] = "turn"
    shows: Spans = ()
    person: str = ""
    at: float = 0.0


class Rule(Struct, frozen=True, kw_only=True):
    """A stored 'allow': for this tool and these exact words, asked by this person. `by`: the name
    of who allowed it, `at`: when, seconds since 1970; "" and 0 where that was not put down."""

    tool: str
    pattern: str
    person: str
    lasting: bool = False
    """True: kept over /new ('always'); False: until /new ('for this conversation')."""
    by: str = ""
    at: float = 0.0
    covers: Coverage | None = None
    """What `pattern` covers, as a value; rules of an older version have none."""


MAX_MODES = 200
"""People of one group whose choice is kept."""


class PersonMode(Struct, frozen=True, kw_only=True):
    """What one person, a sender key, chose in a group for their own turns."""

    person: str
    permission: Literal["ask", "auto"]


class ConversationSettings(Struct, frozen=True, kw_only=True):
    """What a conversation's people chose. "" = the gateway's default. `permission` is for private
    chats, `modes` for groups."""

    permission: Literal["", "ask", "auto"] = ""
    modes: tuple[PersonMode, ...] = ()
    arrival: Literal["", "queue", "steer", "interrupt"] = ""
    mode: Literal["", "research", "data", "app", "code", "image", "slide"] = ""
    """Which agent requests go to."""
    plans: Literal["", "on", "off"] = ""
    """`on`: a plan is shown before it runs."""
    model: str = ""
    profile: str = ""
    """What the agent is for here: its tools, its further instructions."""
    memory: Literal["", "off"] = ""
    """`off`: nothing is remembered here, and nothing of it shown to the model."""
    rules: tuple[Rule, ...] = ()
    """Those for this conversation; and of an older version those for always."""
    people: tuple[str, ...] = ()
    """Accounts whose rules for always were given here."""
    workspace: str = ""
    instructions: str = ""
    """What its people ask of the agent for good."""
    tools: str = ""
    """The set of tools that its turns have at most, "" for no such limit."""

    def find_mode(self, person: str) -> Literal["", "ask", "auto"]:
        """What the person chose here for their own turns, "" if nothing."""
        return next((one.permission for one in self.modes if one.person == person), "")

    def apply_terms(self, firing: Firing | None) -> "ConversationSettings":
        """With what a run of a job is done by instead; as they are where no job began the turn."""
        if firing is None:
            return self
        terms = firing.terms
        return replace(
            self,
            model=terms.model or self.model,
            profile=terms.profile or self.profile,
            tools=terms.tools or self.tools,
        )

    def choose_mode(
        self, person: str, permission: Literal["ask", "auto"]
    ) -> "ConversationSettings":
        """With this choice of the person's; of many people the latest are kept."""
        others = tuple(one for one in self.modes if one.person != person)
        chosen = PersonMode(person=person, permission=permission)
        return replace(self, modes=(*others, chosen)[-MAX_MODES:])


class HistoryPart(Struct, frozen=True, kw_only=True):
    """A part of a conversation that may be resumed: what was seen of it at its end."""

    conversation: str
    title: str
    shows: Spans


class ChainEnd(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sealed note about a chain of audit lines (gateway.store.audit_chain): `n` and `mac` are
    the number and the signature of a line, `key` names what the seal was made with. `behind` and
    `behind_mac`, of a begin: the line before those that go, which are there until they are gone."""

    chain: str = ""
    n: int = 0
    mac: str = ""
    key: str = ""
    seal: str = ""
    behind: int = 0
    behind_mac: str = ""


class EditedWords(Struct, frozen=True, kw_only=True):
    """What the person of the turn `turn` made of its message when it was answered already."""

    turn: str
    text: str


class ConversationRow(Struct, frozen=True, kw_only=True):
    """A conversation's own state. `shows`: the part of the transcript that is sent to the model,
    `end`: how many rows there are; `settings` are chosen in the chat; `position` and `rev` are
    the last ones given."""

    shows: Spans = ()
    end: int = 0
    position: int = 0
    rev: int = 0
    title: str = ""
    crashes: int = 0
    """Holders in a row that ended without any progress."""
    quiet_until: float = 0.0
    """Seconds since 1970 until which the platform wants to hear nothing here."""
    quiet_for: float = 3_600.0
    """Seconds that the platform asked for."""
    brought: tuple[str, ...] = ()
    """Open questions of other conversations that are shown here for a decision."""
    followed: bool = False
    """A known person has addressed the agent in this thread."""
    settings: ConversationSettings = ConversationSettings()
    spent: Spent = Spent()
    found: tuple[HistoryPart, ...] = ()
    """What the last /resume found here, in the order it was listed."""
    offered: tuple[str, str] | None = None
    """The view, by its turn and name, that bears what can be done about the last turn."""
    edited: EditedWords | None = None
    """With what the last turn is asked again by its button; goes with `offered`."""
    audited: ChainEnd | None = None
    """Where its chain of audit lines ends."""

    @property
    def is_counted(self) -> bool:
        """Something was counted here."""
        return bool(self.end or self.position or self.rev)


LetterKind = Literal["message", "turn", "view", "question", "conversation", "job", "run"]
JOBS = "jobs"
"""Where the letters of jobs and runs belong, which are no conversation's."""


class Letter(Struct, frozen=True, kw_only=True):
    """A dead letter: something that was set aside, with its payload, until an operator resubmits
    or drops it.

    `name` is the row's own: the `seq` of a message, the id of a turn or a question, `turn name` of
    a view. `turn`: the one that a message began. `payload`: the row's JSON as it was stored.
    """

    id: str
    kind: LetterKind
    conversation: str
    name: str
    at: float
    why: str
    payload: bytes
    turn: str = ""


class AcquiredConversation(Struct, frozen=True, kw_only=True):
    """What a new lease holder needs: all of it small, nothing that grows with history."""

    lease: Lease
    row: ConversationRow
    last: int
    """The newest `seq` of the inbox; waiting rows up to it are all in `inbox`."""
    inbox: tuple[InboxRow, ...]
    turns: tuple[TurnRow, ...]
    views: tuple[OutboxRow, ...]
    questions: tuple[QuestionRow, ...]
    crashed: bool
    """The holder before did not release: what it began may be half done."""
    began: float
    """`ambient.monotonic()` before the lease was asked for: its time counts from here at the
    latest, whenever the answer came."""
    damaged: tuple[Letter, ...] = ()
    """Rows that this version cannot read, as letters that are not stored yet."""


class ErasedWords(Struct, frozen=True, kw_only=True):
    """What is left of a line's who, where and detail when a person is erased: their digests, and
    the seal of who erased them."""

    digests: tuple[str, str, str]
    key: str
    seal: str


class AuditRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the append-only audit. `where`: the conversation, "" for what belongs to none.
    Its place in a chain is "" and 0 in lines from before there were chains."""

    at: float
    who: str
    what: str
    detail: str
    where: str = ""
    chain: str = ""
    n: int = 0
    salt: str = ""
    key: str = ""
    mac: str = ""
    erased: ErasedWords | None = None


class Changes(Struct, frozen=True, kw_only=True):
    """One atomic write to a conversation."""

    turns: tuple[TurnRow, ...] = ()
    records: tuple[RecordRow, ...] = ()
    done: tuple[int, ...] = ()
    unheard: tuple[str, ...] = ()
    """Names of messages (see `dedupe_keys`) that were not for the agent: each may come once more,
    as when an edit adds a mention."""
    letters: tuple[Letter, ...] = ()
    """What is set aside: its row does not count as work any more."""
    views: tuple[OutboxRow, ...] = ()
    questions: tuple[QuestionRow, ...] = ()
    transcript: tuple[TranscriptRow, ...] = ()
    row: ConversationRow | None = None
    audit: tuple[AuditRow, ...] = ()


def show_row(row: OutboxRow) -> Shown:
    """The row's view as people see it."""
    return Shown(
        rev=row.rev, turn=row.turn, name=row.name, position=row.position, at=row.at, view=row.view
    )
