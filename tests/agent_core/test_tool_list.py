"""The list of tools that a prompt names: short lines, families of names folded."""

import pytest

from agent_core.profiles.built_in import PROFILES
from agent_core.tools.finding.tool_list import MAX_LINE, render_tool_list, summarize
from agent_core.tools.finding.toolsets import could_be_within


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("Run a command in a shell that stays: its folder stays too.", "Run a command in a shell"),
        ("Draw a chart (as PNG).", "Draw a chart"),
        (
            "Look at a picture of the workspace, and of the web",
            "Look at a picture of the workspace",
        ),
        ("Write a very long text about the things of the world", "Write a very long text about"),
        ("Run code: `a.b`", "Run code"),
        ("", ""),
    ],
)
def test_a_line_is_the_beginning_in_whole_words(description: str, line: str) -> None:
    assert summarize(description).startswith(line) and len(summarize(description)) <= MAX_LINE


def test_families_share_a_line_and_others_have_their_own() -> None:
    names = {
        "web_a": "x",
        "todo": "a list",
        "web_b": "y",
        "web_c": "",
        "web": "z",
        "app_a": "p",
        "app_b": "",
    }
    assert render_tool_list(names, found=False).splitlines()[1:] == [
        "- web_{a,b,c}",
        "- todo: a list",
        "- web: z",
        "- app_a: p",
        "- app_b",
    ]


def test_it_says_how_others_are_called() -> None:
    assert "call_tool; find_tools" in render_tool_list({"todo": ""}, found=True)
    assert "call_tool" not in render_tool_list({"todo": ""}, found=False)
    assert render_tool_list({}, found=True) == ""
    servers = ("notes", "crm")
    told = render_tool_list({"todo": "a list"}, found=True, servers=servers).splitlines()
    assert told[1:] == [
        "- todo: a list", "- notes__…: tools of the server notes", "- crm__…: tools of the server crm",
    ]  # fmt: skip
    short = render_tool_list({"todo": ""}, found=True, short=True, servers=servers)
    assert short.endswith(": todo, notes__…, crm__…")
    assert render_tool_list({}, found=False, servers=servers) == "", "nothing finds them there"


def test_a_server_is_named_where_some_tool_of_it_could_be_called() -> None:
    for patterns, named in (
        (("*",), True), (("read_file", "notes__*"), True), (("notes__add",), True), (("n*",), True),
        (("read_file",), False), (("other__*",), False), ((), False),
    ):  # fmt: skip
        assert could_be_within("notes__", (patterns,)) == named, patterns
    assert not could_be_within("notes__", (("*",), ("read_file",)))


def test_profiles_with_files_have_the_editor_at_hand() -> None:
    files = [one for one in PROFILES.values() if one.shows("write_file")]
    assert files and all(one.shows("str_replace_editor") for one in files)
