"""Shows that a call to be approved is shown as it will run, with nothing hidden."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.calls import HIDDEN, format_arguments, visible


def test_a_command_alone_is_shown_bare() -> None:
    assert format_arguments('{"command": "cd a &&\\n  make \\"b\\""}') == 'cd a &&\n  make "b"'


def test_code_stands_below_what_else_there_is() -> None:
    code = '{"language":"python","code":"for a in b:\\n    print(a)\\n"}'
    assert format_arguments(code) == '{"language":"python"}\nfor a in b:\n    print(a)'
    assert format_arguments('{"code":"  a = 1"}') == "  a = 1"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"code":"a","l":1,"l":2}', '{\n  "code": "a",\n  "l": 1,\n  "l": 2\n}'),
        ('{"code":"a\\u001bb"}', '{\n  "code": "a\\u001bb"\n}'),
        ('{"code":" "}', '{\n  "code": " "\n}'),
        ('{"command":"ls","timeout":1.0}', '{\n  "command": "ls",\n  "timeout": 1.0\n}'),
        ('{"command":["ls"]}', '{\n  "command": [\n    "ls"\n  ]\n}'),
        ('{"command":"ls","command":"rm"}', '{\n  "command": "ls",\n  "command": "rm"\n}'),
        ('{"command":" ls"}', '{\n  "command": " ls"\n}'),
        ('{"command":"a\\u001b[2Kb"}', '{\n  "command": "a\\u001b[2Kb"\n}'),
        ('{"command":"a\u202eb"}', '{\n  "command": "a\\u202eb"\n}'),
        ('{"path":"\U000e0041"}', '{\n  "path": "\\udb40\\udc41"\n}'),
        ('{"command":"ls\u3164 a"}', '{\n  "command": "ls\\u3164 a"\n}'),
        ('{"command":"ls\U000e0101"}', '{\n  "command": "ls\\udb40\\udd01"\n}'),
        ("{}", ""),
        ("no JSON\u200b ", "no JSON\\u200b"),
    ],
    ids=[
        "code, twice",
        "code, a control",
        "no code",
        "more",
        "a list",
        "twice",
        "a blank",
        "a control",
        "turned",
        "a tag",
        "a filler",
        "a variation",
        "nothing",
        "broken",
    ],
)
def test_all_else_is_shown_as_json(arguments: str, shown: str) -> None:
    assert format_arguments(arguments) == shown


@given(st.sampled_from(["command", "path"]), st.text())
def test_what_is_shown_says_exactly_what_runs(name: str, text: str) -> None:
    shown = format_arguments(json.dumps({name: text}, ensure_ascii=False))
    assert visible(shown) == shown and not set(map(ord, shown)) & set(HIDDEN)
    bare = name == "command" and shown == text
    assert bare or json.loads(shown) == {name: text}


def test_many_and_deep_arguments_are_laid_out_quickly() -> None:
    many = msgspec.json.encode({f"key{n}": n for n in range(30_000)} | {"code": "x"}).decode()
    deep = '{"code": "x", "a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    for arguments in (many, many.replace('"code"', '"command"'), deep):
        began = time.process_time()
        assert format_arguments(arguments)
        assert time.process_time() - began < 2
