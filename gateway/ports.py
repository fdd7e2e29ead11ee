"""What the gateway asks of an adapter, and what an adapter may ask of the gateway.

Vocabulary: imports nothing of ours but messages, views and shown jobs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from gateway.messages import Attachment, Conversation, Inbound, Quote, Sender
from gateway.shown_jobs import ShownJob, ShownRun
from gateway.views import Abilities, Button, View

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

Accept: TypeAlias = Callable[[Sequence[Inbound]], Awaitable[None]]
"""Stores inbound values; returns when they are kept, raises StoreFailed if they are not.
Only then may a platform get its acknowledgement. Redeliveries are welcome: they are dropped."""


NoteAudit: TypeAlias = Callable[[str, str, str], Awaitable[None]]
"""Adds a line to the audit that belongs to no conversation: who, what, and the detail."""


async def note_nowhere(who: str, what: str, detail: str) -> None:
    """Where no audit is kept."""


class Adapter(Protocol):
    """Our connection to one account on one platform.

    `last_contact`: `ambient.monotonic()` of the last proof that inbound is live, 0 before it.
    `routes`: HTTP routes that it serves (webhooks, the page); may be empty.

    Calls raise RateLimited, Unsent, Ambiguous or Rejected (gateway.errors) and nothing else; Gone
    is for edits alone, and with TokenRefused `last_contact` becomes 0.
    """

    platform: str
    abilities: Abilities
    last_contact: float

    @property
    def routes(self) -> "Sequence[AbstractRouteDef]": ...

    async def run(self, accept: Accept) -> None:
        """Connect and receive until cancelled; reconnects by itself."""

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """Native payloads, one a message, in order. Pure: same view, same bytes."""

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        """Send one payload as a new message; its native id. `answers`: shown as a reply to that
        message (abilities.replies), or as none where it is gone."""

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Make the message `native` show `payload`. Doing it twice is harmless."""

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Show `text` as growing under `key` (abilities.drafts)."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """Acknowledge a press with a private word; best effort."""

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """A visible sign on a waiting message that it was received; best effort."""

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """Write the attachment's bytes to `to`, an open file. After an error it may hold a part of
        them: what failed is fetched again into an empty one."""


@runtime_checkable
class Recalling(Protocol):
    """An adapter whose platform recognises a send that is made again (abilities.recalls)."""

    async def send_as(
        self, name: str, conversation: Conversation, payload: bytes, answers: str = ""
    ) -> str:
        """As `send`; `name` has at most 25 characters. Made again with the same name while the
        platform knows it, nothing is sent: the id of the message that stands there."""


@runtime_checkable
class Removing(Protocol):
    """An adapter that can take messages of ours out of a chat."""

    async def remove(self, conversation: Conversation, native: str) -> None:
        """Take the message out; one that is gone already is. Errors as of other calls."""


@runtime_checkable
class Working(Protocol):
    """An adapter whose platform can show that a message is worked at. Both are best effort."""

    async def show_work(self, conversation: Conversation, message: str) -> bool:
        """Show for the next seconds that `message` is worked at; True if the sign is one that
        stands until `clear_receipt`."""

    async def clear_receipt(self, conversation: Conversation, message: str) -> None:
        """Take the sign of `receipt` away: the message waits no more."""


@runtime_checkable
class ThreadReading(Protocol):
    """An adapter whose platform lets the bot read what people say in a thread."""

    async def read_thread(
        self, conversation: Conversation, before: str, limit: int
    ) -> tuple[Quote, ...]:
        """What the thread began with and the last `limit` messages above the message `before`,
        oldest first; none where it may not be read."""


@runtime_checkable
class Probing(Protocol):
    """An adapter that can find out whether its platform answers at all."""

    async def probe(self) -> None:
        """A call that changes nothing; raises as the others do."""


@runtime_checkable
class Hooked(Protocol):
    """An adapter whose webhook can change while it runs."""

    def change_webhook(self, url: str, secret: str) -> None:
        """Receive by this one from now on. ValueError if it cannot be done without a restart."""


class HookAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call from outside is told: `text` says why nothing was begun, else `state` is what
    has become of the `run` of `job`."""

    status: int
    text: str = ""
    job: str = ""
    run: str = ""
    state: str = ""


