"""What every session shares: the store, the adapters, the agent, access, and background work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from agent_core import ambient
from agent_core.guardrails.redaction import NOTHING, Redactions
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.snapshots import Snapshots
from gateway.access.access import Access
from gateway.conversation.agent import TurnMaker
from gateway.conversation.feed import Feed
from gateway.conversation.outage import Outage
from gateway.conversation.slots import Slots
from gateway.conversation.spawn import Spawn
from gateway.conversation.unsaved import RefusedCommit, Unsaved
from gateway.declaration import Env
from gateway.delivery.pace import FIRST_SIGN, Delay, Pace, Paces, SendGate, SignBudget
from gateway.jobs_port import JobPorts
from gateway.messages import Conversation, Sender
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


class Hearing(Protocol):
    """What listens to voice notes."""

    async def words(self, audio: BinaryIO, name: str) -> str:
        """What is said in the file `audio`, by whose `name` its format is known; raises
        ModelFailed."""


class Pairing(Protocol):
    """How strangers get in: they are shown a code, an admin enters it."""

    async def code_for(self, sender: Sender, where: Conversation) -> str:
        """The code that the stranger, writing in `where`, shows to an admin."""

    async def enter(self, code: str, by: str, language: str) -> str:
        """Let in who was shown `code`; what to tell the person `by` who entered it."""

    async def put_out(self, key: str, by: str, language: str) -> str:
        """End what pairing gave the account `key`; what to tell the person `by` who did it."""


class Linking(Protocol):
    """How a person's accounts become one person: one shows a code, another enters it."""

    async def code_for(self, sender: Sender) -> str:
        """The code that the person enters with another account."""

    async def enter(self, code: str, sender: Sender) -> str:
        """Link the account that was shown `code` with the sender's; what to tell the sender."""

    async def leave(self, sender: Sender) -> str:
        """Part this account from the others; what to tell the sender."""


class PageLinks(Protocol):
    """How a person of a chat comes to the page."""

    async def offer(self, sender: Sender) -> str:
        """What to tell the sender: a link that signs in once, or why there is none."""

    async def redeem(self, token: str) -> str:
        """The person of the page whose link this is, used up by this; "" if it is not good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPorts:
    """What the services need of the host that runs the sessions."""

    spawn: Spawn
    alarm: Callable[[float], None]
    deliver: Accept


class SandboxFacts(Protocol):
    """What is known of the place where commands run."""

    @property
    def name(self) -> str:
        """Its tier."""

    @property
    def missing(self) -> str:
        """What to install so that commands run at all; "" where they do."""

    @property
    def isolated(self) -> bool:
        """It keeps commands apart from the machine."""

    @property
    def encloses(self) -> str:
        """The tier by which the browser has a sandbox of its own; "" where it has none."""

    @property
    def limits(self) -> SandboxLimits:
        """What one conversation's commands may take in all."""

    @property
    def contains(self) -> bool:
        """It was tried out, and nothing got out."""

    @property
    def leaks(self) -> tuple[str, ...]:
        """What got out."""


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
    """Seconds within which a message goes on with the unfinished one before it."""
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
    """None: nothing is limited, so nothing is kept for all conversations together."""
    jobs: JobPorts | None = None
    """None: nothing is done again and again."""
    memory: Memories | None = None
    """None: nothing is remembered."""
    sandbox: SandboxFacts | None = None
    snapshots: Snapshots = field(default_factory=Snapshots)
    instructions: OperatorInstructions | None = None
    """None: the data folder has none."""
    retention: Retention | None = None
    """None: no conversation is ever dropped."""
    unsaved: dict[str, Unsaved] = field(default_factory=dict)
    """By conversation: what its last session made and could not commit."""
    refused: dict[str, RefusedCommit] = field(default_factory=dict)
    """By conversation: the commit that ended its last session, since the store never takes it."""
    feature_env: Env = field(default_factory=dict)
    """What is set of the settings that features declare."""
    outage: Outage | None = None
    """Tells people that their work cannot be committed at the moment; None: nobody is told."""
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
        """The rate budget of a chat: its threads share it, and whatever is sent there."""
        where = conversation
        chat = (where.platform, where.account, where.workspace, where.channel)
        return self._paces.get_pace(
            chat, self.adapters[conversation.platform].abilities.edit_interval
        )

    def find_redactions(self) -> Redactions:
        """What nobody may see in texts: the secrets of the vault, and what looks like one."""
        return (self.vault.words() if self.vault is not None else NOTHING).with_shapes()

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter that /metrics shows."""
        self.counters[name] = self.counters.get(name, 0) + by

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return ambient.now()
