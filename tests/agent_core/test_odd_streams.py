"""Answers in forms that servers and proxies send: what they say arrives, whatever is odd beside it,
wherever the stream is divided, and one that is cut at any byte is not taken for a whole one."""

import json

import pytest

from agent_core.errors import ModelFailed
from agent_core.messages import Thinking, ToolCall
from agent_core.models.answers.spoken import INLINE
from agent_core.models.port import Usage
from tests.agent_core.asking import ask, ignore
from tests.agent_core.streams_rig import (
    BLOCK,
    ITEM,
    chat,
    connect,
    events,
    fail,
    read,
    words,
    write,
)
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import head, serving

BETWEEN = ["", ": ping\n\n", "data:\n\n", "data: \n\n", "event: ping\n\n", "retry: 5\n\n", "\n\n\n"]


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_signs_of_life_say_nothing(wire: str, between: str, mark: bytes) -> None:
    body = write(events(wire), between)
    assert words(await read(wire, head() + mark + between.encode() + body)) == "hello"
    ended = body.replace(b"\n", b"\r\n")
    assert words(await read(wire, head() + mark + ended)) == "hello"


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
async def test_a_stream_may_be_divided_anywhere_and_is_whole_only_at_its_end(wire: str) -> None:
    lines = write(events(wire)).replace(b"\n", b"\r\n")
    body = b"\xef\xbb\xbf: ping\r\n\r\n" + lines
    last = body.rindex(b"\r\n\r\n", 0, -4)
    for at in range(1, len(body), 7):
        assert words(await read(wire, [head() + body[:at], body[at:]])) == "hello"
        if at < last:
            try:
                assert words(await read(wire, head() + body[:at])) == "hello"
            except ModelFailed as failed:
                assert failed.fault in ("unreachable", "malformed")
            else:
                assert wire == "anthropic", "its answer is whole before its last event"


WHOLE = {
    "chat": {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]},
    "responses": {"status": "completed", "output": [ITEM]},
    "anthropic": {
        "type": "message",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
    },
}
KINDS = ("application/json", "Application/JSON; charset=utf-8", "text/plain", "text/event-stream")


@pytest.mark.parametrize("wire", WHOLE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n  "])
async def test_an_answer_in_one_piece_may_be_called_anything(
    wire: str, kind: str, before: bytes
) -> None:
    body = json.dumps(WHOLE[wire]).encode()
    assert words(await read(wire, head(kind) + before + body)) == "hello"
    assert words(await read(wire, [head(kind) + before, body[:9], body[9:]])) == "hello"


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "still loading"}},
        {"error": "still loading"},
        {"object": "error", "message": "still loading", "code": 40303},
        {"detail": "still loading"},
        {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "still loading"}},
    ],
)
async def test_an_error_in_place_of_an_answer_is_told(kind: str, error: Json) -> None:
    for body in (json.dumps(error).encode(), write([error])):
        if body.startswith(b"data") and "JSON" in kind:
            continue
        assert "still loading" in str(await fail("chat", head(kind) + body))


async def test_a_web_page_is_one_whatever_it_is_called() -> None:
    for kind in ("text/plain", "application/xhtml+xml", "text/event-stream"):
        assert (await fail("chat", head(kind) + b"\n<!doctype html>")).fault == "missing"


COUNTS = [-5, "n/a", 12.5, "12", True, [], {"a": 1}, None, 1e300, "inf", 10**30]


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("count", COUNTS)
async def test_odd_counts_do_not_spoil_an_answer(wire: str, count: object) -> None:
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    details = dict.fromkeys(("prompt_tokens_details", "output_tokens_details"), count)
    for usage in (count, dict.fromkeys(names, count) | details):
        reply = await read(wire, head() + write(events(wire, usage)))
        assert words(reply) == "hello"
        assert all(0 <= one <= 12 for one in (reply.usage.input_tokens, reply.usage.output_tokens))
        assert reply.usage.cached_tokens == reply.usage.reasoning_tokens == 0
    assert reply.usage != Usage() or count not in ("12", 12.5, True)


