"""The cost of a conversation's model calls: counted with the record of each answer, so once."""

import time

from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.models.port import Usage

DAY = 86_400


class Tally(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Calls, tokens and US dollars. `read` includes cached tokens; `unpriced`: calls without a
    known price."""

    calls: int = 0
    read: int = 0
    cached: int = 0
    written: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def share(self) -> int:
        """Percentage of the tokens read that came from the provider's cache."""
        return round(100 * self.cached / self.read) if self.read else 0


class Spent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of one conversation: of its last turn, of the day `day` (UTC), and in all."""

    turn: str = ""
    last: Tally = Tally()
    day: str = ""
    today: Tally = Tally()
    total: Tally = Tally()

    @property
    def of_today(self) -> Tally:
        """The cost of today so far."""
        return self.today if self.day == utc_day() else Tally()


def utc_day(days: int = 0) -> str:
    """The day in UTC, or the one so many days later."""
    return time.strftime("%Y-%m-%d", time.gmtime(ambient.now() + days * DAY))


def count_reply(spent: Spent, turn: str, usage: Usage) -> Spent:
    """`spent` after one more answer in `turn`, now."""
    return Spent(
        turn=turn,
        last=_add_usage(spent.last if spent.turn == turn else Tally(), usage),
        day=utc_day(),
        today=_add_usage(spent.of_today, usage),
        total=_add_usage(spent.total, usage),
    )


def _add_usage(tally: Tally, usage: Usage) -> Tally:
    return replace(
        tally,
        calls=tally.calls + 1,
        read=tally.read + usage.input_tokens,
        cached=tally.cached + usage.cached_tokens,
        written=tally.written + usage.output_tokens,
        cost=tally.cost + (usage.cost or 0.0),
        unpriced=tally.unpriced + (usage.cost is None),
    )
