"""The store's layout number, in SQLite `PRAGMA user_version`, in Redis `tk:version`.

0 is the layout before there was a number. A process refuses a store with a number above its own
`LAYOUT`, as it would lose what it does not know. A lower one is upgraded in place, by the steps of
each store (`STEPS` in `opening`): step `n` makes layout `n + 1` of layout `n`. A step may be
interrupted anywhere and is then repeated. Additions need no new number: a field with a default, a
table or a key that may be missing.
"""

from gateway.errors import StoreUnfit

LAYOUT = 1


def check_layout(found: int) -> None:
    """StoreUnfit if the store is of a newer program."""
    if found > LAYOUT:
        raise StoreUnfit(
            f"the store was written by a newer Turnkeeper: it has layout {found}, this program"
            f" knows up to {LAYOUT}; upgrade the program"
        )