@pytest.mark.parametrize(
    "finish", ["error", "abort", "network_error", "insufficient_system_resource"]
)
async def test_an_answer_that_its_server_gave_up_is_not_whole(finish: str) -> None:
    given = {
        1: head() + write([chat({"content": "hel"}), chat({}, finish), "[DONE]"]),
        2: head() + write(events("chat")),
    }
    async with serving(lambda n: given[n]) as (base, server):
        model = connect("chat", base, retries=1)
        assert words(await model.complete(ask(), ignore)) == "hello"
        await model.close()
    assert server.asked == 2


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("sensitive", "refused"),
        ("MAX_TOKENS", "length"),  # QwenLM/qwen-code#9884
        ("FinishReason.MAX_TOKENS", "length"),  # langgenius/dify#8550
        ("max_output_tokens", "length"),
        ("pause_turn", "length"),  # Anthropic
        ("SAFETY", "refused"),
        ("content_filter: PROHIBITED_CONTENT", "refused"),  # Google, by OpenAI's protocol
        ("refusal", "refused"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
    ],
)
async def test_other_words_for_an_early_end(given: str, meant: str) -> None:
    said, end = chat({"content": "hel"}), chat({}, given)
    reply = await read("chat", head() + write([said, end]))
    assert reply.finish == meant and words(reply) == "hel"
    if meant != "stop":  # also with no word at all, not even a message
        bare = {"choices": [{"index": 0, "finish_reason": given}]}
        assert (await read("chat", head() + write([bare]))).finish == meant
        sent = head("application/json") + json.dumps(bare).encode()
        assert (await read("chat", sent)).finish == meant
    if ":" not in given and "." not in given:
        told = [
            one | {"delta": {"stop_reason": given}} if one["type"] == "message_delta" else one
            for one in events("anthropic")
        ]
        assert (await read("anthropic", head() + write(told))).finish == meant


@pytest.mark.parametrize(
    ("wire", "finish"),
    [
        ("chat", "function_call_filter: MALFORMED_FUNCTION_CALL"),
        ("chat", "MALFORMED_RESPONSE"),
        ("gemini", "MALFORMED_FUNCTION_CALL"),
        ("gemini", "TOO_MANY_TOOL_CALLS"),
        ("gemini", "MISSING_THOUGHT_SIGNATURE"),
    ],
)
@pytest.mark.parametrize("said", ["", "default_api.run("])
async def test_a_call_that_its_provider_could_not_read_is_asked_for_again(
    wire: str, finish: str, said: str
) -> None:
    parts = [{"text": said}] if said else []
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": finish}
    odd = {"candidates": [candidate]} if wire == "gemini" else chat({"content": said}, finish)
    given = {1: head() + write([odd]), 2: head() + write(events(wire))}
    async with serving(lambda n: given[n]) as (base, server):
        model = connect(wire, base, retries=1)
        assert words(await model.complete(ask(), ignore)) == "hello"
        await model.close()
    assert server.asked == 2


