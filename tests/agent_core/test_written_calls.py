"""Calls that a model wrote as text are made; all else that looks like one stays text."""

import itertools
import json
import re
import time

import pytest

from agent_core.messages import Message, Text, Thinking, ToolCall, user
from agent_core.models.port import ModelReply
from agent_core.orchestration.call_syntax import MAX_CALLS, MAX_PLAIN, find_calls
from agent_core.orchestration.cut_answers import NO_WORDS, drop_cut_call
from agent_core.orchestration.written_calls import read_written_calls
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


ARGUMENTS = json.dumps({"a": 1})
BEGUN, SEP, ENDED = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
TEMPLATES = {
    "hermes": f"<tool_call>\n{ONE}\n</tool_call>",
    "nemotron": f"<TOOLCALL>[{ONE}]</TOOLCALL>",
    "meta": f"<function=look>{ARGUMENTS}</function>",
    "meta tag": f'<|python_tag|>{{"type": "function", "name": "look", "parameters": {ARGUMENTS}}}',
    "meta python": "<|python_tag|>look.call(a=1)",
    "mistral": f"[TOOL_CALLS] [{ONE}]",
    "mistral 11": f"[TOOL_CALLS]look[ARGS]{ARGUMENTS}",
    "mistral 11 with ids": f"[TOOL_CALLS]look[CALL_ID]abcdefghi[ARGS]{ARGUMENTS}",
    "qwen": f"<tool_call>\n{XML}\n</tool_call>",
    "qwen without a beginning": f"{XML}\n</tool_call>",
    "qwen with a parameter open": f"<tool_call>\n{XML.replace('</parameter>', '')}\n</tool_call>",
    "glm": "<tool_call>look\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>look:0<|tool_call_argument_begin|>"
    f"{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    "deepseek": f"<｜tool▁calls▁begin｜>{BEGUN}function{SEP}look\n```json\n{ARGUMENTS}\n```{ENDED}"
    "<｜tool▁calls▁end｜>",
    "deepseek 3.1": f"<｜tool▁calls▁begin｜>{BEGUN}look{SEP}{ARGUMENTS}{ENDED}<｜tool▁calls▁end｜>",
    "deepseek 3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n<｜DSML｜parameter name="a" '
    'string="false">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "minimax": '<minimax:tool_call>\n<invoke name="look">\n<parameter name="a">1</parameter>\n'
    "</invoke>\n</minimax:tool_call>",
    "granite": f"<|tool_call|>[{ONE}]",
    "cohere": f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "look", "parameters": '
    f"{ARGUMENTS}}}]<|END_ACTION|>",
    "harmony": "<|channel|>commentary to=functions.look <|constrain|>json<|message|>"
    f"{ARGUMENTS}<|call|>",
}
CLOSED = re.compile(r"(?:</tool_call>|</function>|</TOOLCALL>|<[|｜][^<>]*[|｜]>|```|\s)+\Z")


@pytest.mark.parametrize("said", ["", "I will look."])
@pytest.mark.parametrize("end", ["", "\n", "</s>", "<|im_end|>", "<|eot_id|>", "open"])
@pytest.mark.parametrize("form", TEMPLATES)
def test_every_template_is_read(form: str, end: str, said: str) -> None:
    """With what servers leave behind it, and without its own end, which many take for theirs."""
    text = TEMPLATES[form]
    body = text + end
    if end == "open":
        body = text if "open" in form else CLOSED.sub("", text)
    reply = read(f"{said}\n\n{body}")
    *before, call = reply.parts
    assert before == ([Text(text=said)] if said else [])
    assert isinstance(call, ToolCall)
    assert (call.name.rpartition(".")[2].partition(":")[0], call.arguments) == ("look", '{"a":1}')


