"""Servers that people sign in at beside a gateway, and the browser of who does."""

import json
import re

from aiohttp import ClientSession, CookieJar

from tests.fakes.model_server import Call
from tests.fakes.oauth_server import SignedServer

LINK = re.compile(r"http://127\.0\.0\.1:\d+/servers/signin/[\w.-]+")
DONE = "You are signed in at notes"


def settings(signed: SignedServer, **fields: object) -> dict[str, str]:
    """The same port in each life: links lead there."""
    one = {"name": "notes", "url": signed.url, "auth": "oauth", "allow": ["publish"], **fields}
    return {
        "MCP_SERVERS": json.dumps([one]),
        "WEB_ALLOWED_HOSTS": signed.authority,
        "TURNKEEPER_PORT": str(signed.gateway_port),
    }


def publish(title: str) -> Call:
    return Call("notes__publish", json.dumps({"title": title}))


class Visitor:
    """A browser: the page of a link, its button, the authorization server, the way back."""

    def __init__(self) -> None:
        self._jar = CookieJar(unsafe=True)

    async def begin(self, link: str) -> str:
        """Where the button leads, "" if it does not."""
        async with ClientSession(cookie_jar=self._jar) as http:
            async with http.get(link) as page:
                text = await page.text()
                assert page.status in (200, 410), text
            origin = "/".join(link.split("/")[:3])
            async with http.post(link, headers={"Origin": origin}) as page:
                text = await page.text()
        onward = re.search(r'url=(http[^"]+)"', text)
        return onward[1].replace("&amp;", "&") if onward is not None else ""

    async def leave(self, url: str) -> str:
        """Let the authorization server send it back: to where."""
        async with (
            ClientSession(cookie_jar=self._jar) as http,
            http.get(url, allow_redirects=False) as answer,
        ):
            return answer.headers["Location"]

    async def come_back(self, url: str) -> str:
        async with ClientSession(cookie_jar=self._jar) as http, http.get(url) as page:
            return await page.text()

    async def sign_in(self, link: str) -> str:
        """What the last page says."""
        return await self.come_back(await self.leave(await self.begin(link)))
