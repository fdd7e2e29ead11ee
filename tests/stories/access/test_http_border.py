"""What anybody on the network may do at the gateway's HTTP door without a right to anything."""

import asyncio
import io
import json
import logging
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
import pytest

from adapters.web import attempts
from tests.fakes.model_server import Call, Say
from tests.fakes.ports import free_port
from tests.stories.rig import PATIENCE, PERSON, Rig

BEARER = "a-token-of-the-page-0123456789"
ELSEWHERE = {"TURNKEEPER_HOST": "0.0.0.0", "TURNKEEPER_TOKEN": BEARER}
LIST = "api/conversations"
Answer = tuple[int, Mapping[str, str], str]


async def get(rig: Rig, path: str, source: str = "127.0.0.1", **headers: str) -> Answer:
    """From another address of this machine, which counts as one elsewhere with `stranger`."""
    connector = aiohttp.TCPConnector(local_addr=(source, 0))
    async with aiohttp.ClientSession(connector=connector) as http:
        async with http.get(f"{rig.url}{path}", headers=headers) as answer:
            return answer.status, answer.headers, await answer.text()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of 127.0.0.* but 127.0.0.1 counts as other machines."""
    monkeypatch.setattr(attempts, "is_loopback", lambda host: host == "127.0.0.1")


@pytest.mark.usefixtures("strangers")
async def test_wrong_tokens_are_slowed_down_for_their_own_address_alone(rig: Rig) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    statuses = [
        (await get(rig, LIST, "127.0.0.2", **bearer(f"guess-{n:020}")))[0] for n in range(30)
    ]
    assert statuses == [401] * 11 + [429] * 19
    status, headers, text = await get(rig, LIST, "127.0.0.2", **bearer(BEARER))
    assert status == 429, "a guess is not looked at meanwhile"
    assert 0 < int(headers["Retry-After"]) <= 6 and "Wait" in text
    status, headers, text = await get(rig, "signin/owner.1.2.3", "127.0.0.2")
    assert status == 429 and "Retry-After" in headers and "Wait a minute" in text
    assert (await get(rig, LIST, "127.0.0.3", **bearer(BEARER)))[0] == 200
    assert (await get(rig, LIST, "127.0.0.1", **bearer(BEARER)))[0] == 200
    assert (await get(rig, "healthz", "127.0.0.2"))[0] == 200
    _, _, metrics = await get(rig, "metrics")
    assert "turnkeeper_sign_ins_failed_total 32.0" in metrics
    assert "turnkeeper_sign_ins_slowed_total 21.0" in metrics


@pytest.mark.usefixtures("strangers")
async def test_where_many_share_an_address_right_tokens_are_heard(rig: Rig) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    for source in ("127.0.0.1", "127.0.0.2"):  # this machine; a proxy that somebody signed in by
        assert (await get(rig, LIST, source, **bearer(BEARER)))[0] == 200
        statuses = [(await get(rig, LIST, source, **bearer("x" * 20)))[0] for _ in range(20)]
        assert statuses[-1] == 429
        assert (await get(rig, LIST, source, **bearer(BEARER)))[0] == 200


async def test_health_says_one_word_to_any_host_and_looks_once_a_second(rig: Rig) -> None:
    await rig.start()
    before = rig.store.commits
    for _ in range(300):
        status, _, text = await get(rig, "readyz", Host="evil.example")
        assert (status, text) == (200, "ready\n")
    assert rig.store.commits - before <= 10
    assert (await get(rig, "healthz", Host="evil.example"))[::2] == (200, "ok\n")


async def test_metrics_are_for_this_machine_or_for_the_token(rig: Rig) -> None:
    await rig.start()
    assert (await get(rig, "metrics"))[0] == 200
    assert (await get(rig, "metrics", Host="evil.example"))[0] == 403
    assert (await get(rig, "metrics", **bearer("x" * 20)))[0] == 401
    await rig.stop()
    await rig.start(**ELSEWHERE)
    status, _, text = await get(rig, "metrics")
    assert status == 401 and "token" in text and "turnkeeper_" not in text
    assert (await get(rig, "metrics", **bearer("x" * 20)))[0] == 401
    assert (await get(rig, "metrics", Host="gateway:8787", **bearer(BEARER)))[0] == 200


async def test_the_page_and_the_api_look_at_the_host_and_hooks_at_the_signature(rig: Rig) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    for path in ("", "page.js", LIST, "api/openapi.json", "api/jobs"):
        assert (await get(rig, path, Host="evil.example", **bearer(BEARER)))[0] == 403
    async with aiohttp.ClientSession() as http:
        host = {"Host": "evil.example"}
        async with http.post(f"{rig.url}hooks/deploy", data=b"{}", headers=host) as answer:
            assert answer.status == 401 and "signed" in await answer.text()


@pytest.mark.pick
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
async def test_deep_and_large_json_is_refused(rig: Rig, opening: str) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    deep = ('{"text": "hi", "more": ' + opening * 100_000).encode()
    posts = [f"{LIST}/c1/{name}" for name in ("messages", "answers", "commands", "stop")]
    async with aiohttp.ClientSession(headers=bearer(BEARER)) as http:
        for path in (*posts, "api/jobs/one/run"):
            async with http.post(f"{rig.url}{path}", data=deep) as answer:
                assert answer.status == 400 and "nested too deep" in await answer.text()
        large = b'{"text": "' + b"x" * (1 << 20) + b'"}'
        async with http.post(f"{rig.url}{posts[0]}", data=io.BytesIO(large)) as answer:
            assert answer.status == 413
    assert rig.log.bugs == []


@pytest.mark.parametrize("depth", [900, 100_000])
async def test_deep_json_of_a_platform_or_a_model_breaks_nothing(rig: Rig, depth: int) -> None:
    secret, port = "a-secret-of-the-webhook", free_port()
    url = f"http://127.0.0.1:{port}/telegram/webhook"
    await rig.start(
        TURNKEEPER_PORT=str(port), TELEGRAM_WEBHOOK_SECRET=secret, TELEGRAM_WEBHOOK_URL=url
    )
    await rig.telegram.wait(lambda: rig.telegram.webhook is not None, PATIENCE)
    rig.telegram.webhook = None  # we deliver ourselves
    good = rig.telegram.say(PERSON, "hello")
    headers = {"X-Telegram-Bot-Api-Secret-Token": secret}
    deep = json.dumps(good | {"more": 0}).replace(
        '"more": 0', f'"more": {"[" * depth}{"]" * depth}'
    )
    rig.model.script(Call("list_files", "[" * depth + "]" * depth), Say("done"))
    async with aiohttp.ClientSession(headers=headers) as http:
        async with http.post(url, data=deep.encode()) as answer:
            assert answer.status in (200, 400)
        async with http.post(url, json=good) as answer:
            assert answer.status == 200
    await rig.shows("done")
    assert "arguments of list_files do not fit" in rig.seen(role="tool")[-1]
    await rig.quiet()
    assert rig.log.bugs == []


async def test_connections_of_one_address_are_bounded(rig: Rig) -> None:
    await rig.start(CONNECTIONS_PER_ADDRESS="8")
    host, port = rig.url.removeprefix("http://").rstrip("/").split(":")
    held = []
    for _ in range(40):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: half")
        held.append((reader, writer))
    ended = 0
    async with asyncio.timeout(PATIENCE):
        for reader, _ in held[:32]:
            ended += await _until_end(reader)
    assert ended == 32, "the oldest make room"
    assert (await get(rig, "healthz"))[0] == 200
    for _, writer in held:
        writer.close()


async def _until_end(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_one_subscriber_is_one_address(family: socket.AddressFamily) -> None:
    known = attempts.FailedAttempts()
    sources = ["192.0.2.1", "192.0.2.1"] if family == socket.AF_INET else [
        "2001:db8::1", "2001:db8::ffff:2",
    ]  # fmt: skip
    for n in range(attempts.BURST + 1):
        known.fail(sources[n % 2])
    assert all(known.find_wait(one) for one in sources)
    assert not known.find_wait("192.0.2.2") and not known.find_wait("2001:db8:0:1::1")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_is_not_coded_as_it_says_is_refused(rig: Rig, coding: str) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    told = {"Content-Encoding": coding, "Content-Type": "application/json"}
    for path in (f"{LIST}/c1/messages", "api/uploads", "hooks/deploy"):
        async with aiohttp.ClientSession(headers=bearer(BEARER)) as http:
            async with http.post(f"{rig.url}{path}", data=b"{}", headers=told) as answer:
                assert answer.status in (400, 401), (path, await answer.text())
    assert rig.log.bugs == []


async def test_who_leaves_in_the_middle_of_a_body_is_no_fault_of_ours(rig: Rig) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    port = int(rig.url.rstrip("/").rpartition(":")[2])
    faults = logging.getLogger("aiohttp.server")
    faults.addHandler(rig.log)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /{LIST}/c1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        head += f"Authorization: Bearer {BEARER}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Expect: 100-continue\r\nContent-Length: 90\r\n\r\n".encode())
        assert b"100" in await reader.readline(), "its handler reads the body"
        writer.transport.abort()
        await get(rig, "healthz")
        await rig.stop()
        assert rig.log.bugs == []
    finally:
        faults.removeHandler(rig.log)


async def test_the_address_in_the_first_line_is_a_host_too(rig: Rig) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    port = int(rig.url.rstrip("/").rpartition(":")[2])
    for there, status in (
        (f"127.0.0.1:{port}", b"200"),
        ("evil.example", b"400"),
        ("[::1", b"400"),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET http://{there}/{LIST} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        writer.write(f"{head}Authorization: Bearer {BEARER}\r\n\r\n".encode())
        assert status in await reader.readline()
        writer.close()


async def test_a_browser_that_looks_ahead_does_not_use_the_link_up(rig: Rig) -> None:
    await rig.start()
    path = rig.link.removeprefix(rig.url)
    for told in ({"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}):
        status, headers, _ = await get(rig, path, **told)
        assert status == 503 and "Set-Cookie" not in headers
    assert (await get(rig, path))[0] == 200
    assert (await get(rig, path))[0] == 401, "once"


DOUBLED: tuple[tuple[str, str, str, int], ...] = (
    ("POST", LIST, "Origin: http://evil.example", 400),
    ("POST", LIST, "Sec-Fetch-Site: cross-site", 400),
    ("GET", LIST, "Authorization: Bearer none", 401),
    ("POST", "hooks/deploy", "X-Hub-Signature-256: sha256=00", 401),
    ("POST", "hooks/deploy", "webhook-signature: v1,AAAA", 401),
    ("POST", "hooks/deploy", "webhook-id: other", 401),
    ("POST", "hooks/deploy", "X-Turnkeeper-Timestamp: 1", 401),
    ("POST", "telegram/webhook", "X-Telegram-Bot-Api-Secret-Token: none", 401),
    ("POST", "slack/events", "X-Slack-Signature: v0=00", 401),
)


@pytest.mark.pick
@pytest.mark.parametrize("first", [True, False])
async def test_a_header_that_decides_and_has_two_values_is_refused(rig: Rig, first: bool) -> None:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    at = urlsplit(rig.url)
    own = {"Host": at.netloc, "Origin": rig.url.rstrip("/"), "Authorization": f"Bearer {BEARER}"}
    own |= {"Sec-Fetch-Site": "same-origin", "Content-Length": "0", "Connection": "close"}
    for method, path, odd, status in DOUBLED:
        name = odd.partition(":")[0]
        lines = [f"{one}: {value}" for one, value in {name: "own", **own}.items()]
        for count, added in ((1, []), (2, [lines[0]]), (0, [odd])):
            told = [*added, *lines] if first else [*lines, *added]
            head = "\r\n".join((f"{method} /{path} HTTP/1.1", *told, "", ""))
            reader, writer = await asyncio.open_connection(at.hostname, at.port)
            writer.write(head.encode())
            said = (await reader.read()).decode()
            writer.close()
            doubled = "has several values" in said
            assert doubled == (count == 0), (odd, said)
            if doubled:
                assert said.startswith(f"HTTP/1.1 {status} "), said
