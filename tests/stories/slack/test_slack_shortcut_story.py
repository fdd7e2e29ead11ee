"""'Ask the agent about this', in the menu of a message: over Slack, the real gateway and SDKs."""

from typing import Any

import pytest

from gateway.texts import say
from tests.fakes.model_server import Say
from tests.stories.slack_rig import DEV, DM, SlackRig

Json = dict[str, Any]


async def opened(rig: SlackRig, channel: str, ts: str, user: str = "U0ANN") -> Json:
    before = len(rig.slack.views)
    rig.slack.choose(channel, ts, user)
    await rig.slack.wait(lambda: len(rig.slack.views) > before)
    return rig.slack.views[-1]


@pytest.mark.parametrize("transport", ["socket", "http"])
async def test_a_question_about_a_message_is_answered_in_its_thread(
    rig: SlackRig, transport: str
) -> None:
    """What was said there was not for the agent; now it knows that, and who said it."""
    rig.transport = transport
    rig.model.script(Say("In May."), Say("The fifth."))
    await rig.start()
    said = rig.slack.say(DEV, "we ship when the *hedgehogs* wake up", "U0ZOE")["event"]
    view = await opened(rig, DEV, said["ts"])
    sent = rig.slack.submit(view, "When is that?")
    await rig.shows("In May.", DEV)
    assert rig.slack.channels[DEV][-1]["thread_ts"] == said["ts"]
    heard = rig.seen(role="user")[-1]
    assert "hedgehogs" in heard and "Zoe" in heard and heard.endswith("When is that?")
    rig.slack.push("interactive", sent)
    rig.slack.submit(await opened(rig, DEV, said["ts"]), "Which day?")
    await rig.shows("The fifth.", DEV)
    await rig.quiet()
    assert len(rig.model.requests) == 2, "the same window counts once"


async def test_a_question_about_an_alert_quotes_what_is_attached(rig: SlackRig) -> None:
    await rig.start()
    alert = {"bot_id": "B0G", "username": "Grafana", "attachments": [{"text": "db1 is full"}]}
    said = rig.slack.say(DEV, "", "", **alert)["event"]
    rig.slack.submit(await opened(rig, DEV, said["ts"]), "Why?")
    await rig.shows("Why?", DEV)
    assert rig.seen(role="user")[-1].startswith("> Grafana:\n> db1 is full\n")


async def test_where_the_app_is_not_the_window_says_so(rig: SlackRig) -> None:
    await rig.start()
    rig.slack.foreign.add("D0ELSE")
    said = rig.slack.say("D0ELSE", "between us", "U0ZOE")["event"]
    await rig.quiet()
    before = len(rig.model.requests)
    view = await opened(rig, "D0ELSE", said["ts"])
    assert "I am not in this chat" in str(view) and "submit" not in view
    await rig.quiet()
    assert len(rig.model.requests) == before


async def test_a_command_in_a_chat_of_two_people_is_answered_to_who_gave_it(
    rig: SlackRig,
) -> None:
    await rig.start()
    rig.slack.foreign.add("D0ELSE")
    for text, told in (("status", "Idle"), ("link page", say("link_private"))):
        rig.slack.command("D0ELSE", text)
        await rig.slack.wait(lambda told=told: told in str(rig.slack.ephemeral))  # type: ignore[misc]
    await rig.quiet()
    assert all(one["user"] == "U0ANN" for one in rig.slack.ephemeral)
    assert rig.slack.channels["D0ELSE"] == []
    rig.slack.command(DM, "status")
    await rig.shows("Idle")  # in the app's own chat as before


async def test_an_answer_after_its_address_has_expired_is_shown_all_the_same(rig: SlackRig) -> None:
    await rig.start()
    rig.slack.command(DEV, "status")
    rig.slack.responses.clear()
    await rig.slack.wait(lambda: "Idle" in str(rig.slack.ephemeral))
    (told,) = rig.slack.ephemeral
    assert (told["channel"], told["user"]) == (DEV, "U0ANN")


async def test_a_stranger_gets_no_answer(rig: SlackRig) -> None:
    await rig.start()
    said = rig.slack.say(DEV, "a word", "U0BOB")["event"]
    rig.slack.submit(await opened(rig, DEV, said["ts"], "U0ZOE"), "And?", "U0ZOE")
    await rig.slack.wait(lambda: not rig.slack.unacknowledged)
    await rig.quiet()
    assert rig.model.requests == [] and rig.slack.channels[DEV] == []


@pytest.mark.parametrize(
    "change", [{"callback_id": "other"}, {"message": 5}, {"channel": {}}, {"user": None}]
)
async def test_odd_choices_open_nothing(rig: SlackRig, change: Json) -> None:
    await rig.start()
    said = rig.slack.say(DEV, "a word", "U0BOB")["event"]
    rig.slack.deaf = True
    payload = rig.slack.choose(DEV, said["ts"])
    rig.slack.deaf = False
    rig.slack.push("interactive", payload | change)
    await rig.slack.wait(lambda: not rig.slack.unacknowledged)
    assert rig.slack.views == []
