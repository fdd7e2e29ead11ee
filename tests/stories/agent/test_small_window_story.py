"""A model that holds little: what a request shows it, and how much of a result it sees."""

import json

from tests.fakes.model_server import Call, Json, Say
from tests.stories.rig import PERSON, Rig

MAX_TOKENS = 1_200
BYTES = 3.5
"""Of the JSON of a request that make a token, at least: 4.3 by OpenAI's own tokenizer."""
SMALL = '{"openai/fake-model": 8192}'


def shown(body: Json) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


async def test_hello_is_small(rig: Rig) -> None:
    await rig.start(MODEL_WINDOWS=SMALL)
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    (request,) = rig.model.requests
    assert len(request.raw) / BYTES <= MAX_TOKENS
    names = shown(request.body)
    assert len(names) == 7 and "find_tools" in names
    assert "schedule_job" in rig.sent(role="system")[0], "the others are named"


async def test_a_window_above_shows_all(rig: Rig) -> None:
    await rig.start(MODEL_WINDOWS='{"openai/fake-model": 8193}')
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    assert "schedule_job" in shown(rig.model.requests[0].body)


async def test_others_are_found_and_called_and_results_are_short(rig: Rig) -> None:
    await rig.start(MODEL_WINDOWS=SMALL)
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "big.txt").write_text("a line of the file\n" * 2_000)
    rig.model.script(
        Call("find_tools", json.dumps({"query": "list a folder"})),
        Call("list_files"),
        Call("read_file", json.dumps({"path": "big.txt"})),
        Call("read_file", json.dumps({"offset": 1})),
        Say("done"),
    )
    rig.telegram.say(PERSON, "hello")
    await rig.shows("done")
    await rig.quiet()
    found, listed, read, wrong = rig.seen(role="tool")
    assert "list_files: " in found and found.count("\nArguments: ") == 2
    assert "big.txt" in listed
    assert len(read) < 5_000 and "characters left out" in read
    assert "path: Field required" in wrong and "Schema" in wrong


async def test_a_profile_shows_its_own_few(rig: Rig) -> None:
    await rig.start(MODEL_WINDOWS=SMALL)
    rig.telegram.say(PERSON, "/mode swe")
    await rig.quiet()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    names = shown(rig.model.requests[-1].body)
    assert {"bash", "find_tools", "read_file"} <= names and len(names) <= 7
