"""Links and what they opened outlive the gateway; what ran is started again for who looks."""

import asyncio
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from agent_core import ambient
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.previews.again import AppStarter
from agent_core.sandboxes.previews.server import COOKIE, PreviewServer
from agent_core.sandboxes.unsafe import UnsafeTier
from agent_core.skills.apps.tools import make_start_line
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import end_sandboxes, make_sandboxes

pytestmark = pytest.mark.pick("apps started again", 7)

ASK = "Ask in the chat"


async def be_ready() -> None:
    """It is known what the sandbox contains."""


class Home:
    """A data folder with a page in a workspace, and the gateways that come and go over it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.tier = folder, free_port(), BwrapTier()
        self.place = folder / "workspaces" / "one"
        (self.place / "apps/tea").mkdir(parents=True)
        (self.place / "apps/tea/index.html").write_text("cups")
        self.start = self.make_line("python3 -m http.server {port} --bind 127.0.0.1")
        self.contains = True
        self.pool: SandboxPool
        self.preview: PreviewServer

    def make_line(self, start: str) -> str:
        """A command that also counts how often it is given."""
        count = "echo x >> starts; "
        return make_start_line(
            "apps/tea", f"sh -c '{count}exec {start.format(port=self.port)}'", self.port
        )

    async def live(self, port: int = 0) -> None:
        """Another life: nothing of the one before is left but files."""
        self.pool = make_sandboxes(self.tier)
        self.pool.contains = self.contains
        again = AppStarter(self.pool, be_ready).start
        self.preview = PreviewServer(self.pool.connect, port, home=self.folder, again=again)
        await self.preview.listen()

    async def die(self) -> None:
        await self.preview.close()
        await self.pool.close()

    async def show(self) -> str:
        """Start the app, as its tool does; the link to it."""
        done = await self.pool.run(self.start, self.place, 60, lambda text: None)
        assert done.exit_code == 0, done
        return await self.preview.open(self.place, self.port, self.start)

    @property
    def starts(self) -> int:
        return (self.place / "apps/tea/starts").read_text().count("x")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    await home.live()
    yield home
    await home.die()
    await end_sandboxes()


@pytest.fixture
async def person() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        yield person


async def read(sent: Awaitable[aiohttp.ClientResponse]) -> tuple[int, str]:
    answer = await sent
    async with answer:
        return answer.status, await answer.text()


@NEEDS_BWRAP
async def test_what_was_opened_is_started_again_once_for_all_who_look(
    home: Home, person: aiohttp.ClientSession
) -> None:
    link = await home.show()
    assert await read(person.post(link)) == (200, "cups")
    await home.die()
    await home.live()
    base = link.partition("/open/")[0]
    seen = await asyncio.gather(*(read(person.get(f"{base}/?{n}")) for n in range(4)))
    assert set(seen) == {(200, "cups")}
    assert home.starts == 2, "in each life once"
    assert (await read(person.post(link)))[0] == 403, "opened is opened, in the next life too"


@NEEDS_BWRAP
async def test_a_link_that_nobody_opened_is_good_after_a_restart(
    home: Home, person: aiohttp.ClientSession
) -> None:
    link = await home.show()
    await home.die()
    await home.live()
    assert "Open the preview" in (await read(person.get(link)))[1]
    assert home.starts == 1, "a chat that looks at a link starts nothing"
    assert await read(person.post(link)) == (200, "cups")
    assert (await read(person.post(link)))[0] == 403


@NEEDS_BWRAP
async def test_what_is_stored_opens_nothing(home: Home, person: aiohttp.ClientSession) -> None:
    link, other = await home.show(), await home.show()
    await read(person.post(link))
    (cookie,) = (one.value for one in person.cookie_jar if one.key == COOKIE)
    file = home.folder / "previews.json"
    stored = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for word in (cookie, link.rpartition("/")[2], other.rpartition("/")[2]):
        assert word not in stored
    assert str(home.folder) not in stored, "the data folder may be moved"


async def test_what_is_good_no_more_is_not_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    await home.preview.open(home.place, home.port, "a command")
    await home.die()
    later = ambient.now() + 1_900
    monkeypatch.setattr(ambient, "now", lambda: later)
    assert "a command" in (home.folder / "previews.json").read_text()
    await home.live()
    assert "a command" not in (home.folder / "previews.json").read_text()


async def stop(home: Home) -> None:
    await home.preview.let_lie(home.place)


async def leave_uncontained(home: Home) -> None:
    home.contains = False


async def use_no_isolation(home: Home) -> None:
    home.tier = UnsafeTier()  # type: ignore[assignment]


async def remove_workspace(home: Home) -> None:
    home.place.rename(home.place.with_name("gone"))


@NEEDS_BWRAP
@pytest.mark.parametrize("how", [stop, leave_uncontained, use_no_isolation, remove_workspace])
async def test_what_may_not_be_started_is_told_and_left(
    how: Callable[[Home], Awaitable[None]], home: Home, person: aiohttp.ClientSession
) -> None:
    link = await home.show()
    assert (await read(person.post(link)))[0] == 200
    await how(home)
    was = home.place.exists()
    await home.die()
    await home.live()
    status, said = await read(person.get(link.partition("/open/")[0]))
    assert status == 502 and ASK in said
    assert home.place.exists() == was, "and no workspace is made"
    if was:
        assert home.starts == 1


@NEEDS_BWRAP
async def test_what_does_not_come_up_again_is_told_and_tried_once(
    home: Home, person: aiohttp.ClientSession
) -> None:
    link = await home.show()
    assert (await read(person.post(link)))[0] == 200
    await home.die()
    (home.place / "apps/tea/http").mkdir()
    (home.place / "apps/tea/http/__init__.py").write_text("raise SystemExit(3)")
    await home.live()
    base = link.partition("/open/")[0]
    status, said = await read(person.get(base))
    assert status == 502 and "did not come up" in said and ASK in said
    assert (await read(person.get(base)))[0] == 502
    assert home.starts == 2


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"links": {"a": 1}}', b"\xff", b"[" * 9_000])
async def test_a_file_that_cannot_be_read_ends_nothing(
    data: bytes, home: Home, person: aiohttp.ClientSession
) -> None:
    await home.die()
    (home.folder / "previews.json").write_bytes(data)
    await home.live()
    link = await home.preview.open(home.place, home.port)
    assert "Open the preview" in (await read(person.get(link)))[1]


async def test_links_lead_to_another_port_where_theirs_is_taken(home: Home) -> None:
    link = await home.preview.open(home.place, home.port)
    await home.die()
    port = int(link.split(":")[2].partition("/")[0])
    other = await asyncio.start_server(lambda *_: None, "127.0.0.1", port)
    await home.live()
    second = await home.preview.open(home.place, home.port)
    assert second.partition("/open/")[0] != link.partition("/open/")[0]
    other.close()


@NEEDS_BWRAP
async def test_a_number_of_another_sandbox_is_no_process_to_kill(home: Home) -> None:
    """The file that names the server's process may be older than the sandbox."""
    line = f'echo "$$ 1" > apps/tea/.server.pid; {home.start}'
    done = await home.pool.run(line, home.place, 60, lambda text: None)
    assert done.exit_code == 0, done


@NEEDS_BWRAP
async def test_a_server_that_is_started_anew_takes_the_place_of_the_old_one(home: Home) -> None:
    for page in ("one", "two"):
        start = f"python3 -m http.server {{port}} --bind 127.0.0.1 --directory {page}"
        (home.place / f"apps/tea/{page}").mkdir()
        (home.place / f"apps/tea/{page}/index.html").write_text(page)
        home.start = home.make_line(start)
        link = await home.show()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        assert await read(person.post(link)) == (200, "two")
