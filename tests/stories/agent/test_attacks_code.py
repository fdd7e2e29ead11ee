"""Hostile models and hostile data for tools that run code and for skills, through the real gateway:
what cannot be read is answered, and the conversation goes on."""

import json

import pytest

from tests.fakes.model_server import Call, Json, Say
from tests.stories.rig import PERSON, Rig

DEEP = "[" * 20_000


async def goes_on(rig: Rig) -> None:
    """A later request is answered, with all that was said before."""
    await rig.quiet()
    rig.model.script(Say("Still here."))
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("Still here.")
    await rig.quiet()


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path":' + DEEP + "]" * 20_000 + "}",
        '{"path":' + DEEP,
        '{"a":' * 20_000 + "1" + "}" * 20_000,
    ],
    ids=["a list", "a list without end", "an object"],
)
@pytest.mark.parametrize("name", ["execute_code", "invoke_skill"])
async def test_arguments_without_end_are_answered(rig: Rig, name: str, arguments: str) -> None:
    await rig.start()
    rig.model.script(Call(name, arguments), Say("I write it anew."))
    rig.telegram.say(PERSON, "read it")
    await rig.shows("I write it anew.")
    (told,) = rig.seen(role="tool")
    assert "not valid JSON" in told
    await goes_on(rig)


async def test_an_answer_without_end_to_a_skill_is_asked_for_once_more(rig: Rig) -> None:
    await rig.start()
    params = {"skill_id": "slide_generation", "params": {"topic": "bees"}}

    def answers(body: Json) -> Say:
        return Say("No slides.") if body["messages"][-1]["role"] == "tool" else Say(DEEP)

    rig.model.script(Call("invoke_skill", json.dumps(params)), answers, answers, answers)
    rig.telegram.say(PERSON, "slides on bees")
    await rig.shows("No slides.")
    assert "no answer that can be used" in rig.seen(role="tool")[-1]
    await goes_on(rig)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a,b\n1__0,2\n3_,4\n", "text, 2 different"),
        (b"a\0b,c\n\xff\xfe,1\n", "1 rows, 2 columns"),
        ("a;b\n=cmd|'/C calc'!A1;1\n".encode("utf-16"), "text, 1 different"),
        (b'"a\n', "No chart"),
        (b"a," * 300_000, "No chart"),
    ],
    ids=["numbers", "bytes", "sixteen", "a quote", "wide"],
)
async def test_a_hostile_table_is_described_or_refused(rig: Rig, content: bytes, told: str) -> None:
    await rig.start()
    rig.workspace().mkdir(parents=True, exist_ok=True)
    (rig.workspace() / "t.csv").write_bytes(content)
    call = Call("visualization_preparation", json.dumps({"path": "t.csv"}))
    rig.model.script(call, Say("So it is."))
    rig.telegram.say(PERSON, "a chart of it")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("So it is.")
    assert told in rig.seen(role="tool")[-1]
    await goes_on(rig)
