"""Judges whether Slack's HTTP requests arrive.

Slack does not tell what it could not deliver. So inbound is live once a signed request came, or
once Slack, read back, has no message for the agent that was written while we listened and arrived
nowhere: a turn that began there since shows that another replica got it. After a silence it is read
back again, as a proxy that blocks everything looks like a quiet day.
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
"""Seconds that a message may be in transit."""
MOST = 1_000
"""Messages that are remembered."""

Turns: TypeAlias = Mapping[tuple[str, str], float]
"""The start of the last turn, by channel and thread."""


class HookReach:
    """The requests that arrived, and those that did not. Starts unproven."""

    def __init__(self) -> None:
        self.proven = self._lost = False
        self._came: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._since, self._looked = math.inf, -math.inf

    def listen(self) -> None:
        """Expect requests from now on, at the latest."""
        self._since = min(self._since, clock.now())

    def hear(self, inbound: Inbound | None) -> None:
        """A signed request came."""
        self.proven, self._lost, self._looked = True, False, clock.monotonic()
        if isinstance(inbound, MessageReceived):
            self._remember(inbound)

    def is_quiet(self) -> bool:
        """Return True after a long silence: Slack is to be asked."""
        return clock.monotonic() - self._looked > QUIET

    def judge(self, written: Sequence[Inbound], turns: Turns) -> None:
        """Compare with `written`, all recent messages at Slack. After a loss only a request proves
        that requests arrive again."""
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
        for one in lost:  # a one-time notice: the message is not edited any more
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