class WebhookReceiver(Protocol):
    """Takes signed calls from outside."""

    async def call(self, name: str, headers: Mapping[str, str], body: bytes) -> HookAnswer:
        """Begin what the hook `name` stands for, once for each call; `headers` in small letters.
        Raises StoreFailed."""


class SignInStep(Struct, frozen=True, kw_only=True):
    """Where a person is who signs in at a server of tools. `url`: where their browser goes on to,
    `browser`: what it is to bring back."""

    outcome: Literal["over", "asked", "onward", "failed", "done"]
    server: str = ""
    person: str = ""
    platform: str = ""
    url: str = ""
    browser: str = ""


class SignInPages(Protocol):
    """What a link does that a person was given to sign in at a server. Each raises StoreFailed."""

    async def look(self, token: str) -> SignInStep:
        """Whose link it is, and for what; does nothing."""

    async def begin(self, token: str) -> SignInStep:
        """Begin the sign-in."""

    async def finish(self, state: str, code: str, issuer: str, browser: str) -> SignInStep:
        """End it, once: a `code` is what went well."""


class JobDesk(Protocol):
    """What the HTTP API may do about jobs, as their person may in any chat. Raises StoreFailed."""

    async def role(self, sender: Sender) -> Literal["admin", "user", "viewer"] | None:
        """The sender's role, None for a stranger."""

    async def jobs(self, sender: Sender) -> tuple[ShownJob, ...]:
        """Those that the person may manage."""

    async def runs(self, sender: Sender, name: str) -> tuple[ShownRun, ...] | None:
        """The newest runs of one of them, None if there is no such job."""

    async def act(self, sender: Sender, name: str, action: str, key: str) -> bool | None:
        """Run, pause, resume or delete one of them; False if that changes nothing, None if there
        is no such job. The same `key` makes one run."""

    async def edit(self, sender: Sender, name: str, fields: Mapping[str, str]) -> str | None:
        """Change fields of one of them; why that cannot be, "" if it was done, None if there is
        no such job."""


class Shown(Struct, frozen=True, kw_only=True):
    """A view as the store holds it. `rev` grows with each change within the conversation;
    `position` orders views for people; `at` seconds since 1970 of its first appearance."""

    rev: int
    turn: str
    name: str
    position: int
    at: float
    view: View


class Growing(Struct, frozen=True, kw_only=True):
    """Live text of a reply under way; `text` is the whole so far."""

    turn: str
    text: str


class Printed(Struct, frozen=True, kw_only=True):
    """Live output of a command or a program of the turn, as far as it is new. It is not kept:
    its end stands in the call's result."""

    turn: str
    call_id: str
    text: str


class Summary(Struct, frozen=True, kw_only=True):
    """A conversation in a list. `state` is what goes on in it now; `model` what its people chose,
    "" for what is set for all."""

    conversation: str
    title: str
    at: float
    state: Literal["idle", "running", "waiting"]
    model: str = ""


class ListScope(Struct, frozen=True, kw_only=True):
    """Which conversations a list holds: all of an `account`, those of a group's `channel` with
    all its threads, or the private ones of a `person`, named by the sender's key."""

    kind: Literal["account", "channel", "person"]
    name: str

    @property
    def key(self) -> str:
        """The list's name in a store."""
        return f"{self.kind[0]}:{self.name}"


def account_scope(where: Conversation) -> ListScope:
    """All conversations of the account that `where` belongs to."""
    return ListScope(kind="account", name=":".join(where.id.split(":", 2)[:2]))


def channel_scope(where: Conversation) -> ListScope:
    """All conversations of the group that `where` belongs to."""
    return ListScope(kind="channel", name=replace(where, thread="", person="", private=False).id)


