"""The shared stories told once more, and pictures of each: its resting points side by side, on a
desktop and on a phone, light and dark."""

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
from tests.stories.drawing.markup import LOOKS, Json, Look, words
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
DESKTOP, HEIGHT, HIGHEST = 1000, 640, 9_000
Sight = tuple[str, tuple[str, ...]]
"""A title, and a screen as HTML in each of the looks."""


SEEN = """(() => {
  document.querySelectorAll('details').forEach((one) => (one.open = true));
  const screens = [...document.querySelectorAll('.screen')], out = [];
  for (const screen of screens) {
    const edge = screen.getBoundingClientRect();
    const inside = [...screen.querySelectorAll('*')];
    out.push(...inside.filter((one) => { const at = one.getBoundingClientRect();
      return at.width && !one.closest('.wide, table') && (at.left < edge.left || at.right > edge.right + 1); }));
    out.push(...inside.filter((one) => one.matches('.key, .button') && one.scrollWidth > one.clientWidth + 1)); }
  const read = (one) => one.innerText || one.querySelector('[data-wide]')?.alt || '';
  return { texts: screens.map(read), out: out.map((one) => one.outerHTML.slice(0, 90)),
    wide: [...document.querySelectorAll('[data-wide]')].map((one) => Number(one.dataset.wide)) }; })()"""
"""The texts of the screens, what stands out of them or is cut, and how far pages do."""


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


async def draw(name: str, on: str, folder: Path, tab: Page) -> list[Json]:
    """`folder`/name.on.look.png for each look; what can be seen there (`SEEN`)."""
    sights = await sights_of(name, on, tab)
    return [await _draw(name, on, look, sights, folder, tab) for look in LOOKS]


async def _draw(
    name: str, on: str, look: Look, sights: list[Sight], folder: Path, tab: Page
) -> Json:
    frames = [(title, shown[LOOKS.index(look)]) for title, shown in sights]
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(_document(on, frames, look))
        file.flush()
        await tab.look(1000, HEIGHT)  # no phone's view, which would shrink what is wider
        await tab.go(f"file://{file.name}")
        size = await tab.js("[document.body.offsetWidth, document.body.offsetHeight]")
        width, height = cast(list[int], size)
        await tab.look(max(width, 501), min(height, HIGHEST))
        await tab.shoot(folder / f"{name}.{on}.{look.name}.png")
        return cast(Json, await tab.js(SEEN))


def _document(on: str, frames: list[Frame], look: Look) -> str:
    if on == "web":
        width = look.width(DESKTOP)
        return document(".screen { padding: 0 }", frames, width=width, scheme=look.scheme)
    return sheet(on, frames, look)


async def sights_of(name: str, on: str, tab: Page) -> list[Sight]:
    """The story told once: what is seen where it rests or is looked at, and at its end."""
    told, sights = STORIES[name], list[Sight]()
    patch = pytest.MonkeyPatch.context()
    with patch as context, tempfile.TemporaryDirectory() as folder:
        quick(context)
        async with living(Path(folder) / "life") as rig:
            surface = SURFACES[on](rig, told.language)
            _watch(surface, sights, tab)
            async with told.beside(surface) as found:
                surface.beside = found
                await surface.open(**told.settings | found)
                try:
                    await told.tell(surface)
                    await surface.settle()
                    await _keep("at the end", surface, sights, tab)
                finally:
                    await surface.close()
    return sights


def _watch(surface: Surface, sights: list[Sight], tab: Page) -> None:
    resting = surface.rest

    async def rest(name: str, **more: bool) -> None:
        await resting(name, **more)
        await _keep(name, surface, sights, tab)

    def look(name: str) -> None:
        if surface.name != "web":
            _add(name, _same(surface), sights)

    surface.rest, surface.look = rest, look  # type: ignore[method-assign]


async def _keep(name: str, surface: Surface, sights: list[Sight], tab: Page) -> None:
    shown = await _pages(surface, tab) if isinstance(surface, Web) else _same(surface)
    _add(name, shown, sights)


def _same(surface: Surface) -> tuple[str, ...]:
    return (screen(surface),) * len(LOOKS)


def _add(name: str, shown: tuple[str, ...], sights: list[Sight]) -> None:
    """What has not changed is not shown again."""
    if not sights or sights[-1][1] != shown:
        sights.append((name, shown))


async def _pages(surface: Web, tab: Page) -> tuple[str, ...]:
    """Pictures of the real page, as high as what is on it."""
    await tab.go("about:blank")
    await tab.speak(surface.language)
    name, value = surface.cookie()
    await tab.call("Network.setCookie", name=name, value=value, url=surface.rig.url)
    return tuple([await _page(surface, tab, look) for look in LOOKS])


async def _page(surface: Web, tab: Page, look: Look) -> str:
    width = look.width(DESKTOP)
    await tab.look(width, HEIGHT, look.scheme)
    await tab.go("about:blank")
    await tab.go(f"{surface.rig.url.rstrip('/')}/#c=c1")
    await tab.until(LIVE)
    whole = await tab.js(f"((scroll) => {WHOLE})(document.getElementById('scroll'))")
    await tab.look(width, min(cast(int, whole), HIGHEST), look.scheme)
    await tab.until(STILL)
    wide = await tab.js("document.documentElement.scrollWidth - innerWidth")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.png"
        await tab.shoot(path)
        data = base64.b64encode(await asyncio.to_thread(path.read_bytes)).decode()
    text = words(await tab.js("document.getElementById('scroll').innerText"))
    source = f'width="{width}" src="data:image/png;base64,{data}"'
    return f'<img alt="{text}" data-wide="{wide}" {source}>'


async def draw_all(folder: Path, names: list[str], platforms: list[str]) -> None:
    """Each story that is named, wherever it can be told, and the contact sheets."""
    async with browse() as tab:
        for name in names:
            for on in platforms:
                if (name, on) not in NOT_APPLICABLE:
                    await draw(name, on, folder, tab)
                    print(folder / f"{name}.{on}.*.png", flush=True)
    await asyncio.to_thread(write_contact_sheets, folder)


def write_contact_sheets(folder: Path) -> None:
    """`folder`/platform.html: every picture of that platform that lies there, a story a row."""
    for on in SURFACES:
        names = sorted({path.name.split(".")[0] for path in folder.glob(f"*.{on}.*.png")})
        rows = "".join(_row(name, on) for name in names)
        heads = "".join(f"<th>{look.name}" for look in LOOKS)
        style = "td { vertical-align: top } img { max-width: 24vw; max-height: 80vh }"
        text = f"<title>{on}, drawn by Turnkeeper's tests</title><style>{style}</style>"
        (folder / f"{on}.html").write_text(f"<!doctype html>{text}<table><tr>{heads}{rows}</table>")


def _row(name: str, on: str) -> str:
    files = [f"{name}.{on}.{look.name}.png" for look in LOOKS]
    cells = "".join(f'<td><a href="{file}"><img alt="" src="{file}"></a>' for file in files)
    return f'<tr><th colspan="{len(LOOKS)}" align="left">{name}<tr>{cells}'
