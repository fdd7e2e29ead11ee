"""Ready over HTTP: Slack posts to us, and a gateway that nothing reaches says so."""

import asyncio

import pytest

from adapters.slack import receive
from adapters.slack.live import reach
from adapters.slack.live.reach import HookReach
from gateway import clock
from gateway.messages import Conversation, MessageReceived, Sender
from tests.fakes.waiting import PATIENCE
from tests.stories.slack_rig import DEV, DM, SlackRig


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "CHECK", 0.05)
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)
    monkeypatch.setattr(reach, "QUIET", 0.3)
    monkeypatch.setattr(reach, "SETTLED", -3_600.0)  # the fake's clock runs ahead


async def until_ready(rig: SlackRig, state: bool) -> None:
    """As /readyz judges Slack: by the age of the last contact."""
    adapter = rig.host.services.adapters["slack"]
    async with asyncio.timeout(PATIENCE):
        while (clock.monotonic() - adapter.last_contact < 1.0) is not state:
            await asyncio.sleep(0.05)  # noqa: TID251  # it tells of itself when it is looked at


async def test_ready_on_a_quiet_day_and_after_a_request(rig: SlackRig) -> None:
    rig.transport = "http"
    await rig.start()
    await until_ready(rig, True)
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    await until_ready(rig, True)
    assert not rig.log.named("slack_requests_do_not_arrive")


async def test_unready_while_what_is_written_does_not_arrive(rig: SlackRig) -> None:
    rig.transport = "http"
    await rig.start()
    rig.slack.say(DM, "hello")
    await rig.shows("ack hello")
    await until_ready(rig, True)
    await rig.quiet()
    rig.slack.deaf = True
    rig.slack.say(DM, "nobody hears this")
    await rig.until(lambda: rig.log.named("slack_requests_do_not_arrive"))
    await rig.shows("nobody hears this")  # read back, all the same
    await until_ready(rig, False)
    rig.slack.deaf = False
    rig.slack.say(DM, "and now")
    await rig.shows("ack and now")
    await until_ready(rig, True)


def said(n: int, at: float, *, addressed: bool = True) -> MessageReceived:
    where = Conversation(platform="slack", account="U", channel=DEV, thread="1.0")
    return MessageReceived(
        conversation=where, sender=Sender(platform="slack", id="U1"), event=str(n),
        message=str(n), text="x", addressed=addressed, at=at,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("at", "addressed", "turn", "proven"),
    [
        (100.0, True, 0.0, True),  # before we listened
        (9e9, True, 0.0, False),
        (9e9, False, 0.0, True),  # of people among themselves
        (9e9, True, 9.1e9, True),  # another replica has answered it
    ],
)
def test_what_tells_that_nothing_arrives(
    monkeypatch: pytest.MonkeyPatch, at: float, addressed: bool, turn: float, proven: bool
) -> None:
    monkeypatch.setattr(reach, "SETTLED", -9e9)
    one = HookReach()
    one.listen()
    assert not one.proven
    one.judge([said(1, at, addressed=addressed)], {(DEV, "1.0"): turn} if turn else {})
    assert one.proven is proven
    one.hear(said(1, at))
    assert one.proven
    one.judge([said(1, at)], {})
    assert one.proven
