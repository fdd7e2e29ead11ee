"""A conversation of thirty turns with tools, with a model that holds 4,096 tokens."""

import json
from collections.abc import Callable

import pytest

from tests.fakes.model_server import Call, Fail, Json, Ollama, Say, Step
from tests.fakes.waiting import PATIENCE
from tests.stories.rig import PERSON, Rig

pytestmark = pytest.mark.pick("small windows", 1)

HELD = 4_096
TURNS = 30
LINE = "The %dth line of the notes tells of one more thing that happened.\n"
WORDS = "All the words of this answer belong to it. " * 30
REFUSALS = {
    "vLLM": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
    "(4500 in the messages, 500 in the completion).",
    "silent about it": "Your input exceeds the context window of this model.",
}


class SmallModel:
    """Reads a file in each turn, then answers. `refuse`: what it says to a request that is too
    long; "": the server cuts it without a word."""

    def __init__(self, refuse: str = "") -> None:
        self.refuse, self.refused, self.asked = refuse, 0, 0
        self.sizes: list[int] = []

    def answer(self, body: Json) -> Step:
        self.asked += 1
        size = len(json.dumps(body, ensure_ascii=False)) // 4
        self.sizes.append(size)
        if self.refuse and size > HELD:
            self.refused += 1
            return Fail(400, body={"error": {"message": self.refuse, "code": 400}})
        messages = body["messages"]
        text = json.dumps(messages)
        if "You summarise" in text or "[The older messages]" in text:
            return Say("They talked of the notes.")
        if messages[-1]["role"] == "tool" or "tools" not in body:
            return Say(f"Answer. {WORDS}")
        return Call("read_file", json.dumps({"path": "notes.txt"}))


async def talk(rig: Rig, model: SmallModel, has_learnt: Callable[[], bool] = lambda: True) -> None:
    """Ask TURNS times. `has_learnt`: what was to be learnt from the first answer is known."""
    rig.workspace().mkdir(parents=True, exist_ok=True)
    (rig.workspace() / "notes.txt").write_text("".join(LINE % n for n in range(60)))
    rig.model.script(*[model.answer] * 500)
    for n in range(1, TURNS + 1):
        rig.telegram.say(PERSON, f"question {n}: what do the notes say now?")
        await rig.telegram.wait(lambda n=n: ended(rig) >= n, PATIENCE)
        await rig.quiet()
        await rig.until(has_learnt)


def ended(rig: Rig) -> int:
    """The answers, and the words about one that there is not."""
    return sum("Answer." in text or "exceeds the context window" in text for text in rig.said())


TIERS = {f"{tier}_MODEL": "openai/fake-model" for tier in ("MAX", "PRO", "FLASH")}


@pytest.mark.parametrize("told", [0, HELD])
@pytest.mark.parametrize("maker", REFUSALS)
async def test_a_model_that_refuses_what_is_too_long(rig: Rig, maker: str, told: int) -> None:
    model = SmallModel(REFUSALS[maker])
    rig.model.window = told
    more = {"MODEL_WINDOWS": json.dumps({"openai/fake-model": told})} if told else {}
    await rig.start(**TIERS, **more, OPENAI_API_MODE="chat_completions")
    await talk(rig, model)
    answers = sum("Answer." in text for text in rig.said())
    assert answers == TURNS
    assert model.refused == (0 if told else 1), "it is learnt once"
    assert model.asked < TURNS * 4


@pytest.mark.parametrize("tells", [False, True])
async def test_a_server_that_cuts_without_a_word(rig: Rig, tells: bool) -> None:
    model = SmallModel()
    rig.model.ollama = Ollama(given=HELD, tells=tells)
    await rig.start(**TIERS, LOCAL_MODEL_DISCOVERY="on", OPENAI_API_MODE="chat_completions")
    await rig.until(lambda: rig.log.named("window"))

    def has_learnt() -> bool:
        return not tells or any(vars(one)["sure"] for one in rig.log.named("window"))

    await talk(rig, model, has_learnt)
    answers = sum("Answer." in text for text in rig.said())
    told = [text for text in rig.said() if "OLLAMA_CONTEXT_LENGTH" in text]
    assert answers == TURNS and len(told) == (0 if tells else 1)
    learnt = model.sizes if tells else model.sizes[len(model.sizes) // 2 :]
    assert max(learnt) <= HELD and model.asked < TURNS * 4
