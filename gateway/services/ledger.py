"""Spending limits: reserved before each model call, settled after it.

The store counts a day's spending, the same for all replicas: each call adds to its accounts in one
step, however many there are. A call cut off by a crash stays counted with its reservation, as the
provider may have charged it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import BudgetExceeded
from agent_core.models.catalog import Price, cost, estimate_cost
from agent_core.models.port import ModelReply, ModelRequest
from agent_core.orchestration.settings import Limits
from gateway.errors import StoreFailed
from gateway.store.spending.expenses import UNIT, Budgets, Expense
from gateway.store.spending.tally import utc_day
from gateway.texts import Key, say
from gateway.texts.money import dollars

log = logging.getLogger("turnkeeper.ledger")

SETTLE_LIMIT = 5.0
"""Seconds for which an answer waits until it is counted what it cost; less than a lease lasts."""


class Payer(Struct, frozen=True, kw_only=True):
    """The payer of a call. `spent`: dollars of its turn so far; `job`: "" outside of jobs; `limit`:
    of this turn, besides the limit of all turns, 0 for none. `accounts`: all linked accounts of the
    person; the spending of one counts for each."""

    turn: str
    person: str
    spent: float
    job: str = ""
    language: str = ""
    limit: float = 0.0
    accounts: tuple[str, ...] = ()

    @property
    def purses(self) -> tuple[str, ...]:
        """The keys under which a day's spending of the person is counted."""
        return tuple(f"person:{one}" for one in sorted({self.person, *self.accounts}))


class Ledger:
    """Limits and counts of spending."""

    def __init__(self, budgets: Budgets, limits: Limits) -> None:
        self._budgets = budgets
        self._limits = limits
        self._reserved: dict[str, float] = {}
        """Dollars reserved for calls under way, by turn."""

    async def pay(
        self,
        payer: Payer,
        request: ModelRequest,
        price: Price,
        call: Callable[[], Awaitable[ModelReply]],
    ) -> ModelReply:
        """Return the answer of `call`; raises BudgetExceeded, and what `call` raises."""
        most = estimate_cost(request, price)
        self._check_turn(payer, most)
        # without awaiting after the check: concurrent steps share their turn's limit
        self._reserved[payer.turn] = self._reserved.get(payer.turn, 0.0) + most
        try:
            reserved = round(most * UNIT)
            day = await self._reserve(payer, reserved)
            paid = 0.0
            try:
                reply = await call()
                paid = reply.usage.cost if reply.usage.cost is not None else most
                return reply
            finally:
                await self._settle(payer, day, round(paid * UNIT) - reserved)
        finally:
            left = self._reserved.pop(payer.turn) - most
            if left > 1e-12:
                self._reserved[payer.turn] = left

    async def today(self) -> Mapping[str, float]:
        """Dollars of today by account: of `all`."""
        known = await self._budgets.read_spent(utc_day(), ("all",))
        return {name: amount / UNIT for name, amount in known.items()}

    def _check_turn(self, payer: Payer, most: float) -> None:
        limit = min(filter(None, (self._limits.turn, payer.limit)), default=0.0)
        if limit and payer.spent + self._reserved.get(payer.turn, 0.0) + most > limit:
            raise _make_error("budget_turn", payer, limit, most)

    async def _reserve(self, payer: Payer, amount: int) -> str:
        """Count `amount` for today within the limits; the day on which it is counted."""
        limits, day = self._limits, utc_day()
        most: dict[str, tuple[float, Key]] = {
            "all": (limits.day, "budget_day"),
            **{name: (limits.person, "budget_person") for name in payer.purses},
        }
        if payer.job:
            most[f"job:{payer.job}"] = (limits.job, "budget_job")
        expenses = tuple(
            Expense(account=name, amount=amount, limit=round(limit * UNIT))
            for name, (limit, _) in most.items()
        )
        refused = await self._budgets.spend(day, expenses)
        if refused is not None:
            limit, key = most[refused]
            raise _make_error(key, payer, limit, amount / UNIT)
        return day

    async def _settle(self, payer: Payer, day: str, amount: int) -> None:
        """Correct by `amount` what was reserved on `day`. Where that cannot be kept, it stays as it
        was reserved: the answer is there, and must not be asked for and paid again."""
        accounts = ["all", *payer.purses, *([f"job:{payer.job}"] if payer.job else [])]
        expenses = tuple(Expense(account=name, amount=amount) for name in accounts)
        try:
            async with ambient.limit(SETTLE_LIMIT):
                await self._budgets.spend(day, expenses)
        except (StoreFailed, TimeoutError) as error:
            log.warning("spending_not_settled", extra={"turn": payer.turn, "why": str(error)})


def _make_error(key: Key, payer: Payer, limit: float, most: float) -> BudgetExceeded:
    """Make the error of a limit that `most` dollars of a call exceed, perhaps by themselves."""
    key = "budget_call" if most > limit else key
    words = say(key, payer.language, limit=dollars(limit), most=dollars(most))
    return BudgetExceeded(words)


def price_reply(reply: ModelReply, price: Price | None) -> float | None:
    """Return the answer's price in dollars, None if it is unknown."""
    return cost(reply.usage, price) if price is not None else None
