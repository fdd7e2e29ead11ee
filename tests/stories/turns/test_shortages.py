"""The machine has no file, memory or thread left for a moment: nothing is given up because of it."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.delivery import outbox
from gateway.errors import StoreFailed
from gateway.messages import Inbound
from gateway.services import shortages
from gateway.views import ReplyView
from tests.fakes.world import Life
from tests.sampling import one_of

SHORTAGES: dict[str, Callable[[], Exception]] = {
    "files": lambda: OSError(errno.EMFILE, "Too many open files"),
    "disk": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "memory": MemoryError,
    "threads": lambda: RuntimeError("can't start new thread"),
}
TIMES = {"model": 2, "render": outbox.MAX_FAILURES + 1, "access": 2, "arrival": 2}
"""How often it fails: what is no shortage would be given up by then."""


class Failing:
    """Fails so many times."""

    def __init__(self, times: int, make: Callable[[], Exception]) -> None:
        self.left, self._make = times, make

    def __call__(self) -> None:
        if self.left:
            self.left -= 1
            raise self._make() from None


def put(life: Life, where: str, fail: Failing) -> None:
    """Have it fail there."""
    complete, render = life.agent.complete, life.adapter.render
    role, wanted = life.services.access.learn, life.services.access.is_wanted

    async def complete_or_fail(*given: object) -> object:
        fail()
        return await complete(*given)  # type: ignore[arg-type]

    def render_or_fail(*given: object) -> object:
        fail()
        return render(*given)  # type: ignore[arg-type]

    async def learn_or_fail(*given: object) -> object:
        if life.host.sessions:  # a row is worked on
            fail()
        return await role(*given)  # type: ignore[arg-type]

    def want_or_fail(inbound: Inbound) -> bool:
        fail()
        return wanted(inbound)

    match where:
        case "arrival":
            life.services.access.is_wanted = want_or_fail  # type: ignore[method-assign]
        case "model":
            life.agent.complete = complete_or_fail  # type: ignore[assignment]
        case "render":
            life.adapter.render = render_or_fail  # type: ignore[assignment]
        case _:
            life.services.access.learn = learn_or_fail  # type: ignore[method-assign]


@pytest.mark.parametrize("what", one_of(*SHORTAGES))
@pytest.mark.parametrize("where", one_of(*TIMES))
async def test_a_shortage_passes(
    where: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_BACKOFF", 0.02)
    life, fail = Life(tmp_path), Failing(TIMES[where], SHORTAGES[what])
    async with life.living():
        put(life, where, fail)
        await deliver(life)
        await life.until(lambda: said(life))
        await life.quiet()
        assert fail.left == 0, "it was met"
        assert said(life) == ["ack hello"]
        assert await life.store.letters(9) == ()


@pytest.mark.parametrize("where", ["model", "access", "arrival"])
async def test_one_that_does_not_pass_is_given_up(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortages, "LONGEST", 0.0)
    life, fail = Life(tmp_path), Failing(1_000, MemoryError)
    async with life.living():
        put(life, where, fail)
        await life.say("m1", "hello")
        await life.until(lambda: fail.left < 1_000)
        await life.quiet()
        (letter,) = await life.store.letters(9)
        assert "MemoryError" in letter.why


async def deliver(life: Life) -> None:
    """As a platform does: what was not kept comes again."""
    while True:
        try:
            return await life.say("m1", "hello")
        except StoreFailed:
            continue


def said(life: Life) -> list[str]:
    views = life.screen().values()
    return [view.text for view in views if isinstance(view, ReplyView) and view.state == "final"]
