"""The ledger's port to a store: spending by day and account.

Vocabulary: imports nothing of ours. Amounts are whole billionths of a dollar.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

UNIT = 1_000_000_000
"""Units of one dollar."""


class Expense(Struct, frozen=True, kw_only=True):
    """An amount for one account, negative for a refund. `limit`: the account's maximum, 0 for
    none."""

    account: str
    amount: int
    limit: int = 0


class Budgets(Protocol):
    """Counts spending. All calls raise StoreFailed if nothing was stored."""

    async def spend(self, day: str, expenses: Sequence[Expense]) -> str | None:
        """Add all of `expenses` on `day` (2026-11-22) in one write, or none: then return the first
        account that would exceed its limit. No account falls below 0."""

    async def read_spent(self, day: str, accounts: Sequence[str]) -> Mapping[str, int]:
        """Return the spending on `day` of those of `accounts` that are known."""
