"""The lines of an activity: what of a call, and of what it gave, is for people."""

import pytest

from agent_core.journal import ToolFinished
from agent_core.messages import CommandResult, ToolCall, ToolOutput
from gateway.delivery.lines import end_of, make_line, output_of


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
    assert make_line(call).summary == summary


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (None, "done"),
        (CommandResult(exit_code=0), "done"),
        (CommandResult(handle="c1"), "done"),
        (CommandResult(exit_code=137), "failed"),
        (CommandResult(stopped=60), "failed"),
    ],
)
def test_a_command_that_ended_badly_has_no_tick(command: CommandResult | None, state: str) -> None:
    record = ToolFinished(
        key="k", call_id="c1", name="any", digest="d", content="x", command=command
    )
    assert end_of(record) == state


QUIET, LOST = CommandResult(exit_code=0), CommandResult(exit_code=1)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (ToolOutput(text="(no output)\n[exit code 0]", command=QUIET), ""),
        (ToolOutput(text="(no output)\n[exit code 1]", command=LOST), "(no output)\n[exit code 1]"),
        (ToolOutput(text="(no output)\n[exit code 0]"), "(no output)\n[exit code 0]"),
        (ToolOutput(text="Given to the person: table.csv (8 bytes).", shown=""), ""),
        (
            ToolOutput(text="It does not fit. Schema: {}", shown="It does not fit."),
            "It does not fit.",
        ),
        (ToolOutput(text="A table. Schema: {id: int}"), "A table. Schema: {id: int}"),
    ],
)
def test_an_output_tells_people_nothing_that_is_meant_for_models(
    output: ToolOutput, told: str
) -> None:
    record = ToolFinished(
        key="k", call_id="c", name="any", digest="d", content=output.text, command=output.command,
        shown=output.shown,
    )  # fmt: skip
    assert output_of(record, "en") == told
