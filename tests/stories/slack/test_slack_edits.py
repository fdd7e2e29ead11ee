"""Edits of messages that were answered or gave a command, in a channel and in the app's own chat."""

import pytest

from tests.stories.slack_rig import DEV, DM, SlackRig


@pytest.mark.parametrize("named", ["<@U0BOT> ", ""])
async def test_an_edit_offers_to_answer_again_whatever_it_names_now(
    rig: SlackRig, named: str
) -> None:
    await rig.start()
    first = rig.slack.mention(DEV, "compare the hsots")[0]["event"]["ts"]
    await rig.shows("compare the hsots", DEV)
    await rig.quiet()
    rig.slack.edit(DEV, first, f"{named}compare the hosts")
    await rig.shows("You edited your message", DEV)
    await rig.quiet()


@pytest.mark.parametrize("channel", [DM, DEV])
async def test_an_edited_command_is_told(rig: SlackRig, channel: str) -> None:
    await rig.start()
    named = "" if channel == DM else "<@U0BOT> "
    first = rig.slack.say(channel, f"{named}/mode reserach", "U0ANN")["event"]["ts"]
    await rig.slack.wait(lambda: bool(rig.said(channel)))
    await rig.quiet()
    rig.slack.edit(channel, first, f"{named}/mode research")
    await rig.shows("An edited command is not run", channel)
    await rig.quiet()
    assert rig.model.requests == []
