"""A day's spending in the embedded store, and its format of an older version in both stores: one
document of the directory for each day."""

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from gateway.store.spending.expenses import UNIT, Expense


class _Day(Struct):
    """Dollars of one day by account."""

    accounts: dict[str, float]


_day = msgspec.json.Decoder(_Day).decode


def document_key(day: str) -> str:
    """The document with the spending of `day` in an older version."""
    return f"spent:{day}"


def read_document(body: bytes | None) -> dict[str, int]:
    """Decode the document, in today's units."""
    accounts = _day(body).accounts if body else {}
    return {name: round(dollars * UNIT) for name, dollars in accounts.items()}


def spend(c: sqlite3.Connection, day: str, expenses: Sequence[Expense]) -> str | None:
    """Add all in the running transaction, or none: return the account that would exceed its
    limit."""
    add = (
        "INSERT INTO spent VALUES(?1, ?2, max(0, ?3))"
        " ON CONFLICT(day, account) DO UPDATE SET amount = max(0, amount + ?3)"
    )
    for account, amount in _carry(c, day).items():
        c.execute(add, (day, account, amount))
    accounts = [one.account for one in expenses]
    known = _read(c, day, accounts)
    for one in expenses:
        if one.limit and known.get(one.account, 0) + one.amount > one.limit:
            return one.account
    for one in expenses:
        c.execute(add, (day, one.account, one.amount))
    return None


def read(c: sqlite3.Connection, day: str, accounts: Sequence[str]) -> Mapping[str, int]:
    """Return the spending on `day` of those of `accounts` that are known."""
    old = _carry(c, day)
    return {name: old[name] for name in accounts if name in old} or _read(c, day, accounts)


def _read(c: sqlite3.Connection, day: str, accounts: Sequence[str]) -> dict[str, int]:
    sql = "SELECT amount FROM spent WHERE day = ? AND account = ?"
    found = ((name, c.execute(sql, (day, name)).fetchone()) for name in accounts)
    return {name: row[0] for name, row in found if row is not None}


def _carry(c: sqlite3.Connection, day: str) -> dict[str, int]:
    """Return what is in the day's document only; nothing once something was spent since."""
    if c.execute("SELECT 1 FROM spent WHERE day = ? LIMIT 1", (day,)).fetchone():
        return {}
    sql = "SELECT body FROM directory WHERE key = ?"
    row = c.execute(sql, (document_key(day),)).fetchone()
    return read_document(row[0]) if row else {}
