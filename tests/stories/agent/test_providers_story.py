"""The same conversation with each provider, in each protocol that it is spoken to in: an approval
over a restart, a picture, a second turn; nothing that was sent before is sent differently."""

import pytest

from tests.fakes.model_server import Say, Think
from tests.fakes.pictures import PNG
from tests.stories.pictures_rig import photo
from tests.stories.rig import PERSON, Rig, write

PROVIDERS = {
    "openai": ("openai/fake-model", "/v1", {}, "messages"),
    "openai by responses": (
        "openai/fake-model", "/v1", {"OPENAI_API_MODE": "codex_responses"}, "input",
    ),
    "anthropic": ("anthropic/fake-model", "", {}, "messages"),
    "gemini": ("gemini/gemini-3.8-flash", "/v1", {}, "messages"),
    "gemini by its own protocol": (
        "gemini/gemini-3.8-flash", "", {"GEMINI_API_MODE": "generate_content"}, "contents",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_conversation(rig: Rig, name: str) -> None:
    model, path, more, turns = PROVIDERS[name]
    provider = model.partition("/")[0].upper()
    env = {
        f"{provider}_API_KEY": "k-1", f"{provider}_BASE_URL": f"{rig.model_url}{path}",
        "PRO_MODEL": model,
    } | more  # fmt: skip
    rig.model.key = "k-1"
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
