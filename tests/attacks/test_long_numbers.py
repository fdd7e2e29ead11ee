"""Numbers of thousands of digits, which Python refuses to convert: whoever writes them is told, or
gets what any wrong number gets."""

import pytest

from agent_core.mcp.form_fields import read_form, read_value
from agent_core.messages import ToolCall
from agent_core.models.port import ModelReply
from agent_core.orchestration.cut_answers import drop_cut_call
from agent_core.text import MAX_DIGITS, parse_number
from cron.schedule import ScheduleError, read_schedule
from gateway.features.plans.commands import read
from tests.fakes.model_server import Say
from tests.fakes.odd_json import LONG_NUMBER as LONG
from tests.sampling import take
from tests.stories.jobs_rig import make
from tests.stories.rig import ADMIN, Rig

PLACES = ("{}", "* {}", "add every {}m", "add at {}", "budget {}", "delete {}", "drop {}", "edit {} x=1",
          "forget {}", "history {}", "insert {} x", "move 1 {}", "pause {}", "resume {}", "run {}",
          "skip {}", "turns {}")  # fmt: skip
QUICK, MANY = 30, 1_000
FIELDS = ("{} * * * *", "*/{} * * * *", "0 1-{} * * *", "0 9 {} * *", "0 9 * {} *", "0 9 * * 1#{}",
          "0 9 */{} * *", "{} 0 9 * * *", "every {}m", "every {} days", "in {} minutes", "at {}:00",
          "at {}-01-01", "tomorrow at {}", "on the {}th at 9")  # fmt: skip


def write_lines(rig: Rig) -> list[str]:
    names = sorted({*rig.host.features.commands} - {"new", "stop"})
    return [f"/{name} {place.format(LONG)}" for name in names for place in PLACES]


@pytest.mark.parametrize("count", [QUICK, pytest.param(MANY, marks=pytest.mark.slow)])
async def test_no_command_fails_by_such_a_number(rig: Rig, count: int) -> None:
    """The rig tells of each one that did."""
    await rig.start()
    await make(rig)
    for line in take(write_lines(rig), count, "commands"):
        rig.telegram.say(ADMIN, line)
    rig.model.script(Say("the last one"))
    rig.telegram.say(ADMIN, "go on")
    await rig.shows("the last one", ADMIN)
    await rig.quiet()


@pytest.mark.parametrize("field", FIELDS)
def test_such_a_schedule_is_refused(field: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        read_schedule(field.format(LONG), "UTC")
    assert len(str(refused.value)) < 500


def test_such_a_step_is_none() -> None:
    for words in (["done", LONG], ["move", "1", LONG], ["insert", LONG, "x"]):
        assert read(words, ()) is None


def test_a_call_with_such_a_number_is_whole() -> None:
    call = ToolCall(id="1", name="look", arguments=f'{{"a": {LONG}}}')
    reply = ModelReply(parts=(call,), model="m", provider="p", finish="tool_calls")
    assert drop_cut_call(reply) is reply


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_form_takes_no_such_number(kind: str, digits: int) -> None:
    (field,) = read_form({"type": "object", "properties": {"a": {"type": kind}}})
    assert read_value(field, "9" * digits) is None


def test_a_number_has_so_many_digits() -> None:
    most = "9" * MAX_DIGITS
    assert parse_number(most) == int(most)
    assert [parse_number(text) for text in (f"{most}9", LONG, "", "-1", "²", "1.0", " 1")] == [
        None
    ] * 7
