"""Calls that a model wrote as text are made; all else that looks like one stays text."""

import json

import pytest

from agent_core.messages import Message, Text, Thinking, ToolCall, user
from agent_core.models.port import ModelReply
from agent_core.orchestration.written_calls import MAX_CALLS, read_written_calls
from agent_core.tools.files import file_tools
from agent_core.tools.toolbox import Toolbox

SHOWN = ("look", "write_file").__contains__
CALL = {"name": "look", "arguments": {"a": 1}}
ONE = json.dumps(CALL)
THREAD = (user("look"),) * 7


XML = "<function=look>\n<parameter=a>\n1\n</parameter>\n</function>"


def read(text: str, **more: object) -> ModelReply:
    reply = ModelReply(parts=(Text(text=text),), model="m", provider="p", **more)  # type: ignore[arg-type]
    return read_written_calls(reply, SHOWN, THREAD)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (ONE, 1),
        (f"  {ONE}\n", 1),
        (f"```json\n{ONE}\n```", 1),
        (f"```\n{ONE}\n```", 1),
        (f"<tool_call>\n{ONE}\n</tool_call>", 1),
        (f"<tool_call>{ONE}</tool_call>\n<tool_call>{ONE}</tool_call>", 2),
        (f"[{ONE}, {ONE}]", 2),
        (json.dumps({"name": "look", "parameters": {"a": 1}}), 1),
        (json.dumps({"type": "function", "id": "x", **CALL}), 1),
        (json.dumps({"type": "function", "function": CALL}), 1),
        (json.dumps({"name": "look", "arguments": json.dumps({"a": 1})}), 1),
        (f"[TOOL_CALLS][{ONE}]", 1),
        (f"<|python_tag|>{ONE}", 1),
        (XML, 1),
        (f"<tool_call>\n{XML}\n</tool_call>", 1),
        (f"{XML}\n{XML}", 2),
    ],
)
def test_calls_are_read(text: str, count: int) -> None:
    reply = read(text)
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert len(calls) == len(reply.parts) == count == len({call.id for call in calls})
    assert {(call.name, call.arguments) for call in calls} == {("look", '{"a":1}')}
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    "calls",
    [
        f"<tool_call>\n{ONE}\n</tool_call>",
        f"[TOOL_CALLS][{ONE}]",
        f"<|python_tag|>{ONE}",
        XML,
        f"```json\n{ONE}\n```",
        f"```tool_code\n{ONE}```",
    ],
)
def test_what_is_said_before_a_marked_call_stays_beside_it(calls: str) -> None:
    reply = read(f"I will look.\n\n{calls}\n")
    said, call = reply.parts
    assert said == Text(text="I will look.")
    assert isinstance(call, ToolCall) and (call.name, call.arguments) == ("look", '{"a":1}')


def test_who_calls_by_itself_shows_examples_in_fences() -> None:
    text = f"So one calls it:\n```json\n{ONE}\n```"
    reply = ModelReply(parts=(Text(text=text),), model="m", provider="p")
    native = Message(role="assistant", parts=(ToolCall(id="c1", name="look", arguments="{}"),))
    assert read_written_calls(reply, SHOWN, (*THREAD, native)) is reply
    made = read_written_calls(reply, SHOWN, THREAD)
    written = Message(role="assistant", parts=made.parts)
    again = read_written_calls(reply, SHOWN, (*THREAD, written))
    assert len(again.parts) == len(made.parts) == 2 and again.parts[1] != made.parts[1]


def test_texts_stay_texts() -> None:
    box = Toolbox(file_tools())
    content = '{"editor.formatOnSave": true}'
    given = f"<parameter=path>7</parameter><parameter=content>\n{content}\n</parameter>"
    more = "<parameter=other>[1]</parameter><parameter=third>a b\n\nc</parameter>"
    text = Text(text=f"<function=write_file>{given}{more}</function>")
    reply = ModelReply(parts=(text,), model="m", provider="p")
    (call,) = read_written_calls(reply, SHOWN, THREAD, box.takes_text).parts
    assert isinstance(call, ToolCall)
    told = {"path": "7", "content": content, "other": [1], "third": "a b\n\nc"}
    assert json.loads(call.arguments) == told


@pytest.mark.parametrize(
    "text",
    [
        "", "words", "{", "[]", "{}", "[1]", "null", "`look`",
        f"I would call {ONE}",
        f"{ONE}\nThat is how it is called.",
        f"```json\n{ONE}\n```\nas you see",
        f"Look:\n```json\n{ONE}\n```\nas you see",
        f"{'Agents call tools by JSON. ' * 20}\n```json\n{ONE}\n```",
        f"Write <tool_call>{ONE}</tool_call> and read on.",
        "Behind <|python_tag|> stands a call.",
        f"<tool_call>{ONE}</tool_call><tool_call>no</tool_call>",
        "```json\n" * 3_000,
        "<tool_call>" * 1_500,
        "<function=a>" * 1_500,
        "<function=a><parameter=b>" * 700,
        json.dumps({"name": "delete_all", "arguments": {}}),
        json.dumps({"name": "look"}),
        json.dumps({"name": "look", "arguments": "a"}),
        json.dumps({"name": "look", "price": 1, "arguments": {}}),
        json.dumps([CALL] * (MAX_CALLS + 1)),
        "[" * 20_000,
        '{"name": "look", "arguments": ' + '{"a":' * 5_000,
    ],
)  # fmt: skip
def test_what_is_none_stays(text: str) -> None:
    assert read(text).parts == (Text(text=text),)


@pytest.mark.parametrize("finish", ["length", "refused", "tool_calls"])
def test_only_a_whole_answer_counts(finish: str) -> None:
    assert read(ONE, finish=finish).parts == (Text(text=ONE),)


def test_thoughts_stay_and_real_calls_count() -> None:
    thought = Thinking(text="hm", provider="p")
    reply = ModelReply(parts=(thought, Text(text=ONE)), model="m", provider="p")
    assert read_written_calls(reply, SHOWN, THREAD).parts[0] == thought
    made = ModelReply(
        parts=(Text(text=ONE), ToolCall(id="c", name="look", arguments="{}")),
        model="m",
        provider="p",
    )
    assert read_written_calls(made, SHOWN, THREAD) is made
