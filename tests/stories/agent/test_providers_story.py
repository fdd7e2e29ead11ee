"""The same conversation with each provider, in each protocol that it is spoken to in: an approval
over a restart, a picture, a second turn; nothing that was sent before is sent differently."""

import pytest

from tests.fakes.model_server import Call, Empty, Ends, Say, Think
from tests.fakes.pictures import PNG
from tests.stories.pictures_rig import photo
from tests.stories.providers_rig import PROVIDERS, settings
from tests.stories.rig import ADMIN, PERSON, Rig, write

pytestmark = pytest.mark.pick("stories of providers", 3)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_conversation(rig: Rig, name: str) -> None:
    turns = PROVIDERS[name][3]
    env = settings(rig, name)
    rig.model.script(Think("hm", write("a.txt", "seen")), Say("written"), Say("still there"))
    await rig.start(**env)
    photo(rig, PNG, "write down what you see")
    card = await rig.card()
    await rig.crash()
    await rig.start(**env)
    rig.press(card, "Approve once")
    await rig.shows("written")
    await rig.quiet()
    rig.telegram.say(PERSON, "and now?")
    await rig.shows("still there")
    await rig.quiet()
    assert (rig.workspace() / "a.txt").read_text() == "seen"
    bodies = [request.body[turns] for request in rig.model.requests]
    assert len(bodies) == 3
    for before, after in zip(bodies, bodies[1:], strict=False):
        assert unmarked(after)[: len(before)] == unmarked(before)
    assert PNG_TEXT in str(bodies[0]) and PNG_TEXT in str(bodies[-1])


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_cut_answer_is_continued_and_a_cut_call_made_again(rig: Rig, name: str) -> None:
    turns = PROVIDERS[name][3]
    cut = Call("write_file", '{"path": "a.txt", "content": "half of')
    rig.model.script(
        Ends(Say("One, two, th")), Ends(Say("ree, fo")), Say("ur."),
        Ends(cut), write("a.txt", "all"), Say("It is written."), Say("Still there."),
    )  # fmt: skip
    await rig.start(**settings(rig, name), TELEGRAM_ADMIN_USERS=str(ADMIN))
    rig.telegram.say(ADMIN, "count")
    await rig.shows("One, two, three, four.", ADMIN)
    await rig.quiet()
    rig.telegram.say(ADMIN, "write it")
    await rig.shows("It is written.", ADMIN)
    assert (rig.workspace(ADMIN) / "a.txt").read_text() == "all"
    await rig.quiet()
    rig.telegram.say(ADMIN, "and now?")
    await rig.shows("Still there.", ADMIN)
    bodies = [request.body[turns] for request in rig.model.requests]
    assert "Go on exactly where you stopped" in str(bodies[1])
    own = name.startswith("gemini by")  # which sends no piece of a call, and is asked again
    assert own or "write_file was cut off" in str(bodies[4])
    assert "half of" not in str(bodies[4])
    for before, after in zip(bodies, bodies[1:], strict=False):
        assert unmarked(after)[: len(before)] == unmarked(before)


@pytest.mark.pick("a refusal")
@pytest.mark.parametrize("name", PROVIDERS)
async def test_what_a_provider_refuses_is_told(rig: Rig, name: str) -> None:
    rig.model.script(Ends(Say("I begin, but"), "refused"), Ends(Empty(), "refused"), Say("Yes."))
    await rig.start(**settings(rig, name))
    for n in (1, 2):
        rig.telegram.say(PERSON, "tell me")
        await rig.until(lambda n=n: str(rig.said()).count("declined to answer this") == n)
        await rig.quiet()
    assert "I begin, but" in str(rig.said())
    rig.telegram.say(PERSON, "and that?")
    await rig.shows("Yes.")


PNG_TEXT = "iVBORw0KGgo"


def unmarked(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """Without the marks that tell a provider how far to keep what it was sent."""
    out = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            blocks = [{k: v for k, v in one.items() if k != "cache_control"} for one in content]
            message = message | {"content": blocks}
        out.append(message)
    return out
