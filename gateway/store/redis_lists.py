"""Lists of conversations in Redis: a sorted set for each account, group and person, by the time of
the last message.

A conversation is entered before it has the message, so a list names a superset of what exists. Also
fills the lists and the directory's names for a store of an older version.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

import msgspec

from gateway.messages import Conversation, Inbound, is_press, read_conversation, sender_of
from gateway.ports import account_scope, channel_scope, person_scope
from gateway.store.redis_lease import DIRECTORY, key
from gateway.store.redis_scripts import LAST, run
from gateway.store.redis_wire import Command, RedisWire

KNOWN = "tk:conversations"
FILLED = "tk:lists:filled"
PIECE = 200


class _Named(msgspec.Struct):
    """The owner of a transcript's row or a turn."""

    person: str = ""
    sender: str = ""


_named = msgspec.json.Decoder(_Named).decode
_inbound = msgspec.json.Decoder(Inbound).decode


def list_key(name: str) -> str:
    """The conversations of a list, by the time of their last message."""
    return f"tk:l:{name}"


def list_commands(where: Conversation, person: str, at: float) -> Iterator[Command]:
    """Move a conversation to the front of its lists; `person`: its owner if it is private."""
    scopes = [account_scope(where)]
    if not where.private:
        scopes.append(channel_scope(where))
    elif person:
        scopes.append(person_scope(person))
        yield "HSET", key(where.id), "person", person
    for scope in scopes:
        yield "ZADD", list_key(scope.key), "GT", at, where.id


async def find_persons(wire: RedisWire, inbounds: Sequence[Inbound]) -> Mapping[str, str]:
    """Return the owner of each private conversation: the writer, otherwise as stored, and who
    pressed there if nobody is."""
    found = {inbound.conversation.id: "" for inbound in inbounds}
    pressed: dict[str, str] = {}
    for inbound in inbounds:
        sender = sender_of(inbound)
        if sender is not None and inbound.conversation.private:
            owners = pressed if is_press(inbound) else found
            owners[inbound.conversation.id] = sender.key
    unsaid = [one.conversation for one in inbounds if not found[one.conversation.id]]
    names = list(dict.fromkeys(where.id for where in unsaid if where.private))
    if names:
        stored = await wire.call(*(("HGET", key(name), "person") for name in names))
        for name, person in zip(names, cast("list[bytes | None]", stored), strict=True):
            found[name] = (person or b"").decode() or pressed.get(name, "")
    return found


async def fill(wire: RedisWire) -> None:
    """Build the lists of a store that has none yet, in pieces; restarted if interrupted."""
    (done,) = await wire.call(("GET", FILLED))
    if done is not None:
        return
    start = 0
    while True:
        span = ("ZRANGE", KNOWN, start, start + PIECE - 1, "WITHSCORES")
        flat = cast("list[bytes]", (await wire.call(span))[0])
        if not flat:
            break
        start += PIECE
        names = [name.decode() for name in flat[::2]]
        persons = await _find_stored(wire, names)
        commands: list[Command] = []
        for name, at, person in zip(names, flat[1::2], persons, strict=True):
            with suppress(ValueError):  # not an address: unlisted, since nobody can open it
                commands += list_commands(read_conversation(name), person, float(at))
        await wire.call(*commands)
    await _fill_names(wire)
    await wire.call(("SET", FILLED, 1))


async def _find_stored(wire: RedisWire, names: Sequence[str]) -> list[str]:
    """Return the owners of the conversations, "" where their rows do not tell."""
    spoken = (run(LAST, key(name), ":n", ":transcript", 0, 19) for name in names)
    begun = (("HRANDFIELD", f"{key(name)}:turns", 5, "WITHVALUES") for name in names)
    waiting = (("HRANDFIELD", f"{key(name)}:in", 5, "WITHVALUES") for name in names)
    replies = cast("list[list[bytes]]", await wire.call(*spoken, *begun, *waiting))
    count = len(names)
    return [
        _find_person(replies[n], replies[n + count][1::2], replies[n + 2 * count][1::2])
        for n in range(count)
    ]


def _find_person(spoken: list[bytes], begun: list[bytes], waiting: list[bytes]) -> str:
    for body in (*spoken, *begun):
        with suppress(msgspec.MsgspecError):
            one = _named(body)
            if one.person or one.sender:
                return one.person or one.sender
    for body in waiting:
        with suppress(msgspec.MsgspecError):
            if sender := sender_of(_inbound(body.partition(b" ")[2])):
                return sender.key
    return ""


async def _fill_names(wire: RedisWire) -> None:
    cursor = b"0"
    while True:
        (reply,) = await wire.call(("HSCAN", DIRECTORY, cursor, "COUNT", PIECE))
        cursor, flat = cast("tuple[bytes, list[bytes]]", reply)
        if flat:
            members = [part for name in flat[::2] for part in (0, name)]
            await wire.call(("ZADD", f"{DIRECTORY}:names", *members))
        if cursor == b"0":
            return
