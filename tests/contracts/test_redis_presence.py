"""The name of a replica while Redis takes no writes, as when it is full."""

import pytest

from gateway.errors import StoreFailed
from gateway.store import redis_presence
from gateway.store.redis_presence import Presence


class Outages:
    """A wire whose calls fail as the list says, and find the name taken after it."""

    def __init__(self, *fails: bool) -> None:
        self._fails = list(fails)

    async def call(self, *commands: object) -> list[object]:
        if not self._fails:
            return [0]
        if self._fails.pop(0):
            raise StoreFailed("OOM command not allowed")
        return [1]


async def test_an_outage_is_told_once_however_long_it_lasts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(redis_presence, "EVERY", 0.0)
    caplog.set_level("INFO", "turnkeeper.store")
    wire = Outages(*[True] * 500, False, False, True, False)
    await Presence(wire, "one").hold()  # type: ignore[arg-type]
    told = [(record.getMessage(), record.levelname) for record in caplog.records]
    assert told == [("name_not_renewed", "WARNING"), ("name_renewed_again", "INFO")] * 2
