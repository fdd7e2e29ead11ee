"""/model: what is chosen is there, and what an answer cost is told as far as it is known."""

import json

import pytest

from tests.fakes.model_server import Fail, Json, Say, Step
from tests.stories.rig import ADMIN, GROUP, PERSON, Rig, token

PRICE = json.dumps({"openai/fake-model": {"input": 10.0, "output": 10.0}})


@pytest.mark.parametrize("language", ["en", "de"])
async def test_a_model_that_its_provider_has_not_is_refused_with_the_nearest(
    rig: Rig, language: str
) -> None:
    rig.model.models = ["fake-model", "fake-large", "other"]
    await rig.start()
    sender = {"id": ADMIN, "is_bot": False, "first_name": "Ada", "language_code": language}
    writer = {"from": sender}
    rig.telegram.say(ADMIN, "/model openai/fake-modle", **writer)
    said = {"en": "Did you mean openai/fake-model?", "de": "Meinten Sie openai/fake-model?"}
    await rig.shows(said[language], ADMIN)
    rig.telegram.say(ADMIN, "hello", **writer)
    await rig.shows("ack hello", ADMIN)
    assert rig.model.requests[-1].body["model"] == "fake-model", "nothing was changed"
    rig.telegram.say(ADMIN, "/model openai/fake-large", **writer)
    await rig.shows("openai/fake-large", ADMIN)
    rig.telegram.say(ADMIN, "again", **writer)
    await rig.shows("ack again", ADMIN)
    assert rig.model.requests[-1].body["model"] == "fake-large"
    await rig.quiet()


async def test_what_names_no_provider_or_tier_is_refused_with_the_nearest(rig: Rig) -> None:
    rig.model.models = ["fake-model", "fake-large"]
    await rig.start()
    for wrong, near in (
        ("prp", "Did you mean pro?"),
        ("PRO", "no model PRO here. Did you mean pro?"),
        ("openai/FAKE-LARGE", "no model FAKE-LARGE. Did you mean openai/fake-large?"),
        ("fake-large", "Did you mean openai/fake-large?"),
        ("opnai/fake-modle", "Did you mean openai/fake-model?"),
        ("zzzz", "There is no model zzzz here. /model lists the available ones"),
        ("gemini/any", "gemini has no API key here, so any cannot answer."),
    ):
        rig.telegram.say(ADMIN, f"/model {wrong}")
        await rig.shows(near, ADMIN)
    rig.telegram.say(ADMIN, "hello")
    await rig.shows("ack hello", ADMIN)
    assert rig.model.requests[-1].body["model"] == "fake-model", "nothing was changed"


async def test_what_can_be_chosen_is_told_to_admins(rig: Rig) -> None:
    rig.model.models = ["fake-model", "text-embedding-3", "fake-large"]
    await rig.start()
    rig.telegram.say(PERSON, "/model")
    assert (await rig.shows("openai/fake-model"))["text"] == "openai/fake-model"
    rig.telegram.say(ADMIN, "/model")
    card = await rig.shows("The model here is openai/fake-model", ADMIN)
    labels = [b["text"] for row in card["reply_markup"]["inline_keyboard"] for b in row]
    tiers = ["max: openai/gpt-5.6-sol", "flash: openai/gpt-5.6-luna"]
    assert {*tiers, "openai/fake-model", "openai/fake-large"} <= set(labels), labels
    assert not any("embedding" in label for label in labels)
    await rig.quiet()


async def test_a_press_changes_the_model_and_the_card(rig: Rig) -> None:
    rig.model.models = ["fake-model", "fake-large"]
    await rig.start()
    rig.telegram.say(ADMIN, "/model")
    card = await rig.shows("The model here is openai/fake-model", ADMIN)
    large = token(card, "openai/fake-large")
    rig.press(card, "openai/fake-large", ADMIN)
    await rig.shows("The model here is openai/fake-large", ADMIN)
    rig.telegram.say(ADMIN, "hello")
    await rig.shows("ack hello", ADMIN)
    assert rig.model.requests[-1].body["model"] == "fake-large"
    rig.model.models = ["fake-model"]
    told = await rig.told(rig.telegram.press(ADMIN, card["message_id"], large, ADMIN))
    assert "no longer in the list" in told
    await rig.quiet()


async def test_who_is_no_admin_is_told_why_not(rig: Rig) -> None:
    rig.model.models = ["fake-model", "fake-large"]
    await rig.start()
    rig.telegram.say(PERSON, "/model openai/fake-large")
    await rig.shows("Only an admin can choose the model here. It is openai/fake-model")
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    assert rig.model.requests[-1].body["model"] == "fake-model"
    await rig.quiet()


async def test_in_a_group_only_an_admin_presses(rig: Rig) -> None:
    rig.model.models = ["fake-model", "fake-large"]
    await rig.start(TELEGRAM_ALLOWED_CHATS=str(GROUP))
    rig.telegram.say(GROUP, "/model@test_bot", ADMIN, True)
    card = await rig.shows("The model here is openai/fake-model", GROUP)
    told = await rig.told(rig.press(card, "openai/fake-large", PERSON))
    assert "Only an admin" in told
    rig.press(card, "openai/fake-large", ADMIN)
    await rig.shows("The model here is openai/fake-large", GROUP)
    await rig.quiet()


async def test_where_no_models_are_listed_any_is_taken(rig: Rig) -> None:
    rig.model.models = []
    await rig.start()
    rig.telegram.say(ADMIN, "/model openai/anything")
    await rig.shows("openai/anything", ADMIN)
    await rig.quiet()


@pytest.mark.parametrize("known", [True, False])
async def test_a_price_that_nobody_knows_is_never_nothing(rig: Rig, known: bool) -> None:
    rig.model.script(Say("Hi.", tokens=100_000))
    await rig.start(**({"MODEL_PRICES": PRICE} if known else {}))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("Hi.")
    await rig.quiet()
    rig.telegram.say(PERSON, "/status")
    told = (await rig.shows("Today: "))["text"]
    assert ("Today: $1.0" in told) is known
    assert ("Today: price unknown for 1" in told) is not known
    assert "$0.00" not in told
    await rig.quiet()


async def test_a_conversation_has_a_list_of_its_own_for_where_its_model_fails(rig: Rig) -> None:
    rig.model.models = ["fake-model", "fake-large", "fake-small"]
    await rig.start(FALLBACK_PROVIDERS="openai/fake-small")
    rig.telegram.say(ADMIN, "/model openai/fake-model openai/fake-lrage")
    await rig.shows("Did you mean openai/fake-large?", ADMIN)
    rig.telegram.say(ADMIN, "/model openai/fake-model pro")
    await rig.shows("followed by up to five", ADMIN)
    rig.telegram.say(ADMIN, "/model openai/fake-model openai/fake-large")
    await rig.shows("openai/fake-model → openai/fake-large", ADMIN)

    def answer(body: Json) -> Step:
        return Fail(400 + 29, retry_after=60.0) if body["model"] == "fake-model" else Say("Here.")

    rig.model.script(*[answer] * 4)
    rig.telegram.say(ADMIN, "hello")
    await rig.shows("Here.", ADMIN)
    assert [one.body["model"] for one in rig.model.requests] == ["fake-model", "fake-large"]
    await rig.quiet()
    rig.model.script(*[answer] * 4)
    rig.telegram.say(PERSON, "hello")
    await rig.shows("Here.")
    assert rig.model.requests[-1].body["model"] == "fake-small", "elsewhere the setting holds"
    await rig.quiet()
