"""From a chat to the page: `/link page` gives a link that signs in once, by a press, as the same
person with the same rights, for as long as both accounts are linked."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import ClientSession

from gateway.store.sqlite import SqliteStore
from gateway.texts import say
from tests.fakes.browser import browse
from tests.fakes.discord_server import DiscordServer
from tests.fakes.model_server import Say
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.waiting import PATIENCE
from tests.stories import discord_rig, slack_rig
from tests.stories.rig import ADMIN, FRIEND, GROUP, PERSON, Rig, write

LINK = re.compile(r"https?://[\w.:-]+/enter/[\w.-]+")


def link_in(text: str) -> str:
    found = LINK.search(text)
    assert found, text
    return found[0]


class Browser:
    """Somebody's browser at the page."""

    def __init__(self, url: str, http: ClientSession) -> None:
        self.url, self.http = url, http

    async def enter(self, link: str) -> int:
        """Open the link and press the button there; the status of that."""
        async with self.http.get(link) as shown:
            assert shown.status == 200 and 'method="post"' in await shown.text()
            assert shown.headers["Referrer-Policy"] == "same-origin"
            assert "Set-Cookie" not in shown.headers
        origin = {"Origin": self.url.rstrip("/")}
        async with self.http.post(link, headers=origin) as answer:
            cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
            if cookie:
                self.http.headers["Cookie"] = cookie
            return answer.status

    async def look(self) -> tuple[int, str]:
        """Whether the API serves me, and as whom."""
        async with self.http.get(f"{self.url}api/conversations") as answer:
            body = await answer.json()
            return answer.status, body.get("person", "")


async def ask(rig: Rig, person: int = PERSON, n: int = 1) -> str:
    rig.telegram.say(person, "/link page")
    await rig.telegram.wait(lambda: len(links(rig, person)) >= n, PATIENCE)
    return links(rig, person)[-1]


def links(rig: Rig, person: int = PERSON) -> list[str]:
    return [link_in(text) for text in rig.said(person) if LINK.search(text)]


async def test_a_link_from_a_chat_signs_in_once_as_the_same_person(rig: Rig) -> None:
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    link = await ask(rig)
    assert say("page_link_here", link=link) in rig.said()
    assert link.startswith(rig.url)
    async with ClientSession() as http:
        page = Browser(rig.url, http)
        assert (await page.look())[0] == 401
        assert await page.enter(link) == 200
        assert await page.look() == (200, f"telegram.{PERSON}")
        rig.telegram.say(PERSON, "/whoami")
        await rig.shows(f"Linked with: web:telegram.{PERSON}.")
        rig.telegram.say(PERSON, "write it")
        await rig.card()
        async with http.get(f"{rig.url}api/waiting") as answer:
            assert "a.txt" in await answer.text()  # of all their accounts
    async with ClientSession() as http:
        assert await Browser(rig.url, http).enter(link) == 401
    kinds = [(who, kind, what) for who, kind, what in await rig.audit()]
    assert (f"telegram:{PERSON}", "page_link", f"web:telegram.{PERSON}") in kinds
    assert any(who == f"web:telegram.{PERSON}" and kind == "signed_in" for who, kind, _ in kinds)


@NEEDS_CHROMIUM
async def test_a_real_browser_signs_in_by_a_press(rig: Rig) -> None:
    await rig.start()
    link = await ask(rig)
    async with browse() as page:
        await page.go(link)
        await page.click("form button")
        shown = "document.querySelector('#person')?.textContent ?? ''"
        await page.until(f"({shown}).includes('telegram.{PERSON}')", PATIENCE)


async def test_the_store_keeps_a_hash_of_the_link_and_a_newer_one_ends_it(rig: Rig) -> None:
    await rig.start()
    first = await ask(rig)
    second = await ask(rig, n=2)
    secret = second.rpartition(".")[2].encode()
    with closing(sqlite3.connect(rig.home / "turnkeeper.db")) as store:
        documents = [body for (body,) in store.execute("SELECT body FROM directory")]
    assert documents and not any(secret in bytes(body) for body in documents)
    async with ClientSession() as http:
        page = Browser(rig.url, http)
        assert await page.enter(first) == 401
        assert await page.enter(second[:-1] + ("0" if second[-1] != "0" else "1")) == 401
        assert await page.enter(second) == 200


async def test_a_link_is_good_for_ten_minutes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await rig.start()
    link = await ask(rig)
    monkeypatch.setattr("gateway.access.page_links.LASTS", -1.0)
    late = await ask(rig, n=2)
    async with ClientSession() as http:
        page = Browser(rig.url, http)
        assert await page.enter(late) == 401
        assert await page.enter(link) == 401


async def test_a_page_account_may_do_what_its_chat_account_may(rig: Rig) -> None:
    await rig.start()
    async with ClientSession() as http, ClientSession() as other:
        page, admins = Browser(rig.url, http), Browser(rig.url, other)
        assert await page.enter(await ask(rig)) == 200
        assert await admins.enter(await ask(rig, ADMIN)) == 200
        assert "pair" not in await offered(page) and "pair" in await offered(admins)
        given = {"key": "k1", "name": "model", "arguments": "anthropic/claude"}
        origin, there = {"Origin": page.url.rstrip("/")}, f"{page.url}api/conversations/c1"
        async with http.post(f"{there}/commands", json=given, headers=origin) as answer:
            assert answer.status == 202, await answer.text()
        await rig.quiet()
        async with http.get(there) as answer:
            assert "Only an admin can choose the model here" in await answer.text()
    await rig.stop()
    await rig.start(TELEGRAM_ALLOWED_USERS=str(FRIEND))
    async with ClientSession(headers=http.headers) as again:
        assert (await Browser(rig.url, again).look())[0] in (401, 403)


