"""Calls of Telegram and Slack from a grammar, through a running gateway: what is theirs is answered,
once, in whatever dress; what is forged in one thing is refused and begins nothing."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from agent_core import ambient
from tests.attacks.webhook_grammar import (
    Call,
    Key,
    draw_forged,
    draw_told,
    draw_true,
    draw_untold,
)
from tests.fakes.ports import free_port
from tests.fakes.slack_server import SECRET as SIGNING
from tests.fakes.slack_server import packed
from tests.fakes.waiting import PATIENCE
from tests.sampling import dice
from tests.stories.rig import PERSON, Rig
from tests.stories.slack_rig import DM, SlackRig, living

SECRET = "a-Secret-of-the-webhook"
ROUND, TRUE = 20, 2
"""Of so many calls, so many are true ones; each of these is made twice."""
COUNTS = (
    pytest.param(40, id="some", marks=[pytest.mark.sampled, pytest.mark.pick("forged calls")]),
    pytest.param(2_500, id="many", marks=pytest.mark.slow),
)
REFUSED = (400, 401, 404, 405)


async def send(http: aiohttp.ClientSession, url: str, call: Call, kind: str = "") -> int:
    headers = [*call.headers, *([("Content-Type", kind)] if kind else [])]
    async with http.request(
        call.method,
        url,
        data=io.BytesIO(call.body),
        headers=headers,
        skip_auto_headers=["Content-Type"],
    ) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize("count", COUNTS)
async def test_only_telegram_is_heard(rig: Rig, count: int) -> None:
    port, chance = free_port(), dice("telegram's calls", count)
    url = f"http://127.0.0.1:{port}/telegram/webhook"
    given = {"TELEGRAM_WEBHOOK_SECRET": SECRET, "TELEGRAM_WEBHOOK_URL": url}
    await rig.start(TURNKEEPER_PORT=str(port), **given)
    await rig.telegram.wait(lambda: rig.telegram.webhook is not None, PATIENCE)
    rig.telegram.webhook = None  # the test delivers
    async with aiohttp.ClientSession() as http:
        for n in range(count):
            is_true = n % ROUND < TRUE
            said = rig.telegram.say(PERSON, f"{'true' if is_true else 'forged'} {n}.")
            body = json.dumps(said).encode()
            call = (draw_told if is_true else draw_untold)(SECRET, chance, body)
            status = await send(http, url, call)
            if not is_true:
                assert status in REFUSED, (status, call)
                continue
            assert status == 200, call
            assert await send(http, url, call) == 200, "known again"
            await rig.shows(f"ack true {n}.")
    await rig.quiet()
    check_heard(rig.said(), count)


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    async with living(tmp_path) as made:
        made.transport = "http"
        yield made


@pytest.mark.parametrize("count", COUNTS)
async def test_only_slack_is_heard(slack: SlackRig, count: int) -> None:
    chance, key = dice("slack's calls", count), Key(way="slack", written=SIGNING)
    await slack.start()
    url, slack.slack.hook = slack.slack.hook, ""  # the test delivers
    async with aiohttp.ClientSession() as http:
        for n in range(count):
            is_true = n % ROUND < TRUE
            body, kind = packed(
                "events_api", slack.slack.say(DM, f"{'true' if is_true else 'forged'} {n}.")
            )
            draw = draw_true if is_true else draw_forged
            call = draw(key, int(ambient.now()), chance, body)
            status = await send(http, url, call, kind)
            if not is_true:
                assert status in REFUSED, (status, call)
                continue
            assert status == 200, call
            assert await send(http, url, call, kind) == 200, "known again"
            await slack.shows(f"ack true {n}.")
    await slack.quiet()
    check_heard(slack.said(), count)


def check_heard(said: list[str], count: int) -> None:
    """Each true call was answered once, and no other."""
    answers = [text for text in said if "ack" in text]
    assert not [text for text in answers if "forged" in text]
    for n in range(count):
        if n % ROUND < TRUE:
            assert sum(f"ack true {n}." in text for text in answers) == 1, n
