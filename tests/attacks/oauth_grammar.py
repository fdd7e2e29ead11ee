"""Lies that an MCP server and its authorization server tell a client that signs in, told by three HTTP
servers on loopback: `server` and `authority`, and `inside`, which nobody may ask."""

import copy
import random
from collections.abc import Callable
from typing import Any

from aiohttp import web

Json = dict[str, Any]
SECRET = "CANARY-3fa9170c2e"
"""Stands in what servers answer; no log and no failure may show it."""
CODE = "CODE-5ce1f8a07d"
METADATA, ISSUER = (
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
)
STEPS = (
    ("server", METADATA),
    ("authority", ISSUER),
    ("authority", "/register"),
    ("authority", "/token"),
)
SET_BY_US = (
    "response_type",
    "client_id",
    "redirect_uri",
    "code_challenge",
    "resource",
    "scope",
    "state",
    "request_uri",
    "request",
    "response_mode",
    "nonce",
    "prompt",
)


class Liars:
    """The three; `said`: what is answered by server and path, `asked`: what each was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.said: dict[tuple[str, str], Any] = {}
        self.places: dict[str, str] = {}
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        for name in ("server", "authority", "inside"):
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self._answer_as(name))
            runner = web.AppRunner(app, shutdown_timeout=0.05)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.places[name] = f"127.0.0.1:{runner.addresses[0][1]}"
            self._runners.append(runner)

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    def _answer_as(self, name: str) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            headers = " ".join(f"{key}: {value}" for key, value in request.headers.items())
            self.asked.append((name, request.path, headers))
            said = self.said.get((name, request.path))
            if callable(said):
                made: web.Response = said()
                return made
            return web.Response(status=404) if said is None else web.json_response(said)

        return answer

    def url(self, name: str) -> str:
        return f"http://{self.places[name]}"

    def tell_the_truth(self) -> None:
        server, authority = self.url("server"), self.url("authority")
        self.asked.clear()
        self.said = {
            ("server", METADATA): {
                "resource": f"{server}/mcp",
                "authorization_servers": [authority],
            },
            ("authority", ISSUER): {
                "issuer": authority,
                "token_endpoint": f"{authority}/token",
                "registration_endpoint": f"{authority}/register",
                "authorization_endpoint": f"{authority}/authorize?policy=a",
                "code_challenge_methods_supported": ["S256"],
            },
            ("authority", "/register"): {
                "client_id": "c-1",
                "redirect_uris": ["http://127.0.0.1:9/servers/callback"],
            },
            ("authority", "/token"): {
                "access_token": "ACCESS-1",
                "token_type": "Bearer",
                "refresh_token": "REFRESH-1",
                "expires_in": 60,
            },
        }
        self.challenge(f"{server}{METADATA}")

    def challenge(self, url: str) -> None:
        asked = {"WWW-Authenticate": f'Bearer resource_metadata="{url}"'}
        self.said["server", "/mcp"] = lambda: web.Response(status=401, headers=asked)


def list_inside(place: str) -> tuple[str, ...]:
    """Spellings of an address that may not be asked; `place` is `host:port` on loopback."""
    port = place.rpartition(":")[2]
    return (
        *(f"http://{one}:{port}/x" for one in ("127.0.0.1", "localhost", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]")),
        *(f"http://{one}:{port}/x" for one in ("2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "u:p@127.0.0.1", "localhost.")),
        *(f"https://{one}/latest" for one in ("169.254.169.254", "[::ffff:a9fe:a9fe]", "10.0.0.1", "metadata.google.internal")),
        *(f"https://127.0.0.1:{port}/", f"http://a.example@127.0.0.1:{port}/", f"//127.0.0.1:{port}/"),
    )  # fmt: skip


ODD = (
    *("javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "ftp://h.invalid/", "//h.invalid/", "", "x", None, 5, {}),
    *("https://a.invalid\\@b.invalid/", "https://u:p@a.invalid/", "https://a.invalid/`id`", "https://a.invalid/\u202egnp"),
    *("https://a.invalid/ a", "https://a.invalid:22/", "https://a.invalid/" + "a" * 5_000, "https://\u0430pple.invalid/"),
)  # fmt: skip
_BODIES: tuple[Any, ...] = (
    [], "x", 5, None, {}, {"client_id": ""}, {"client_id": "x" * 9_000}, {"client_id": 5}, {"client_id": "a\n&redirect_uri=http://e.invalid"},
    {"access_token": "x" * 1_000_000}, {"access_token": "a\nb"}, {"access_token": "a\u202eb"}, {"access_token": "a", "token_type": "mac"},
    {"access_token": "a", "refresh_token": "r" * 1_000_000}, {"access_token": "a", "scope": "s" * 1_000_000}, {"refresh_token": SECRET},
    {"access_token": "a", "expires_in": 10**400}, {"access_token": None, "refresh_token": SECRET}, {"client_id": "c", "client_secret": SECRET},
)  # fmt: skip


def _lie_by_url(chance: random.Random, told: Liars) -> None:
    server, authority = told.said["server", METADATA], told.said["authority", ISSUER]
    url = chance.choice((*list_inside(told.places["inside"]), *ODD))
    field = chance.choice(("authorization_servers", "resource", "challenge", *authority))
    if field == "challenge":
        told.challenge(str(url).encode("ascii", "replace").decode())
    elif field == "authorization_servers":
        server[field] = chance.choice(([url], [url, *server[field]], [*server[field], url], []))
    elif field == "resource":
        server[field] = url
    else:
        authority[field] = url


def _lie_by_page(chance: random.Random, told: Liars) -> None:
    """The page to sign in at sets what the gateway sets, or hides what it sets."""
    name = chance.choice((*SET_BY_US, *map(str.upper, SET_BY_US), "client%5Fid", "redirect%5furi"))
    end = chance.choice(
        (
            f"?{name}=e",
            f"?a=b&{name}",
            f"?a=b;{name}=e",
            f"?{name}=e&{name}=f",
            "#",
            "#a",
            "?a=b#",
            f"#?{name}=e",
        )
    )
    told.said["authority", ISSUER]["authorization_endpoint"] = f"https://a.invalid/sign{end}"


def _lie_by_redirect(chance: random.Random, told: Liars) -> None:
    where = chance.choice(
        (*list_inside(told.places["inside"]), "file:///etc/passwd", "//a.invalid/")
    )
    status, headers = chance.choice((301, 302, 303, 307, 308)), {"Location": where}
    told.said[chance.choice(STEPS)] = lambda: web.Response(status=status, headers=headers)


def _lie_by_body(chance: random.Random, told: Liars) -> None:
    step, body = chance.choice(STEPS), chance.choice(_BODIES)
    kind = chance.choice(("application/json", "text/html", "text/event-stream", "image/png"))
    if isinstance(body, dict) and isinstance(told.said[step], dict) and chance.random() < 0.8:
        body = {**told.said[step], **body}
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    huge = b'{"a":"' + b"x" * (17 << 20) + b'"}'
    raw = chance.choice((None, None, None, None, deep, huge))
    text = web.json_response(body).body if raw is None else raw
    told.said[step] = lambda: web.Response(body=text, content_type=kind)


def _lie_by_refusal(chance: random.Random, told: Liars) -> None:
    body = {
        "error": f"invalid_{SECRET}",
        "error_description": f"<b>{SECRET}</b>\x1b[1m",
        "error_uri": f"http://e.invalid/{SECRET}",
    }
    status = chance.choice((400, 401, 403, 404, 429, 500, 503))
    told.said[chance.choice(STEPS)] = lambda: web.json_response(body, status=status)


LIES = (_lie_by_url, _lie_by_page, _lie_by_redirect, _lie_by_body, _lie_by_refusal)


def lie(chance: random.Random, told: Liars) -> str:
    """Let them tell one; its kind."""
    told.tell_the_truth()
    kind = chance.choice(LIES)
    kind(chance, told)
    told.said = {at: copy.deepcopy(one) for at, one in told.said.items()}
    return kind.__name__
