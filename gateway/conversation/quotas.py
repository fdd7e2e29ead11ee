"""Limits the turns that a person may begin within an hour.

Counted in the store: the same for all replicas and after a restart, and once for each message,
however often it is handled.
"""

from math import ceil

from msgspec import Struct, json

from agent_core import ambient
from gateway.conversation.services import Services
from gateway.messages import CommandGiven, MessageReceived
from gateway.store.port import Directory
from gateway.store.reading import read_document
from gateway.texts import say

HOUR = 3600.0


class _Begun(Struct, frozen=True, array_like=True):
    at: float
    event: str


_decode = json.Decoder(tuple[_Begun, ...]).decode


async def refuse_turn(services: Services, message: MessageReceived | CommandGiven) -> str:
    """Count a new turn of the person. Return the reason if it is over their limit, "" otherwise."""
    most = services.access.policy.turns_per_hour
    if not most or services.access.role(message.sender) == "admin":
        return ""
    whose = min(await services.access.accounts(message.sender.key))
    event = f"{message.conversation.id} {message.event}"
    wait = await over_quota(services.store, whose, event, most)
    minutes = ceil(wait / 60)
    return say("over_quota", message.sender.language, n=most, minutes=minutes) if wait else ""


async def over_quota(directory: Directory, person: str, event: str, most: int) -> float:
    """Count the message `event` of `person`; 0 if it may begin a turn, else the seconds until
    one more may."""
    key = f"quota:{person}"
    while True:
        now = ambient.now()
        body = await directory.get(key)
        known = read_document(key, body, _decode) or ()
        begun = tuple(one for one in known if abs(one.at - now) < HOUR)
        if any(one.event == event for one in begun):
            return 0.0
        if len(begun) >= most:
            return max(1.0, begun[-most].at + HOUR - now)
        counted = json.encode((*begun, _Begun(at=now, event=event)))
        if await directory.put(key, counted, body or b""):
            return 0.0
