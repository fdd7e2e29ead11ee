"""Calls that are due a while after they were asked for, made by one task."""

import asyncio

from agent_core import ambient
from gateway.conversation.spawn import Work
from gateway.delivery.pace import Delay


async def test_calls_are_made_in_order_and_none_before_its_time() -> None:
    tasks: list[asyncio.Task[None]] = []
    made: list[tuple[str, float]] = []

    def spawn(work: Work, name: str) -> None:
        tasks.append(asyncio.create_task(work(), name=name))

    delay = Delay(spawn, 0.05)
    began = ambient.monotonic()
    delay.add(lambda: made.append(("a", ambient.monotonic())))
    delay.add(lambda: made.append(("b", ambient.monotonic())))
    await asyncio.sleep(0.02)
    later = ambient.monotonic()
    delay.add(lambda: made.append(("c", ambient.monotonic())))
    assert made == [] and len(tasks) == 1, "one task for all that wait"
    await tasks[0]
    assert [name for name, _ in made] == ["a", "b", "c"]
    assert min(at - began for _, at in made) >= 0.05 and made[2][1] - later >= 0.05
    delay.add(lambda: made.append(("d", ambient.monotonic())))
    assert len(tasks) == 2, "the first one ended with what waited"
    await tasks[1]
    assert made[-1][0] == "d"
