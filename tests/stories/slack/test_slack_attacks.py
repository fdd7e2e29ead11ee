"""Requests to /slack/events as others and Slack's own retries make them: the cases of the attack
list that are Slack's, by its names."""

import time

import pytest

from agent_core import ambient
from tests.fakes.clocks import Skipping
from tests.fakes.model_server import Hang, Say
from tests.fakes.slack_server import packed
from tests.stories.slack_rig import DM, SlackRig


@pytest.fixture
async def rig(rig: SlackRig) -> SlackRig:
    rig.transport = "http"
    await rig.start()
    return rig


def said(rig: SlackRig, text: str) -> tuple[bytes, str]:
    """A message of a person as Slack would post it, which it has not done."""
    rig.slack.deaf = True
    body = packed("events_api", rig.slack.say(DM, text))
    rig.slack.deaf = False
    return body


async def test_slack_future(rig: SlackRig) -> None:
    body, kind = said(rig, "hello")
    assert await rig.slack.request(body, kind, {}, at=time.time() + 302) == 401
    await rig.quiet()
    assert rig.model.requests == []


async def test_slack_body_mutated(rig: SlackRig) -> None:
    body, kind = said(rig, "hello")
    assert await rig.slack.request(body, kind, {}, secret="of somebody else") == 401
    assert rig.model.requests == []


async def test_slack_replay_same_body(rig: SlackRig) -> None:
    body, kind = said(rig, "hello")
    at = time.time()
    assert [await rig.slack.request(body, kind, {}, at=at) for _ in range(2)] == [200, 200]
    await rig.shows("ack hello")
    await rig.quiet()
    assert len(rig.model.requests) == 1


async def test_slack_retry_only(rig: SlackRig) -> None:
    body, kind = said(rig, "hello")
    retry = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
    assert await rig.slack.request(body, kind, retry) == 200
    await rig.shows("ack hello")
    await rig.quiet()
    assert len(rig.model.requests) == 1


async def test_slack_retry_after_ttl(rig: SlackRig) -> None:
    body, kind = said(rig, "hello")
    assert await rig.slack.request(body, kind, {}) == 200
    await rig.shows("ack hello")
    await rig.quiet()
    clock = Skipping()
    ambient.use(clock)
    try:
        clock.skip(20 * 3600)
        later = clock.now()
        assert await rig.slack.request(body, kind, {"X-Slack-Retry-Num": "2"}, at=later) == 200
        await rig.quiet()
    finally:
        ambient.use(ambient.SystemClock())
    assert len(rig.model.requests) == 1


async def test_slack_retry_while_running(rig: SlackRig) -> None:
    rig.model.script(Hang(0.3), Say("here"))
    body, kind = said(rig, "hello")
    assert await rig.slack.request(body, kind, {}) == 200
    await rig.until(lambda: rig.model.requests)
    assert await rig.slack.request(body, kind, {"X-Slack-Retry-Num": "1"}) == 200
    await rig.shows("here")
    await rig.quiet()
    assert rig.said() == ["here"] and rig.seen(role="user") == ["hello"]
