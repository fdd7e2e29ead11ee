"""What both stores promise of what is spent in a day."""

import asyncio

from gateway.store.spending.expenses import Expense
from tests.contracts.store_values import StoreWorld

DAY = "2026-11-22"
ALL, ANN, BOB = "all", "person:ann", "person:bob"


def expense(account: str, amount: int, limit: int = 0) -> Expense:
    return Expense(account=account, amount=amount, limit=limit)


class BudgetsContract:
    """Amounts are added to several accounts at once, or to none."""

    async def test_all_or_nothing_within_the_limits(self, world: StoreWorld) -> None:
        spend, spent = world.store.spend, world.store.read_spent
        assert await spend(DAY, (expense(ALL, 60, 100), expense(ANN, 60, 70))) is None
        assert await spend(DAY, (expense(ALL, 20, 100), expense(ANN, 20, 70))) == ANN
        assert await spend(DAY, (expense(ALL, 50, 100), expense(BOB, 50, 70))) == ALL
        assert await spent(DAY, (ALL, ANN, BOB)) == {ALL: 60, ANN: 60}
        assert await spend(DAY, (expense(ALL, 40, 100), expense(BOB, 40, 0))) is None
        assert await spent(DAY, (ALL, ANN, BOB)) == {ALL: 100, ANN: 60, BOB: 40}
        assert await spent("2026-11-23", (ALL,)) == {}

    async def test_what_was_not_used_comes_back(self, world: StoreWorld) -> None:
        spend, spent = world.store.spend, world.store.read_spent
        await spend(DAY, (expense(ALL, 60, 100),))
        assert await spend(DAY, (expense(ALL, -45),)) is None
        assert await spent(DAY, (ALL,)) == {ALL: 15}
        assert await spend(DAY, (expense(ALL, -99),)) is None
        assert await spent(DAY, (ALL,)) == {ALL: 0}, "never below nothing"

    async def test_many_at_once_keep_a_limit_exactly(self, world: StoreWorld) -> None:
        stores = (world.store, await world.replica())
        wishes = (
            stores[n % 2].spend(DAY, (expense(ALL, 3, 100), expense(f"person:{n}", 3)))
            for n in range(60)
        )
        refused = [one for one in await asyncio.gather(*wishes) if one is not None]
        assert refused == [ALL] * 27
        assert await world.store.read_spent(DAY, (ALL,)) == {ALL: 99}

    async def test_the_document_of_an_older_version_counts(self, world: StoreWorld) -> None:
        body = b'{"accounts":{"all":0.5,"person:ann":0.25}}'
        await world.store.put(f"spent:{DAY}", body)
        limit = 700_000_000
        assert await world.store.spend(DAY, (expense(ALL, 250_000_000, limit),)) == ALL
        assert await world.store.spend(DAY, (expense(ALL, 200_000_000, limit),)) is None
        found = await (await world.replica()).read_spent(DAY, (ALL, ANN))
        assert found == {ALL: limit, ANN: 250_000_000}
