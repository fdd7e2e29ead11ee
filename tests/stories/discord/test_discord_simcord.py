"""Discord as an emulator by others has it: what it refuses would be a violation of ours."""

import pytest

from tests.fakes.discord_server import text_of
from tests.fakes.discord_simcord import Simcord
from tests.fakes.model_server import Say
from tests.stories.discord_rig import DiscordRig
from tests.stories.plan_rig import ASK, CHAIN, GOOD
from tests.stories.rig import write


@pytest.fixture
def discord() -> Simcord:
    """Another fake of Discord, which others wrote."""
    return Simcord()


async def test_a_press_on_an_old_message_after_a_restart(rig: DiscordRig) -> None:
    world = rig.discord
    assert isinstance(world, Simcord)
    ann, zoe = world.join("Ann"), world.join("Zoe")
    rig.model.script(write("a.txt"), Say("| a | b |\n|---|---|\n| 1 | **written** |"))
    who = {"DISCORD_ALLOWED_USERS": str(ann), "DISCORD_ADMIN_USERS": ""}
    await rig.start(**who)
    task = world.write(ann, "@bot write it down")
    card = await world.comes(task, "a.txt")
    assert world.world.get_channel(task).name == "write it down"
    await rig.quiet()
    await rig.crash()
    await world.wait(lambda: not world.gateway.connected)
    await rig.start(**who)
    card = await world.comes(task, "May this run?")
    await world.push(zoe, card, "Approve once")
    await world.push(ann, card, "Approve once")
    await world.comes(task, "written")
    await rig.quiet()
    decided = await world.comes(task, "Approved once by Ann")
    assert decided["id"] == card["id"] and "custom_id" not in str(decided)


async def test_a_plan_and_a_long_answer(rig: DiscordRig) -> None:
    world = rig.discord
    assert isinstance(world, Simcord)
    ann = world.join("Ann")
    long = "\n\n".join(f"Paragraph {n}: " + "word, and " * 9 for n in range(120))
    rig.model.script(CHAIN, *[Say("came out"), GOOD] * 3, Say(f"{long}\n\nAll found."))
    await rig.start(DISCORD_ALLOWED_USERS=str(ann))
    task = world.write(ann, f"@bot {ASK}")
    await world.comes(task, "All found.")
    await rig.quiet()
    plan = await world.comes(task, "Find the hosts")
    assert "3/3" in text_of(plan)
    again = world.write(ann, "@bot thanks", task)
    assert again
    await world.comes(task, "ack [Ann] thanks")
    await rig.quiet()
