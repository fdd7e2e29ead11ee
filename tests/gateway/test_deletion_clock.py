"""The clock by which content is old, whatever the machine's clock or the store's is set to."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core import ambient
from gateway.services.deletion_clock import JUMP, DeletionClock
from gateway.store.removal.periods import DAY
from tests.contracts.store_values import START, ManualClock
from tests.sampling import examples

YEARS = 80 * 365 * DAY
STEPS = st.lists(
    st.tuples(st.floats(0, 3 * DAY), st.one_of(st.just(0.0), st.floats(-YEARS, YEARS))), max_size=12
)


class Clocked:
    """A store whose clock is the machine's."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def now(self) -> float:
        return self._clock.now()


@settings(max_examples=examples(400))
@given(STEPS)
async def test_a_jump_ahead_makes_nothing_old_for_a_day(steps: list[tuple[float, float]]) -> None:
    machine = ManualClock()
    ambient.use(machine)
    try:
        clock, store = DeletionClock(), Clocked(machine)
        assert await clock.read(store) == START  # type: ignore[arg-type]
        read = START
        for elapsed, jump in steps:
            machine.time += elapsed
            machine.ahead += jump
            before, read = read, await clock.read(store)  # type: ignore[arg-type]
            assert read <= machine.now() + 1e-3
            if jump > JUMP + 1:
                assert read == pytest.approx(before + elapsed, abs=1e-3)
        machine.time += DAY + 1
        read = await clock.read(store)  # type: ignore[arg-type]
        assert read == pytest.approx(machine.now())
    finally:
        ambient.use(ambient.SystemClock())
