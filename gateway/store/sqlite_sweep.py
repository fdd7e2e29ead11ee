"""Deletes expired rows from the embedded store, in small pieces that never hold up the one
writer."""

import sqlite3
from itertools import takewhile

from agent_core import ambient

DAY = 86_400.0
JOURNALS = 30 * DAY
ROWS, SECONDS = 100, 0.004
"""Maximum rows of one piece, and the seconds after which it ends early."""
DAYS_SPENT = 40
"""Days for which spending is kept."""


class Sweep:
    """The position of the inbox's sweep: rows are stored in the order of their time, and those that
    must stay are passed once."""

    def __init__(self) -> None:
        self._seq = 0

    def work(
        self, c: sqlite3.Connection, now: float, kept: float | None = JOURNALS
    ) -> tuple[int, bool]:
        """Delete one piece in the running transaction. Return how many rows, and whether there may
        be more. `kept`: seconds that journals of ended turns stay, None for ever."""
        until = ambient.monotonic() + SECONDS
        inbox, more = self._inbox(c, now - DAY, until)
        journals, old = (0, False) if kept is None else _journals(c, now - kept, until)
        days = _days(c, f"{ambient.utc(now - DAYS_SPENT * DAY):%Y-%m-%d}")
        return inbox + journals + days, more or old or days == ROWS

    def _inbox(self, c: sqlite3.Connection, before: float, until: float) -> tuple[int, bool]:
        sql = "SELECT seq, state, at FROM inbox WHERE seq > ? ORDER BY seq LIMIT ?"
        rows = list(takewhile(lambda row: row[2] < before, c.execute(sql, (self._seq, ROWS))))
        gone = 0
        for seq, state, _ in rows:
            if ambient.monotonic() > until:
                return gone, True
            if state == 1:
                c.execute("DELETE FROM inbox WHERE seq = ?", (seq,))
                gone += 1
            self._seq = seq
        if len(rows) == ROWS:
            return gone, True
        self._seq = 0  # skipped rows may be done by the next time
        return gone, False


def _journals(c: sqlite3.Connection, before: float, until: float) -> tuple[int, bool]:
    """Delete records of turns that ended before; a turn without records is not visited again."""
    ended = "SELECT id FROM turns WHERE ended IS NOT NULL AND ended < ? ORDER BY ended LIMIT ?"
    records = "SELECT n FROM records WHERE turn = ? LIMIT ?"
    gone = 0
    turns = c.execute(ended, (before, ROWS)).fetchall()
    for (turn,) in turns:
        rows = c.execute(records, (turn, ROWS)).fetchall()
        for (n,) in rows:
            c.execute("DELETE FROM records WHERE turn = ? AND n = ?", (turn, n))
            gone += 1
            if ambient.monotonic() > until:
                return gone, True
        if len(rows) < ROWS:
            c.execute("UPDATE turns SET ended = NULL WHERE id = ?", (turn,))
        if gone >= ROWS or ambient.monotonic() > until:
            return gone, True
    return gone, len(turns) == ROWS


def _days(c: sqlite3.Connection, oldest: str) -> int:
    """Delete spending of days long past."""
    sql = "SELECT day, account FROM spent WHERE day < ? LIMIT ?"
    rows = c.execute(sql, (oldest, ROWS)).fetchall()
    for row in rows:
        c.execute("DELETE FROM spent WHERE day = ? AND account = ?", row)
    return len(rows)
