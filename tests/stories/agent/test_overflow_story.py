"""A model that holds less than was believed: the conversation is shortened and goes on, and the
next request is short enough at once."""

import json
import re

import pytest

from tests.fakes.model_server import Call, Fail, Json, Say
from tests.fakes.overflows import HELD, OVERFLOWS, Overflow
from tests.fakes.web_pages import served
from tests.stories.plan_rig import ASK, asked
from tests.stories.providers_rig import settings
from tests.stories.research_rig import answer, fact, web_of
from tests.stories.rig import PERSON, Rig

pytestmark = pytest.mark.pick("windows that overflow", 2)

PROTOCOLS = {
    "chat": "openai",
    "responses": "openai by responses",
    "anthropic": "anthropic",
    "gemini": "gemini by its own protocol",
}
FITS = HELD * 4
"""Bytes of a request that the model here takes."""
LONG = "All the words of this long answer belong to the conversation. " * 60


class SmallModel:
    """Answers what it holds with the number of the newest question, and refuses the rest in one
    server's form."""

    def __init__(self, form: Overflow) -> None:
        self.form = form
        self.refused = 0
        self.seen: list[int] = []

    def __call__(self, body: Json) -> object:
        text = json.dumps(body)
        self.seen.append(len(text))
        if len(text) > FITS:
            self.refused += 1
            return self.form.step
        asked = re.findall(r"question (\d+)", text)
        return Say(f"Answer {asked[-1] if asked else 0}: {LONG}", tokens=len(text) // 4)


@pytest.mark.pick("an overflow")
@pytest.mark.parametrize("form", OVERFLOWS.values(), ids=OVERFLOWS)
async def test_a_conversation_outgrows_its_model_and_goes_on(rig: Rig, form: Overflow) -> None:
    model = SmallModel(form)
    rig.model.script(*[model] * 60)
    await rig.start(**settings(rig, PROTOCOLS[form.protocol]))
    for n in range(1, 13):
        rig.telegram.say(PERSON, f"question {n}")
        await rig.shows(f"Answer {n}:")
        await rig.quiet()
    slow = isinstance(form.step, Fail) and form.step.status >= 500  # these are tried again
    broken = 2 * callable(form.step)  # the stream that is broken off, and the question why
    most = broken or (3 if slow or not form.told else 1)
    assert 1 <= model.refused <= most, "what it holds is known from then on"


async def test_what_the_server_says_is_held_is_never_exceeded(rig: Rig) -> None:
    model = SmallModel(OVERFLOWS["vLLM"])
    rig.model.window = HELD
    rig.model.script(*[model] * 40)
    env = settings(rig, "openai")
    tiers = {f"{tier}_MODEL": "openai/fake-model" for tier in ("MAX", "PRO", "FLASH")}
    await rig.start(**env | tiers, LOCAL_MODEL_DISCOVERY="on")
    await rig.until(lambda: rig.log.named("window"))
    for n in range(1, 10):
        rig.telegram.say(PERSON, f"question {n}")
        await rig.shows(f"Answer {n}:")
        await rig.quiet()
    assert model.refused == 0 and max(model.seen) > FITS // 3


async def test_results_that_are_too_long_are_shortened(rig: Rig) -> None:
    model = SmallModel(OVERFLOWS["llama.cpp"])
    await rig.start(**settings(rig, "openai"))
    rig.workspace().mkdir(parents=True, exist_ok=True)
    (rig.workspace() / "big.txt").write_text("line of the file\n" * 2_000)
    read = Call("read_file", json.dumps({"path": "big.txt"}))
    rig.model.script(read, read, read, *[model] * 6)
    rig.telegram.say(PERSON, "question 1")
    await rig.shows("Answer 1:")
    assert model.refused == 1 and model.seen[-1] <= FITS
    assert "line of the file" in str(rig.model.requests[-1].body), "its two ends are seen"
    await rig.quiet()


async def test_what_never_fits_is_told_with_what_to_do(rig: Rig) -> None:
    rig.model.script(*[OVERFLOWS["vLLM"].step] * 8)
    await rig.start(**settings(rig, "openai"))
    rig.telegram.say(PERSON, "hello")
    told = (await rig.shows("exceeds the context window of openai"))["text"]
    assert "Start a new one" in told
    assert len(rig.model.requests) <= 3
    await rig.quiet()


async def test_a_turn_that_was_shortened_is_continued_after_a_crash(rig: Rig) -> None:
    """The failure is in the journal: the turn shortens its messages again and asks nobody."""
    form = OVERFLOWS["vLLM"].step
    ask = Call("ask_user", json.dumps({"question": "Which one?", "kind": "input"}))

    def later(body: Json) -> object:
        return ask if "[Earlier messages" in json.dumps(body) else Say("in short")

    rig.model.script(Say(f"first {LONG}"), Say(f"second {LONG}"), form, *[later] * 4)
    await rig.start(CONTEXT_COMPRESSION_PRESERVE_RECENT="2", **settings(rig, "openai"))
    for shown in ("first", "second", "Which one?"):
        rig.telegram.say(PERSON, "go on")
        await rig.shows(shown)
        await rig.quiet()
    await rig.crash()
    before = len(rig.model.requests)
    rig.model.steps.clear()
    rig.model.script(Say("went on"))
    await rig.start(CONTEXT_COMPRESSION_PRESERVE_RECENT="2", **settings(rig, "openai"))
    rig.telegram.say(PERSON, "yes")
    await rig.shows("went on")
    assert len(rig.model.requests) == before + 1
    assert "in short" in str(rig.model.requests[-1].body["messages"])
    await rig.quiet()


class PlanningModel(SmallModel):
    """The same, for a turn with a plan of two steps."""

    def __call__(self, body: Json) -> object:
        text = json.dumps(body)
        last = json.dumps(body["messages"][-1])
        self.seen.append(len(text))
        if len(text) > FITS:
            self.refused += 1
            return self.form.step
        if "[Planning]" in last:
            steps = [{"id": n, "description": f"Do {n}", "outcome": ""} for n in ("one", "two")]
            return Say(json.dumps({"steps": steps}))
        if "You summarise" in text:
            return Say("in short")
        return Say("All is done." if "[Finishing]" in last else f"Step: {LONG}")


@pytest.mark.parametrize("last", [1, 2], ids=["planner", "final answer"])
async def test_a_planned_turn_outgrows_its_model_and_goes_on(rig: Rig, last: int) -> None:
    model = PlanningModel(OVERFLOWS["llama.cpp"])
    long = "All of this was said before. " * 1_200  # fits once, and not with what comes
    rig.model.script(Say(long[: FITS * (5 if last == 1 else 3) // 4]), *[model] * 40)
    await rig.start(**settings(rig, "openai"))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("All of this")
    await rig.quiet()
    rig.telegram.say(PERSON, ASK)
    await rig.shows("All is done.")
    await rig.quiet()
    assert model.refused >= 1 and model.seen[-1] <= FITS
    assert {"one", "two"} <= set(asked(rig)), "the plan was worked off"


async def test_a_research_outgrows_its_model_and_goes_on(rig: Rig) -> None:
    """Its thread after a long conversation, and one source that is long by itself."""
    refused: list[int] = []

    def small(body: Json) -> object:
        text = json.dumps(body)
        size = len(text)
        if size > (6_000 if "You read one source" in text else FITS):
            refused.append(size)
            return OVERFLOWS["vLLM"].step
        aside = ("You summarise", "[The older messages]")
        return Say("[]") if any(one in text for one in aside) else answer(body)

    rig.model.script(Say("All of this was said before. " * 1_300), *[small] * 40)
    async with served() as site:
        more = (f"Paragraph {n} of this page goes on. " * 20 for n in range(60))
        site.put("/alpha", "Alpha", fact("Alpha", 1), *more)
        await rig.start(**web_of(site))
        rig.telegram.say(PERSON, "hello")
        await rig.shows("All of this")
        await rig.quiet()
        rig.telegram.say(PERSON, "/mode research")
        await rig.quiet()
        rig.telegram.say(PERSON, "Which hosts are cheap?")
        await rig.shows("One host [1]")
        await rig.quiet()
        assert len(refused) >= 2
        await rig.stop()
