"""When a loop goes in circles, and when it only looks so."""

import json

from agent_core.context.stuck import ERRORS, SAME_CALLS, SAME_RESULTS, Watch
from agent_core.messages import CommandResult, ToolCall, ToolResult


def call(name: str = "look", **arguments: object) -> ToolCall:
    return ToolCall(id="c", name=name, arguments=json.dumps(arguments))


def gave(content: str = "x", error: bool = False, denied: bool = False) -> ToolResult:
    return ToolResult(call_id="c", name="look", content=content, error=error, denied=denied)


def test_the_same_calls_again_and_again() -> None:
    watch = Watch()
    heard = [watch.note([call(a=1, b=2)], [gave(str(n))]) for n in range(30)]
    assert [n for n, state in enumerate(heard, 1) if state] == [3, 6, 12, 24]
    assert set(heard) == {"", "vary"} and SAME_CALLS == 3


def test_the_same_calls_that_give_the_same_end_it() -> None:
    watch = Watch()
    heard = [watch.note([call(a=1)], [gave()]) for _ in range(SAME_RESULTS)]
    assert heard.index("stuck") == SAME_RESULTS - 1
    assert watch.why == f"the same call {SAME_RESULTS} times, with the same result"
    watch = Watch()
    assert "stuck" not in [watch.note([call(a=n % 2)], [gave()]) for n in range(40)]


def test_arguments_in_another_order_are_the_same_and_a_change_begins_anew() -> None:
    watch = Watch()
    one, other = ToolCall(id="1", name="f", arguments='{"a":1,"b":2}'), call("f", b=2, a=1)
    assert [watch.note([c], [gave()]) for c in (one, other, one)][-1] == "vary"
    assert watch.note([call("f", a=9)], [gave()]) == ""


def test_what_is_looked_at_again_by_nature_is_no_circle() -> None:
    watch = Watch()
    assert {watch.note([], [gave()]) for _ in range(20)} == {""}


def test_the_same_words_beside_other_calls_are_no_circle() -> None:
    """Weak models begin each round with one sentence; words are not looked at."""
    watch = Watch()
    assert {watch.note([call(n=n)], [gave()]) for n in range(20)} == {""}


def ran(code: int, written: int = 10) -> ToolResult:
    end = CommandResult(exit_code=code, written=written)
    return ToolResult(call_id="c", name="run_command", content="…", command=end)


def test_commands_that_fail_are_failures() -> None:
    watch = Watch()
    tries = [watch.note([call(n=n)], [ran(2)]) for n in range(ERRORS)]
    assert tries == [""] * (ERRORS - 1) + ["stuck"]
    watch = Watch()
    found = {watch.note([call(command=f"grep -q {n} a")], [ran(1, 0)]) for n in range(20)}
    assert found == {""}, "nothing was found"
    watch = Watch()
    silent = [watch.note([call(command=f"make -s {n}")], [ran(1, 0)]) for n in range(ERRORS)]
    assert silent[-1] == "stuck"
    watch = Watch()
    assert {watch.note([call(n=n)], [ran(n % 2)]) for n in range(20)} == {""}


def test_errors_in_a_row_and_nothing_else() -> None:
    watch = Watch()
    wrong = [watch.note([call(n=n)], [gave("no", True)]) for n in range(ERRORS)]
    assert wrong == [""] * (ERRORS - 1) + ["stuck"]
    watch = Watch()
    for n in range(20):
        mixed = [gave("no", True), gave()] if n % 4 == 0 else [gave("no", True)]
        assert watch.note([call(n=n), call(m=n)], mixed) == ""
    watch = Watch()
    for n in range(20):
        assert watch.note([call(n=n)], [gave("Denied by Ann.", True, True)]) == "", "no failure"
