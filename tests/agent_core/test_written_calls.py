"""Calls that a model wrote as text are made; all else that looks like one stays text."""

import json

import pytest

from agent_core.messages import Text, Thinking, ToolCall
from agent_core.models.port import ModelReply
from agent_core.orchestration.written_calls import MAX_CALLS, read_written_calls

SHOWN = ("look", "write_file").__contains__
CALL = {"name": "look", "arguments": {"a": 1}}
ONE = json.dumps(CALL)


def read(text: str, **more: object) -> ModelReply:
    reply = ModelReply(parts=(Text(text=text),), model="m", provider="p", **more)  # type: ignore[arg-type]
    return read_written_calls(reply, SHOWN, 7)


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
    ],
)
def test_calls_are_read(text: str, count: int) -> None:
    reply = read(text)
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert len(calls) == len(reply.parts) == count == len({call.id for call in calls})
    assert {(call.name, call.arguments) for call in calls} == {("look", '{"a":1}')}
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    "text",
    [
        "", "words", "{", "[]", "{}", "[1]", "null", "`look`",
        f"I would call {ONE}",
        f"{ONE}\nThat is how it is called.",
        f"```json\n{ONE}\n```\nas you see",
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
    assert read_written_calls(reply, SHOWN, 7).parts[0] == thought
    made = ModelReply(
        parts=(Text(text=ONE), ToolCall(id="c", name="look", arguments="{}")),
        model="m",
        provider="p",
    )
    assert read_written_calls(made, SHOWN, 7) is made
