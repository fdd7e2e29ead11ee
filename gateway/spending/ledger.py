"""Limits of money: reserved before each model call, settled after it.

What is spent today stands in one document of the directory, the same for all replicas. A call
that a crash cut off stays counted with what was reserved for it: the provider may have charged it.
"""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, json

from agent_core.errors import BudgetExceeded
from agent_core.models.catalog import MILLION, Price, cost
from agent_core.models.port import Reply, Request
from agent_core.orchestration.settings import Limits
from gateway.spending.money import dollars
from gateway.spending.tally import utc_day
from gateway.store.port import Directory
from gateway.texts import Key, say

ANSWER = 8_000
"""Tokens of an answer that are reserved where the request sets no limit."""
LETTERS = 4
"""Characters of a token, about."""


class Payer(Struct, frozen=True, kw_only=True):
    """For whom a call is made. `spent`: dollars of its turn so far; `job`: "" if it is none's;
    `limit`: what its turn may spend besides the limit of all turns, 0 for no more."""

    turn: str
    person: str
    spent: float
    job: str = ""
    language: str = ""
    limit: float = 0.0


class _Day(Struct, frozen=True):
    """Dollars of one day by account: `all`, `person:…`, `job:…`."""

    accounts: dict[str, float]


_decode = json.Decoder(_Day).decode


class Ledger:
    """What may be spent, and what is."""

    def __init__(self, directory: Directory, limits: Limits) -> None:
        self._directory = directory
        self._limits = limits
        self._reserved: dict[str, float] = {}
        """Dollars reserved for calls under way, by turn."""

    async def pay(
        self, payer: Payer, request: Request, price: Price, call: Callable[[], Awaitable[Reply]]
    ) -> Reply:
        """The answer of `call`; raises BudgetExceeded, and what `call` raises."""
        most = estimate(request, price)
        self._check_turn(payer, most)
        # in the step of the check: steps that run at once share their turn's limit
        self._reserved[payer.turn] = self._reserved.get(payer.turn, 0.0) + most
        try:
            await self._add(payer, most, checked=True)
            paid = 0.0
            try:
                reply = await call()
                paid = reply.usage.cost if reply.usage.cost is not None else most
                return reply
            finally:
                await self._add(payer, paid - most, checked=False)
        finally:
            left = self._reserved.pop(payer.turn) - most
            if left > 1e-12:
                self._reserved[payer.turn] = left

    async def today(self) -> Mapping[str, float]:
        """Dollars of today by account."""
        body = await self._directory.get(_key(0))
        return _decode(body).accounts if body else {}

    def _check_turn(self, payer: Payer, most: float) -> None:
        limit = min(filter(None, (self._limits.turn, payer.limit)), default=0.0)
        if limit and payer.spent + self._reserved.get(payer.turn, 0.0) + most > limit:
            raise BudgetExceeded(say("budget_turn", payer.language, limit=dollars(limit)))

    async def _add(self, payer: Payer, amount: float, *, checked: bool) -> None:
        """Count `amount` for today, in one write; `checked`: only within the limits."""
        limits = self._limits
        accounts: list[tuple[str, float, Key]] = [
            ("all", limits.day, "budget_day"),
            (f"person:{payer.person}", limits.person, "budget_person"),
        ]
        if payer.job:
            accounts.append((f"job:{payer.job}", limits.job, "budget_job"))
        while True:
            body = await self._directory.get(_key(0))
            known = dict(_decode(body).accounts) if body else {}
            for name, limit, key in accounts:
                known[name] = max(0.0, known.get(name, 0.0) + amount)
                if checked and limit and known[name] > limit:
                    raise BudgetExceeded(say(key, payer.language, limit=dollars(limit)))
            if await self._directory.put(_key(0), json.encode(_Day(known)), body or b""):
                break
        if not body:
            await self._directory.put(_key(-40), None)  # kept for a month and some days


def _key(days: int) -> str:
    return f"spent:{utc_day(days)}"


def estimate(request: Request, price: Price) -> float:
    """Dollars that the call may cost at most, about."""
    tools = sum(len(json.encode(tool.parameters)) + len(tool.description) for tool in request.tools)
    read = (len(request.system) + tools + len(json.encode(request.messages))) / LETTERS
    said = request.max_tokens or ANSWER
    return (read * price.input + said * price.output) / MILLION


def priced(reply: Reply, price: Price | None) -> float | None:
    """Dollars that the answer cost, None where nobody knows."""
    return cost(reply.usage, price) if price is not None else None
