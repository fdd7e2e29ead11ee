"""Slack is away for a while, or something else answers in its place: what is to be said then is said
once it is back, not given up after two tries."""

import pytest

from gateway.delivery import outbox
from tests.stories.slack_rig import DEV, DM, SlackRig


@pytest.mark.parametrize("status", [0, 200, 302, 404, 500, 502, 503])
@pytest.mark.parametrize("thread", ["", "1700000000.000001"])
@pytest.mark.parametrize("channel", [DM, DEV])
async def test_an_outage_costs_no_answer(
    rig: SlackRig, status: int, thread: str, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_BACKOFF", 0.5)
    await rig.start()
    say = rig.slack.mention if channel == DEV else rig.slack.say
    say(channel, "before", thread=thread)
    await rig.shows("before", channel)
    await rig.quiet()
    rig.slack.away = [status] * 12
    say(channel, "hello", thread=thread)
    await rig.shows("hello", channel)
    await rig.quiet()
    assert sum("hello" in text for text in rig.said(channel)) == 1
    assert not await rig.store.letters(9)
