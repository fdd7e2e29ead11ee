"""Reasoning between tags in an answer is no part of it, however its pieces are cut."""

import json
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.messages import Message, Text, Thinking, user
from agent_core.models.answers.anthropic import AnthropicReader
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.openai_chat import ChatCompletionsReader
from agent_core.models.answers.openai_responses import ResponsesReader
from agent_core.models.answers.spoken import INLINE
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.port import (
    Delta,
    ModelReply,
    ModelRequest,
    Restarted,
    TextDelta,
    ThinkingDelta,
)
from agent_core.settings import Endpoint
from tests.fakes.model_server import ModelServer
from tests.sampling import examples

REQUEST = ModelRequest(model="m", system="", messages=(user("hi"),))
ANSWERS = [
    ("<think>\nhm\n</think>\n\nHi!", "\nhm\n", "Hi!"),
    ("\n <think>hm</think>Hi!", "hm", "Hi!"),
    ("<think>\n\n</think>\n\nHi!", "\n\n", "Hi!"),
    ("<thinking>a < b</thinking> Hi <b>!", "a < b", "Hi <b>!"),
    ("[THINK]hm[/THINK]Hi!", "hm", "Hi!"),
    ("The person greets.\n</think>\n\nHi!", "The person greets.", "Hi!"),
    ("</think>\nHi!", "", "Hi!"),
    ("Hi!", "", "Hi!"),
    ("<thin ice>", "", "<thin ice>"),
    ("<th", "", "<th"),
    ("Close it with </think> at the end.", "", "Close it with </think> at the end."),
    ("Write:\n<think>\nhm\n</think>\nSo.", "", "Write:\n<think>\nhm\n</think>\nSo."),
    ("<think>a</think><think>b</think>Hi!", "a\nb", "Hi!"),
    ("<think>a</think>\n<think>b\nc</think>\n\nHi!", "a\nb\nc", "Hi!"),
    ("<think>a</think>Hi.\n<think>b</think>\nSo.\n<think>c</think>", "a\nb\nc", "Hi.\nSo.\n"),
    ("<think>a</think>Write <think>b</think>!", "a", "Write <think>b</think>!"),
    ("<think>a</think>So:\n```\n<think>b</think>\n```", "a", "So:\n```\n<think>b</think>\n```"),
    ("<think>a</think>Hi.\n<think>b</think>\n <think>c</think>So.", "a\nb\nc", "Hi.\nSo."),
    ("<think>a</think>Hi.\n<think>b\n<think>c</think>So.", "a\nb\n<think>c", "Hi.\nSo."),
    ("<think>a</think>Hi.\n<think>b", "a", "Hi.\n<think>b"),
    ("<think>a</think>One\n</think>\ntwo", "a", "One\n</think>\ntwo"),
]  # fmt: skip


WIRES = ("chat", "responses", "responses with its items", "anthropic")
ITEM = "response.output_item.done"


def write(wire: str, pieces: list[str]) -> Iterator[dict[str, object]]:
    """The events of an answer in `pieces`."""
    if wire == "chat":
        for piece in pieces:
            yield {"choices": [{"delta": {"content": piece}}]}
        yield {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    elif wire == "anthropic":
        yield {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}
        for piece in pieces:
            yield {"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    else:
        for piece in pieces:
            yield {"type": "response.output_text.delta", "output_index": 0, "delta": piece}
        item = {"type": "message", "content": [{"type": "output_text", "text": "".join(pieces)}]}
        if "items" in wire:
            yield {"type": ITEM, "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {"status": "completed"}}


CLIENTS = {"chat": OpenAIChat, "responses": OpenAIResponses, "anthropic": AnthropicMessages}
READERS = {"chat": ChatCompletionsReader, "anthropic": AnthropicReader}


def read(pieces: list[str], wire: str = "chat") -> tuple[ModelReply, list[Delta]]:
    shown: list[Delta] = []
    reader = READERS.get(wire, ResponsesReader)(REQUEST, "p", shown.append)
    for event in write(wire, pieces):
        reader.add(json.dumps(event).encode())
    return reader.reply(), shown


def watch(shown: list[Delta]) -> str:
    """What a person sees of the answer at the end."""
    text = ""
    for delta in shown:
        match delta:
            case Restarted():
                text = ""
            case TextDelta():
                text += delta.text
            case ThinkingDelta():
                pass
    return text


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("text", "thought", "words"), ANSWERS)
@given(cuts=st.lists(st.integers(1, 60), max_size=8))
@settings(max_examples=examples(50), deadline=None)
def test_what_is_thought_is_not_said(
    wire: str, text: str, thought: str, words: str, cuts: list[int]
) -> None:
    ends = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    reply, shown = read([text[a:b] for a, b in zip(ends, ends[1:], strict=False)], wire)
    assert [part.text for part in reply.parts if isinstance(part, Text)] == [words]
    assert "".join(part.text for part in reply.parts if isinstance(part, Thinking)) == thought
    assert watch(shown) == words


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("text", ["<think>hm", "<think>hm</think>\n ", "<think>"])
def test_thoughts_alone_are_no_answer(text: str, wire: str) -> None:
    with pytest.raises(Broken):
        read([text], wire)


def say(index: int, text: str) -> list[dict[str, object]]:
    begun = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": text}
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        {"type": "content_block_delta", "index": index, "delta": delta},
    ]


def test_words_before_a_text_of_thoughts_are_shown_again() -> None:
    """A closing tag alone takes back the words of its own text only."""
    shown: list[Delta] = []
    reader = AnthropicReader(REQUEST, "p", shown.append)
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    events = [
        *say(0, "<think>a</think>First."),
        {"type": "content_block_start", "index": 1, "content_block": call},
        *say(2, "b\n</think>\nThen."),
        *say(3, "<think>c</think>"),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    for event in events:
        reader.add(json.dumps(event).encode())
    parts = [
        part.text if isinstance(part, Text | Thinking) else "call" for part in reader.reply().parts
    ]
    assert parts == ["a", "First.", "call", "b", "Then.", "c"]
    assert watch(shown) == "First.Then."


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
async def test_what_stood_in_the_answer_does_not_go_back_as_something_else(wire: str) -> None:
    reply, _ = read(["<think>hm</think>Hi!"], wire)
    request = ModelRequest(
        model="m",
        system="",
        messages=(user("hi"), Message(role="assistant", parts=reply.parts), user("and")),
    )
    server = ModelServer()
    base = await server.start() + ("" if wire == "anthropic" else "/v1")
    model = CLIENTS[wire](Endpoint(provider="p", api_key="k", base_url=base))
    try:
        await model.complete(request, lambda delta: None)
    finally:
        await model.close()
        await server.close()
    body = json.dumps(server.requests[0].body)
    assert "Hi!" in body and "hm" not in body and INLINE not in body


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("rest", ["<think>\n", "<think>b</think>\n", "\n<think>b", "```\n<think>"])
def test_time_grows_with_the_answer_alone(rest: str, wire: str) -> None:
    begun = time.process_time()
    read(["<think>a</think>Hi.\n", rest * (400_000 // len(rest))], wire)
    assert time.process_time() - begun < 1
