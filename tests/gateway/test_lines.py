"""The lines of an activity: what of a call, and of what it gave, is for people."""

import pytest

from agent_core.messages import ToolCall
from gateway.delivery.lines import begun, legible


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ('{"path": "."}', ""),
        ('{"path": ".", "pattern": "*.py"}', "*.py"),
        ('{"paths": ["a.csv", "b.csv"], "caption": "The **tables**."}', "a.csv, b.csv"),
        ('{"paths": [], "caption": "x"}', "x"),
        ('{"n": 3, "rows": [1, 2]}', ""),
        ('{"folder": " ", "paths": ["", "\\n"], "query": "q"}', "q"),
        ('{"command": "ls\\n-l"}', "ls ⏎ -l"),
        ("broken", "broken"),
        ('{"path": "' + "a" * 200 + '"}', "a" * 119 + "…"),
    ],
)
def test_a_call_in_one_line_says_what_it_is_about(arguments: str, summary: str) -> None:
    call = ToolCall(id="c1", name="any", arguments=arguments)
    assert begun(call).summary == summary


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("(no output)\n[exit code 0]", ""),
        (
            "Given to the person: nothing, said a command",
            "Given to the person: nothing, said a command",
        ),
        ("A table. Schema: {id: int}", "A table. Schema: {id: int}"),
        (
            'The arguments of send_file do not fit: paths: Field required. Schema: {"a":{"b":1}}',
            "The arguments of send_file do not fit: paths: Field required.",
        ),
        ("Schema: {} of old", "Schema: {} of old"),
        ("(no output)\n[exit code 1]", "(no output)\n[exit code 1]"),
    ],
)
def test_an_output_tells_people_nothing_that_is_meant_for_models(output: str, told: str) -> None:
    assert legible(output) == told


def test_what_was_given_stands_below() -> None:
    assert legible("Given to the person: table.csv (8 bytes).", gave=True) == ""
    assert legible("made it", gave=True) == "made it"
