"""Brings the file of an older version up to the present schema. Done twice it changes nothing."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress

import msgspec
from msgspec import Struct

from gateway.messages import Inbound, read_conversation, sender_of
from gateway.store import sqlite_lists
from gateway.store.version import LAYOUT, check_layout

PIECE = 1_000

_inbound = msgspec.json.Decoder(Inbound).decode


class _Spoken(Struct):
    """The speaker, in a transcript's row."""

    person: str = ""


class _Begun(Struct):
    """The person of a turn."""

    sender: str = ""


_spoken = msgspec.json.Decoder(_Spoken).decode
_begun = msgspec.json.Decoder(_Begun).decode


def upgrade(c: sqlite3.Connection) -> None:
    """Run each step in one transaction with its number. The connection has created missing tables
    before."""
    for n in range(read_layout(c), LAYOUT):
        c.execute("BEGIN IMMEDIATE")
        try:
            STEPS[n](c)
            c.execute(f"PRAGMA user_version = {n + 1}")
            c.execute("COMMIT")
        except BaseException:
            c.execute("ROLLBACK")
            raise


def read_layout(c: sqlite3.Connection) -> int:
    """The number of the file's layout; StoreFailed if it is a newer one than ours."""
    (found,) = c.execute("PRAGMA user_version").fetchone()
    check_layout(found)
    return int(found)


def _make_lists(c: sqlite3.Connection) -> None:
    columns = {row[1] for row in c.execute("PRAGMA table_info(conversations)")}
    if "listed" in columns:
        return  # a new file, or one with lists from before version numbers
    c.execute("ALTER TABLE conversations ADD COLUMN listed REAL NOT NULL DEFAULT 0")
    c.execute("ALTER TABLE conversations ADD COLUMN person TEXT NOT NULL DEFAULT ''")
    _fill_lists(c)
    c.execute("DROP TABLE IF EXISTS threads")  # the rows of the transcript contain the same


def _fill_lists(c: sqlite3.Connection) -> None:
    sql = "SELECT id, at FROM conversations WHERE id > ? ORDER BY id LIMIT ?"
    last = ""
    while rows := c.execute(sql, (last, PIECE)).fetchall():
        for conversation, at in rows:
            with suppress(ValueError):  # not an address: unlisted, since nobody can open it
                where = read_conversation(conversation)
                person = _find_person(c, conversation) if where.private else ""
                lists = sqlite_lists.name_lists(where, person)
                sqlite_lists.enter(c, conversation, lists, at, person)
        last = rows[-1][0]


def _find_person(c: sqlite3.Connection, conversation: str) -> str:
    """Return the key of the person of a private conversation, "" if its rows do not tell."""
    spoken = "SELECT body FROM transcript WHERE conversation = ? ORDER BY n DESC LIMIT 20"
    begun = (
        "SELECT t.body FROM outbox o CROSS JOIN turns t ON t.id = o.turn"
        " WHERE o.conversation = ? AND o.rev >= 0 ORDER BY o.rev DESC LIMIT 20"
    )
    waiting = "SELECT body FROM inbox WHERE conversation = ? AND state = 0 ORDER BY seq LIMIT 20"
    for (body,) in c.execute(spoken, (conversation,)):
        with suppress(msgspec.MsgspecError):
            if person := _spoken(body).person:
                return person
    for (body,) in c.execute(begun, (conversation,)):
        with suppress(msgspec.MsgspecError):
            if person := _begun(body).sender:
                return person
    for (body,) in c.execute(waiting, (conversation,)):
        with suppress(msgspec.MsgspecError):
            if sender := sender_of(_inbound(body)):
                return sender.key
    return ""


STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (_make_lists,)
"""Step `n` makes layout `n + 1`."""
