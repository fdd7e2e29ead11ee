"""A card that waits in a server of Discord or a channel of Slack names whoever may decide it, such
that they are told; so does its reminder, and once it is decided it names nobody any more. In
Telegram: `test_approvers_story.py`."""

import pytest

from tests.fakes.discord_server import Json as DiscordJson
from tests.fakes.discord_server import text_of
from tests.fakes.model_server import Call, Say
from tests.fakes.slack_server import shown
from tests.stories.discord_rig import ADMIN, CHANNEL, FRIEND, PERSON, DiscordRig
from tests.stories.slack_rig import DEV, SlackRig

DEPLOY = Call("run_command", '{"command": "echo deploy"}')
REMINDED = "Still waiting for a decision"
ON_DISCORD = [
    ("role:admin", {"users": ["13"]}, ["<@13>"]),
    ("role:admin,discord:@333", {"users": ["13"], "roles": ["333"]}, ["<@13>", "<@&333>"]),
    (f"2:asker,discord:{FRIEND}", {"users": ["12"]}, ["<@12>"]),
]
ON_SLACK = [
    ("role:admin", ["U0ADM"]),
    ("role:admin,slack:@S0OPS", ["U0ADM", "S0OPS"]),
    ("2:asker,slack:U0BOB", ["U0BOB"]),
]


def pings(rig: DiscordRig, words: str) -> list[DiscordJson]:
    """Whom the messages ping that were sent with the words, in order."""
    sent = [call for call in rig.discord.made("send") if words in text_of(call.params)]
    found = [dict(call.params["allowed_mentions"]) for call in sent]
    return [{k: v for k, v in one.items() if v and k in ("users", "roles")} for one in found]


@pytest.mark.pick("who decides on discord is mentioned")
@pytest.mark.parametrize(("approvers", "pinged", "named"), ON_DISCORD)
async def test_on_discord_who_decides_is_mentioned_and_so_by_the_reminder(
    discord: DiscordRig, approvers: str, pinged: DiscordJson, named: list[str]
) -> None:
    discord.model.script(DEPLOY, Say("deployed"))
    await discord.start(APPROVERS=approvers, QUESTION_REMINDER="1")
    task = (await discord.discord.say(CHANNEL, "@bot deploy it", PERSON))["id"]
    card = await discord.carded(task)
    assert f"To decide: {' '.join(named)}" in text_of(card)
    await discord.discord.shows(task, REMINDED)
    await discord.quiet()
    assert pings(discord, "To decide") == [pinged]
    asker = ["11"] if "asker" in approvers else []
    (reminder,) = pings(discord, REMINDED)
    assert sorted(reminder["users"]) == sorted([*asker, *pinged["users"]])
    assert reminder.get("roles") == pinged.get("roles")
    (call,) = [one for one in discord.discord.made("send") if REMINDED in text_of(one.params)]
    assert not call.params["flags"] & 1 << 12, "it rings"
    voters = (PERSON, FRIEND) if asker else (ADMIN,)
    for person in voters:
        await discord.discord.press(card, "Approve once", person)
    await discord.discord.shows(task, "deployed")
    await discord.quiet()
    assert "To decide" not in text_of(card)


def mentioned(message: dict) -> list[str]:
    """People and groups that a message of Slack mentions."""
    found: list[str] = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            found.extend(value[k] for k in ("user_id", "usergroup_id") if k in value)
            for one in value.values():
                look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)

    look(message.get("blocks", []))
    return found


@pytest.mark.pick("who decides on slack is mentioned")
@pytest.mark.parametrize(("approvers", "named"), ON_SLACK)
async def test_on_slack_who_decides_is_mentioned_and_so_by_the_reminder(
    slack: SlackRig, approvers: str, named: list[str]
) -> None:
    slack.model.script(DEPLOY, Say("deployed"))
    await slack.start(APPROVERS=approvers, QUESTION_REMINDER="1")
    slack.slack.mention(DEV, "deploy it")
    card = await slack.asks(DEV)
    assert mentioned(card) == named and "To decide" in shown(card)
    reminder = await slack.shows(REMINDED, DEV)
    await slack.quiet()
    asker = ["U0ANN"] if "asker" in approvers else []
    assert sorted(mentioned(reminder)) == sorted([*asker, *named])
    voters = ("U0ANN", "U0BOB") if asker else ("U0ADM",)
    for person in voters:
        slack.slack.press(card, "Approve once", person)
    await slack.shows("deployed", DEV)
    await slack.quiet()
    assert not mentioned(card) and "To decide" not in shown(card)
