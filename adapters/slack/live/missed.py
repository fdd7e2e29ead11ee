"""Reads back messages from Slack that were missed while nothing was received, as far as possible.

Covers the conversations that the store names, newest first; their threads, and the messages of
their channels outside threads, are read from a little before their last turn on. Known messages are
dropped by `accept`; it remembers a day, so nothing older is read. Presses, edits and slash commands
cannot be read back.
"""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TypeAlias

from adapters.slack.parse import Json, SlackBot, read_back
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, RateLimited, Rejected, StoreFailed
from gateway.messages import Conversation, Inbound, read_conversation
from gateway.ports import Recent, Summary, account_scope

log = logging.getLogger("adapters.slack")

THREADS, CHANNELS, PAGES, PAGE = 30, 20, 5, 100
OLDEST, BEFORE = 72_000.0, 900.0
"""Seconds back from now at most, and from the last turn of a conversation."""
MIN_PAUSE, MAX_PAUSE, LATE = 2.0, 60.0, 3_600.0
"""Seconds before what failed is tried again, and for which it is: apps that are not in Slack's
directory may read one page a minute."""
Place: TypeAlias = tuple[str, str]
"""A channel, and its thread."""


class Backfill:
    """Reads back for one app."""

    def __init__(self, wire: SlackWire, recent: Recent | None) -> None:
        self._wire, self._recent = wire, recent
        self.turns: dict[tuple[str, str], float] = {}
        """The start of the last turn, by channel and thread, as of the last reading."""

    async def read(self, me: SlackBot) -> AsyncIterator[Sequence[Inbound]]:
        """Yield the messages of each known place, oldest first. Places that Slack refuses are
        skipped; what fails otherwise is tried again for LATE seconds."""
        until, pause = clock.monotonic() + LATE, MIN_PAUSE
        places = await self._places(me)
        while places is None or places:
            late: dict[Place, float] | None = None if places is None else {}
            for (channel, thread), since in (places or {}).items():
                try:
                    found = [one async for one in self._iterate(channel, thread, since, until)]
                except Rejected as error:
                    log.info("slack_gap_refused", extra={"channel": channel, "why": str(error)})
                    continue
                except DeliveryError as error:
                    log.info("slack_gap_waits", extra={"channel": channel, "why": str(error)})
                    late = (late or {}) | {(channel, thread): since}
                    continue
                parsed = (read_back(one, channel, me) for one in sorted(found, key=_stamp))
                if inbounds := [one for one in parsed if one is not None]:
                    yield inbounds
            if late == {}:
                return
            if clock.monotonic() + pause > until:
                where = sorted({channel for channel, _ in late or ()})
                log.error("slack_gap_not_read", extra={"channels": where})
                return
            await clock.wait(pause)
            pause = min(2 * pause, MAX_PAUSE)
            places = await self._places(me) if late is None else late

    async def _places(self, me: SlackBot) -> Mapping[Place, float] | None:
        """Return channels and threads, with the moment from which each is read; None if the store
        fails."""
        if self._recent is None:
            return {}
        try:
            account = Conversation(platform="slack", account=me.user, channel="")
            known = await self._recent(account_scope(account), THREADS)
        except StoreFailed as error:
            log.warning("slack_gap_waits", extra={"why": str(error)})
            return None
        self.turns = _find_turns(known)
        young = [one for one in known if one.at > clock.now() - OLDEST]
        return _places(young, me.team)

    async def _iterate(
        self, channel: str, thread: str, since: float, until: float
    ) -> AsyncIterator[Json]:
        asked: dict[str, object] = {"channel": channel, "oldest": f"{since:.6f}", "limit": PAGE}
        asked |= {"ts": thread} if thread else {}
        method = "conversations.replies" if thread else "conversations.history"
        for _ in range(PAGES):
            answer = await self._page(method, asked, until)
            messages = answer.get("messages")
            for one in messages if isinstance(messages, list) else ():
                if isinstance(one, dict):
                    yield one
            more = answer.get("response_metadata")
            cursor = more.get("next_cursor") if isinstance(more, dict) else ""
            if not cursor:
                return
            asked["cursor"] = str(cursor)

    async def _page(self, method: str, asked: Json, until: float) -> Json:
        while True:
            try:
                return await self._wire.call(method, asked, form=True)
            except RateLimited as error:
                if clock.monotonic() + error.retry_after > until:
                    raise
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
