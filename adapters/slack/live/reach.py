"""Whether what Slack posts to us arrives, where it calls us over HTTP.

Slack tells nowhere what it could not deliver. So inbound is live once a signed request came, or
once Slack, read back, has nothing for the agent that was written while we listened and came to
nobody: a turn that began there since tells that it came to another replica. After a silence it is
read back again, for a proxy that lets nothing through any more looks like a quiet day.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from gateway import clock
from gateway.messages import Inbound, MessageReceived

log = logging.getLogger("adapters.slack")

QUIET = 600.0
"""Seconds without a request after which Slack is read back."""
SETTLED = 60.0
"""Seconds that a message may be on its way."""
MOST = 1_000
"""Messages that are remembered."""

Turns: TypeAlias = Mapping[tuple[str, str], float]
"""By channel and thread, when the last turn there began."""


class HookReach:
    """What came, and what did not. Starts unproven."""

    def __init__(self) -> None:
        self.proven = self._lost = False
        self._came: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._since, self._looked = math.inf, -math.inf

    def listen(self) -> None:
        """From now on, at the latest, what is posted is heard."""
        self._since = min(self._since, clock.now())

    def hear(self, inbound: Inbound | None) -> None:
        """A signed request came."""
        self.proven, self._lost, self._looked = True, False, clock.monotonic()
        if isinstance(inbound, MessageReceived):
            self._remember(inbound)

    def is_quiet(self) -> bool:
        """Nothing came for long: Slack is to be asked."""
        return clock.monotonic() - self._looked > QUIET

    def judge(self, written: Sequence[Inbound], turns: Turns) -> None:
        """`written` is all that Slack has of late. Of what was lost only a request is a proof that
        requests arrive again."""
        self._looked, now = clock.monotonic(), clock.now()
        lost = [
            one
            for one in written
            if isinstance(one, MessageReceived)
            and self._since < one.at < now - SETTLED
            and one.addressed
            and _name(one) not in self._came
            and one.at > turns.get((one.conversation.channel, one.conversation.thread), -math.inf)
        ]
        self._lost = self._lost or bool(lost)
        self.proven = not self._lost
        for one in lost:  # it tells something once: what is written stays written
            self._remember(one)
        if lost:
            where = {"messages": len(lost), "channel": lost[-1].conversation.channel}
            log.warning("slack_requests_do_not_arrive", extra=where)

    def _remember(self, message: MessageReceived) -> None:
        self._came[_name(message)] = None
        while len(self._came) > MOST:
            self._came.popitem(last=False)


def _name(message: MessageReceived) -> tuple[str, str]:
    return message.conversation.channel, message.message
