"""The services shared by all sessions: the store, the adapters, the agent, access, and background
work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from agent_core import ambient
from agent_core.guardrails.redaction import NOTHING, Redactions
from agent_core.sandboxes.link import LimitHolder, SandboxLimits
from agent_core.sandboxes.snapshots import Snapshots
from gateway.access.access import Access
from gateway.conversation.agent import TurnMaker
from gateway.conversation.feed import Feed
from gateway.conversation.outage import Outage
from gateway.conversation.slots import Slots
from gateway.conversation.spawn import Spawn
from gateway.conversation.unsaved import RefusedCommit, Unsaved
from gateway.declaration import Env
from gateway.delivery.pace import FIRST_SIGN, Delay, Pace, Paces, SignBudget
from gateway.delivery.send_gate import SendGate
from gateway.jobs_port import JobPorts
from gateway.messages import (
    ButtonPressed,
    Conversation,
    FormSubmitted,
    JobPress,
    PlanPress,
    QuestionPress,
    Sender,
    TurnPress,
    read_press,
)
from gateway.ports import Accept, Adapter
from gateway.services.ledger import Ledger
from gateway.services.memory import Memories
from gateway.services.operator_instructions import OperatorInstructions
from gateway.services.recent_threads import RecentThreads
from gateway.services.retention import Retention
from gateway.services.shortages import Shortages
from gateway.services.vault import Vault
from gateway.store.audit_chain import AuditSigner
from gateway.store.port import Store
from gateway.store.rows import QuestionRow


class Hearing(Protocol):
    """Transcribes voice notes."""

    async def words(self, audio: BinaryIO, name: str) -> str:
        """Transcribe the file `audio`, whose `name` tells its format; raises ModelFailed."""


class Pairing(Protocol):
    """Pairing of strangers: they are shown a code, an admin enters it."""

    async def code_for(self, sender: Sender, where: Conversation) -> str:
        """The code that the stranger, writing in `where`, shows to an admin."""

    async def enter(self, code: str, by: str, language: str) -> str:
        """Admit the person who was shown `code`. Return the reply to `by`, who entered it."""

    async def put_out(self, key: str, by: str, language: str) -> str:
        """Revoke what pairing gave the account `key`. Return the reply to `by`, who did it."""


class Linking(Protocol):
    """Links a person's accounts: one shows a code, another enters it."""

    async def code_for(self, sender: Sender) -> str:
        """The code that the person enters with another account."""

    async def enter(self, code: str, sender: Sender) -> str:
        """Link the account that was shown `code` with the sender's. Return the reply."""

    async def leave(self, sender: Sender) -> str:
        """Unlink this account from the others. Return the reply."""


