"""Which way a request takes when a model is asked, over Telegram and the real model SDK."""

import pytest

from agent_core.orchestration.routes import routing
from tests.fakes.model_server import Fail, Hang, Json, Say
from tests.stories.rig import PERSON, Rig

REPORT = (
    "Compare all vendors of heat pumps in Europe and write me a long report with sources please."
)


def asked_about(body: Json) -> bool:
    return "deep research" in str(body["messages"])


async def test_a_yes_sends_it_to_research_and_a_no_does_not(rig: Rig) -> None:
    await rig.start(ROUTING="llm")
    rig.model.script(Say("NO"), Say("Hello to you."))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("Hello to you.")
    await rig.quiet()
    assert [asked_about(r.body) for r in rig.model.requests] == [True, False]
    rig.model.script(Say("Yes."), *[Say("no json")] * 12)
    rig.telegram.say(PERSON, REPORT)
    await rig.until(lambda: len(rig.model.requests) > 3)
    research = [r.body for r in rig.model.requests[3:]]
    assert asked_about(rig.model.requests[2].body) and REPORT in str(research[0])
    await rig.quiet()


@pytest.mark.parametrize("silent", [False, True])
async def test_the_rules_decide_where_the_model_does_not(
    rig: Rig, silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if silent:
        monkeypatch.setattr(routing, "LIMIT", 1.0)  # the request has to arrive within it
    await rig.start(ROUTING="llm")
    rig.model.script(Hang(5.0) if silent else Fail(400), Say("answered"))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("answered")
    await rig.quiet()


async def test_a_mode_that_was_chosen_is_not_asked_about(rig: Rig) -> None:
    await rig.start(ROUTING="llm")
    rig.telegram.say(PERSON, "/mode data")
    await rig.shows("Mode: data")
    rig.model.script(Say("a table"))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("a table")
    assert not any(asked_about(r.body) for r in rig.model.requests)
    rig.telegram.say(PERSON, "/mode writing")
    await rig.quiet()
