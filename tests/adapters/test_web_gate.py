"""Who may come in: the gate's rules as values, and the same rules over a real socket."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.web import api
from adapters.web.gate import LINK_SECONDS, SESSION_SECONDS, RequestGate, RequestRefused
from adapters.web.sessions import MAX_SESSIONS, SessionBook, name_device
from agent_core import ambient
from tests.fakes.waiting import PATIENCE
from tests.fakes.web_server import SECRET, TOKEN, DocumentShelf, serve

HOST = "127.0.0.1:8080"
ORIGIN = f"http://{HOST}"


class Hands:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = 1_790_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def wait(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def hands() -> Iterator[Hands]:
    clock = Hands()
    ambient.use(clock)
    yield clock
    ambient.use(ambient.SystemClock())


def gate(
    host: str = "127.0.0.1", names: tuple[str, ...] = (), token: str | None = None, port: int = 8080,
    shelf: DocumentShelf | None = None, secret: bytes = SECRET,
) -> RequestGate:  # fmt: skip
    return RequestGate(
        secret, SessionBook(shelf or DocumentShelf()), host, port, names=names, api_token=token
    )


async def who(gate: RequestGate, cookie: str = "", **headers: str) -> str:
    return (await gate.identify(headers, cookie, "127.0.0.1")).person


def refusal(gate: RequestGate, method: str, **headers: str) -> int:
    try:
        gate.check(method, {name.replace("_", "-"): value for name, value in headers.items()})
    except RequestRefused as refused:
        return refused.status
    return 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 0),
        ("localhost:8080", 0),
        ("LOCALHOST:8080", 0),
        ("[::1]:8080", 0),
        ("127.0.0.1", 403),
        ("127.0.0.1:8081", 403),
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("127.0.0.1:8080.evil.example", 403),
        ("127.0.0.1.nip.io:8080", 403),
        ("0.0.0.0:8080", 403),
        ("user@127.0.0.1:8080", 403),
        ("192.168.1.5:8080", 403),
        ("", 403),
    ],
)
def test_only_our_own_hosts_on_loopback(host: str, status: int) -> None:
    assert refusal(gate(), "GET", Host=host) == status


def test_configured_names_are_ours_with_and_without_the_port() -> None:
    named = gate("0.0.0.0", ("chat.example.org",), TOKEN)
    assert refusal(named, "GET", Host="chat.example.org") == 0
    assert refusal(named, "GET", Host="Chat.Example.org:8080") == 0
    assert refusal(named, "POST", Host="chat.example.org", Origin="https://chat.example.org") == 0
    assert refusal(named, "GET", Host="x.chat.example.org") == 403


def test_on_all_addresses_an_address_is_ours_a_name_is_not() -> None:
    everywhere = gate("0.0.0.0", (), TOKEN)
    assert refusal(everywhere, "GET", Host="192.168.1.5:8080") == 0
    assert refusal(everywhere, "GET", Host="[fe80::1]:8080") == 0
    assert refusal(everywhere, "GET", Host="192.168.1.5:9") == 403
    assert refusal(everywhere, "GET", Host="192.168.1.5:99999") == 403
    assert refusal(everywhere, "GET", Host="rebound.example:8080") == 403


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("chat.example.org", "https://chat.example.org", 0),
        ("chat.example.org:8080", "http://chat.example.org:8080", 0),
        ("127.0.0.1:8080", "https://chat.example.org", 0),  # a proxy that writes a Host of its own
        ("chat.example.org", "https://chat.example.org:8080", 0),  # one that leaves the port out
        ("chat.example.org:8080", "http://chat.example.org", 403),
        ("chat.example.org:8080", "https://chat.example.org", 403),
        ("chat.example.org", "https://chat.example.org:9", 403),
    ],
)
def test_another_port_of_a_name_is_another_server(host: str, origin: str, status: int) -> None:
    named = gate("127.0.0.1", ("chat.example.org",), TOKEN)
    assert refusal(named, "POST", Host=host, Origin=origin) == status


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Origin": ORIGIN}, 0),
        ("POST", {"Origin": "https://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Origin": ""}, 403),
        ("POST", {"Origin": "http://localhost:8080"}, 403),
        ("POST", {"Origin": "http://127.0.0.1:8081"}, 403),
        ("POST", {"Origin": "file://127.0.0.1:8080"}, 403),
        ("POST", {"Origin": ORIGIN + ".evil.example"}, 403),
        ("POST", {"Origin": "https://evil.example", "Authorization": "Bearer x"}, 403),
        ("POST", {}, 403),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 0),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "none"}, 403),
        ("POST", {"Authorization": "Bearer x"}, 0),
        ("POST", {"Authorization": "Basic x"}, 403),
        ("DELETE", {}, 403),
        ("GET", {}, 0),
        ("GET", {"Origin": "https://evil.example"}, 403),
    ],
)
def test_a_post_says_where_it_comes_from(method: str, headers: dict[str, str], status: int) -> None:
    try:
        gate().check(method, {"Host": HOST, **headers})
        assert status == 0
    except RequestRefused as refused:
        assert refused.status == status


async def test_a_session_lasts_its_time_and_belongs_to_its_secret(hands: Hands) -> None:
    shelf = DocumentShelf()
    here = gate(shelf=shelf)
    cookie = await here.begin_session("ann@example.org")
    assert await who(here, cookie) == "ann@example.org"
    hands.time += SESSION_SECONDS - 1
    assert await who(here, cookie) == "ann@example.org"
    hands.time += 1
    for other in (cookie, await gate(shelf=shelf, secret=b"x" * 32).begin_session("ann"), ""):
        with pytest.raises(RequestRefused):
            await who(here, other)


async def test_a_session_ends_in_all_processes_and_takes_no_other_along(hands: Hands) -> None:
    shelf = DocumentShelf()
    here, there = gate(shelf=shelf), gate(shelf=shelf)
    first, second = await here.begin_session("ann", "one"), await there.begin_session("ann", "two")
    bob = await here.begin_session("bob")
    old, new = await there.book.find("ann")
    assert (old.device, new.device) == ("one", "two") and old.began == int(hands.time)
    assert await there.book.end("ann", old.id)
    assert not await there.book.end("ann", old.id) and not await here.book.end("bob", new.id)
    with pytest.raises(RequestRefused):
        await who(here, first)
    assert [await who(here, one) for one in (second, bob)] == ["ann", "bob"]


async def test_the_oldest_session_makes_room(hands: Hands) -> None:
    here = gate()
    cookies = [await here.begin_session("ann") for _ in range(MAX_SESSIONS + 1)]
    assert len(await here.book.find("ann")) == MAX_SESSIONS
    assert await who(here, cookies[1]) == "ann"
    with pytest.raises(RequestRefused):
        await who(here, cookies[0])


async def test_a_cookie_from_before_sessions_were_kept_is_none(hands: Hands) -> None:
    here = gate()
    for person in ("owner", "ann@example.org"):
        with pytest.raises(RequestRefused):
            await who(here, here._sign("session", person, int(hands.time) + 99))


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 "
         "Safari/537.36 Edg/142.0", "Edge, Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 "
         "Mobile/15E148 Safari/604.1", "Safari, iPhone"),
        ("curl/8.5.0", "curl"),
        ("\u202eevil\n<b>/1", "evil<b>"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_device_is_named_in_a_few_words(agent: str, device: str) -> None:
    assert name_device({"User-Agent": agent}) == device


@given(st.text(max_size=80))
async def test_no_cookie_of_chance_is_a_session(text: str) -> None:
    with pytest.raises(RequestRefused):
        await who(gate(), text)


@given(st.data())
async def test_no_changed_cookie_is_a_session(data: st.DataObject) -> None:
    here = gate()
    cookie = await here.begin_session("ann")
    at = data.draw(st.integers(0, len(cookie) - 1))
    other = data.draw(st.characters().filter(lambda one: one != cookie[at]))
    with pytest.raises(RequestRefused):
        await who(here, cookie[:at] + other + cookie[at + 1 :])


async def test_a_link_works_once_and_for_ten_minutes(hands: Hands) -> None:
    here = gate()
    token = here.issue("ann")
    assert await here.redeem(token) == "ann"
    with pytest.raises(RequestRefused):
        await here.redeem(token)
    late = here.issue("ann")
    hands.time += LINK_SECONDS
    with pytest.raises(RequestRefused):
        await here.redeem(late)
    assert here.issue("ann") != here.issue("ann")


async def test_a_link_is_no_cookie_and_a_cookie_no_link(hands: Hands) -> None:
    here = gate()
    with pytest.raises(RequestRefused):
        await here.redeem(await here.begin_session("ann"))
    with pytest.raises(RequestRefused):
        await who(here, here.issue("ann"))


@pytest.mark.parametrize("name", ["", "a~b", "a b", "a:b", "a/b", "../x", "é", "x" * 65])
def test_a_person_is_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="web person"):
        gate().issue(name)


async def test_the_token_is_the_owner_and_a_wrong_one_nobody(hands: Hands) -> None:
    here = gate(token=TOKEN)
    assert await who(here, Authorization=f"Bearer {TOKEN}") == "owner"
    cookie = await here.begin_session("owner")
    for wrong in ("x", TOKEN + "x", TOKEN[:-1], "é"):
        with pytest.raises(RequestRefused) as caught:
            await who(here, cookie, Authorization=f"Bearer {wrong}")
        assert caught.value.status == 401
    with pytest.raises(RequestRefused):
        await who(gate(), Authorization="Bearer None")


async def test_foreign_requests_over_a_socket(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        for path in ("/", "/page.js", "/signin/x", "/api/conversations", "/api/openapi.json"):
            async with server.http.get(path, headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403
                assert "not served here" in (await answer.json())["error"]
        foreign = {"Origin": "https://evil.example"}
        for path in ("messages", "answers", "commands", "stop"):
            url = f"/api/conversations/c1/{path}"
            async with server.http.post(url, json={}, headers=foreign) as answer:
                assert answer.status == 403
                assert "another site" in (await answer.json())["error"]
        async with server.http.post("/api/uploads", data=b"x", headers=foreign) as answer:
            assert answer.status == 403
        assert server.backend.accepted == []


async def test_without_a_good_cookie_or_token_nothing_is_told(tmp_path: Path, hands: Hands) -> None:
    async with serve(tmp_path) as server:
        good = await server.gate.begin_session("owner")
        hands.time -= SESSION_SECONDS
        expired = await server.gate.begin_session("owner")
        hands.time += SESSION_SECONDS
        forged = await gate(port=server.port, secret=b"another secret, as long").begin_session(
            "owner"
        )
        name = server.gate.cookie
        async with aiohttp.ClientSession(server.url, headers={"Origin": server.url}) as http:
            paths = ("/api/conversations", "/api/conversations/c1", "/api/conversations/c1/events")
            for cookie in ("", expired, forged, "owner", good[:-1]):
                for path in paths:
                    async with http.get(path, headers={"Cookie": f"{name}={cookie}"}) as answer:
                        assert answer.status == 401
                        assert "turnkeeper link" in (await answer.json())["error"]
                async with http.get("/", headers={"Cookie": f"{name}={cookie}"}) as answer:
                    assert answer.status == 200 and "Set-Cookie" not in answer.headers
                    assert "turnkeeper link" in await answer.text()
                    assert 'id="log"' not in await answer.text()
            async with http.get(paths[0], headers={"Cookie": f"{name}={good}"}) as answer:
                assert answer.status == 200
            wrong = {"Authorization": "Bearer wrong"}
            async with http.get(paths[0], headers=wrong) as answer:
                assert answer.status == 401


async def test_a_link_signs_in_once(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        jar = aiohttp.CookieJar(unsafe=True)
        server.backend.roles["web:ann@example.org"] = "user"
        link = f"/signin/{server.gate.issue('ann@example.org')}"
        async with aiohttp.ClientSession(server.url, cookie_jar=jar) as http:
            async with http.head(link) as answer:
                assert answer.status == 405
            async with http.get(link) as answer:
                assert answer.status == 200
                cookie = answer.headers["Set-Cookie"]
                assert "HttpOnly" in cookie
                assert "SameSite=Strict" in cookie
                assert "Path=/" in cookie
            async with http.get("/api/conversations") as answer:
                assert (await answer.json())["person"] == "ann@example.org"
            async with http.get("/") as answer:
                assert 'id="log"' in await answer.text()
        async with aiohttp.ClientSession(server.url) as http:
            async with http.get(link) as answer:
                assert answer.status == 401
                assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, {"X-Forwarded-For": "::1"}],
)
async def test_nobody_is_the_owner_by_coming_from_this_machine(
    tmp_path: Path, token: str | None, headers: dict[str, str]
) -> None:
    async with serve(tmp_path, token=token) as server:
        async with aiohttp.ClientSession(server.url, headers=headers) as http:
            async with http.get("/") as answer:
                assert answer.status == 200 and "Set-Cookie" not in answer.headers
                page = await answer.text()
                assert "turnkeeper link" in page and "brand" in page
                assert 'href="/"' not in page, "it would lead to where one is"
            async with http.get("/api/conversations") as answer:
                assert answer.status == 401


async def test_a_person_sees_and_ends_their_sessions_and_signs_out(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        server.backend.roles["web:ann"] = "viewer"
        phone, here = await server.sign_in("ann"), await server.sign_in("ann")
        theirs = await server.sign_in("owner")
        async with aiohttp.ClientSession(server.url) as http:
            async with http.get("/api/sessions", headers=here) as answer:
                new, old = (await answer.json())["sessions"]
            assert new["current"] and not old["current"] and old["expires"] > old["began"]
            path = f"/api/sessions/{old['id']}"
            for headers, status in (
                (theirs, 404),
                ({**here, "Origin": "https://evil.example"}, 403),
            ):
                async with http.delete(path, headers=headers) as answer:
                    assert answer.status == status
            events = "/api/conversations/c1/events"
            async with http.get(events, headers=phone) as stream:
                await stream.content.readline()
                async with http.delete(path, headers=here) as answer:
                    assert (answer.status, await answer.json()) == (200, {"ended": old["id"]})
                    assert "Set-Cookie" not in answer.headers
                await stream.content.read()  # it ends: what comes now is not for that session
            async with http.get("/api/conversations", headers=phone) as answer:
                assert answer.status == 401
            async with http.post("/api/signout", headers=here) as answer:
                assert answer.status == 200
                assert f'{server.gate.cookie}=""' in answer.headers["Set-Cookie"]
            async with http.get("/api/sessions", headers=here) as answer:
                assert answer.status == 401
            async with http.get("/api/sessions", headers=theirs) as answer:
                assert len((await answer.json())["sessions"]) == 1
        async with server.http.post("/api/signout") as answer:
            assert answer.status == 409 and "token" in (await answer.json())["error"]


async def test_a_session_that_ended_at_another_replica_ends_its_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "HEARTBEAT", 0.05)
    async with serve(tmp_path) as server:
        headers = await server.sign_in("owner")
        async with aiohttp.ClientSession(server.url) as http:
            async with http.get("/api/conversations/c1/events", headers=headers) as stream:
                await stream.content.readline()
                (session,) = await server.gate.book.find("owner")
                await server.gate.book.end("owner", session.id)
                async with asyncio.timeout(PATIENCE):
                    await stream.content.read()


async def test_every_answer_carries_the_security_headers(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        cookie = {"Cookie": (await server.sign_in("owner"))["Cookie"]}
        for path in ("/", "/page.js", "/page.css", "/api/conversations", "/api/openapi.json"):
            async with server.http.get(path, headers=cookie) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'none'; script-src 'self';")
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["X-DNS-Prefetch-Control"] == "off"
                assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
                assert "no-" in answer.headers["Cache-Control"]
                assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_link_that_a_clock_ahead_made_works_once_too(hands: Hands) -> None:
    here = gate()
    hands.time += 86_400
    token = here.issue("ann")
    hands.time -= 86_400
    assert await here.redeem(token) == "ann"
    hands.time += LINK_SECONDS + 1
    assert await here.redeem(here.issue("ann")) == "ann"
    with pytest.raises(RequestRefused):
        await here.redeem(token)


async def test_a_link_works_once_in_all_processes(hands: Hands) -> None:
    shelf = DocumentShelf()
    old, token = gate(shelf=shelf), gate(shelf=shelf).issue("ann")
    hands.time += 5
    assert await gate(shelf=shelf).redeem(token) == "ann"
    for one in (old, gate(shelf=shelf)):
        with pytest.raises(RequestRefused):
            await one.redeem(token)
    hands.time += LINK_SECONDS + 1
    await old.redeem(old.issue("ann"))
    assert len(await shelf.keys("link:")) == 1, "what is over is not noted any longer"
