"""A model that holds little: what a request shows it, and how much of a result it sees."""

import json

import pytest

from tests.fakes.model_server import Call, Fail, Json, Ollama, Say
from tests.fakes.waiting import PATIENCE
from tests.stories.rig import PERSON, Rig

pytestmark = pytest.mark.pick("small windows", 4)

MAX_TOKENS = 1_200
BYTES = 3.5
"""Of the JSON of a request that make a token, at least: 4.3 by OpenAI's own tokenizer."""
SMALL = '{"openai/fake-model": 8192}'


def shown(body: Json) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


async def answers(rig: Rig, count: int) -> None:
    """Until there are so many."""
    await rig.telegram.wait(lambda: count == sum("Answer " in one for one in rig.said()), PATIENCE)


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


async def test_what_ollama_cuts_without_a_word_is_summarised_and_told(rig: Rig) -> None:
    rig.model.ollama = Ollama(given=4096)
    tiers = {f"{tier}_MODEL": "openai/fake-model" for tier in ("MAX", "PRO", "FLASH")}
    await rig.start(**tiers, LOCAL_MODEL_DISCOVERY="on", OPENAI_API_MODE="chat_completions")
    await rig.until(lambda: rig.log.named("window"))
    long = "All the words of this answer belong to it. " * 250
    rig.model.script(*[Say(f"First. {long}"), Say(f"Second. {long}"), Say(f"wrong {long}")])
    for asked, shown_as in (("one", "First."), ("two", "Second."), ("three", "ack three")):
        rig.telegram.say(PERSON, asked)
        await rig.shows(shown_as)
        await rig.quiet()
    told = [text for text in rig.said() if "OLLAMA_CONTEXT_LENGTH" in text]
    assert len(told) == 1 and "about 4,096 tokens" in told[0]
    assert not any("wrong" in text for text in rig.said()), "an answer to half is no answer"
    assert "[Earlier messages" in str(rig.model.requests[-1].body["messages"])


async def test_what_ollama_tells_is_kept_to(rig: Rig) -> None:
    rig.model.ollama = Ollama(given=4096, tells=True)
    tiers = {f"{tier}_MODEL": "openai/fake-model" for tier in ("MAX", "PRO", "FLASH")}
    await rig.start(**tiers, LOCAL_MODEL_DISCOVERY="on", OPENAI_API_MODE="chat_completions")
    await rig.until(lambda: rig.log.named("window"))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.until(lambda: rig.log.named("window")[-1].__dict__["tokens"] == 4096)
    long = "All the words of this answer belong to it. " * 250

    def answer(body: Json) -> Say:
        text = json.dumps(body)
        if "You summarise" in text or "[The older messages]" in text:
            return Say("[]")
        assert len(text) < 4096 * 4, "it would be cut"
        return Say(f"Answer {text.count('question')}. {long}")

    rig.model.script(*[answer] * 20)
    for n in range(1, 6):
        rig.telegram.say(PERSON, "question")
        await answers(rig, n)
        await rig.quiet()
    assert not any("OLLAMA_CONTEXT_LENGTH" in text for text in rig.said())
    assert len(shown(rig.model.requests[-1].body)) == 7


async def test_ollama_is_asked_to_hold_more(rig: Rig) -> None:
    """What is cut without a word elsewhere, as above, is whole by Ollama's own protocol."""
    rig.model.ollama = Ollama(given=4096, tells=True)
    tiers = {f"{tier}_MODEL": "openai/fake-model" for tier in ("MAX", "PRO", "FLASH")}
    await rig.start(**tiers, LOCAL_MODEL_DISCOVERY="on")
    await rig.until(lambda: rig.log.named("window"))
    long = "All the words of this answer belong to it. " * 250
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "note.txt").write_text("what stands in the file")
    rig.model.script(
        Say(f"First. {long}"),
        Say(f"Second. {long}"),
        Call("read_file", json.dumps({"path": "note.txt"})),
        Say("Third."),
    )
    for asked, shown_as in (("one", "First."), ("two", "Second."), ("three", "Third.")):
        rig.telegram.say(PERSON, asked)
        await rig.shows(shown_as)
        await rig.quiet()
    bodies = [request.body for request in rig.model.requests]
    assert {request.path for request in rig.model.requests} == {"/api/chat"}
    assert {body["options"]["num_ctx"] for body in bodies} == {16_384}
    assert "what stands in the file" in str(bodies[-1]["messages"])
    assert "First." in str(bodies[-1]["messages"]) and len(shown(bodies[-1])) > 7
    assert not any("OLLAMA_CONTEXT_LENGTH" in text for text in rig.said())


async def test_a_call_that_is_written_as_text_is_made(rig: Rig) -> None:
    await rig.start(MODEL_WINDOWS=SMALL)
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "note.txt").write_text("what stands in the file")
    call = json.dumps({"name": "read_file", "arguments": {"path": "note.txt"}})
    named = json.dumps({"name": "list_files", "arguments": {}})  # its name alone was told
    rig.model.script(Say(named), Say(f"```json\n{call}\n```"), Say("It is read."))
    rig.telegram.say(PERSON, "read it")
    await rig.shows("It is read.")
    await rig.quiet()
    listed, read = rig.seen(role="tool")
    assert "note.txt" in listed and read == "what stands in the file"
    assert not any("arguments" in text for text in rig.said())


async def test_a_server_that_takes_no_tools_is_given_them_as_text(rig: Rig) -> None:
    """vLLM without a parser of calls."""
    why = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    await rig.start(OPENAI_API_MODE="chat_completions")
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "note.txt").write_text("the words of the file")

    def answer(body: Json) -> Say | Fail:
        if "tools" in body or any(one["role"] == "tool" for one in body["messages"]):
            return Fail(400, message=why)
        assert "# Tools" in body["messages"][0]["content"]
        if "<tool_response>" in body["messages"][-1]["content"]:
            assert "the words of the file" in body["messages"][-1]["content"]
            return Say("It is read.")
        call = json.dumps({"name": "read_file", "arguments": {"path": "note.txt"}})
        return Say(f"I look.\n<tool_call>\n{call}\n</tool_call>")

    rig.model.script(*[answer] * 8)
    for n in range(1, 3):
        rig.telegram.say(PERSON, "read it")
        await rig.telegram.wait(lambda n=n: rig.said().count("It is read.") == n, PATIENCE)
        await rig.quiet()
    assert sum("tools" in request.body for request in rig.model.requests) == 1
    assert not any("tool_call" in text for text in rig.said())
