"""Reasoning between tags in an answer is no part of it, however its pieces are cut."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.messages import Message, Text, Thinking, user
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.openai_chat import ChatCompletionsReader
from agent_core.models.openai_chat import render_messages
from agent_core.models.port import (
    Delta,
    ModelReply,
    ModelRequest,
    Restarted,
    TextDelta,
    ThinkingDelta,
)
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


def read(pieces: list[str]) -> tuple[ModelReply, list[Delta]]:
    shown: list[Delta] = []
    reader = ChatCompletionsReader(REQUEST, "p", shown.append)
    for piece in pieces:
        reader.add(json.dumps({"choices": [{"delta": {"content": piece}}]}).encode())
    reader.add(b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}')
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


@pytest.mark.parametrize(("text", "thought", "words"), ANSWERS)
@given(cuts=st.lists(st.integers(1, 60), max_size=8))
@settings(max_examples=examples(50), deadline=None)
def test_what_is_thought_is_not_said(text: str, thought: str, words: str, cuts: list[int]) -> None:
    ends = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    reply, shown = read([text[a:b] for a, b in zip(ends, ends[1:], strict=False)])
    assert [part.text for part in reply.parts if isinstance(part, Text)] == [words]
    assert "".join(part.text for part in reply.parts if isinstance(part, Thinking)) == thought
    assert watch(shown) == words


@pytest.mark.parametrize("text", ["<think>hm", "<think>hm</think>\n ", "<think>"])
def test_thoughts_alone_are_no_answer(text: str) -> None:
    with pytest.raises(Broken):
        read([text])


def test_what_stood_in_the_answer_does_not_go_back_as_something_else() -> None:
    reply, _ = read(["<think>hm</think>Hi!"])
    request = ModelRequest(
        model="m",
        system="",
        messages=(user("hi"), Message(role="assistant", parts=reply.parts), user("and")),
    )
    assert render_messages(request, "p")[1] == {"role": "assistant", "content": "Hi!"}


@pytest.mark.parametrize("rest", ["<think>\n", "<think>b</think>\n", "\n<think>b", "```\n<think>"])
def test_time_grows_with_the_answer_alone(rest: str) -> None:
    begun = time.process_time()
    read(["<think>a</think>Hi.\n", rest * (400_000 // len(rest))])
    assert time.process_time() - begun < 1