class PageLinks(Protocol):
    """Sign-in links to the page for people in chats."""

    async def offer(self, sender: Sender) -> str:
        """Return the reply to the sender: a single-use sign-in link, or the reason why there is
        none."""

    async def redeem(self, token: str) -> str:
        """Use the link up and return its person on the page; "" if it is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPorts:
    """The host as the services see it."""

    spawn: Spawn
    alarm: Callable[[float], None]
    deliver: Accept


class SandboxFacts(Protocol):
    """Facts about the sandbox in which commands run."""

    @property
    def name(self) -> str:
        """The name of its tier."""

    @property
    def missing(self) -> str:
        """The software to install before commands can run; "" if they can."""

    @property
    def isolated(self) -> bool:
        """True if it isolates commands from the machine."""

    @property
    def encloses(self) -> str:
        """The tier in which the browser has a sandbox of its own; "" if it has none."""

    @property
    def limits(self) -> SandboxLimits:
        """The limits of one conversation's sandbox."""

    @property
    def limit_holder(self) -> LimitHolder:
        """Their holder."""

    @property
    def contains(self) -> bool:
        """True if the self-test passed: nothing escapes."""

    @property
    def leaks(self) -> tuple[str, ...]:
        """The checks of the self-test that failed."""

    @property
    def cannot(self) -> frozenset[str]:
        """Checks that its kind of sandbox cannot pass, and which do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Shared by all sessions of this process.

    `owner`: this replica's stable id. `ttl`: seconds a lease lasts. `question_expires`: seconds
    after which an open question counts as denied, `question_reminder` after which its people are
    reminded once, 0 = never. `version`: of this code.
    """

    store: Store
    adapters: Mapping[str, Adapter]
    agent: TurnMaker
    access: Access
    spawn: Spawn
    owner: str
    signer: AuditSigner
    """Signs the lines of the audit."""
    feed: Feed = field(default_factory=Feed)
    ttl: float = 30.0
    question_expires: float = 7 * 86_400.0
    question_reminder: float = 0.0
    version: str = ""
    most_waiting: int = 50
    burst: float = 0.0
    """Seconds within which a message continues an unfinished one."""
    most_parked: int = 20
    give_up_after: int = 3
    cancel_patience: float = 5.0
    alarm: Callable[[float], None] = lambda when: None
    """Told when something is to be done about a stored question (seconds since 1970)."""
    deliver: Accept | None = None
    """Brings something into another conversation; it is kept when this returns."""
    counters: dict[str, int] = field(default_factory=dict)
    pairing: Pairing | None = None
    hearing: Hearing | None = None
    linking: Linking | None = None
    page_links: PageLinks | None = None
    vault: Vault | None = None
    ledger: Ledger | None = None
    """None: spending is unlimited, and no shared total is kept."""
    jobs: JobPorts | None = None
    """None: there are no jobs."""
    memory: Memories | None = None
    """None: there is no memory."""
    sandbox: SandboxFacts | None = None
    snapshots: Snapshots = field(default_factory=Snapshots)
    instructions: OperatorInstructions | None = None
    """None: the data folder has no instructions."""
    retention: Retention | None = None
    """None: conversations are never deleted."""
    unsaved: dict[str, Unsaved] = field(default_factory=dict)
    """By conversation: the changes that its last session could not commit."""
    refused: dict[str, RefusedCommit] = field(default_factory=dict)
    """By conversation: the commit that ended its last session because the store can never take
    it."""
    feature_env: Env = field(default_factory=dict)
    """The values of settings that features declare."""
    outage: Outage | None = None
    """Tells people that their work cannot be committed now; None: nobody is told."""
    shortages: Shortages = field(default_factory=Shortages)
    slots: Slots = field(default_factory=Slots)
    threads: RecentThreads = field(default_factory=RecentThreads)
    first_signs: Delay = field(init=False)
    """Calls that are due when a turn without a view has to show that it is worked at."""
    _gates: dict[str, SendGate] = field(default_factory=dict)
    _signs: dict[tuple[str, str], SignBudget] = field(default_factory=dict)
    _paces: Paces = field(default_factory=Paces)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first_signs", Delay(self.spawn, FIRST_SIGN))

    def gate(self, platform: str) -> SendGate:
        """The gate of first sends of a platform's account."""
        return self._gates.setdefault(platform, SendGate())

    def take_sign(self, where: Conversation) -> bool:
        """Count one more sign of life as sent by the account there; False if there is no room."""
        account = (where.platform, where.account)
        if account not in self._signs:
            self._signs[account] = SignBudget()
        return self._signs[account].take()

    def pace(self, conversation: Conversation) -> Pace:
        """Return the rate budget of a chat, which its threads share."""
        where = conversation
        chat = (where.platform, where.account, where.workspace, where.channel)
        return self._paces.get_pace(
            chat, self.adapters[conversation.platform].abilities.edit_interval
        )

    def find_redactions(self) -> Redactions:
        """Return the redactions for texts: secrets of the vault, and words that look like
        secrets."""
        return (self.vault.words() if self.vault is not None else NOTHING).with_shapes()

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter that /metrics shows."""
        self.counters[name] = self.counters.get(name, 0) + by

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return ambient.now()

    async def find_pressed(
        self, press: ButtonPressed | FormSubmitted
    ) -> tuple[str, QuestionRow | None]:
        """Return the (conversation, question) of a button. Of others than a question's only the
        conversation, if the platform did not tell the thread; "" if it belongs to none."""
        anywhere = press.anywhere
        match asked := read_press(press.token):
            case QuestionPress():
                return await self.store.find(asked.question) or ("", None)
            case PlanPress() | TurnPress() if anywhere:
                return await self.store.locate(asked.turn), None
            case JobPress() if anywhere and self.jobs is not None:
                job = await self.jobs.store.get(asked.job)
                return job.conversation if job is not None else "", None
            case _:
                return "", None
