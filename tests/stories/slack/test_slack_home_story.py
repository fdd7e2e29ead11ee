"""App Home through the real gateway: what waits, what runs, jobs; and its buttons."""

import asyncio

import pytest

from adapters.slack import home
from tests.fakes.model_server import Say
from tests.fakes.slack_server import labels, shown
from tests.stories.jobs_rig import schedule
from tests.stories.rig import write
from tests.stories.slack_rig import DEV, DM, SlackRig


@pytest.fixture
async def rig(rig: SlackRig, monkeypatch: pytest.MonkeyPatch) -> SlackRig:
    monkeypatch.setattr(home, "PACE", 0.02)
    return rig


def at_home(rig: SlackRig, user: str = "U0ANN") -> str:
    return shown(rig.slack.homes[user]) if user in rig.slack.homes else ""


@pytest.mark.parametrize("transport", ["socket", "http"])
async def test_what_waits_for_a_person_is_decided_at_home(rig: SlackRig, transport: str) -> None:
    rig.transport = transport
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    rig.slack.open_home()
    await rig.slack.wait(lambda: "Nothing is running" in at_home(rig))
    rig.slack.mention(DEV, "write it")
    card = await rig.asks(DEV)
    await rig.slack.wait(lambda: "a.txt" in at_home(rig))
    assert "Waiting for you" in at_home(rig) and "Approve once" in labels(rig.slack.homes["U0ANN"])
    rig.slack.open_home("U0BOB", "D0BOB")
    await rig.slack.wait(lambda: "Nothing is running" in at_home(rig, "U0BOB"))
    rig.slack.press_at_home("Approve once")
    await rig.shows("written", DEV)
    await rig.slack.wait(lambda: "Nothing is running" in at_home(rig))
    await rig.quiet()
    assert "by Ann" in shown(card) and len(rig.model.requests) == 2


async def test_a_decision_that_came_too_late_changes_nothing(rig: SlackRig) -> None:
    """A home that was left open still shows the button."""
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    rig.slack.mention(DEV, "write it")
    card = await rig.asks(DEV)
    rig.slack.open_home()
    await rig.slack.wait(lambda: "a.txt" in at_home(rig))
    old = dict(rig.slack.homes)
    rig.slack.press(card, "Deny")
    await rig.shows("written", DEV)
    await rig.quiet()
    await rig.slack.wait(lambda: "Nothing is running" in at_home(rig))
    rig.slack.homes |= old
    rig.slack.press_at_home("Approve once")
    await rig.slack.wait(lambda: rig.slack.ephemeral)
    assert rig.slack.ephemeral[-1]["channel"] == DEV
    assert not list(rig.home.glob("workspaces/*/a.txt"))


async def test_a_running_turn_is_stopped_at_home(rig: SlackRig) -> None:
    await rig.start()
    rig.model.gate = asyncio.Event()
    rig.slack.open_home()
    rig.slack.say(DM, "think long")
    await rig.model.wait_inflight(1)
    rig.slack.open_home()
    await rig.slack.wait(lambda: "think long" in at_home(rig))
    assert "Running now" in at_home(rig)
    rig.slack.press_at_home("Stop")
    await rig.shows("Stopped")
    rig.model.gate.set()
    rig.model.gate = None
    await rig.slack.wait(lambda: "Nothing is running" in at_home(rig))


async def test_jobs_are_run_and_paused_at_home(rig: SlackRig) -> None:
    rig.model.script(schedule(title="Look"), Say("made"), Say("looked"))
    await rig.start()
    rig.slack.say(DM, "every day, please")
    rig.slack.press(await rig.asks(), "Confirm")
    await rig.shows("made")
    await rig.quiet()
    rig.slack.open_home()
    await rig.slack.wait(lambda: "Look" in at_home(rig))
    assert labels(rig.slack.homes["U0ANN"]) == ["Run now", "Pause"]
    rig.slack.press_at_home("Run now")
    await rig.shows("looked")
    rig.slack.press_at_home("Pause")
    await rig.slack.wait(lambda: "Resume" in labels(rig.slack.homes["U0ANN"]))


async def test_a_stranger_sees_nothing(rig: SlackRig) -> None:
    await rig.start()
    rig.slack.open_home("U0EVE", "D0EVE")
    await rig.slack.wait(lambda: "Nothing is running" in at_home(rig, "U0EVE"))
