"""The contract between the gateway and an adapter, in both directions.

Vocabulary: imports nothing of ours but messages, views and shown jobs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from gateway.folded_text import fold_text
from gateway.messages import Attachment, Conversation, Inbound, Quote, Sender
from gateway.shown_jobs import ShownJob, ShownRun
from gateway.views import Abilities, Button, View

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

Accept: TypeAlias = Callable[[Sequence[Inbound]], Awaitable[None]]
"""Stores inbound values; returns when they are kept, raises StoreFailed if they are not.
Only then may a platform get its acknowledgement. Redeliveries are welcome: they are dropped."""


NoteAudit: TypeAlias = Callable[[str, str, str], Awaitable[None]]
"""Adds an audit line that belongs to no conversation: who, what, and the detail."""


async def note_nowhere(who: str, what: str, detail: str) -> None:
    """Drop the line: the default where no audit is kept."""


class Adapter(Protocol):
    """A connection to one account on one platform.

    `last_contact`: `ambient.monotonic()` of the last proof that inbound is live, 0 before it.
    `routes`: HTTP routes that it serves (webhooks, the page); may be empty. Calls raise
    RateLimited, Unsent, Ambiguous or Rejected (gateway.errors) and nothing else; Gone is for edits
    alone, and TokenRefused resets `last_contact` to 0.
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
        """Send one payload as a new message and return its native id. `answers`: the message it
        replies to (abilities.replies); sent as no reply if that one is gone."""

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Make the message `native` show `payload`. Doing it twice is harmless."""

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Show `text` as growing under `key` (abilities.drafts)."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """Acknowledge a press with a private word; best effort."""

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """A visible sign on a waiting message that it was received; best effort."""

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """Write the attachment's bytes to the open file `to`. After an error it may hold a part of
        them; a retry needs an empty file."""


@runtime_checkable
class Recalling(Protocol):
    """An adapter whose platform recognises a repeated send (abilities.recalls)."""

    async def send_as(
        self, name: str, conversation: Conversation, payload: bytes, answers: str = ""
    ) -> str:
        """Like `send`, idempotent by `name` (at most 25 characters): while the platform knows the
        name, a repeated call sends nothing and returns the existing message's id."""


@runtime_checkable
class Removing(Protocol):
    """An adapter that can take messages of ours out of a chat."""

    async def remove(self, conversation: Conversation, native: str) -> None:
        """Delete the message; one that is gone counts as deleted. Raises like other calls."""


@runtime_checkable
class Working(Protocol):
    """An adapter whose platform can show that a message is being worked on. Both are best
    effort."""

    async def show_work(self, conversation: Conversation, message: str) -> bool:
        """Show for some seconds that `message` is being worked on. Return True if the sign stays
        until `clear_receipt`."""

    async def clear_receipt(self, conversation: Conversation, message: str) -> None:
        """Remove the sign set by `receipt`: the message no longer waits."""


@runtime_checkable
class ThreadReading(Protocol):
    """An adapter whose platform lets the bot read a thread's messages."""

    async def read_thread(
        self, conversation: Conversation, before: str, limit: int
    ) -> tuple[Quote, ...]:
        """Return the thread's first message and the last `limit` messages before `before`, oldest
        first; nothing where they may not be read."""


@runtime_checkable
class GroupReading(Protocol):
    """An adapter that can find out which roles or user groups a person has now."""

    async def read_groups(self, conversation: Conversation, person: str) -> tuple[str, ...] | None:
        """Return the ids of the groups of `person`, an id of the platform, where the conversation
        is; none for who has left; None if it cannot be found out. DeliveryError."""


@runtime_checkable
class Probing(Protocol):
    """An adapter that can find out whether its platform answers at all."""

    async def probe(self) -> None:
        """A call that changes nothing; raises as the others do."""


@runtime_checkable
class Hooked(Protocol):
    """An adapter whose webhook can change at run time."""

    def change_webhook(self, url: str, secret: str) -> None:
        """Receive by this one from now on. ValueError if it cannot be done without a restart."""


class HookAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a call from outside: `text` says why nothing was started, otherwise `state` is
    that of the `run` of `job`."""

    status: int
    text: str = ""
    job: str = ""
    run: str = ""
    state: str = ""


class WebhookReceiver(Protocol):
    """Receives signed calls from outside."""

    async def call(self, name: str, headers: Mapping[str, str], body: bytes) -> HookAnswer:
        """Start the work of the hook `name`, once for each call; `headers` in lower case. Raises
        StoreFailed."""


class SignInStep(Struct, frozen=True, kw_only=True):
    """One step of a person's sign-in at a tool server. `url`: the next address for their browser;
    `browser`: the value it must bring back."""

    outcome: Literal["over", "asked", "onward", "failed", "done"]
    server: str = ""
    person: str = ""
    platform: str = ""
    url: str = ""
    browser: str = ""


class SignInPages(Protocol):
    """The pages behind a sign-in link. Each method raises StoreFailed."""

    async def look(self, token: str) -> SignInStep:
        """Return the person and purpose of a link, without side effects."""

    async def begin(self, token: str) -> SignInStep:
        """Begin the sign-in."""

    async def finish(self, state: str, code: str, issuer: str, browser: str) -> SignInStep:
        """Finish the sign-in, once. It succeeded if there is a `code`."""


class JobBackend(Protocol):
    """The job operations of the HTTP API, with the rights that the person has in any chat. Raises
    StoreFailed."""

    async def role(self, sender: Sender) -> Literal["admin", "user", "viewer"] | None:
        """The sender's role, None for a stranger."""

    async def jobs(self, sender: Sender) -> tuple[ShownJob, ...]:
        """Return the jobs that the person may manage."""

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
    """New live output of a command or program of the turn. Not stored: its end is part of the
    call's result."""

    turn: str
    call_id: str
    text: str


