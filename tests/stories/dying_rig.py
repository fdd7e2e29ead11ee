"""A gateway in the test's loop that dies at a chosen commit: nothing is written from then on, and
whoever watches starts the next one while the person goes on as if nothing had been."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientError

from gateway.errors import StoreFailed
from gateway.store import sqlite
from gateway.store.sqlite_threads import Writer
from tests.sampling import spread
from tests.stories.rig import PATIENCE, Rig, living
from tests.stories.surfaces import Surface, Web

Restart = Callable[[], Awaitable[object]]
Tell = Callable[[Path, int], Awaitable["Death"]]
"""Tells a story in a folder, in which the gateway dies at a point of it; at 0 it lives on."""


class Death:
    """`at`: the point at which the writer stops, before or after a commit; 0 never."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.points, self.dead = at, 0, False
        self.armed = False
        self.came, self.followed = asyncio.Event(), asyncio.Event()
        """It died; the next one lives."""
        self._loop = asyncio.get_running_loop()

    def pass_point(self) -> None:
        """One more point, if the story has come to the part that counts."""
        if self.armed and not self.dead:
            self.points += 1
            if self.points == self.at:
                self.dead = True
                self._loop.call_soon_threadsafe(self.came.set)


async def settle(rig: Rig, death: Death | None = None) -> None:
    """Until no session is open and none is to be opened; over a death, if one comes meanwhile."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if death is not None and death.dead:
                await death.followed.wait()
            with contextlib.suppress(AssertionError, RuntimeError, StoreFailed):
                if not rig.host.sessions and not await rig.store.work("looks"):
                    return
            await asyncio.sleep(0.01)


async def do_over(person: Surface, death: Death, act: Callable[[], Awaitable[object]]) -> None:
    """`act`, once more if the gateway died of it: the page makes a call again that had no answer."""
    try:
        await act()
    except ClientError:
        assert isinstance(person, Web) and death.dead
        await death.followed.wait()
        person._keys -= 1
        await act()


class DyingWriter(Writer):
    """Writes nothing and tells nobody anything once it is dead; the next one lives."""

    death: Death | None = None

    def _commit(self, batch: list) -> list:
        death = type(self).death
        if death is None:
            return super()._commit(batch)
        self._stop_if_dead(death)
        if self._stopped:
            return []
        outcomes = super()._commit(batch)
        self._stop_if_dead(death)
        return outcomes

    def _tell(self, outcomes: list) -> None:
        if not self._stopped:
            super()._tell(outcomes)

    def _stop_if_dead(self, death: Death) -> None:
        before = death.dead
        death.pass_point()
        self._stopped = self._stopped or (death.dead and not before)

    _stopped = False


@contextlib.asynccontextmanager
async def dying(death: Death, restart: Restart) -> AsyncIterator[None]:
    """While it is open, a gateway that was started within it dies once at its point, and
    `restart` is called."""

    async def watch() -> None:
        await death.came.wait()
        await restart()
        death.followed.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "Writer", DyingWriter)
        patch.setattr(DyingWriter, "death", death)
        watcher = asyncio.create_task(watch())
        try:
            yield
            if death.came.is_set():
                await watcher
        finally:
            watcher.cancel()
            await asyncio.wait({watcher})


async def tell_dying(
    kind: type[Surface],
    folder: Path,
    at: int,
    story: Callable[[Surface, Death], Awaitable[None]],
) -> Death:
    """The story of a person on a surface, in which the gateway dies at a point of it."""
    death = Death(at)
    async with living(folder) as rig:
        person = kind(rig)
        async with dying(death, person.restart):
            await person.open()
            try:
                await story(person, death)
            finally:
                await person.close()
    return death


async def kill_at_points(tell: Tell, folder: Path, some: int, least: int, *names: str) -> None:
    """Tell a story of more than `least` points whole, and once for each point, or for `some` that
    the seed and the `names` choose, with a death there."""
    points = (await tell(folder / "whole", 0)).points
    assert points > least
    chosen = spread(points, some, *names)
    died = [(await tell(folder / str(at), at)).dead for at in chosen]
    assert sum(died) >= len(died) * 0.6 - 1, "commits go together on a slow machine, but not so"
