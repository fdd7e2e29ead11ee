"""The agent's status above its messages: working, waiting, done (agent sessions).

Slack shows its own stop button while a thread's session is `processing`. Statuses are sent beside
messages, only the newest of a thread, and only where Slack has them.
"""

import asyncio
import logging
from collections import OrderedDict
from typing import Literal

from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, RateLimited, Rejected
from gateway.messages import Conversation

log = logging.getLogger("adapters.slack")

Status = Literal["processing", "suspended", "active"]
PAUSE, REFUSED_FOR = 5.0, 3_600.0
"""Seconds without another try after a failure, and after a refusal."""
MAX_KNOWN = 2_000
ONE = ("channel_not_found", "thread_not_found", "message_not_found", "not_in_channel")
"""Refusals that are about one thread; another one is about the app."""


class Sessions:
    """The sessions of one app, by channel and thread."""

    def __init__(self, wire: SlackWire) -> None:
        self._wire = wire
        self._wanted: OrderedDict[tuple[str, str], Status] = OrderedDict()
        self._shown: OrderedDict[tuple[str, str], Status] = OrderedDict()
        self._more = asyncio.Event()

    def want(self, where: Conversation, status: Status) -> None:
        """Show this soon. A chat without threads has no session."""
        if where.thread:
            self._wanted[where.channel, where.thread] = status
            while len(self._wanted) > MAX_KNOWN:
                self._wanted.popitem(last=False)
            self._more.set()

    def forget_status(self, where: Conversation, status: Status | None) -> None:
        """Note that Slack itself changed it with a stream, None: to an unknown status."""
        key = where.channel, where.thread
        if status is None:
            self._shown.pop(key, None)
        else:
            self._keep(key, status)

    async def run(self) -> None:
        """Tell Slack until cancelled."""
        while True:
            while self._wanted:
                key, status = self._wanted.popitem(last=False)
                if self._shown.get(key) == status:
                    continue
                try:
                    await self._tell(key, status)
                except RateLimited as error:
                    self._wanted.setdefault(key, status)
                    await clock.wait(error.retry_after)
                except Rejected as error:
                    log.info("slack_no_session", extra={"why": str(error)})
                    if not str(error).startswith(ONE):
                        await clock.wait(REFUSED_FOR)
                except DeliveryError as error:
                    self._wanted.setdefault(key, status)
                    log.info("slack_session_not_told", extra={"why": str(error)})
                    await clock.wait(PAUSE)
            self._more.clear()
            await self._more.wait()

    async def _tell(self, key: tuple[str, str], status: Status) -> None:
        given = {"channel_id": key[0], "thread_ts": key[1], "status": status}
        await self._wire.call("agents.sessions.setStatus", given)
        self._keep(key, status)

    def _keep(self, key: tuple[str, str], status: Status) -> None:
        self._shown[key] = status
        self._shown.move_to_end(key)
        if len(self._shown) > MAX_KNOWN:
            self._shown.popitem(last=False)
