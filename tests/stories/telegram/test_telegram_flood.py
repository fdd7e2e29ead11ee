"""Twenty busy conversations against Telegram's limits: nothing lost, nobody pressed."""

import asyncio
import time

import pytest

from tests.fakes.model_server import Call, Slow
from tests.fakes.model_steps import Json, Step
from tests.fakes.telegram_limits import Limits
from tests.stories.rig import Rig

pytestmark = pytest.mark.as_in_life

PRIVATE = range(101, 117)
GROUPS = range(-204, -200)
WINDOW = 0.99
"""Seconds within which a chat sees one edit at most."""


def answer(body: Json) -> Step:
    """A tool first, then an answer that grows for two seconds and names what was asked."""
    last = body["messages"][-1]
    if last["role"] == "user":
        return Call("list_files", text="I look around.")
    asked = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
    name = str(asked).rpartition("ask ")[2].split("\n")[0]
    return Slow(delay=0.08, text=" ".join(["word"] * 25) + f" end-of-{name}.")


async def talk(rig: Rig, chat: int, until: float) -> int:
    """One person who asks, reads the answer, and asks again; how often."""
    number = 0
    while time.monotonic() < until:
        number += 1
        name = f"{abs(chat)}-{number}"
        if chat < 0:
            entity = {"type": "mention", "offset": 0, "length": 9}
            rig.telegram.say(chat, f"@test_bot ask {name}", user=101, entities=[entity])
        else:
            rig.telegram.say(chat, f"ask {name}")
        await rig.telegram.wait_text(chat, f"end-of-{name}.", 120)
    return number


async def flooded(rig: Rig, seconds: float, in_groups: float) -> Limits:
    """People ask for so many seconds; what is said in groups takes long to get through."""
    limits = rig.telegram.limits = Limits()
    rig.model.script(*[answer] * 10_000)
    people = ",".join(map(str, PRIVATE))
    await rig.start(TELEGRAM_ALLOWED_USERS=people)
    start, chats = time.monotonic(), (*PRIVATE, *GROUPS)
    ends = [start + (seconds if chat > 0 else in_groups) for chat in chats]
    counts = await asyncio.gather(*map(talk, [rig] * len(chats), chats, ends))
    shown = [message for chat in chats for message in rig.telegram.chats[chat]]
    await rig.telegram.wait(lambda: not any("◐" in one["text"] for one in shown), 120)
    await rig.quiet()
    for chat, count in zip(chats, counts, strict=True):
        texts = [message["text"] for message in rig.telegram.chats[chat]]
        answers = [text for text in texts if "end-of-" in text]
        assert len(answers) == count, "each answer once"
        assert sum("List files" in text for text in texts) == count
        assert not any("◐" in text for text in texts), "final states are delivered"
    assert limits.early == [], "no call while limited"
    return limits


@pytest.mark.timeout(180)
async def test_twenty_busy_conversations_for_a_while(rig: Rig) -> None:
    await flooded(rig, 6, in_groups=1)


@pytest.mark.timing
@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_twenty_busy_conversations_for_a_minute(rig: Rig) -> None:
    limits = await flooded(rig, 60, in_groups=60)
    assert limits.refused > 0, "the limits were met"
    assert limits.most_edits(WINDOW) <= 1, "at most one edit a second"
