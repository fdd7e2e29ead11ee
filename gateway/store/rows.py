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
"""Ranges of transcript rows, half-open, in reading order."""
Thread: TypeAlias = tuple[tuple[Message, ...], ...]
"""The history that the model sees: the messages of each visible row."""


class Lease(Struct, frozen=True, kw_only=True):
    """The right to write one conversation. Every write carries `token`; an older one is refused.
    `nonce` distinguishes leases that a failover gave the same token."""

    conversation: str
    owner: str
    token: int
    nonce: str = ""


class AcceptedRow(Struct, frozen=True, kw_only=True):
    """The result for an inbound value: its place in the inbox, or that it was known already."""

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
    """The due time that began it, None if a person did."""


class RecordRow(Struct, frozen=True, kw_only=True):
    """One journal record; `n` orders the records of a turn. Encoded by its writer."""

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
    """The desired and delivered state of one view. `version` is wanted, `sent` is delivered.
    `sending` is the index of the part whose first send is under way (-1: none): found after a crash
    it means 'perhaps sent'. `final`: no newer version will come."""

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
    """A first send was cut off: it may have arrived twice, and says so."""
    lost: bool = False
    """It was cut off by the connection, not by a restart."""
    rev: int = 0
    copies: int = 0
    """First sends of its present part that may have been carried out and are not known to be."""
    crashes: int = 0
    """Holders that ended in the middle of such a send."""
    anew: int = 0
    """The number of its messages sent again because they were gone."""
    answers: str = ""
    """The message that its first one replies to, where several people talk."""
    given: int = 0
    """The number of its messages that another view took over, or that were removed: its next
    message is none of them."""
    spent: tuple[Native, ...] = ()
    """Messages of words that came before a call, which are to go: its tool lines say them."""
    language: str = ""
    """The language of whom it is for, "" if it is not known."""

    @property
    def is_unsent(self) -> bool:
        """True if the platform does not have its newest state."""
        return self.version > self.sent or self.sending >= 0 or bool(self.spent)


REPORT, BROUGHT = "report", "asked-"


def name_report(job: str, slot: str) -> str:
    """The name of the view that shows the report of a job of another conversation."""
    return f"{REPORT}:{job}:{slot}" if job else REPORT


def find_reported(view: OutboxRow) -> tuple[str, str]:
    """Return the job and the slot of the report that `view` shows; "" if it is none."""
    name, _, rest = view.name.partition(":")
    job, _, slot = rest.partition(":") if name == REPORT else ("", "", "")
    return job, slot


def name_brought(question: str) -> str:
    """The turn of the view that shows a question of another conversation."""
    return f"{BROUGHT}{question}"


def find_brought(view: OutboxRow) -> str:
    """Return the question of another conversation that `view` shows; "" if it shows none."""
    return view.turn.removeprefix(BROUGHT) if view.turn.startswith(BROUGHT) else ""


class Vote(Struct, frozen=True, kw_only=True):
    """One person's yes to a question that needs several. `accounts`: all of the person's."""

    accounts: tuple[str, ...]
    name: str
    choice: Choice
    at: float


class QuestionRow(Struct, frozen=True, kw_only=True):
    """A question to a person. `id` cannot be guessed; `entitled` are the sender keys whose plain
    words answer an input; `deciders`: the rule under which it was asked, None for the default.
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
    """Address of the approvers' chat that shows it too; `relayed`: it was sent there, `told`: so
    was its end."""
    relayed: bool = False
    told: bool = False
    writes: bool = False
    """The person chose to write something else: their next plain words answer it."""
    writers: tuple[str, ...] = ()
    """Sender keys of others who may decide it and have said so: their words are an answer too."""
    since: int = 0
    """The newest inbox row when it began to take words; what came until then is no answer."""

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
    """The messages of one ended turn, or a change of the history that the model sees.

    `turn`: the messages of the turn `turn` of `person`. The others name the rows visible from here
    on in `shows`: `new` (none), `undone` (all but that turn), `summary` (this row, in place of what
    was visible at the end of that turn), `resumed` (earlier rows, or this one, a copy).
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
    """The extent of `pattern`, as a value; rules of an older version have none."""


MAX_MODES = 200
"""People of one group whose choice is kept."""


class PersonMode(Struct, frozen=True, kw_only=True):
    """The choice of one person, a sender key, for their own turns in a group."""

    person: str
    permission: Literal["ask", "auto"]


class ConversationSettings(Struct, frozen=True, kw_only=True):
    """Settings chosen in a conversation. "" = the gateway's default. `permission` is for private
    chats, `modes` for groups."""

    permission: Literal["", "ask", "auto"] = ""
    modes: tuple[PersonMode, ...] = ()
    arrival: Literal["", "queue", "steer", "interrupt"] = ""
    mode: Literal["", "research", "data", "app", "code", "image", "slide"] = ""
    """The agent that requests go to."""
    plans: Literal["", "on", "off"] = ""
    """`on`: a plan is shown before it runs."""
    model: str = ""
    profile: str = ""
    """The agent's profile here: its tools and further instructions."""
    memory: Literal["", "off"] = ""
    """`off`: nothing is remembered here, and the model sees no memory."""
    rules: tuple[Rule, ...] = ()
    """Rules for this conversation; of an older version also 'always' rules."""
    people: tuple[str, ...] = ()
    """Accounts whose 'always' rules were given here."""
    workspace: str = ""
    instructions: str = ""
    """Lasting instructions of its people."""
    tools: str = ""
    """The set of tools that its turns have at most, "" for no such limit."""

    def find_mode(self, person: str) -> Literal["", "ask", "auto"]:
        """Return the person's choice for their own turns here, "" for none."""
        return next((one.permission for one in self.modes if one.person == person), "")

    def apply_terms(self, firing: Firing | None) -> "ConversationSettings":
        """Return the settings with those of a job's run in their place; unchanged if no job began
        the turn."""
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
        """Return the settings with this choice of the person's; the latest of many people are
        kept."""
        others = tuple(one for one in self.modes if one.person != person)
        chosen = PersonMode(person=person, permission=permission)
        return replace(self, modes=(*others, chosen)[-MAX_MODES:])


