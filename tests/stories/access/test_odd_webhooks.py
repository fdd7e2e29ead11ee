"""What true callers never send, signed as theirs: bodies that are no JSON, of other types, deep, huge.

No answer is a 5xx, nothing is an error in the log, and who writes next is answered.
"""

import copy
import io
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.features.jobs.hooks import Way
from tests.fakes.ports import free_port
from tests.fakes.slack_server import packed
from tests.fakes.waiting import PATIENCE
from tests.sampling import dice
from tests.stories.hooks_rig import Headers, github, give, plain, prepare, standard
from tests.stories.jobs_rig import runs
from tests.stories.rig import PERSON, Rig
from tests.stories.slack_rig import DM, SlackRig, living

SECRET = "a-secret-of-the-webhook"
FEW, MANY = 60, 4_000

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 1e308, 2**63, -(10**30), "", " ", "\0", "\ud800", "a" * 5_000),
    *([], {}, [None], {"": None}, [[]] * 50, {"a": {"b": {"c": []}}}, "1", "../x", "<@U0ANN>", "é"),
)
RAW: tuple[bytes, ...] = (
    *(b"", b"\0", b"{", b"null", b"[]", b'""', b"1", b"{}", b"\xff\xfe", b"[" * 100_000),
    *(b'{"a":' * 50_000, b'{"update_id": NaN}', b'{"a": "\\ud800"}', b"payload=", b"payload=%7B"),
    *(b"payload=%00", b"payload=[]", b"a=b&a=c", b"--x\r\n", b" " * 100_000, b"9" * 100_000),
)


def mutate(body: Any, chance: random.Random) -> Any:
    """`body` with one to three of its values replaced, left out or added."""
    body = copy.deepcopy(body)
    for _ in range(chance.randint(1, 3)):
        places = list(walk(body))
        if not places:
            return chance.choice(ODD)
        holder, key = chance.choice(places)
        how = chance.randrange(5)
        if how == 0 and isinstance(holder, dict):
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[chance.choice(("", "x", "text", "id", "type", "chat", "user"))] = odd(chance)
        else:
            holder[key] = odd(chance)
    return body


def odd(chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(ODD))


def walk(body: Any) -> Iterator[tuple[Any, Any]]:
    """Each place of a value: what holds it, and its key there."""
    keys = (
        body.keys() if isinstance(body, dict) else range(len(body) if isinstance(body, list) else 0)
    )
    for key in list(keys):
        yield body, key
        yield from walk(body[key])


def raws(count: int, chance: random.Random) -> list[bytes]:
    return list(RAW) if count == MANY else chance.sample(RAW, 6)


