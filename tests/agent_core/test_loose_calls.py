"""Calls whose name or arguments are dressed up are understood; others stay as they came."""

import json

import pytest

from agent_core.messages import Text, ToolCall
from agent_core.models.port import ModelReply
from agent_core.tools.finding.loose_calls import tidy_calls

KNOWN = ("list_files", "Look").__contains__


def tidy(name: str, arguments: str = "{}") -> ToolCall:
    call = ToolCall(id="c", name=name, arguments=arguments)
    reply = ModelReply(parts=(Text(text="So."), call), model="m", provider="p")
    text, found = tidy_calls(reply, KNOWN).parts
    assert text == Text(text="So.") and isinstance(found, ToolCall) and found.id == "c"
    return found


@pytest.mark.parametrize(
    "name",
    [
        "list_files", " list_files ", "functions.list_files", "function.list_files",
        "tools.list_files", "default_api.list_files", "default_api:list_files", "List_Files",
        "list-files", "functions.list_files:0", "list_files<|channel|>commentary",
    ],
)  # fmt: skip
def test_names_in_the_dress_of_others_are_known(name: str) -> None:
    assert tidy(name).name == "list_files"


@pytest.mark.parametrize("name", ["", "look", "files", "list_files_now", "shell.list_files"])
def test_other_names_stay(name: str) -> None:
    assert tidy(name).name == name


ENDS = ["}", " }\n", "]}", "<|im_end|>", "</tool_call>", "\n```", "</s>", "<|call|><|end|>"]
"""Signs of templates that servers leave behind arguments."""
ODD = ['{"a": 1}{"a": 2}', '{"a": 1} and more', '{}{"a":', "{}[1]", "[1]}", '{"a": 1', "{'a': 1}"]
"""Arguments with more than one meaning, or without any."""


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (json.dumps('{"a":1}'), '{"a":1}'),
        ("null", "{}"),
        ("", "{}"),
        ('""', "{}"),
        (' {"a": 1}', ' {"a": 1}'),
        ('["a"]', '["a"]'),
        ('"a"', '"a"'),
        ('"{', '"{'),
        *[('{"a": 1}' + end, '{"a": 1}') for end in ENDS],
        ('{}{"a": 1}', '{"a": 1}'),
        ('{} \n{"a": 1}', '{"a": 1}'),
        ('{"a": 1}{"a": 1}', '{"a": 1}'),
        ("{}{}", "{}"),
        *[(odd, odd) for odd in ODD],
        (json.dumps("[" * 5_000), json.dumps("[" * 5_000)),
        (json.dumps('{"a":' * 5_000), json.dumps('{"a":' * 5_000)),
    ],
)
def test_arguments_are_objects_where_one_is_meant(arguments: str, meant: str) -> None:
    assert tidy("list_files", arguments).arguments == meant