class HistoryPart(Struct, frozen=True, kw_only=True):
    """A part of a conversation that may be resumed: its history at its end."""

    conversation: str
    title: str
    shows: Spans


class ChainEnd(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sealed note about a chain of audit lines (gateway.store.audit_chain): `n` and `mac` are the
    number and the signature of a line, `key` names the sealing key. `behind` and `behind_mac`, of a
    begin: the line before those to be dropped, which remain until they are gone."""

    chain: str = ""
    n: int = 0
    mac: str = ""
    key: str = ""
    seal: str = ""
    behind: int = 0
    behind_mac: str = ""


class EditedWords(Struct, frozen=True, kw_only=True):
    """A later edit of the answered message of the turn `turn`. `parts`: the new words of each
    edited part, by message, where it came in several."""

    turn: str
    text: str
    parts: tuple[tuple[str, str], ...] = ()


class ConversationRow(Struct, frozen=True, kw_only=True):
    """A conversation's own state. `shows`: the part of the transcript sent to the model, `end`: the
    number of rows; `settings` are chosen in the chat; `position` and `rev` are the last ones used.
    """

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
    """The platform's retry-after, in seconds."""
    brought: tuple[str, ...] = ()
    """Open questions of other conversations that are shown here for a decision."""
    listed: tuple[str, ...] = ()
    """The questions that /approvals listed last, by their numbers."""
    followed: bool = False
    """A known person has addressed the agent in this thread."""
    settings: ConversationSettings = ConversationSettings()
    spent: Spent = Spent()
    found: tuple[HistoryPart, ...] = ()
    """The results of the last /resume here, in the order listed."""
    offered: tuple[str, str] | None = None
    """The view, by turn and name, with the buttons for the last turn."""
    edited: EditedWords | None = None
    """The words with which the last turn's button asks again; belongs to `offered`."""
    told_edit: str = ""
    """The last message of whose edit its person was told that it changes nothing."""
    audited: ChainEnd | None = None
    """The end of its chain of audit lines."""

    @property
    def is_counted(self) -> bool:
        """True if something was counted here."""
        return bool(self.end or self.position or self.rev)

    def count_view(self, now: float, *, new: bool) -> "ConversationRow":
        """Return the row after one more change of a view, of a `new` one or a known one. The first
        number comes from the clock: whoever has read a conversation that was removed under this
        address knows only lower ones."""
        first = 0 if self.rev else int(now * 1000)
        return replace(self, rev=first + self.rev + 1, position=first + self.position + int(new))


LetterKind = Literal["message", "turn", "view", "question", "conversation", "job", "run"]
JOBS = "jobs"
"""The place of letters of jobs and runs, which belong to no conversation."""


class Letter(Struct, frozen=True, kw_only=True):
    """A dead letter: content set aside with its payload until an operator resubmits or drops it.
    `name` is the row's own: the `seq` of a message, the id of a turn or a question, `turn name` of
    a view. `turn`: the one that a message began. `payload`: the row's JSON as it was stored."""

    id: str
    kind: LetterKind
    conversation: str
    name: str
    at: float
    why: str
    payload: bytes
    turn: str = ""


class AcquiredConversation(Struct, frozen=True, kw_only=True):
    """The content for a new lease holder: all of it small, nothing that grows with history."""

    lease: Lease
    row: ConversationRow
    last: int
    """The newest `seq` of the inbox; waiting rows up to it are all in `inbox`."""
    inbox: tuple[InboxRow, ...]
    turns: tuple[TurnRow, ...]
    views: tuple[OutboxRow, ...]
    questions: tuple[QuestionRow, ...]
    crashed: bool
    """The previous holder did not release: its work may be half done."""
    began: float
    """`ambient.monotonic()` before the lease was requested: its time counts from here at the
    latest, whenever the reply came."""
    damaged: tuple[Letter, ...] = ()
    """Rows that this version cannot read, as letters that are not stored yet."""
    doubt: int = 0
    """Rows up to this number may have been answered by a holder that the store has forgotten."""


class ErasedWords(Struct, frozen=True, kw_only=True):
    """The digests of a line's who, where and detail after a person's erasure, with the seal of who
    erased them."""

    digests: tuple[str, str, str]
    key: str
    seal: str


class AuditRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the append-only audit. `where`: the conversation, "" for none. Its place in a
    chain is "" and 0 in lines from before there were chains."""

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
    """Content to set aside: its row no longer counts as work."""
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
