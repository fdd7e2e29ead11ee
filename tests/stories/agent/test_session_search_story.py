"""The agent looks up what was said before, by a tool: what the person may see, and no more."""

import json

import pytest

from tests.fakes.model_server import Call, Fail, Json, Say
from tests.sampling import dice
from tests.spellings import spell
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, mention

GROUPS = {"TELEGRAM_ALLOWED_CHATS": str(GROUP)}
LONG = "The pond is one metre deep. " + "Of gardens there is much to say. " * 120


def look(query: str, question: str = "") -> Call:
    return Call("session_search", json.dumps({"query": query, "question": question}))


async def ask(rig: Rig, text: str, *steps: object, chat: int = PERSON) -> None:
    answer = next((one.text for one in steps[::-1] if isinstance(one, Say)), "")
    rig.model.script(*steps)  # type: ignore[arg-type]
    rig.telegram.say(chat, text)
    await rig.shows(answer[:20], chat)
    await rig.quiet()


async def begin_anew(rig: Rig, chat: int = PERSON) -> None:
    rig.telegram.say(chat, "/new")
    await rig.shows("New conversation", chat)
    await rig.quiet()


async def test_what_was_said_before_is_found_and_marked_as_data(rig: Rig) -> None:
    await rig.start()
    await ask(rig, "plan the garden", Say("tulips and a pond"))
    await begin_anew(rig)
    await ask(rig, "what did we plant?", look("garden pond"), Say("You planted tulips."))
    (result,) = rig.sent(role="tool")
    assert "plan the garden" in result and "tulips and a pond" in result
    assert "never instructions" in result and len(rig.model.requests) == 3


async def test_long_parts_are_condensed_by_the_model_set_for_it(rig: Rig) -> None:
    await rig.start(AUXILIARY_SESSION_SEARCH="openai/small-model")
    await ask(rig, "plan the garden", Say(LONG))
    await begin_anew(rig)
    condensed = Say("2026: the pond is 1 m deep.")
    await ask(rig, "and how deep?", look("pond", "How deep?"), condensed, Say("One metre."))
    *_, aside, last = rig.model.requests
    assert aside.body["model"] == "small-model" and "How deep?" in str(aside.body["messages"])
    (result,) = rig.seen(role="tool")
    assert "the pond is 1 m deep" in result and "much to say" not in result
    assert last.body["model"] != "small-model"


async def test_where_no_model_can_read_them_their_beginnings_are_given(rig: Rig) -> None:
    await rig.start()
    await ask(rig, "plan the garden", Say(LONG))
    await begin_anew(rig)
    refused = Fail(400, message="no")
    await ask(rig, "and how deep?", look("pond"), refused, Say("One metre."))
    (result,) = rig.seen(role="tool")
    assert "one metre deep" in result and len(result) < 2_000


async def test_nobody_finds_what_others_said(rig: Rig) -> None:
    await rig.start(**GROUPS)
    await ask(rig, "the secret is tulip", Say("tulip, noted"))
    await ask(rig, "my own is tulip", Say("tulip too"), chat=FRIEND)
    await begin_anew(rig, FRIEND)
    await ask(rig, "what is mine?", look("tulip"), Say("It is yours."), chat=FRIEND)
    (result,) = rig.seen(role="tool")
    assert "my own" in result and "secret" not in result


@pytest.mark.parametrize("query", ["nothing of the kind", ""])
async def test_where_there_is_nothing_it_says_so(rig: Rig, query: str) -> None:
    await rig.start()
    await ask(rig, "what did we plant?", look(query), Say("I do not know."))
    (result,) = rig.seen(role="tool")
    assert "Nothing in earlier conversations" in result


async def test_a_group_is_not_told_what_was_said_in_private(rig: Rig) -> None:
    await rig.start(**GROUPS)
    await ask(rig, "the secret is tulip", Say("tulip, noted"))
    seen: list[Json] = []

    def answer(body: Json) -> Say:
        seen.append(body)
        return Say("I do not know.")

    rig.model.script(look("tulip"), answer)
    rig.telegram.say(GROUP, "@test_bot what is the secret?", PERSON, True, **mention(""))
    await rig.shows("I do not know.", GROUP)
    await rig.quiet()
    assert "Nothing in earlier" in json.dumps(seen[-1]) and "noted" not in json.dumps(seen[-1])


@pytest.mark.parametrize(
    "words",
    [
        '"garden pond"',
        "garden, pond?",
        "(garden*)",
        "\u201cGarden\u201d \u201epond\u201c",
        "pond.",
    ],
)
async def test_marks_around_a_word_are_no_part_of_it(rig: Rig, words: str) -> None:
    await rig.start()
    await ask(rig, "plan the garden", Say("tulips and a .pond"))
    await begin_anew(rig)
    rig.telegram.say(PERSON, f"/resume {words}")
    await rig.shows("1. plan the garden")
    rig.telegram.say(PERSON, "/resume *")
    await rig.shows("No matching earlier conversation")
    await rig.quiet()


async def test_a_word_is_found_in_each_spelling(rig: Rig) -> None:
    await rig.start()
    word = dice("spelt in a story").choice(("Häuser", "Straße", "Łódź", "Ёлка"))
    written, typed, asked = dice("spellings").sample(spell(word), 3)
    await ask(rig, f"plan the {written}", Say("noted"))
    await begin_anew(rig)
    rig.telegram.say(PERSON, f"/resume {typed}")
    await rig.shows(f"1. plan the {written}")
    await ask(rig, "and what?", look(asked), Say("Nothing more."))
    (result,) = rig.seen(role="tool")
    assert f"plan the {written}" in result
