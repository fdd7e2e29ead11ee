"""Events of answers whose fields are not what their protocol says: what they say arrives, and is
never taken for a whole answer, or a whole call, that it is not."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.messages import ToolCall
from agent_core.models.answers.anthropic import AnthropicReader
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.openai_chat import ChatCompletionsReader
from agent_core.models.answers.openai_responses import ResponsesReader
from agent_core.models.ollama.answer import OllamaReader
from agent_core.models.wire import Make
from tests.agent_core.asking import ask
from tests.agent_core.streams_rig import BLOCK, ITEM, chat, events, fail, read, words, write
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import head
from tests.sampling import examples

WIRES = ["chat", "responses", "anthropic"]
STREAMED = ["text/event-stream", "application/json", "text/plain"]
CALL: Json = {"index": 0, "id": "c", "function": {"name": "look", "arguments": '{"a":1}'}}
END = chat({}, "tool_calls")
MADE = ToolCall(id="c", name="look", arguments='{"a":1}')
PIECES = ('{"a"', ":1", "}")


def called(calls: object) -> list[Json]:
    return [chat({"tool_calls": calls}), END]


def piecewise(*, index: int | None, name: str | None, again: bool) -> list[Json]:
    """A call whose pieces have an id of their own each; `name`: in those after the first one."""
    lines = []
    for n, piece in enumerate(PIECES):
        named: Json = {"name": "look"} if n == 0 or again else {"name": name}
        given: Json = {"id": f"c{n or ''}", "function": named | {"arguments": piece}}
        lines.append(chat({"tool_calls": [given if index is None else given | {"index": index}]}))
    return [*lines, END]


CALLS = {
    "an object": called(CALL),
    "numbered": called({"0": CALL}),
    "nothing beside": called([None, CALL]),
    "an object of arguments": called(
        [CALL | {"function": {"name": "look", "arguments": {"a": 1}}}]
    ),
    "an index in words": called([CALL | {"index": "0"}]),
    "a call of nothing": called([CALL, {"index": 1, "id": "d", "function": None}]),
    "choices": [{"choices": called([CALL])[0]["choices"][0]}, END],
    "ids": piecewise(index=0, name=None, again=False),
    "ids and no names": piecewise(index=0, name="", again=False),
    "ids and names": piecewise(index=0, name=None, again=True),
    "ids without an index": piecewise(index=None, name=None, again=False),
    "ids and names without an index": piecewise(index=None, name=None, again=True),
}


@pytest.mark.parametrize("form", CALLS)
async def test_a_call_in_another_form_is_one(form: str) -> None:
    reply = await read("chat", head() + write(CALLS[form]))
    assert (reply.parts, reply.finish) == ((MADE,), "tool_calls")


@pytest.mark.parametrize("rest", ["look()", [["x"]], [5]])
async def test_calls_that_cannot_be_read_are_not_left_out(rest: object) -> None:
    lines = [chat({"content": "hello", "tool_calls": rest}), END]
    assert (await fail("chat", head() + write(lines))).fault == "malformed"


HELLO: dict[str, list[object]] = {
    "parts": [chat({"content": [{"type": "text", "text": "hel"}, "lo"]}), chat({}, "stop")],
    "a part": [chat({"content": {"type": "text", "text": "hello"}}), chat({}, "stop")],
    "no delta": [chat(None), *events("chat"), chat(None)],
    "a text for a delta": [chat("hello"), chat({}, "stop")],
    "no choices": [{"choices": None}, {"choices": [None]}, *events("chat"), {"choices": []}],
    "no role": [chat({"content": "hello", "role": None}, "stop")],
    "a number": [line | {"model": 5} for line in events("chat")],
    "a call of nothing": [chat({"content": "hello", "tool_calls": [{"id": "x"}]}), END],
    "signs of life": ["ping", "null", "[]", "true", "{}", *events("chat")],
    "bytes": [chat({"content": "hello"}, "stop", system_fingerprint="\udcff")],
}


@pytest.mark.parametrize("form", HELLO)
@pytest.mark.parametrize("kind", STREAMED)
async def test_words_in_another_form_arrive(form: str, kind: str) -> None:
    for sent in (write(HELLO[form]), write(HELLO[form]).replace(b"\n\n", b"\n")):
        body = sent.replace(b"data: ", b"data:").replace(b"\\udcff", b"\xff")
        reply = await read("chat", head(kind) + body)
        assert (words(reply), reply.finish) == ("hello", "stop")
        assert not any(isinstance(part, ToolCall) for part in reply.parts)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", STREAMED)
async def test_a_stream_is_one_whatever_it_is_called(wire: str, kind: str) -> None:
    sent = write(events(wire))
    for body in (sent, sent.replace(b"\n\n", b"\n"), b"data: ping\n\n" + sent):
        assert words(await read(wire, head(kind) + body)) == "hello"


TOLD = [
    *(
        "it broke",
        '"it broke"',
        '["it broke"]',
        '{"message": "it broke"}',
        '{"detail": "it broke"}',
    ),
    *(
        '{"error": "it broke"}',
        '{"error": {"message": "it broke"}}',
        '{"msg": "it broke", "type": "x"}',
    ),
    *(
        '{"type": "error", "error": "it broke"}',
        '{"type": "error", "error": {"message": "it broke"}}',
    ),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("begun", [0, 1, 2])
async def test_an_event_of_an_error_is_told_in_any_form(wire: str, told: str, begun: int) -> None:
    body = write(events(wire)[:begun]) if wire != "responses" else b""
    failed = await fail(wire, head() + body + f"event: error\ndata: {told}\n\n".encode())
    assert "it broke" in str(failed)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("key", [False, True])
async def test_a_bare_error_does_not_pass_for_a_sign_of_life(wire: str, key: bool) -> None:
    """Nor is what came before it a whole answer."""
    body = write(events(wire)[: 3 if wire == "anthropic" else 1])
    sent = b"event: error\ndata: " + (b'{"error": {"code": 429, "message": "x"}}' if key else b"x")
    failed = await fail(wire, head() + body + sent + b"\n\n" + write(["[DONE]"]))
    assert failed.fault == ("rate_limited" if key else "overloaded")


def start(index: object, block: object) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grow(index: object, **delta: object) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


BEGUN: Json = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": "12"}}}
STOPPED = [
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
]
SAID = grow(0, type="text_delta", text="hello")
BLOCKS: dict[str, list[object]] = {
    "twice": [BEGUN, BEGUN, start(0, BLOCK), SAID, BEGUN],
    "ping": [{"type": "ping"}, BEGUN, {"type": "ping"}, start(0, BLOCK), {"type": "ping"}, SAID],
    "others": [BEGUN, {"type": "new", "x": 1}, start(1, {"type": "new", "content": [1]}),
               grow(1, type="citations_delta", citation={"x": 1}), start(0, BLOCK), SAID],
    "null": [BEGUN, start(0, None), start(None, BLOCK), grow(None, text="hello"), {"type": None}],
    "no start": [BEGUN, SAID],
    "another index": [BEGUN, start(0, BLOCK), grow(3, text="hello")],
    "numbers": [{"type": "message_start", "message": {"model": 5, "usage": {"input_tokens": 12}}},
                start("0", {"type": "text", "text": ""}), grow("0", text="hello", signature=5)],
}  # fmt: skip


@pytest.mark.parametrize("form", BLOCKS)
async def test_odd_blocks_say_what_they_say(form: str) -> None:
    reply = await read("anthropic", head() + write([*BLOCKS[form], *STOPPED]))
    assert (words(reply), reply.finish) == ("hello", "stop")
    assert reply.usage.input_tokens == (0 if form == "no usage" else 12)


def function(arguments: object, **more: object) -> Json:
    return {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments} | more


def at(kind: str, index: object = 0, **more: object) -> Json:
    return {"type": f"response.{kind}", "output_index": index} | more


def end(output: object, kind: str = "completed", **more: object) -> Json:
    return {"type": f"response.{kind}", "response": {"output": output} | more}


ADDED = at("output_item.added", item=function(""))
ENDED = at("output_item.done", item=function(""))
CUT = at("function_call_arguments.delta", delta='{"a":')
ITEMS: dict[str, list[object]] = {
    "deltas beside an empty item": [ADDED, CUT, at(CUT["type"][9:], delta="1}"), ENDED, end([])],
    "the whole alone": [ADDED, at("function_call_arguments.done", arguments='{"a":1}'), end([])],
    "the whole too": [ADDED, CUT, at(CUT["type"][9:], delta="1}"),
                      at("function_call_arguments.done", arguments='{"a":1}'), end([])],
    "an object": [at("function_call_arguments.done", arguments={"a": 1}), ENDED, end([])],
    "begun with all": [at("output_item.added", item=function('{"a":1}')), end([])],
    "an item of its own": [end(function({"a": 1}))],
    "nothing beside": [end([None, function('{"a":1}')])],
}  # fmt: skip


@pytest.mark.parametrize("form", ITEMS)
async def test_arguments_arrive_from_wherever_they_are(form: str) -> None:
    reply = await read("responses", head() + write(ITEMS[form]))
    assert (reply.parts, reply.finish) == ((MADE,), "tool_calls")


SPOKEN: dict[str, list[object]] = {
    "the whole alone": [at("output_text.done", text="hello"), end([])],
    "an item alone": [end(ITEM)],
    "a text for its content": [end([{"type": "message", "content": "hello"}])],
    "an object for its text": [end([ITEM | {"content": [{"type": "x", "text": {"value": "hello"}}]}])],
    "no index": [at("output_text.delta", None, delta="hello"), end(None)],
    "words": [at("output_text.delta", "0", delta="hello"), at("output_item.done", item=None), end([])],
}  # fmt: skip


@pytest.mark.parametrize("form", SPOKEN)
async def test_odd_items_say_what_they_say(form: str) -> None:
    assert words(await read("responses", head() + write(SPOKEN[form]))) == "hello"


@pytest.mark.parametrize("status", ["incomplete", None])
@pytest.mark.parametrize("details", [None, {"reason": "max_output_tokens"}, "max_output_tokens"])
async def test_the_name_of_the_last_event_counts(status: object, details: object) -> None:
    last = end([ITEM], "incomplete", status=status, incomplete_details=details)
    assert (await read("responses", head() + write([last]))).finish == "length"
    assert await fail("responses", head() + write([end([ITEM], "failed", status=status)]))


READERS: dict[str, Make] = {
    "chat": ChatCompletionsReader,
    "anthropic": AnthropicReader,
    "responses": ResponsesReader,
    "ollama": OllamaReader,
}
ODD = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, "", "x", "5", [], {}]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["text", "content", "type", "name", "function", "delta", "id"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=4,
)


def list_places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path] if path else []
    rows = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, one in rows:
        found += list_places(one, (*path, key))
    return found


def put(value: object, path: tuple[object, ...], new: object) -> object:
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: put(value[path[0]], path[1:], new)}
    assert isinstance(value, list)
    return [put(one, path[1:], new) if at == path[0] else one for at, one in enumerate(value)]


SAMPLES: dict[str, list[object]] = {
    "chat": [*events("chat"), *called([CALL])],
    "anthropic": [*events("anthropic"), start(1, {"type": "tool_use", "id": "c", "input": {}})],
    "responses": [ADDED, CUT, *events("responses")],
    "ollama": [
        {"message": {"content": "x", "tool_calls": [{"function": {"name": "look"}}]}, "done": True}
    ],
}


@pytest.mark.parametrize("wire", READERS)
@given(data=st.data())
@settings(max_examples=examples(300), deadline=None)
def test_no_value_anywhere_breaks_a_reader(wire: str, data: st.DataObject) -> None:
    """It is read, or it is told that the answer is none."""
    lines = list(SAMPLES[wire])
    n = data.draw(st.integers(0, len(lines) - 1))
    lines[n] = put(lines[n], data.draw(st.sampled_from(list_places(lines[n]))), data.draw(ODD))
    reader = READERS[wire](ask(), "p", lambda delta: None)
    try:
        for line in lines:
            reader.add(json.dumps(line).encode())
        for part in reader.reply().parts:
            assert not isinstance(part, ToolCall) or isinstance(part.arguments, str)
    except Broken as broken:
        assert broken.said or broken.refusal
