"""Channels that several organizations share (Slack Connect): everybody is everybody of one's own."""

from typing import Any

import pytest

from tests.fakes.model_server import Call, Say
from tests.fakes.slack_server import TEAM
from tests.stories.slack_rig import DEV, SlackRig

AWAY, HERE = "U0EVE", "U0BOB"
THEIRS = {"team_id": "T0OTHER"}
WITHIN = {"enterprise_user": {"enterprise_id": "E0OURS", "id": AWAY}}
ALL = {"SLACK_ALLOWED_USERS": "*", "SLACK_ADMIN_USERS": "U0ANN"}


@pytest.mark.parametrize(
    ("about", "enterprise", "listed", "answered"),
    [
        ({"team_id": TEAM}, "", "*", True),
        (THEIRS, "", "*", False),
        ({"team_id": TEAM, "is_stranger": True}, "", "*", False),
        (THEIRS | WITHIN, "E0OURS", "*", True),
        (THEIRS | WITHIN, "", "*", False),
        (THEIRS, "E0OURS", "*", False),
        (THEIRS, "", f"*,{AWAY}", True),
        (THEIRS, "", "*,@S0PARTNERS", True),
    ],
)
async def test_who_everybody_is(
    rig: SlackRig, about: dict[str, Any], enterprise: str, listed: str, answered: bool
) -> None:
    rig.slack.people[AWAY] = about
    rig.slack.groups["S0PARTNERS"] = [AWAY]
    rig.slack.me |= {"enterprise_id": enterprise} if enterprise else {}
    await rig.start(**ALL | {"SLACK_ALLOWED_USERS": listed})
    rig.slack.mention(DEV, "what is theirs?", AWAY)
    rig.slack.mention(DEV, "what is ours?", HERE)
    await rig.shows("ours?", DEV)
    await rig.quiet()
    assert any("theirs?" in text for text in rig.said(DEV)) == answered


async def test_while_slack_tells_no_profiles_the_event_decides(rig: SlackRig) -> None:
    rig.slack.fail("users.info", error="missing_scope", times=100)
    await rig.start(**ALL)
    rig.slack.mention(DEV, "what is theirs?", AWAY, user_team="T0OTHER")
    rig.slack.mention(DEV, "what is ours?", HERE, user_team=TEAM)
    await rig.shows("ours?", DEV)
    await rig.quiet()
    assert not any("theirs?" in text for text in rig.said(DEV))


async def test_they_decide_nothing(rig: SlackRig) -> None:
    rig.slack.people[AWAY] = THEIRS
    call = Call("run_command", '{"command": "make deploy"}')
    rig.model.script(call, Say("Deployed."))
    await rig.start(**ALL, APPROVERS="role:user")
    rig.slack.mention(DEV, "deploy it", "U0ANN")
    card = await rig.asks(DEV)
    rig.slack.press(card, "Approve", AWAY)
    await rig.quiet()
    assert not any("Deployed." in text for text in rig.said(DEV))
    rig.slack.press(card, "Approve", HERE)
    await rig.shows("Deployed.", DEV)
