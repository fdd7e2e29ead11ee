"""The tools that a request describes, those that its prompt names, and how each is called."""

import json
import re

import pytest

from agent_core.tools.finding.tool_list import MAX_LINE
from gateway.wiring.agent_default import TurnkeeperAgent
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.stories.mcp_rig import find, note, stdio, through
from tests.stories.rig import PERSON, Rig

MAX_HELLO = 10_000
"""Bytes of the whole request, as it goes over the wire."""


def toolbox_names(rig: Rig) -> tuple[str, ...]:
    agent = rig.host.services.agent
    assert isinstance(agent, TurnkeeperAgent)
    return agent._toolbox.names


def shown(body: Json) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


def listed(system: str) -> dict[str, str]:
    """The names in the prompt's list, unfolded, with their lines."""
    found = {}
    for line in system.partition("More tools, ")[2].partition("\n\n")[0].splitlines()[1:]:
        name, _, about = line.removeprefix("- ").partition(": ")
        first, brace, rest = name.partition("{")
        for end in rest.removesuffix("}").split(",") if brace else ("",):
            found[first + end] = about
    return found


async def hello(rig: Rig) -> Json:
    rig.telegram.say(PERSON, "hello")
    await rig.until(lambda: rig.model.requests)
    await rig.quiet()
    body: Json = rig.model.requests[-1].body
    return body


@pytest.mark.pick("hello in a tier", 2)
@pytest.mark.parametrize(
    "tier",
    [
        "unsafe-subprocess",
        "monty",
        pytest.param("bwrap", marks=NEEDS_BWRAP),
        pytest.param("landlock", marks=NEEDS_LANDLOCK),
    ],
)
async def test_hello_names_every_tool_and_stays_small(rig: Rig, tier: str) -> None:
    await rig.start(SANDBOX_PROVIDER=tier)
    body = await hello(rig)
    assert len(rig.model.requests[-1].raw) <= MAX_HELLO
    names = listed(rig.sent(role="system")[0])
    assert shown(body) | names.keys() == set(toolbox_names(rig)) and len(names) > 20
    assert shown(body).isdisjoint(names), "nothing is named twice"
    assert "str_replace_editor" in shown(body)
    assert all(len(line) <= MAX_LINE for line in names.values())


async def test_a_set_of_tools_names_no_others(rig: Rig) -> None:
    sets = {"few": ["read_file", "bash", "browser_*"]}
    await rig.start(TOOLSETS=json.dumps(sets), TOOLSETS_FOR=json.dumps({"telegram": "few"}))
    body = await hello(rig)
    names = listed(rig.sent(role="system")[0])
    assert shown(body) == {"read_file"} and "call_tool" not in rig.sent(role="system")[0]
    assert {name.partition("_")[0] for name in names} == {"bash", "browser"}


async def test_a_named_tool_is_called_without_a_search(rig: Rig) -> None:
    await rig.start()
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "a.txt").write_text("kept")
    rig.model.script(
        Call("sandbox_file", '{"action": "read", "path": "a.txt"}'),
        through("sandbox_file", action="read", path="a.txt"), through("sandbox_file", action="re"),
        Say("done"),
    )  # fmt: skip
    rig.telegram.say(PERSON, "hello")
    await rig.shows("done")
    direct, through_call, wrong = rig.seen(role="tool")
    assert "kept" in direct and direct == through_call
    assert "do not fit" in wrong and "Schema" in wrong, "whoever guesses is told how"
    await rig.quiet()


async def test_find_tools_says_what_there_is(rig: Rig) -> None:
    await rig.start()
    rig.model.script(Call("find_tools"), Say("Those are all."))
    rig.telegram.say(PERSON, "hello")
    await rig.shows("Those are all.")  # the list of tools is shown before
    (told,) = rig.seen(role="tool")
    assert told.startswith("Other tools:") and "bash: Run a command in a shell that stays" in told
    known = set(re.findall(r"^(\w+):", told, re.MULTILINE))
    hidden = set(toolbox_names(rig)) - shown(rig.model.requests[0].body)
    assert hidden == known
    await rig.quiet()


async def test_a_servers_tool_is_called_by_its_name_and_the_server_started_for_it(
    rig: Rig,
) -> None:
    await rig.start(MCP_SERVERS=stdio(rig))
    rig.model.script(Call("notes__publish", '{"title": "Hi"}'), Say("done"))
    rig.telegram.say(PERSON, "publish it")
    rig.press(await rig.card(), "Approve")
    await rig.shows("done")
    assert "published Hi" in rig.seen(role="tool")[-1]
    assert note(rig).read_text() == "publish Hi\n"
    await rig.quiet()


async def test_one_that_its_server_has_not_is_refused(rig: Rig) -> None:
    await rig.start(MCP_SERVERS=stdio(rig))
    rig.model.script(Call("notes__nothing"), find("publish"), Say("done"))
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("done")
    refused, found = rig.seen(role="tool")
    assert "There is no tool 'notes__nothing'" in refused and "notes__publish" in found
    await rig.quiet()
