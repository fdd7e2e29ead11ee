"""A conversation that is so long that it is summarised."""

from tests.fakes.model_server import Json, Say
from tests.fakes.model_steps import Step
from tests.stories.rig import PERSON, Rig

SHORT = {
    "CONTEXT_COMPRESSION_TOKEN_THRESHOLD": "9000",
    "CONTEXT_COMPRESSION_PRESERVE_RECENT": "4",
    "FLASH_MODEL": "openai/fake-flash",
    "MEMORY_ENABLED": "off",
}


LONG = "word " * 700


def summaries(rig: Rig) -> list[Json]:
    """Requests for a summary."""
    found = (one.body for one in rig.model.requests if one.body["model"] == "fake-flash")
    return list(found)


async def until_long(rig: Rig, summary: Step) -> int:
    """Ask long questions until a summary is asked for; how many it took."""

    def answer(body: Json) -> Step:
        return summary if body["model"] == "fake-flash" else Say("answered")

    rig.model.script(*[answer] * 50)
    for n in range(15):
        before = len(rig.said())
        rig.telegram.say(PERSON, f"question {n} {LONG}")
        await rig.telegram.wait(lambda before=before: len(rig.said()) > before)
        await rig.quiet()
        if summaries(rig):
            rig.model.steps.clear()
            return n
    raise AssertionError("it was never too long")
