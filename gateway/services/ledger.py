"""Limits of money: reserved before each model call, settled after it.

What is spent today is counted by the store, the same for all replicas: each call adds to its
accounts in one step, however many there are. A call that a crash cut off stays counted with what
was reserved for it: the provider may have charged it.
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
    """For whom a call is made. `spent`: dollars of its turn so far; `job`: "" if it is none's;
    `limit`: what its turn may spend besides the limit of all turns, 0 for no more. `accounts`: all
    that the person has linked; what one of them spends counts for each."""

    turn: str
    person: str
    spent: float
    job: str = ""
    language: str = ""
    limit: float = 0.0
    accounts: tuple[str, ...] = ()

    @property
    def purses(self) -> tuple[str, ...]:
        """Under what a day's money of the person is counted."""
        return tuple(f"person:{one}" for one in sorted({self.person, *self.accounts}))


class Ledger:
    """What may be spent, and what is."""

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
        """The answer of `call`; raises BudgetExceeded, and what `call` raises."""
        most = estimate_cost(request, price)
        self._check_turn(payer, most)
        # in the step of the check: steps that run at once share their turn's limit
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
            raise BudgetExceeded(say("budget_turn", payer.language, limit=dollars(limit)))

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
            raise BudgetExceeded(say(key, payer.language, limit=dollars(limit)))
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


def price_reply(reply: ModelReply, price: Price | None) -> float | None:
    """Dollars that the answer cost, None where nobody knows."""
    return cost(reply.usage, price) if price is not None else None
