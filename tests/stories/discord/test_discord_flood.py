"""Busy conversations against Discord's limits, and presses while many turns run."""

import asyncio
import time

import pytest

from adapters.discord.adapter import DiscordAdapter
from gateway.views import Abilities
from tests.fakes.discord_server import text_of
from tests.fakes.model_server import Call, Slow
from tests.fakes.model_steps import Json, Step
from tests.stories.discord_rig import DiscordRig

PEOPLE = range(101, 121)
LIMITS = {"send": (5, 5.0), "edit": (5, 5.0), "react": (1, 0.25), "type": (5, 5.0)}
EVERYWHERE = 50
pytestmark = [pytest.mark.slow, pytest.mark.timing, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def paced(rig: DiscordRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in life."""
    monkeypatch.setattr(DiscordAdapter, "abilities", LIVE)


LIVE: Abilities = DiscordAdapter.abilities


def answer(body: Json) -> Step:
    """A tool first, then an answer that grows for two seconds and names what was asked."""
    last = body["messages"][-1]
    if last["role"] == "user":
        return Call("list_files", text="I look around.")
    asked = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
    name = str(asked).rpartition("ask ")[2].split("\n")[0]
    return Slow(delay=0.08, text=" ".join(["word"] * 25) + f" end-of-{name}.")


async def talk(rig: DiscordRig, user: int, until: float) -> int:
    """One person who asks, reads the answer, and asks again; how often."""
    number = 0
    while time.monotonic() < until:
        number += 1
        await rig.discord.say(f"9000{user}", f"ask {user}-{number}", user)
        await rig.discord.wait(lambda n=number: ended(rig, user, n), 120)  # type: ignore[misc]
    return number


def ended(rig: DiscordRig, user: int, number: int) -> bool:
    shown = rig.discord.chats[f"9000{user}"]
    return any(f"end-of-{user}-{number}." in text_of(one) for one in shown)


async def test_twenty_busy_conversations(rig: DiscordRig) -> None:
    rig.discord.limits |= LIMITS
    rig.discord.most_a_second = EVERYWHERE
    rig.model.script(*[answer] * 10_000)
    await rig.start(DISCORD_ALLOWED_USERS="*")
    until = time.monotonic() + 20
    counts = await asyncio.gather(*(talk(rig, user, until) for user in PEOPLE))
    await rig.until(lambda: not rig.host.sessions)
    for user, count in zip(PEOPLE, counts, strict=True):
        texts = rig.read(f"9000{user}")
        assert sum("end-of-" in text for text in texts) == count, "each answer once"
        assert sum("List files" in text and "☑" in text for text in texts) == count
        assert not any("◐" in text for text in texts), "final states are delivered"
    assert rig.discord.early == [], "no call while limited"
    refused = [call for call in rig.discord.calls if call.status == 429]
    assert rig.log.named("rate_limited"), "the limits were met"
    assert len(refused) < len(rig.discord.calls) / 15, "by the headers, before they are refused"


async def test_presses_are_acknowledged_while_fifty_turns_run(rig: DiscordRig) -> None:
    rig.model.script(*[Slow(delay=0.05, text="word " * 2_000)] * 50)
    await rig.start(DISCORD_ALLOWED_USERS="*")
    for user in range(201, 251):
        await rig.discord.say(f"9000{user}", "tell me everything", user)
    await rig.model.wait_inflight(50)
    for n in range(200):
        user = 201 + n % 50
        data = {"custom_id": "q:nothing:once", "component_type": 2}
        await rig.discord.interact(3, f"9000{user}", user, data, message={"id": "5"})
        await rig.discord.wait(lambda n=n: len(rig.discord.delays) > n)  # type: ignore[misc]
    delays = sorted(rig.discord.delays)
    assert delays[197] < 0.3, f"p99 is {delays[197]:.3f} s"
    await rig.crash()
