"""Tells the app's own private chats from others. A slash command can be given in any, also in one
of two people: Slack only says that it is a direct message."""

from collections import OrderedDict

from msgspec.structs import replace

from adapters.incoming import read_string
from adapters.slack.parse import Json, write_press_place
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, Rejected
from gateway.messages import CommandGiven, Inbound

FOREIGN = ("channel_not_found", "not_in_channel")
ASKING = 1.5
"""Seconds for Slack to tell: a command must be acknowledged within three."""
MOST = 1_000


class OwnChats:
    """A cache of private chats."""

    def __init__(self, wire: SlackWire) -> None:
        self._wire = wire
        self._known: OrderedDict[str, bool] = OrderedDict()

    async def place_command(self, inbound: Inbound | None, payload: Json) -> Inbound | None:
        """Answer a command in a chat of other people privately, as in a channel of which the app is
        no member."""
        if not isinstance(inbound, CommandGiven) or not inbound.anywhere:
            return inbound
        where, user = inbound.conversation, inbound.sender.id
        if not where.private or await self._is_own(where.channel):
            return inbound
        press = write_press_place(where.channel, "", user, read_string(payload.get("response_url")))
        return replace(inbound, conversation=replace(where, private=False), press=press)

    async def _is_own(self, channel: str) -> bool:
        known = self._known.get(channel)
        if known is not None:
            return known
        own = True
        try:
            async with clock.limit(ASKING):
                asked: dict[str, object] = {"channel": channel, "limit": 1}
                await self._wire.call("conversations.history", asked, form=True)
        except Rejected as error:
            own = not any(word in str(error) for word in FOREIGN)
        except (DeliveryError, TimeoutError):
            return True  # to be found out later
        self._known[channel] = own
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return own