async def offered(page: Browser) -> set[str]:
    async with page.http.get(f"{page.url}api/commands") as answer:
        return {one["name"] for one in (await answer.json())["commands"]}


async def test_who_is_put_out_of_the_chat_is_out_of_the_page(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.access.access.CACHE_SECONDS", 0.0)
    await rig.start()
    async with ClientSession() as http:
        page = Browser(rig.url, http)
        assert await page.enter(await ask(rig)) == 200
        assert (await page.look())[0] == 200
        lists = rig.host.services.access._platforms
        rig.host.services.access.replace_lists(
            lists | {"telegram": type(lists["telegram"])()}, rig.host.services.access.policy
        )
        assert (await page.look())[0] == 403
        rig.host.services.access.replace_lists(lists, rig.host.services.access.policy)
        assert (await page.look())[0] == 200
        rig.telegram.say(PERSON, "/link off")
        await rig.shows(say("parted"))
        assert (await page.look())[0] == 403


async def test_an_account_of_the_page_that_is_linked_is_taken(rig: Rig) -> None:
    """But never one that may do more than who asks."""
    await rig.start(WEB_ALLOWED_USERS="ann")
    linking = rig.host.services.linking
    assert linking is not None
    await linking.adopt(f"telegram:{PERSON}", "web:owner")
    assert f"/enter/telegram.{PERSON}." in await ask(rig)
    await linking.adopt(f"telegram:{PERSON}", "web:ann")
    assert "/enter/ann." in await ask(rig, n=2)


async def test_in_a_group_nothing_is_given(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(GROUP, "/link page@test_bot", user=PERSON)
    rig.telegram.say(GROUP, "/link@test_bot page", user=PERSON)
    await rig.shows(say("link_private"), GROUP)
    assert not LINK.search("".join(rig.said(GROUP)))


async def test_the_public_address_is_what_links_begin_with_and_is_served(rig: Rig) -> None:
    await rig.start(TURNKEEPER_PUBLIC_URL="https://turnkeeper.example.org/")
    link = await ask(rig)
    assert say("page_link", link=link) in rig.said()
    assert link.startswith("https://turnkeeper.example.org/enter/")
    here = rig.url + link.partition("example.org/")[2]
    as_proxied = {"Host": "turnkeeper.example.org", "Origin": "https://turnkeeper.example.org"}
    async with ClientSession(headers=as_proxied) as http, http.post(here) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.parametrize(
    "n", [pytest.param(n, marks=pytest.mark.pick("killed_link", 2)) for n in range(6)]
)
async def test_a_kill_at_any_write_leaves_one_person_and_a_link_that_works(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    await rig.start()
    reached, calls, put = asyncio.Event(), [0], SqliteStore.put

    async def stop_there(
        self: SqliteStore, key: str, body: bytes | None, expected: bytes | None = None
    ) -> bool:
        mine = key.startswith(("accounts:", "identity:", "pagelink:"))
        if mine and calls[0] == n:
            reached.set()
            await asyncio.Event().wait()
        calls[0] += mine
        return await put(self, key, body, expected)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "put", stop_there)
        rig.telegram.say(PERSON, "/link page")
        await rig.until(lambda: reached.is_set() or links(rig))
        await rig.crash()
    await rig.start()
    await rig.telegram.wait(lambda: links(rig), PATIENCE)
    assert len(links(rig)) == 1
    async with ClientSession() as http:
        page = Browser(rig.url, http)
        _, _, path = links(rig)[0].partition("/enter/")
        assert await page.enter(f"{rig.url}enter/{path}") == 200
        assert await page.look() == (200, f"telegram.{PERSON}")
    both = {f"telegram:{PERSON}", f"web:telegram.{PERSON}"}
    for key in both:
        assert await rig.host.services.access.accounts(key) == both


async def test_discord_gives_the_link_in_private_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, me = DiscordServer(), discord_rig.PERSON
    async with discord_rig.opened(server, tmp_path, monkeypatch) as rig, ClientSession() as http:
        await rig.start()
        await server.command(discord_rig.CHANNEL, "link", me, "page")
        await server.wait(lambda: say("link_private") in str(server.chats) + str(server.answers))
        assert not LINK.search(str(server.chats) + str(server.answers))
        await server.command(discord_rig.DM, "link", me, "page")
        await server.wait(lambda: LINK.search(str(server.chats) + str(server.answers)))
        page = Browser(rig.url, http)
        assert await page.enter(link_in(str(server.chats) + str(server.answers))) == 200
        assert await page.look() == (200, f"discord.{me}")


async def test_slack_gives_the_link_in_private_only(tmp_path: Path) -> None:
    async with slack_rig.living(tmp_path) as rig, ClientSession() as http:
        await rig.start()
        rig.slack.command("C0OPS", "link page")
        await rig.slack.wait(lambda: say("link_private") in seen(rig))
        assert not LINK.search(seen(rig))
        rig.slack.command(slack_rig.DM, "link page")
        await rig.slack.wait(lambda: LINK.search(seen(rig)))
        page = Browser(rig.url, http)
        assert await page.enter(link_in(seen(rig))) == 200
        assert await page.look() == (200, "slack.U0ANN")


def seen(rig: slack_rig.SlackRig) -> str:
    """All that anybody sees there, in whatever way."""
    return str(dict(rig.slack.channels)) + str(rig.slack.ephemeral)
