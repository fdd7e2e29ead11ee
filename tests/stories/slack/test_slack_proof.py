"""Slack under load: nothing lost against its limits, and quick acknowledgements beside busy turns."""

import asyncio
import time

import pytest

from adapters.slack.adapter import SlackAdapter
from gateway.views import Abilities
from tests.fakes.model_server import Call, Slow
from tests.fakes.model_steps import Json, Step
from tests.fakes.slack_limits import Limits
from tests.fakes.slack_server import shown
from tests.stories.slack_rig import SlackRig

SCALE = 10.0
CHATS = [f"D0P{n:02d}" for n in range(12)]
PATIENCE_OF_SLACK = 3.0
"""Seconds; the figure that counts is printed, and meant for a machine that is otherwise idle."""
ALLOWED = ",".join(f"U0P{n:02d}" for n in range(60))


@pytest.fixture
async def rig(rig: SlackRig, monkeypatch: pytest.MonkeyPatch) -> SlackRig:
    """Our paces and Slack's limits, both ten times as fast as in life."""
    quick = Abilities(edit_interval=1.2 / SCALE, send_timeout=14.0)
    monkeypatch.setattr(SlackAdapter, "abilities", quick)
    return rig


def answer(body: Json) -> Step:
    """A tool first, then an answer that grows and names what was asked."""
    if body["messages"][-1]["role"] == "user":
        return Call("list_files", text="I look around.")
    asked = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
    name = str(asked).rpartition("ask ")[2].split("\n")[0]
    return Slow(delay=0.02, text=" ".join(["word"] * 30) + f" end-of-{name}.")


@pytest.mark.timing
@pytest.mark.slow
async def test_busy_conversations_lose_nothing_and_press_nobody(rig: SlackRig) -> None:
    limits = rig.slack.limits = Limits(scale=SCALE)
    rig.model.script(*[answer] * 10_000)
    await rig.start(SLACK_ALLOWED_USERS=ALLOWED)

    async def talk(n: int, thread: str) -> None:
        for turn in range(4):
            name = f"{n}-{turn}"
            rig.slack.say(CHATS[n], f"ask {name}", f"U0P{n:02d}", thread=thread)
            async with asyncio.timeout(120):
                await rig.slack.shows(CHATS[n], f"end-of-{name}.")

    async with asyncio.TaskGroup() as group:
        for n in range(len(CHATS)):
            group.create_task(talk(n, f"1700000000.{n + 1:06d}" if n % 2 else ""))
    await rig.quiet()
    assert limits.refused > 10, "it was a flood"
    assert limits.early == []
    for n, chat in enumerate(CHATS):
        ends = [f"end-of-{n}-{turn}." for turn in range(4)]
        texts = [shown(message) for message in rig.slack.channels[chat]]
        found = [end for text in texts for end in ends if end in text]
        assert found == ends, "each answer once, in order"
        # a refused end of a stream is made up for some seconds later
        await rig.slack.wait(lambda chat=chat: "in_progress" not in rig.streaming(chat))


@pytest.mark.timing
@pytest.mark.slow
@pytest.mark.parametrize("transport", ["socket", "http"])
async def test_acknowledged_long_before_slack_gives_up_beside_50_turns(
    rig: SlackRig, transport: str
) -> None:
    rig.transport = transport
    rig.model.script(*[lambda _: Slow(delay=0.05, text="word " * 400)] * 50)
    await rig.start(SLACK_ALLOWED_USERS=ALLOWED)
    for n in range(50):
        rig.slack.say(f"D0P{n:02d}", "ask", f"U0P{n:02d}")
    await rig.until(lambda: len(rig.model.requests) == 50)
    took = []
    for n in range(200):
        before, began = len(rig.slack.acknowledged) + len(rig.slack.answers), time.monotonic()
        rig.slack.say(f"D0P{n % 50:02d}", f"more {n}", f"U0P{n % 50:02d}")
        await rig.slack.wait(
            lambda before=before: len(rig.slack.acknowledged) + len(rig.slack.answers) > before
        )
        took.append(time.monotonic() - began)
    took.sort()
    print(f"p99 of the acknowledgement by {transport}: {took[197] * 1000:.0f} ms")
    assert took[-1] < PATIENCE_OF_SLACK
