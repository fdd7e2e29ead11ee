"""Checks a store's file for damage from outside, also while a gateway uses it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from agent_core import ambient

MAX_SECONDS = 10.0
"""A large file is not read to its end."""
STEPS = 100_000
"""Steps of SQLite's virtual machine between two looks at the clock."""
NOT_ITS_FAULT = (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN)


def find_damage(path: Path) -> str:
    """Return the damage found in the file, "" for none. Blocks; changes nothing."""
    if not path.is_file():
        return ""
    until = ambient.monotonic() + MAX_SECONDS
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.set_progress_handler(lambda: ambient.monotonic() > until, STEPS)
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return "" if code in NOT_ITS_FAULT else str(error)
    return "" if state == "ok" else str(state)
