"""What the ledger asks of a store: what was spent, by day and account.

Vocabulary: imports nothing of ours. Amounts are whole billionths of a dollar.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

UNIT = 1_000_000_000
"""Of one dollar."""


class Expense(Struct, frozen=True, kw_only=True):
    """An amount for one account, less than 0 for what is given back. `limit`: what the account may
    come to, 0 for any amount."""

    account: str
    amount: int
    limit: int = 0


class Budgets(Protocol):
    """Counts what is spent. All calls raise StoreFailed if nothing was kept."""

    async def spend(self, day: str, expenses: Sequence[Expense]) -> str | None:
        """Add all of `expenses` on `day` (2026-11-22) in one write, or none: then the first
        account that would pass its limit. No account falls below 0."""

    async def read_spent(self, day: str, accounts: Sequence[str]) -> Mapping[str, int]:
        """What was spent on `day`, of those of `accounts` that are known."""
