"""Rows that an outbox drops while the store is read: what was read of them may be older."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from gateway.delivery.holder import Key
from gateway.store.rows import OutboxRow


class DeliveredRows:
    """Remembers what is dropped only as long as somebody reads."""

    def __init__(self) -> None:
        self._looks: list[dict[Key, OutboxRow]] = []

    def note(self, row: OutboxRow) -> None:
        """It is dropped now, as it stands in the store once its last commit does."""
        for dropped in self._looks:
            dropped[row.turn, row.name] = row

    @contextmanager
    def watch(self) -> Iterator["NewestRows"]:
        """While the body reads rows from the store."""
        dropped: dict[Key, OutboxRow] = {}
        self._looks.append(dropped)
        try:
            yield NewestRows(dropped)
        finally:
            self._looks = [one for one in self._looks if one is not dropped]


class NewestRows:
    """Rows that were dropped since a read began."""

    def __init__(self, dropped: dict[Key, OutboxRow]) -> None:
        self._dropped = dropped

    def replace(self, rows: Iterable[OutboxRow]) -> Sequence[OutboxRow]:
        """`rows` as the store had them, or as they were dropped since."""
        return [self._dropped.get((row.turn, row.name), row) for row in rows]
