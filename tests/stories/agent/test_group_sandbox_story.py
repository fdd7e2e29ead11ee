"""A group has one sandbox for all its members; what is private to one of them has another. What
`/status` says of it."""

import asyncio

import pytest

from agent_core.sandboxes.pool import SandboxPool
from tests.fakes.model_server import Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, mention, run

PORT = 8765
BEGIN = (
    "echo file > a.txt; echo tmp > /tmp/t; echo home > ~/h; "
    f"(cd /tmp && nohup python3 -m http.server {PORT} >/dev/null 2>&1 &); "
    f"for n in $(seq 100); do (echo > /dev/tcp/127.0.0.1/{PORT}) 2>/dev/null && break; sleep 0.05; "
    "done; echo begun"
)
LOOK = f"cat a.txt /tmp/t ~/h; (echo > /dev/tcp/127.0.0.1/{PORT}) 2>/dev/null && echo served"


async def ask(rig: Rig, person: int, chat: int, command: str, answer: str) -> str:
    """The result of a command that a person has run in a chat."""
    rig.model.script(run(command), Say(answer))
    named = mention("") if chat == GROUP else {}
    words = f"@test_bot {answer}" if chat == GROUP else answer
    rig.telegram.say(chat, words, person, chat == GROUP, **named)
    rig.press(await rig.card(chat), "Approve", person, chat)
    await rig.shows(answer, chat)
    told = rig.seen(role="tool")[-1]
    await rig.quiet()
    return told


@NEEDS_BWRAP
async def test_members_share_what_one_began_and_nobody_else_does(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="bwrap")
    assert "begun" in await ask(rig, PERSON, GROUP, BEGIN, "It is one.")
    for person, answer in ((FRIEND, "Number two."), (PERSON, "Number three.")):
        assert (await ask(rig, person, GROUP, LOOK, answer)).startswith("file\ntmp\nhome\nserved")
    for person in (PERSON, FRIEND):
        alone = await ask(rig, person, person, LOOK, f"Alone as {person}.")
        assert "No such file" in alone and "served" not in alone


@NEEDS_LANDLOCK
async def test_status_says_what_is_not_held_once_it_is_known(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, check = asyncio.Event(), SandboxPool.check

    async def check_late(pool: SandboxPool) -> None:
        await done.wait()
        await check(pool)

    monkeypatch.setattr(SandboxPool, "check", check_late)
    await rig.start(SANDBOX_PROVIDER="landlock")
    rig.telegram.say(PERSON, "/status")
    await rig.shows("Sandbox: landlock; its self-test has not finished yet.")
    done.set()
    await rig.until(lambda: rig.host.services.sandbox.contains)
    rig.telegram.say(PERSON, "/status")
    await rig.shows("Not hidden from it: sizes and dates of files")
    assert "Sandbox: landlock; it contains what runs in it." in rig.said()[-1]
