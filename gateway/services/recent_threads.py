"""A cache of the histories of recent conversations, kept between two messages."""

from collections import OrderedDict

from msgspec import Struct

from agent_core.messages import Message
from gateway.store.rows import ConversationRow, Lease

MAX_RECENT = 2_000_000
"""Characters that are held of conversations without a session, all of them together."""
MAX_THREADS = 200


class RecentThread(Struct, frozen=True):
    """A history at the release of its session, with its conversation's row."""

    token: int
    row: ConversationRow
    rows: list[tuple[Message, ...]]
    characters: int


class RecentThreads:
    """Threads of the sessions that ended last: the next message there needs no read.

    One is good for the very next lease alone, and if the conversation's row is the same: whoever
    changes a transcript (another replica, an erasure) takes the conversation first."""

    def __init__(self) -> None:
        self._threads: OrderedDict[str, RecentThread] = OrderedDict()
        self._characters = 0

    def keep(self, conversation: str, thread: RecentThread) -> None:
        """Hold the thread of a conversation that was released with its `token`."""
        self.forget(conversation)
        self._threads[conversation] = thread
        self._characters += thread.characters
        while self._characters > MAX_RECENT or len(self._threads) > MAX_THREADS:
            self.forget(next(iter(self._threads)))

    def take(self, lease: Lease, row: ConversationRow) -> RecentThread | None:
        """The thread of the conversation that was taken with `lease`, if it is held and good."""
        thread = self.forget(lease.conversation)
        good = thread is not None and thread.token == lease.token - 1 and thread.row == row
        return thread if good else None

    def forget(self, conversation: str) -> RecentThread | None:
        """Remove it from the cache and return it."""
        thread = self._threads.pop(conversation, None)
        self._characters -= thread.characters if thread is not None else 0
        return thread