@pytest.mark.parametrize("form", TEMPLATES)
def test_templates_are_no_calls_within_words(form: str) -> None:
    text = TEMPLATES[form]
    for whole in (f"Write {text} and read on.", f"So:\n```\n{text}\n```", f"`{text}` calls."):
        assert read(whole).parts == (Text(text=whole),)


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("form", sorted(TEMPLATES.keys() - {"meta python"}))
def test_a_call_that_is_cut_is_not_made_and_not_shown(form: str, finish: str) -> None:
    text = '"many words"' if '"a": 1' in TEMPLATES[form] else "many words"
    long = TEMPLATES[form].replace("1", text)
    for at in ("many", "words"):
        cut = long[: long.index(at) + 3]
        reply = drop_cut_call(read(f"I look.\n{cut}", finish=finish))
        assert reply.cut_call.rpartition(".")[2].partition(":")[0] == "look"
        assert reply.parts == (Text(text="I look."),)
        assert drop_cut_call(read(cut, finish=finish)).parts == (Text(text=NO_WORDS),)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n{'name': 'look', 'arguments': {'a': 1}}\n</tool_call>",
        f"<tool_call>\n{ONE[:-1]}\n</tool_call>",
        f"[TOOL_CALLS] [{ONE[:-1]}]",
        "<function=look>{'a': 1}</function>",
        "[TOOL_CALLS]look[ARGS]{'a': 1}",
        f"<tool_call>{ONE.replace('look', 'see_it')}</tool_call>",
    ],
)
def test_a_marked_call_that_cannot_be_made_is_a_call(text: str) -> None:
    """The model is told what is wrong; people do not see it. One that calls by itself meant it as
    an example."""
    (call,) = read(text).parts
    assert isinstance(call, ToolCall) and call.name in ("look", "see_it")
    native = Message(role="assistant", parts=(ToolCall(id="c1", name="look", arguments="{}"),))
    reply = ModelReply(parts=(Text(text=text),), model="m", provider="p")
    again = read_written_calls(reply, SHOWN, (*THREAD, native))
    assert (again is reply) == (call.name == "see_it")


@pytest.mark.parametrize(
    "text",
    [
        "look(a=1)",
        "[look(a=1)]",
        "```tool_code\nlook(a=1)\n```",
        json.dumps({"tool_calls": [{"id": "x", "type": "function", "function": CALL}]}),
        json.dumps({"tool": "look", "args": {"a": 1}}),
        json.dumps({"action": "look", "action_input": {"a": 1}}),
        json.dumps({"function": "look", "arguments": {"a": 1}}),
        f"{ONE}\n{ONE}",
        f"{ONE}; {ONE}",
        f"<tool_call>{ONE.replace('look', 'functions.look')}</tool_call>",
        ONE.replace("look", "Look"),
    ],
)
def test_calls_without_a_template_are_read(text: str) -> None:
    calls = [part for part in read(text).parts if isinstance(part, ToolCall)]
    assert calls and {one.arguments for one in calls} == {'{"a":1}'}
    assert {one.name.rpartition(".")[2].lower() for one in calls} == {"look"}


def test_long_calls_and_line_breaks_in_texts_are_read() -> None:
    content = "a line of it\n" * MAX_PLAIN
    text = (
        f'<tool_call>{{"name": "write_file", "arguments": {{"content": "{content}"}}}}</tool_call>'
    )
    (call,) = read(text).parts
    assert isinstance(call, ToolCall) and json.loads(call.arguments) == {"content": content}
    (empty,) = read('<tool_call>{"name": "look"}</tool_call>').parts
    assert isinstance(empty, ToolCall) and empty.arguments == "{}"


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
        "<tool_call>" + "a " * 9_000,
        "<tool_call>" + "a" * 19_000,
        "<tool_call>a" + " " * 19_000,
        "<｜tool▁calls▁begin｜>" * 900,
        "look(look(a=1))", "look(1)", "look(a=b)", "look it up (a=1)", "-" * 19_000 + "look(",
        "look(a=" + "(" * 19_000, "look(a=" + "-" * 19_000 + "1)",
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


SIGNS = ["<|a|>", " ", "</s>", "<tool_call>", "<function=a>", "<parameter=a>", "f(a=", "```\n", "{"]


@pytest.mark.parametrize("mark", ["", "<tool_call>", "<|python_tag|>", "<function=a>"])
def test_time_grows_with_the_text_alone(mark: str) -> None:
    for one, other in itertools.product(SIGNS, SIGNS):
        count = 100_000 // len(one + other)
        begun = time.process_time()
        find_calls(f"{mark}{(one + other) * count}"[: MAX_PLAIN if not mark else None])
        assert time.process_time() - begun < 1, (one, other)


def test_python_warns_of_nothing_that_a_model_wrote() -> None:
    for text in (r'[f(a="\d")]', "f(a=[1if 1else 2])"):
        find_calls(text)
    found = find_calls(r'[f(a="\d")]<|eom_id|>')
    assert found is not None and found.calls[0].arguments == {"a": r"\d"}