class Summary(Struct, frozen=True, kw_only=True):
    """A conversation in a list. `state`: its current activity; `model`: the one its people chose,
    "" for the default."""

    conversation: str
    title: str
    at: float
    state: Literal["idle", "running", "waiting"]
    model: str = ""


class ListScope(Struct, frozen=True, kw_only=True):
    """The conversations of a list: all of an `account`, those of a group's `channel` with all its
    threads, or the private ones of a `person`, given by the sender's key."""

    kind: Literal["account", "channel", "person"]
    name: str

    @property
    def key(self) -> str:
        """The list's name in a store."""
        return f"{self.kind[0]}:{self.name}"


def account_scope(where: Conversation) -> ListScope:
    """Return the scope of all conversations of the account of `where`."""
    return ListScope(kind="account", name=":".join(where.id.split(":", 2)[:2]))


def channel_scope(where: Conversation) -> ListScope:
    """Return the scope of all conversations of the group of `where`."""
    return ListScope(kind="channel", name=replace(where, thread="", person="", private=False).id)


def person_scope(sender_key: str) -> ListScope:
    """The private conversations of one account of a person."""
    return ListScope(kind="person", name=sender_key)


MAX_WORDS = 8
"""Words of a search that count."""


_QUOTES = "\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d"
_MARKS = f"{_QUOTES},;:!?*()\u3001\u3002\uff0c\uff1f\uff01"
"""Around a word they are not meant as a part of it."""


def parse_words(words: str) -> frozenset[str]:
    """Split a search text into folded words, without the marks of a sentence or of other
    searches around them."""
    said = fold_text(words).split()[:MAX_WORDS]
    return frozenset(word.lstrip(_MARKS).rstrip(f"{_MARKS}.") or word for word in said)


class Standing(Struct, frozen=True, kw_only=True):
    """The state of a conversation besides its views. `model`: the one that answers, followed by its
    fallbacks."""

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
    """A command that the person may give. `values`: the first arguments it accepts."""

    name: str
    help: str
    values: tuple[str, ...] = ()


class OverviewEntry(Struct, frozen=True, kw_only=True):
    """One entry of an overview. `conversation`: the address its buttons belong to; `stops`: the
    running turn there can be stopped."""

    text: str
    conversation: str
    buttons: tuple[Button, ...] = ()
    stops: bool = False


class Overview(Struct, frozen=True, kw_only=True):
    """The questions that wait for a person, the work running for them, and their jobs. `note`: why
    nothing of it is shown."""

    waits: tuple[OverviewEntry, ...] = ()
    runs: tuple[OverviewEntry, ...] = ()
    jobs: tuple[OverviewEntry, ...] = ()
    note: str = ""


class WaitingCard(Struct, frozen=True, kw_only=True):
    """A question that waits for a person: `text` in one line, `conversation` its address,
    `since` seconds since 1970."""

    text: str
    conversation: str
    since: float


Look: TypeAlias = Callable[[Conversation, Sender], Awaitable[Overview]]
"""Returns a person's overview for their private chat. StoreFailed if it cannot be read."""


Recent: TypeAlias = Callable[[ListScope, int], Awaitable[Sequence[Summary]]]
"""The newest so many conversations of a list. StoreFailed if they cannot be read."""


Live: TypeAlias = Shown | Growing | Printed | Changed


class WebBackend(Protocol):
    """The gateway as the HTTP API uses it: the abilities of any chat, as values."""

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """Accept messages; see `Accept`."""

    async def list_waiting(self, sender: Sender) -> tuple[WaitingCard, ...]:
        """Return the questions that wait for the person in any of their conversations.
        StoreFailed."""

    async def views(self, conversation: str, after: int, limit: int) -> tuple[Shown, ...]:
        """Return up to `limit` views whose `rev` is above `after`, in that order."""

    async def latest(self, conversation: str, limit: int, before: int = 0) -> tuple[Shown, ...]:
        """Return the newest `limit` views by `position`, oldest first: a page of history. With
        `before`, only views below that position."""

    async def read_standing(self, conversation: str) -> Standing:
        """Return the conversation's state; idle for one that does not exist."""

    async def remove(self, conversation: str) -> bool:
        """Delete the conversation for good. Return False while work runs there or a job lives
        there. StoreFailed."""

    async def recent(self, scope: ListScope, limit: int, words: str = "") -> tuple[Summary, ...]:
        """Return the conversations of a list, newest first; with `words` only those whose title and
        views together contain each of them."""

    def watch(self, conversation: str) -> AbstractAsyncContextManager[AsyncIterator[Live]]:
        """Watch all changes from now on, after the text that an answer has grown so far. Growing
        text and output may be skipped, views never: for a reader that falls behind the iterator
        ends, and it asks `views` again."""

    def commands(self, sender: Sender) -> tuple[Offered, ...]:
        """Return the commands that the sender's role may give."""

    async def find_role(self, sender: Sender) -> Literal["admin", "user", "viewer"] | None:
        """The sender's role, None for a stranger. StoreFailed."""
