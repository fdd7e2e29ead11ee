"""Channels that several organizations share (Slack Connect): everybody is everybody of one's own."""

from typing import Any

import pytest

from tests.fakes.model_server import Call, Say
from tests.fakes.slack_server import TEAM, elements
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


UNREAD = "Slack did not show me your profile"


def told(rig: SlackRig) -> str:
    """What was said to people alone, in a channel or by a command's own address."""
    return str(rig.slack.ephemeral)


@pytest.mark.parametrize("person", [AWAY, HERE])
async def test_a_command_of_somebody_without_a_profile_is_refused(
    rig: SlackRig, person: str
) -> None:
    rig.slack.fail("users.info", error="missing_scope", times=100)
    await rig.start(**ALL)
    rig.slack.command(DEV, "timezone Europe/Berlin", person)
    await rig.slack.wait(lambda: UNREAD in told(rig))
    rig.slack.command(DEV, "status", "U0ANN")
    await rig.quiet()
    assert told(rig).count(UNREAD) == 1, "who is listed by id needs no profile"


async def test_once_the_profile_is_read_the_command_works(rig: SlackRig) -> None:
    rig.slack.people[AWAY] = THEIRS
    await rig.start(**ALL)
    rig.slack.mention(DEV, "hello", HERE)
    await rig.shows("hello", DEV)
    await rig.quiet()
    rig.slack.fail("users.info", error="internal_error", times=100)
    rig.slack.command(DEV, "whoami", HERE)
    await rig.slack.wait(lambda: HERE in told(rig))
    assert UNREAD not in told(rig)


@pytest.mark.parametrize("team", [TEAM, "T0OTHER", ""])
async def test_a_form_counts_by_the_workspace_that_it_names(rig: SlackRig, team: str) -> None:
    rig.model.script(Call("run_command", '{"command": "make deploy"}'), Say("Deployed."))
    rig.slack.fail("users.info", error="missing_scope", times=100)
    await rig.start(**ALL, APPROVERS="role:user")
    rig.slack.mention(DEV, "deploy it", "U0ANN")
    card = await rig.asks(DEV)
    rig.slack.press(card, "Approve", AWAY, team=team)
    if team == TEAM:
        await rig.shows("Deployed.", DEV)
    else:
        await rig.slack.wait(lambda: told(rig) != "[]")
        await rig.quiet()
        assert not any("Deployed." in text for text in rig.said(DEV))
    assert (UNREAD in told(rig)) == (not team)


async def test_a_home_without_a_profile_says_why_it_is_empty(rig: SlackRig) -> None:
    rig.slack.fail("users.info", error="missing_scope", times=100)
    await rig.start(**ALL)
    rig.slack.open_home(HERE, "D0BOB")
    await rig.slack.wait(lambda: HERE in rig.slack.homes)
    assert UNREAD in str(rig.slack.homes[HERE]) and not list(elements(rig.slack.homes[HERE]))