def person_scope(sender_key: str) -> ListScope:
    """The private conversations of one account of a person."""
    return ListScope(kind="person", name=sender_key)


MAX_WORDS = 8
"""Words of a search that count."""


def parse_words(words: str) -> frozenset[str]:
    """What to look for, folded."""
    return frozenset(words.casefold().split()[:MAX_WORDS])


class Standing(Struct, frozen=True, kw_only=True):
    """What goes on in a conversation besides its views. `model`: which one answers, and those that
    answer where it fails."""

    title: str
    state: Literal["idle", "running", "waiting"]
    waiting: "tuple[Waiting, ...]"
    model: str = ""


class Waiting(Struct, frozen=True, kw_only=True):
    """A message that waits for its turn, as its person left it: edits are in. `message` names it
    where it is edited or withdrawn."""

    seq: int
    name: str
    text: str
    at: float
    message: str = ""
    files: tuple[str, ...] = ()


class Changed(Struct, frozen=True, kw_only=True):
    """The conversation's state or its waiting messages are others than before: ask for them."""


class Offered(Struct, frozen=True, kw_only=True):
    """A command that its person may give. `values`: the first words that it knows."""

    name: str
    help: str
    values: tuple[str, ...] = ()


class OverviewEntry(Struct, frozen=True, kw_only=True):
    """One thing in an overview. `conversation`: the address where its buttons count; `stops`: the
    turn that runs there can be stopped."""

    text: str
    conversation: str
    buttons: tuple[Button, ...] = ()
    stops: bool = False


class Overview(Struct, frozen=True, kw_only=True):
    """What waits for a person's decision, what runs for them, and their jobs."""

    waits: tuple[OverviewEntry, ...] = ()
    runs: tuple[OverviewEntry, ...] = ()
    jobs: tuple[OverviewEntry, ...] = ()


class WaitingCard(Struct, frozen=True, kw_only=True):
    """A question that waits for a person: `text` in one line, `conversation` its address,
    `since` seconds since 1970."""

    text: str
    conversation: str
    since: float


Look: TypeAlias = Callable[[Conversation, Sender], Awaitable[Overview]]
"""The overview of a person, asked for from their private chat. StoreFailed if it cannot be read."""


Recent: TypeAlias = Callable[[ListScope, int], Awaitable[Sequence[Summary]]]
"""The newest so many conversations of a list. StoreFailed if they cannot be read."""


Live: TypeAlias = Shown | Growing | Printed | Changed


class WebBackend(Protocol):
    """What the HTTP API may ask of the gateway: the same that every chat has, as values."""

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """As `Accept`."""

    async def list_waiting(self, sender: Sender) -> tuple[WaitingCard, ...]:
        """What waits for the person in any of their conversations. StoreFailed."""

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        """Views whose `rev` is above `after`, by `rev`; the oldest `limit` of them."""

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        """The newest `limit` views by `position`, oldest first: a page of history. With `before`
        of those below that position."""

    async def read_standing(self, conversation: str) -> Standing:
        """What goes on there now; a conversation that nobody began is idle."""

    async def remove(self, conversation: str) -> bool:
        """Take away all that the conversation has, for good; False where work goes on there or a
        job lives there. StoreFailed."""

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        """The conversations of a list, newest first; with `words` only the ones whose title and
        views together hold each of them."""

    def watch(self, conversation: str) -> AbstractAsyncContextManager[AsyncIterator[Live]]:
        """What changes from now on, behind what has grown of an answer until now. Growing text
        and output may be skipped over, views never are: a reader that falls behind gets an end
        of the iterator and asks `views` again."""

    def commands(self, sender: Sender) -> tuple[Offered, ...]:
        """The commands that the sender's role may give."""

    async def find_role(self, sender: Sender) -> Literal["admin", "user", "viewer"] | None:
        """The sender's role, None for a stranger. StoreFailed."""