COUNTS = (
    pytest.param(FEW, id="some", marks=pytest.mark.sampled),
    pytest.param(MANY, id="many", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("count", COUNTS)
async def test_telegram(rig: Rig, count: int) -> None:
    port, chance = free_port(), dice("telegram", count)
    url = f"http://127.0.0.1:{port}/telegram/webhook"
    given = {"TELEGRAM_WEBHOOK_SECRET": SECRET, "TELEGRAM_WEBHOOK_URL": url}
    await rig.start(TURNKEEPER_PORT=str(port), **given)
    await rig.telegram.wait(lambda: rig.telegram.webhook is not None, PATIENCE)
    rig.telegram.webhook = None  # the test delivers
    true = [
        rig.telegram.say(PERSON, "hello"),
        rig.telegram.say(PERSON, "/status now", reply_to=1),
    ]
    headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
    async with aiohttp.ClientSession(headers=headers) as http:
        for n in range(count):
            body = mutate(chance.choice(true), chance)
            if isinstance(body, dict) and "update_id" in body:
                body["update_id"] = n + 1_000_000
            async with http.post(url, data=json.dumps(body).encode()) as answer:
                assert answer.status < 500, body
        for sent in raws(count, chance):
            async with http.post(url, data=sent) as answer:
                assert answer.status < 500, sent
        last = rig.telegram.say(PERSON, "still there")
        async with http.post(url, json=last) as answer:
            assert answer.status == 200
    await rig.shows("ack still there")


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with living(tmp_path) as made:
        made.transport = "http"
        yield made


@pytest.mark.parametrize("count", COUNTS)
async def test_slack(slack: SlackRig, count: int) -> None:
    chance = dice("slack", count)
    await slack.start()
    server = slack.slack
    said = server.say(DM, "hello")
    await slack.shows("ack hello")
    chosen = server.choose(DM, said["event"]["ts"])
    await server.wait(lambda: server.views)
    true = [
        ("events_api", said),
        ("interactive", chosen),
        ("interactive", server.submit(server.views[-1], "When?")),
        ("events_api", server.edit(DM, said["event"]["ts"], "other words")),
        ("slash_commands", server.command(DM, "status")),
    ]
    await server.wait(lambda: len(server.answers) >= len(true))
    server.say(DM, "and now")
    await slack.shows("ack and now")
    for _ in range(count):
        kind, payload = chance.choice(true)
        body = mutate(payload, chance)
        if kind == "slash_commands":  # a form: its values are text
            texts = body if isinstance(body, dict) else {}
            body = {key: json.dumps(value)[:3_000] for key, value in texts.items()}
        status = await server.request(*packed(kind, body), {})
        assert status < 500, body
    for sent in raws(count, chance):
        for kind in ("application/json", "application/x-www-form-urlencoded", "text/plain", ""):
            assert await server.request(sent, kind, {}) < 500, (sent[:40], kind)
    server.say(DM, "still there")
    await slack.shows("still there")


WAYS: dict[Way, Callable[[bytes], Headers]] = {
    "standard": lambda body: standard(f"msg_{len(body)}_{hash(body)}", body),
    "plain": plain,
    "github": github,
}
ODD_VALUES = (
    *("", " ", "v1", "v1,", "v1,%%%", "sha256=", "sha256=zz", "9" * 13, "-1", "1e9", "\u0661", "²"),
    *("v1,AAAA " * 2_000, "a" * 7_000, "\udce9\udcff", "sha256=" + "0" * 64, "gzip", "text/plain; charset=x"),
)  # fmt: skip


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("way", WAYS)
async def test_hooks(rig: Rig, way: Way, count: int) -> None:
    """Signed, whatever the body is, a call is taken or refused with a word; with one header
    changed that is signed it begins nothing."""
    prepare(rig.home, rig.where().id)
    give(rig.home, way)
    chance, url = dice("hooks", way, count), "hooks/deploy"
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    begun = len(await runs(rig))
    bodies = [*raws(count, chance), *(json.dumps(odd(chance)).encode() for _ in range(6))]
    async with aiohttp.ClientSession() as http:
        for body in bodies:
            headers = WAYS[way](body)
            sent, signed = dict(headers), [key for key in headers if key != "X-GitHub-Delivery"]
            for _ in range(chance.randint(1, 3)):  # the last of two of one name is what counts
                sent[chance.choice(signed)] = chance.choice(ODD_VALUES)
            extra = {"Content-Encoding": "identity", "Content-Type": chance.choice(ODD_VALUES)}
            for given, good in ((sent | extra, sent == headers), (headers, True)):
                carried = [(key, write(value)) for key, value in given.items()]
                async with http.post(
                    rig.url + url, data=io.BytesIO(body), headers=carried
                ) as answer:
                    said = await answer.text()
                    assert answer.status in ((202, 400, 503) if good else (400, 401)), (given, said)
                    assert (answer.status == 503) <= ("wait" in said), said
                begun += answer.status == 202
    assert len(await runs(rig)) <= begun


def write(value: str) -> str:
    """A header's value, as far as a client can send it at all."""
    return value.encode("utf-8", "surrogateescape").decode("latin-1").replace("\n", " ")
