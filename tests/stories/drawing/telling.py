"""The shared stories told once more, and one picture of each: its resting points side by side."""

import asyncio
import base64
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from agent_core import ambient
from agent_core.ambient import SystemClock
from tests.fakes.browser import Page, browse
from tests.stories.drawing.markup import page as document
from tests.stories.drawing.more import MORE
from tests.stories.drawing.screens import Frame, screen, sheet
from tests.stories.jobs_rig import Shifted
from tests.stories.rig import living, quick
from tests.stories.surfaces import Surface
from tests.stories.surfaces.chat_stories import NOT_APPLICABLE, SURFACES
from tests.stories.surfaces.jobs_stories import MONDAY
from tests.stories.surfaces.jobs_stories import STORIES as OF_JOBS
from tests.stories.surfaces.story import STORIES as SHARED
from tests.stories.surfaces.story import Story
from tests.stories.surfaces.web import Web

LIVE = "document.body.dataset.live === 'on'"
STILL = (
    "document.getAnimations().every((one) => one.playState === 'finished'"
    " || one.effect.getTiming().iterations === Infinity)"
)
WHOLE = "Math.max(innerHeight, scroll.scrollHeight + innerHeight - scroll.clientHeight)"
WEB_WIDTH, HEIGHT, HIGHEST = 700, 500, 9_000


def _of_jobs(name: str) -> Story:
    """A story that is told on a Monday, with a clock of its own."""
    clock = Shifted()

    @contextlib.asynccontextmanager
    async def monday(_: Surface) -> AsyncIterator[dict[str, str]]:
        clock.offset = MONDAY - time.time()
        ambient.use(clock)
        try:
            yield {}
        finally:
            ambient.use(SystemClock())

    async def tell(surface: Surface) -> None:
        await OF_JOBS[name].tell(surface, clock)

    return Story(tell=tell, rests=OF_JOBS[name].rests, beside=monday)


STORIES = SHARED | MORE | {name: _of_jobs(name) for name in OF_JOBS}


async def draw(name: str, on: str, folder: Path, tab: Page) -> None:
    """`folder`/name.on.png"""
    frames = await frames_of(name, on, tab)
    if on == "web":
        text = document(".screen { padding: 0 }", frames, width=WEB_WIDTH)
    else:
        text = sheet(on, frames)
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(text)
        file.flush()
        await tab.look(400, HEIGHT)
        await tab.go(f"file://{file.name}")
        size = await tab.js("[document.body.offsetWidth, document.body.offsetHeight]")
        width, height = cast(list[int], size)
        await tab.look(max(width, 501), min(height, HIGHEST))
        await tab.shoot(folder / f"{name}.{on}.png")


async def frames_of(name: str, on: str, tab: Page) -> list[Frame]:
    """The story told once: a frame where it rests or is looked at, and one of its end."""
    told, frames = STORIES[name], list[Frame]()
    patch = pytest.MonkeyPatch.context()
    with patch as context, tempfile.TemporaryDirectory() as folder:
        quick(context)
        async with living(Path(folder) / "life") as rig:
            surface = SURFACES[on](rig, told.language)
            _watch(surface, frames, tab)
            async with told.beside(surface) as found:
                await surface.open(**told.settings | found)
                try:
                    await told.tell(surface)
                    await surface.settle()
                    await _keep("at the end", surface, frames, tab)
                finally:
                    await surface.close()
    return frames


def _watch(surface: Surface, frames: list[Frame], tab: Page) -> None:
    resting = surface.rest

    async def rest(name: str, *, busy: bool = False) -> None:
        await resting(name, busy=busy)
        await _keep(name, surface, frames, tab)

    def look(name: str) -> None:
        if surface.name != "web":
            _add(name, screen(surface), frames)

    surface.rest, surface.look = rest, look  # type: ignore[method-assign]


async def _keep(name: str, surface: Surface, frames: list[Frame], tab: Page) -> None:
    shown = await _page(surface, tab) if surface.name == "web" else screen(surface)
    _add(name, shown, frames)


def _add(name: str, shown: str, frames: list[Frame]) -> None:
    """What has not changed is not shown again."""
    if not frames or frames[-1][1] != shown:
        frames.append((name, shown))


async def _page(surface: Surface, tab: Page) -> str:
    """The real page, as high as what is on it, as a picture."""
    await tab.go("about:blank")
    await tab.speak(surface.language)
    await tab.look(WEB_WIDTH, HEIGHT)
    assert isinstance(surface, Web)
    name, value = surface.cookie()
    await tab.call("Network.setCookie", name=name, value=value, url=surface.rig.url)
    await tab.go(f"{surface.rig.url.rstrip('/')}/#c=c1")
    await tab.until(LIVE)
    whole = await tab.js(f"((scroll) => {WHOLE})(document.getElementById('scroll'))")
    await tab.look(WEB_WIDTH, min(cast(int, whole), HIGHEST))
    await tab.until(STILL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.png"
        await tab.shoot(path)
        data = base64.b64encode(await asyncio.to_thread(path.read_bytes)).decode()
    return f'<img alt="" width="{WEB_WIDTH}" src="data:image/png;base64,{data}">'


async def draw_all(folder: Path, names: list[str], platforms: list[str]) -> None:
    """Each story that is named, wherever it can be told."""
    async with browse() as tab:
        for name in names:
            for on in platforms:
                if (name, on) not in NOT_APPLICABLE:
                    await draw(name, on, folder, tab)
                    print(folder / f"{name}.{on}.png", flush=True)
