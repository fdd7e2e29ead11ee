"""Chats of a server that the bot loses: what waits there ends, its jobs pause, and who asked hears
of it once in private, whatever took the chat away and whenever the gateway dies."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.discord_rights import ASKED, OTHER_ROLE, OWN_ROLE, SEND, VIEW, ServerRights
from tests.fakes.discord_server import GUILD, DiscordServer
from tests.fakes.model_server import Call, Say
from tests.sampling import some_and_every
from tests.stories.discord_rig import CHANNEL, DM, FRIEND, PERSON, DiscordRig, opened
from tests.stories.dying_rig import Death, dying, kill_at_points, settle
from tests.stories.jobs_rig import only, schedule

LOST = "I can no longer write in a chat where you asked me something"
JOB_LOST = "I can no longer write in the chat of the job Open incidents"
DEPLOY = Call("run_command", '{"command": "make deploy"}')
READING = str(VIEW)

Take = Callable[[ServerRights, str], Awaitable[None]]
"""(the server's rights, the thread where the card waits)"""

WAYS: dict[str, Take] = {
    "put out": lambda rights, thread: rights.put_out(),
    "channel deleted": lambda rights, thread: rights.delete(CHANNEL),
    "thread deleted": lambda rights, thread: rights.delete(thread),
    "thread locked": lambda rights, thread: rights.archive(thread, locked=True),
    "taken out of the thread": lambda rights, thread: rights.dismiss(thread),
    "channel hidden": lambda rights, thread: rights.overwrite(CHANNEL, (GUILD, 0, VIEW)),
    "hidden from its role": lambda rights, thread: rights.overwrite(CHANNEL, (OWN_ROLE, 0, VIEW)),
    "role changed": lambda rights, thread: rights.change_role(OWN_ROLE, READING),
    "silenced": lambda rights, thread: rights.silence("2099-01-01T00:00:00+00:00"),
}
HARMLESS: dict[str, Take] = {
    "server away": lambda rights, thread: rights.break_down(),
    "another channel": lambda rights, thread: rights.delete("7101"),
    "thread put away": lambda rights, thread: rights.archive(thread),
    "only threads left": lambda rights, thread: rights.overwrite(CHANNEL, (GUILD, 0, SEND)),
    "given by name": lambda rights, thread: rights.overwrite(
        CHANNEL, (GUILD, 0, VIEW), (OWN_ROLE, VIEW, 0)
    ),
    "another role": lambda rights, thread: rights.change_role(OTHER_ROLE, "0"),
    "the same rights": lambda rights, thread: rights.change_role(OWN_ROLE, ASKED),
    "silence is over": lambda rights, thread: rights.silence("2020-01-01T00:00:00+00:00"),
}


async def wait_there(rig: DiscordRig) -> str:
    """A card waits in a thread, and a job is made beside it; the thread."""
    rig.model.script(Say("hello"), Say("hello"), schedule(), Say("It stands."), DEPLOY)
    for person in (PERSON, FRIEND):
        await rig.discord.say(f"9000{person}", "hi, please", person)
        await rig.discord.shows(f"9000{person}", "hello")
        await rig.quiet()
    task = str((await rig.discord.say(CHANNEL, "@bot every day at 9", PERSON))["id"])
    await rig.discord.press(await rig.carded(task, "Confirm"), "Confirm", PERSON)
    await rig.discord.shows(task, "It stands.")
    await rig.quiet()
    await rig.discord.say(task, "@bot deploy it", FRIEND)
    await rig.discord.shows(task, "make deploy")
    await rig.quiet()
    return task


def count_told(rig: DiscordRig, text: str = LOST, chat: str = f"9000{FRIEND}") -> int:
    return sum(text in one for one in rig.read(chat))


async def check_ended(rig: DiscordRig) -> None:
    await rig.discord.shows(f"9000{FRIEND}", LOST)
    await rig.discord.shows(DM, JOB_LOST)
    await settle(rig)
    assert (count_told(rig), count_told(rig, JOB_LOST, DM), count_told(rig, LOST, DM)) == (1, 1, 0)
    assert (await only(rig)).state == "paused"
    assert await rig.store.next_due() is None, "its question is closed"


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.pick("chats of discord lost", 3)) for way in WAYS]
)
async def test_what_waits_in_a_lost_chat_ends_and_who_asked_hears_of_it(
    rig: DiscordRig, way: str
) -> None:
    await rig.start()
    await WAYS[way](rig.discord.rights, await wait_there(rig))
    await check_ended(rig)


@pytest.mark.parametrize(
    "way", [pytest.param(w, marks=pytest.mark.pick("chats of discord kept", 2)) for w in HARMLESS]
)
async def test_what_takes_no_chat_away_ends_nothing(rig: DiscordRig, way: str) -> None:
    await rig.start()
    task = await wait_there(rig)
    await HARMLESS[way](rig.discord.rights, task)
    rig.model.script(Say("deployed"))
    await rig.discord.press(await rig.carded(task), "Approve once", FRIEND)
    await rig.discord.shows(task, "deployed")
    await rig.discord.shows(task, "Approved once by U12")
    await rig.quiet()
    assert not count_told(rig) and (await only(rig)).state == "active"


@pytest.mark.pick("chats of discord lost in a gap")
@pytest.mark.parametrize("way", ["put out", "channel deleted", "thread deleted", "channel hidden"])
async def test_a_chat_that_was_lost_in_a_gap_is_found_to_be_lost(rig: DiscordRig, way: str) -> None:
    await rig.start()
    task = await wait_there(rig)
    await rig.crash()
    await rig.discord.wait(lambda: not rig.discord.gateway.connected)
    rig.discord.gateway.sessions.clear()
    await WAYS[way](rig.discord.rights, task)
    await rig.start()
    await check_ended(rig)


async def lose(way: str, folder: Path, at: int) -> Death:
    """A loss, at one of whose points the gateway dies."""
    with pytest.MonkeyPatch.context() as patch:
        async with opened(DiscordServer(), folder, patch) as rig:
            death = Death(at)

            async def restart() -> None:
                await rig.crash()
                await rig.discord.wait(lambda: not rig.discord.gateway.connected)
                await rig.start()

            async with dying(death, restart):
                await rig.start()
                task = await wait_there(rig)
                death.armed = True
                await WAYS[way](rig.discord.rights, task)
                await rig.discord.shows(f"9000{FRIEND}", LOST)
                await rig.discord.shows(DM, JOB_LOST)
                await settle(rig, death)
            await check_ended(rig)
            return death


@pytest.mark.timeout(600)
@some_and_every(1, "a lost chat of discord is killed")
@pytest.mark.parametrize("way", ["put out", "thread deleted", "role changed"])
async def test_killed_at_every_commit_of_a_loss(tmp_path: Path, way: str, some: int) -> None:
    await kill_at_points(partial(lose, way), tmp_path, some, 6, "lost chats of discord", way)
