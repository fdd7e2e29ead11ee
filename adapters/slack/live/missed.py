"""Reads back messages from Slack that were missed while nothing was received, as far as possible.

Covers the conversations that the store names, newest first; their threads, and the messages of
their channels outside threads, are read from a little before their last turn on. Known messages are
dropped by `accept`; it remembers a day, so nothing older is read. Presses, edits and slash commands
cannot be read back.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from adapters.slack.parse import Json, SlackBot, read_back
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, RateLimited, StoreFailed
from gateway.messages import Conversation, Inbound, read_conversation
from gateway.ports import Recent, Summary, account_scope

log = logging.getLogger("adapters.slack")

THREADS, CHANNELS, PAGES, PAGE = 30, 20, 5, 100
OLDEST, BEFORE = 72_000.0, 900.0
"""Seconds back from now at most, and from the last turn of a conversation."""


class Backfill:
    """Reads back for one app."""

    def __init__(self, wire: SlackWire, recent: Recent | None) -> None:
        self._wire, self._recent = wire, recent
        self.turns: dict[tuple[str, str], float] = {}
        """The start of the last turn, by channel and thread, as of the last reading."""

    async def read(self, me: SlackBot) -> AsyncIterator[Sequence[Inbound]]:
        """Yield the messages of each known place, oldest first; places that cannot be read are
        skipped."""
        for (channel, thread), since in (await self._places(me)).items():
            try:
                found = [one async for one in self._iterate_messages(channel, thread, since)]
            except DeliveryError as error:
                log.info("slack_gap_not_read", extra={"channel": channel, "why": str(error)})
                continue
            parsed = (read_back(one, channel, me) for one in sorted(found, key=_stamp))
            if inbounds := [one for one in parsed if one is not None]:
                yield inbounds

    async def _places(self, me: SlackBot) -> Mapping[tuple[str, str], float]:
        """Channels and threads, with the moment from which each is read."""
        if self._recent is None:
            return {}
        try:
            account = Conversation(platform="slack", account=me.user, channel="")
            known = await self._recent(account_scope(account), THREADS)
        except StoreFailed as error:
            log.warning("slack_gap_not_read", extra={"why": str(error)})
            return {}
        self.turns = _find_turns(known)
        young = [one for one in known if one.at > clock.now() - OLDEST]
        return _places(young, me.team)

    async def _iterate_messages(
        self, channel: str, thread: str, since: float
    ) -> AsyncIterator[Json]:
        asked: dict[str, object] = {"channel": channel, "oldest": f"{since:.6f}", "limit": PAGE}
        asked |= {"ts": thread} if thread else {}
        method = "conversations.replies" if thread else "conversations.history"
        for _ in range(PAGES):
            answer = await self._page(method, asked)
            messages = answer.get("messages")
            for one in messages if isinstance(messages, list) else ():
                if isinstance(one, dict):
                    yield one
            more = answer.get("response_metadata")
            cursor = more.get("next_cursor") if isinstance(more, dict) else ""
            if not cursor:
                return
            asked["cursor"] = str(cursor)

    async def _page(self, method: str, asked: Json) -> Json:
        while True:
            try:
                return await self._wire.call(method, asked, form=True)
            except RateLimited as error:
                log.info("slack_gap_limited", extra={"pause": error.retry_after})
                await clock.wait(error.retry_after)


def _find_turns(known: Iterable[Summary]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for one in known:
        where = read_conversation(one.conversation)
        place = where.channel, where.thread
        found[place] = max(one.at, found.get(place, one.at))
    return found


def _places(known: Iterable[Summary], team: str) -> Mapping[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    channels: dict[tuple[str, str], float] = {}
    for one in known:
        where = read_conversation(one.conversation)
        if where.workspace != team:
            continue
        since = max(one.at - BEFORE, clock.now() - OLDEST)
        if where.thread:
            found[where.channel, where.thread] = since
        outside = where.channel, ""
        if outside in channels or len(channels) < CHANNELS:
            channels[outside] = min(since, channels.get(outside, since))
    return found | channels


def _stamp(message: Json) -> str:
    return str(message.get("ts", ""))
