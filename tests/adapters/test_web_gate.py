"""Who may come in: the gate's rules as values, and the same rules over a real socket."""

from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.web.gate import LINK_SECONDS, SESSION_SECONDS, Claim, RequestGate, RequestRefused
from agent_core import ambient
from tests.fakes.web_server import SECRET, TOKEN, serve

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
    claim: Claim | None = None,
) -> RequestGate:  # fmt: skip
    return RequestGate(SECRET, host, port, names, token, claim)


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


def test_a_session_lasts_its_time_and_belongs_to_its_secret(hands: Hands) -> None:
    here = gate()
    cookie = here.session("ann@example.org")
    assert here.person({}, cookie) == "ann@example.org"
    hands.time += SESSION_SECONDS - 1
    assert here.person({}, cookie) == "ann@example.org"
    hands.time += 1
    with pytest.raises(RequestRefused):
        here.person({}, cookie)
    with pytest.raises(RequestRefused):
        here.person({}, RequestGate(b"x" * 32, "127.0.0.1", 8080).session("ann"))


@given(st.text(max_size=80))
def test_no_cookie_of_chance_is_a_session(text: str) -> None:
    with pytest.raises(RequestRefused):
        gate().person({}, text)


@given(st.data())
def test_no_changed_cookie_is_a_session(data: st.DataObject) -> None:
    cookie = gate().session("ann")
    at = data.draw(st.integers(0, len(cookie) - 1))
    other = data.draw(st.characters().filter(lambda one: one != cookie[at]))
    with pytest.raises(RequestRefused):
        gate().person({}, cookie[:at] + other + cookie[at + 1 :])


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


async def test_a_link_of_another_process_works_until_a_restart_forgets_the_used_ones(
    hands: Hands,
) -> None:
    running = gate()
    hands.time += 5
    token = gate().issue("ann")
    assert await running.redeem(token) == "ann"
    hands.time += 5
    with pytest.raises(RequestRefused):
        await gate().redeem(token)


async def test_a_link_is_no_cookie_and_a_cookie_no_link(hands: Hands) -> None:
    here = gate()
    with pytest.raises(RequestRefused):
        await here.redeem(here.session("ann"))
    with pytest.raises(RequestRefused):
        here.person({}, here.issue("ann"))


@pytest.mark.parametrize("name", ["", "a~b", "a b", "a:b", "a/b", "../x", "é", "x" * 65])
def test_a_person_is_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="web person"):
        gate().issue(name)


def test_the_token_is_the_owner_and_a_wrong_one_nobody(hands: Hands) -> None:
    here = gate(token=TOKEN)
    assert here.person({"Authorization": f"Bearer {TOKEN}"}, None) == "owner"
    for wrong in ("x", TOKEN + "x", TOKEN[:-1], "é"):
        with pytest.raises(RequestRefused) as caught:
            here.person({"Authorization": f"Bearer {wrong}"}, here.session("owner"))
        assert caught.value.status == 401
    with pytest.raises(RequestRefused):
        gate().person({"Authorization": "Bearer None"}, None)


def test_the_owner_is_welcome_only_from_this_machine_without_a_token() -> None:
    assert gate().welcome({}, "127.0.0.1") == "owner"
    assert gate().welcome({"Sec-Fetch-Site": "none"}, "::1") == "owner"
    assert gate().welcome({"Sec-Fetch-Site": "same-origin"}, "127.0.0.1") == "owner"
    assert gate().welcome({"Sec-Fetch-Site": "cross-site"}, "127.0.0.1") is None
    assert gate().welcome({"Sec-Fetch-Site": "same-site"}, "127.0.0.1") is None
    assert gate().welcome({"X-Forwarded-For": "1.2.3.4"}, "127.0.0.1") is None
    assert gate().welcome({}, "192.168.1.9") is None
    assert gate().welcome({}, "") is None
    assert gate(token=TOKEN).welcome({}, "127.0.0.1") is None
    assert gate("0.0.0.0").welcome({}, "127.0.0.1") is None
    assert gate(names=("chat.example.org",)).welcome({}, "127.0.0.1") is None


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
        assert server.desk.accepted == []


async def test_without_a_good_cookie_or_token_nothing_is_told(tmp_path: Path, hands: Hands) -> None:
    async with serve(tmp_path) as server:
        good = server.gate.session("owner")
        hands.time -= SESSION_SECONDS
        expired = server.gate.session("owner")
        hands.time += SESSION_SECONDS
        forged = RequestGate(b"another secret, as long", "127.0.0.1", server.port).session("owner")
        name = server.gate.cookie
        async with aiohttp.ClientSession(server.url, headers={"Origin": server.url}) as http:
            paths = ("/api/conversations", "/api/conversations/c1", "/api/conversations/c1/events")
            for cookie in ("", expired, forged, "owner", good[:-1]):
                for path in paths:
                    async with http.get(path, headers={"Cookie": f"{name}={cookie}"}) as answer:
                        assert answer.status == 401
                        assert "turnkeeper link" in (await answer.json())["error"]
                async with http.get("/", headers={"Cookie": f"{name}={cookie}"}) as answer:
                    assert answer.status == 401
                    assert "turnkeeper link" in await answer.text()
            async with http.get(paths[0], headers={"Cookie": f"{name}={good}"}) as answer:
                assert answer.status == 200
            wrong = {"Authorization": "Bearer wrong"}
            async with http.get(paths[0], headers=wrong) as answer:
                assert answer.status == 401


async def test_a_link_signs_in_once(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        jar = aiohttp.CookieJar(unsafe=True)
        server.desk.roles["web:ann@example.org"] = "user"
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


async def test_on_loopback_without_a_token_the_page_signs_the_owner_in(tmp_path: Path) -> None:
    async with serve(tmp_path, token=None) as server:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(server.url, cookie_jar=jar) as http:
            site = {"Sec-Fetch-Site": "cross-site"}
            async with http.get("/", headers=site) as answer:
                assert answer.status == 401
            async with http.get("/") as answer:
                assert answer.status == 200
            async with http.get("/api/conversations") as answer:
                assert (await answer.json())["person"] == "owner"


async def test_every_answer_carries_the_security_headers(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        cookie = {"Cookie": f"{server.gate.cookie}={server.gate.session('owner')}"}
        for path in ("/", "/page.js", "/page.css", "/api/conversations", "/api/openapi.json"):
            async with server.http.get(path, headers=cookie) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'none'; script-src 'self';")
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
                assert "no-" in answer.headers["Cache-Control"]
                assert "Access-Control-Allow-Origin" not in answer.headers


async def test_a_link_that_is_claimed_in_a_store_works_once_in_all_processes(hands: Hands) -> None:
    used: set[str] = set()

    async def claim(nonce: str, until: int) -> bool:
        new = nonce not in used
        used.add(nonce)
        return new

    old, token = gate(claim=claim), gate().issue("ann")
    hands.time += 5
    younger = gate(claim=claim)
    assert await younger.redeem(token) == "ann"
    for one in (old, younger, gate(claim=claim)):
        with pytest.raises(RequestRefused):
            await one.redeem(token)