async def test_reasoning_in_the_content_is_reasoning() -> None:
    """As Mistral's models send it; it must not go back in another form."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    lines = [
        chat({"content": ""}),
        chat({"content": [thought]}),
        chat({"content": [{"type": "text", "text": "hel"}]}),
        chat({"content": "lo"}),
        chat({}, "stop"),
    ]
    reply = await read("chat", head() + write(lines))
    assert reply.parts[0] == Thinking(text="hm", provider="p", signature=INLINE)
    assert words(reply) == "hello"


async def test_of_several_answers_one_is_read() -> None:
    def both(first: str, second: str, finish: str | None = None) -> Json:
        said = enumerate((first, second))
        choices = [
            {"index": n, "delta": {"content": one}, "finish_reason": finish} for n, one in said
        ]
        return {"choices": choices}

    reply = await read("chat", head() + write([both("hel", "good"), both("lo", "bye", "stop")]))
    assert words(reply) == "hello"


SMILE = "h\U0001f642lo \\ud83d"
"""An emoji, and what only looks like half of one."""
CLEF = json.dumps("\U0001d11e")[1:-1]
HALVES = (CLEF[:6], CLEF[6:])


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic", "gemini"])
async def test_a_character_that_is_cut_in_two_is_one(wire: str) -> None:
    """By servers that cut their text by UTF-16, as JSON of which no half is valid by itself."""
    told = json.dumps(SMILE)[1:-1]
    whole = {"chat": "hel", "responses": "hello", "anthropic": "hello", "gemini": "hello"}[wire]
    said = write(events(wire)).replace(f'"{whole}"'.encode(), f'"{told}"'.encode())
    assert words(await read(wire, head() + said)).startswith(SMILE)
    if wire in ("chat", "anthropic"):
        kind = {"chat": b'"hel"', "anthropic": b'"hello"'}[wire]
        (event,) = [line for line in write(events(wire)).split(b"\n\n") if kind in line]
        pieces = (f'"{one}"'.encode() for one in (f"a{HALVES[0]}", f"{HALVES[1]}b", HALVES[1]))
        cut = b"\n\n".join(event.replace(kind, piece) for piece in pieces)
        body = write(events(wire)).replace(event, cut)
        assert words(await read(wire, head() + body)).startswith("a\U0001d11eb\ufffd")


@pytest.mark.parametrize("given", [None, "", "id"])
@pytest.mark.parametrize("names", [("look", "see"), ("look", "look")])
@pytest.mark.parametrize(("index", "cut"), [(0, False), (0, True), (None, False)])
async def test_calls_of_one_index_are_told_apart(
    given: str | None, index: int | None, names: tuple[str, str], cut: bool
) -> None:
    """Whole ones, of which each has index 0 and no id; where names are repeated with each piece,
    what they belong to is one call."""
    texts = ('{"a":{"b":1},"c":2}', '{"a":3}')
    lines = []
    for n, (name, text) in enumerate(zip(names, texts, strict=True)):
        for piece in (text[:11], text[11:]) if cut else (text,):
            made = {"name": name, "arguments": piece}
            call = {"index": index, "id": given and f"{given}{n}", "function": made}
            lines.append(chat({"tool_calls": [call]}))
    lines.append(chat({}, "tool_calls"))
    reply = await read("chat", head() + write(lines))
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == list(zip(names, texts, strict=True))
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize("text", ["", "{}", '{"a":1}', '{"a":{"b":"c"}}'])
@pytest.mark.parametrize("cut", [1, 3, 99])
@pytest.mark.parametrize("form", ["by id", "by id and name", "by index", "legacy"])
@pytest.mark.parametrize("again", [False, True])
async def test_pieces_of_one_call_are_one(form: str, cut: int, text: str, again: bool) -> None:
    """Without an index, with id and name in each piece, in the form from before there could be
    several calls, and `again`: with all of it once more at its end, or as a message."""
    pieces = [text[at : at + cut] for at in range(0, len(text), cut)] or [""]
    lines = []
    for n, piece in enumerate([*pieces, text] if again and form != "legacy" else pieces):
        named = {"name": "look"} if n == 0 or form == "by id and name" or n == len(pieces) else {}
        function = named | {"arguments": piece}
        call = {"id": "c", "function": function}
        if form == "by index":
            call = {"index": 0, "function": function} | ({"id": "c"} if named else {})
        lines.append(
            chat({"function_call": function} if form == "legacy" else {"tool_calls": [call]})
        )
    lines.append(chat({}, "function_call" if form == "legacy" else "tool_calls"))
    if again:
        whole: Json = {"name": "look", "arguments": text}
        message = {"role": "assistant", "content": "", "function_call": whole}
        lines[-1]["choices"][0] |= {"message": message, "delta": None}
    reply = await read("chat", head() + write(lines))
    (call,) = reply.parts
    assert isinstance(call, ToolCall) and (call.name, call.arguments) == ("look", text or "{}")
    assert reply.finish == "tool_calls" and call.id


@pytest.mark.parametrize("index", [0, None])
async def test_calls_that_share_an_id_are_all_made(index: int | None) -> None:
    texts = ('{"a":1}', '{"a":2}')
    made = ({"name": "look", "arguments": text} for text in texts)
    calls = [{"index": index, "id": "same", "function": one} for one in made]
    lines = [*(chat({"tool_calls": [call]}) for call in calls), chat({}, "tool_calls")]
    reply = await read("chat", head() + write(lines))
    assert [one.arguments for one in reply.parts if isinstance(one, ToolCall)] == list(texts)
    assert len({one.id for one in reply.parts if isinstance(one, ToolCall)}) == 2


@pytest.mark.parametrize("delta", [None, {}, {"content": ""}, {"role": "assistant"}])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_message_in_a_stream_is_read_once(delta: Json | None, streamed: bool) -> None:
    end = chat(delta, "stop")
    end["choices"][0]["message"] = {"role": "assistant", "content": "hello"}
    lines = [*events("chat")[:2], end] if streamed else [end]
    assert words(await read("chat", head() + write(lines))) == "hello"


async def test_an_id_may_be_a_number() -> None:
    made = {"index": 0, "id": 5, "function": {"name": "look", "arguments": "{}"}}
    reply = await read("chat", head() + write([chat({"tool_calls": [made]}), chat({}, "stop")]))
    assert reply.parts == (ToolCall(id="5", name="look", arguments="{}"),)


@pytest.mark.parametrize("output", [[], None])
async def test_what_only_the_deltas_say_is_the_answer(output: object) -> None:
    """Of a server that repeats it nowhere."""
    told = [
        {"type": "response.output_text.delta", "output_index": 0, "delta": piece}
        for piece in ("hel", "lo")
    ]
    item = {"type": "function_call", "call_id": "c", "name": "look", "arguments": ""}
    call = [
        {"type": "response.output_item.added", "output_index": 1, "item": item},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a"'},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": ":1}"},
    ]
    end = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    assert words(await read("responses", head() + write([*told, end]))) == "hello"
    reply = await read("responses", head() + write([*told, *call, end]))
    assert words(reply) == "hello"
    assert reply.parts[-1] == ToolCall(id="c", name="look", arguments='{"a":1}')


CALL: Json = {"type": "tool_use", "id": "same", "name": "look", "input": {}}
FUNCTION: Json = {"type": "function_call", "call_id": "same", "name": "look", "arguments": "{}"}
TWICE: dict[str, Json] = {
    "anthropic": {"type": "message", "content": [CALL, CALL], "stop_reason": "tool_use"},
    "responses": {"status": "completed", "output": [FUNCTION, FUNCTION]},
}


@pytest.mark.parametrize("wire", [*TWICE, "gemini"])
@pytest.mark.parametrize("given", ["same", None])
async def test_each_call_has_an_id_of_its_own(wire: str, given: str | None) -> None:
    if wire == "gemini":
        call = {"functionCall": {"id": given, "name": "look", "args": {}}}
        content = {"parts": [call, call], "role": "model"}
        body = write([{"candidates": [{"content": content, "finishReason": "STOP"}]}])
        reply = await read(wire, head() + body)
    else:
        text = json.dumps(TWICE[wire]).replace('"same"', json.dumps(given))
        reply = await read(wire, head("application/json") + text.encode())
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert len({call.id for call in calls}) == len(calls) == 2
    assert all(call.id for call in calls)


@pytest.mark.parametrize("numbers", [(0, 1, 2, 3, 4), (0,) * 5, (1, 1, 0, 1, 1), (5, 2, 9, 1, 7)])
@pytest.mark.parametrize("twice", [False, True])
async def test_blocks_are_read_in_their_order_whatever_their_numbers(
    numbers: tuple[int, ...], twice: bool
) -> None:
    """Of proxies that number all alike, or begin each block twice."""
    thought: Json = {"type": "thinking", "thinking": "", "signature": ""}
    blocks = [
        (thought, {"type": "signature_delta", "signature": "s1"}),
        (thought, {"type": "signature_delta", "signature": "s2"}),
        (BLOCK, {"type": "text_delta", "text": "hello"}),
        (CALL, {"type": "input_json_delta", "partial_json": '{"a":1}'}),
        (CALL | {"id": "other"}, {"type": "input_json_delta", "partial_json": '{"a":2}'}),
    ]
    lines: list[object] = [{"type": "message_start", "message": {"model": "m"}}]
    for index, (block, delta) in zip(numbers, blocks, strict=True):
        begun = {"type": "content_block_start", "index": index, "content_block": block}
        lines += [begun] * (2 if twice else 1)
        lines += [
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    lines += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}]
    reply = await read("anthropic", head() + write([*lines, {"type": "message_stop"}]))
    first, second, _, *calls = reply.parts
    assert words(reply) == "hello"
    assert [one.signature for one in (first, second) if isinstance(one, Thinking)] == ["s1", "s2"]
    made = [(one.id, one.arguments) for one in calls if isinstance(one, ToolCall)]
    assert made == [("same", '{"a":1}'), ("other", '{"a":2}')]


async def test_nothing_where_a_text_belongs_is_none() -> None:
    lines = [
        {"type": "message_start", "message": {"model": None}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": None, "signature": None},
        },
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "text", "text": None},
        },
        *events("anthropic")[2:],
    ]
    lines[3]["index"] = 1
    assert words(await read("anthropic", head() + write([*lines, "[DONE]"]))) == "hello"


FILTERED = {
    "chat": ("content_filter", "sensitive", "CONTENT_FILTER", "content_filter: SAFETY"),
    "anthropic": ("refusal", "sensitive", "content_filter"),
    "responses": ("content_filter", "CONTENT_FILTER", "safety"),
    "gemini": ("SAFETY", "PROHIBITED_CONTENT", "SPII"),
}


def call_and_filter(wire: str, said: str, reason: str, arguments: str) -> list[Json]:
    """The events of an answer with a call, of which its provider's filter took away the rest."""
    function = {"name": "look", "arguments": arguments}
    match wire:
        case "chat":
            call = {"index": 0, "id": "c", "function": function}
            return [chat({"content": said}), chat({"tool_calls": [call]}), chat({}, reason)]
        case "responses":
            text: Json = {"type": "message", "content": [{"type": "output_text", "text": said}]}
            made: Json = {"type": "function_call", "call_id": "c"} | function
            ended = {"status": "incomplete", "incomplete_details": {"reason": reason}}
            ended["output"] = [text, made] if said else [made]
            return [{"type": "response.incomplete", "response": ended}]
        case "anthropic":
            piece = {"type": "input_json_delta", "partial_json": arguments}
            begun = {"type": "content_block_start", "index": 1, "content_block": CALL}
            words = {"type": "text_delta", "text": said}
            return [
                {"type": "content_block_start", "index": 0, "content_block": BLOCK},
                {"type": "content_block_delta", "index": 0, "delta": words},
                begun,
                {"type": "content_block_delta", "index": 1, "delta": piece},
                {"type": "message_delta", "delta": {"stop_reason": reason}},
                {"type": "message_stop"},
            ]
    parts: list[Json] = [{"text": said}] if said else []
    parts.append({"functionCall": {"id": "c", "name": "look", "args": {"a": 1}}})
    return [
        {"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason}]}
    ]


@pytest.mark.parametrize(
    ("wire", "reason"), [(w, one) for w, all_ in FILTERED.items() for one in all_]
)
@pytest.mark.parametrize("said", ["", "hello"])
@pytest.mark.parametrize("arguments", ['{"a":1}', '{"a":', ""])
async def test_a_filtered_answer_makes_no_calls(
    wire: str, reason: str, said: str, arguments: str
) -> None:
    reply = await read(wire, head() + write(call_and_filter(wire, said, reason, arguments)))
    assert reply.finish == "refused"
    assert words(reply) == said
    assert not any(isinstance(part, ToolCall) for part in reply.parts)
