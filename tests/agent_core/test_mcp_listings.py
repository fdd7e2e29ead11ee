"""Servers whose lists hold what no protocol knows: an odd entry loses itself, and none of the rest."""

import json
import logging
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_core.mcp.listings import DEEP
from agent_core.mcp.resources import MAX_LISTED
from agent_core.mcp.servers import Servers
from agent_core.mcp.settings import McpServer
from agent_core.messages import Mention, ToolOutput
from agent_core.tools.contract import ToolContext
from tests.sampling import dice

RAW = Path(__file__).parents[1] / "fakes" / "mcp_raw.py"
SHAPE: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
NO_ENTRIES: tuple[Any, ...] = (None, 5, "words", [], {}, True, [{"name": "a"}], {"name": None})
ODD_TOOLS: tuple[dict[str, Any], ...] = (
    {"name": 5, "inputSchema": SHAPE},
    {"name": "odd"},
    {"name": "odd", "inputSchema": None},
    {"name": "odd", "inputSchema": "an object"},
    {"name": "odd", "inputSchema": {"type": "array"}},
    {"name": "odd", "inputSchema": {"type": "object", "properties": 5}},
    {"name": "odd", "inputSchema": {"type": "object", "required": "n"}},
    {"name": "odd", "inputSchema": SHAPE, "description": 5},
    {"name": "odd", "inputSchema": SHAPE, "outputSchema": "an object"},
    {"name": "odd", "inputSchema": SHAPE, "annotations": "harmless"},
    {"name": "odd", "inputSchema": SHAPE, "annotations": {"readOnlyHint": "perhaps"}},
    {"name": "odd", "inputSchema": SHAPE, "icons": [{"src": 5}]},
    {"name": "odd", "inputSchema": SHAPE, "execution": {"taskSupport": "sometimes"}},
)
ODD_PROMPTS: tuple[dict[str, Any], ...] = (
    {"name": "odd", "arguments": "name"},
    {"name": "odd", "arguments": [{"required": True}]},
    {"description": "It has no name."},
)
ODD_RESOURCES: tuple[dict[str, Any], ...] = (
    {"name": "odd"},
    {"name": "odd", "uri": 5},
    {"name": "odd", "uri": "docs://a", "size": "large"},
)
ERROR = {"error": {"code": -32603, "message": "not today"}}
BROKEN: tuple[dict[str, Any], ...] = (
    ERROR,
    {"error": {"code": -32601, "message": "unknown"}},
    {"resources": "none"},
    {"resources": None},
    {"items": []},
)


def nest(levels: int) -> dict[str, Any]:
    """A tool with a schema of so many levels."""
    schema: dict[str, Any] = {"type": "object", "default": 1}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"n": schema}}
    return {"name": "odd", "inputSchema": schema}


def mix(chance: random.Random, good: list[Any], odd: tuple[Any, ...]) -> list[Any]:
    """`good` in their order, with some of what is none of them in between."""
    mixed = list(good)
    for one in chance.choices((*odd, *NO_ENTRIES), k=chance.randint(1, 4)):
        mixed.insert(chance.randint(0, len(mixed)), one)
    return mixed


def make_lists(chance: random.Random) -> tuple[dict[str, Any], int, int]:
    """What a server answers, and how many of its tools and prompts are good."""
    tools = [{"name": f"tool_{n}", "inputSchema": SHAPE} for n in range(chance.randint(1, 4))]
    prompts = [{"name": f"prompt_{n}"} for n in range(chance.randint(0, 3))]
    resources = [{"name": "a", "uri": "docs://a"}]
    odd_tools = (*ODD_TOOLS, *(nest(chance.randint(50, 400)) for _ in range(4)))
    answers: dict[str, Any] = {"tools/list": {"tools": mix(chance, tools, odd_tools)}}
    answers["prompts/list"] = {"prompts": mix(chance, prompts, ODD_PROMPTS)}
    if chance.random() < 0.5:
        answers["resources/list"] = {"resources": mix(chance, resources, ODD_RESOURCES)}
    else:
        answers["resources/list"] = chance.choice(BROKEN)
    return answers, len(tools), len(prompts)


def raw_server(folder: Path, answers: dict[str, Any]) -> McpServer:
    (folder / "lines").write_text("")
    (folder / "tools").write_text(json.dumps(answers))
    args = [str(RAW), str(folder / "lines"), str(folder / "tools")]
    return McpServer(name="raw", command=sys.executable, args=args, timeout=30)


@pytest.mark.parametrize("count", [2, pytest.param(60, marks=pytest.mark.slow)])
async def test_an_odd_entry_of_a_list_loses_none_of_the_others(tmp_path: Path, count: int) -> None:
    chance = dice("odd lists", count)
    for _ in range(count):
        answers, tools, prompts = make_lists(chance)
        async with Servers([raw_server(tmp_path, answers)]) as servers:
            await servers.list_known(())
            (facts,) = await servers.describe()
        where = json.dumps(answers)
        assert facts.there and not facts.why, where
        assert [one for one in facts.tools if one.startswith("tool_")] == [
            f"tool_{n}" for n in range(tools)
        ], where
        assert [one.name for one in facts.prompts if one.name.startswith("prompt_")] == [
            f"prompt_{n}" for n in range(prompts)
        ], where
        assert facts.left_out, where
        has_resources = "error" not in answers["resources/list"] and isinstance(
            answers["resources/list"].get("resources"), list
        )
        assert ("read_resource" in facts.tools) is has_resources, where


async def test_only_what_is_nested_too_deeply_is_left_out(tmp_path: Path) -> None:
    """Also where all else of the list is valid."""
    tools = [nest(20) | {"name": "good"}, nest(60) | {"name": "deep"}]
    async with Servers([raw_server(tmp_path, {"tools/list": {"tools": tools}})]) as servers:
        await servers.list_known(())
        (facts,) = await servers.describe()
    assert facts.tools == ("good",) and facts.left_out == (("tool deep", DEEP),)


async def test_what_is_left_out_is_told_once_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = {"name": "good", "inputSchema": SHAPE}
    odd = {"name": "search\nall", "inputSchema": {"type": "array"}}
    at = raw_server(tmp_path, {"tools/list": {"tools": [odd, good, odd]}})
    with caplog.at_level(logging.WARNING, logger="turnkeeper.mcp"):
        async with Servers([at]) as servers:
            await servers.list_known(())
            servers.refresh()
            (facts,) = await servers.describe()
    assert facts.tools == ("good",)
    ((what, why),) = facts.left_out
    assert what == "tool search all" and "inputSchema" in why
    told = [one for one in caplog.records if one.getMessage() == "mcp_left_out"]
    assert len(told) == 1


SIGNS = "\x1b[2J\x1b]0;x\x07\x9b1m\u202egnp\u200b\u2028"


async def test_what_a_server_says_moves_no_terminal(tmp_path: Path) -> None:
    """`doctor` prints it."""
    odd = {"name": f"odd{SIGNS}", "inputSchema": {"type": "array", SIGNS: 1}}
    listed = raw_server(tmp_path, {"tools/list": {"tools": [odd]}})
    program = f"import sys; sys.stderr.write({f'no{SIGNS}'!r})"
    lost = McpServer(name="lost", command=sys.executable, args=("-c", program))
    async with Servers([listed, lost]) as servers:
        await servers.meet(20)
        first, second = await servers.describe()
    ((what, why),) = first.left_out
    assert what.startswith("tool odd") and second.why.startswith("no") and not second.there
    assert (what + why + second.why).isprintable()


COUNT = 130
"""Of each kind, on pages of a few."""


def make_pages(key: str, entries: list[dict[str, Any]], each: int) -> list[dict[str, Any]]:
    return [{key: entries[n : n + each]} for n in range(0, len(entries), each)]


@pytest.mark.parametrize("each", [7, 50, COUNT])
async def test_lists_are_read_to_their_last_page(tmp_path: Path, each: int) -> None:
    names = [f"one_{n}" for n in range(COUNT)]
    said = {"messages": [{"role": "user", "content": {"type": "text", "text": "Praise it."}}]}
    answers = {
        "tools/list": make_pages(
            "tools", [{"name": one, "inputSchema": SHAPE} for one in names], each
        ),
        "prompts/list": make_pages("prompts", [{"name": one} for one in names], each),
        "resources/list": make_pages(
            "resources", [{"name": one, "uri": f"docs://{one}"} for one in names], each
        ),
        "resources/templates/list": {"resourceTemplates": []},
        "prompts/get": said,
    }
    async with Servers([raw_server(tmp_path, answers)]) as servers:
        await servers.meet(30)
        (facts,) = await servers.describe()
        assert {*facts.tools} >= {*names}
        assert [one.name for one in facts.prompts] == names
        last = Mention(server="raw", prompt=names[-1])
        assert await servers.read(last, tmp_path, "k") == "Praise it."
        (listing,) = servers.find(["raw__list_resources"])
        tool = servers.make(listing)
        context = ToolContext(workspace=tmp_path, key="k", limit=60, output=lambda _: None)
        got = await tool.call(tool.arguments.model_validate({}), context)
        assert isinstance(got, ToolOutput) and f"(and {COUNT - MAX_LISTED} more)" in got.text


async def test_a_list_without_an_end_is_read_once(tmp_path: Path) -> None:
    listed = [{"name": "good", "inputSchema": SHAPE}]
    prompts = {"prompts": [{"name": "praise"}], "nextCursor": "more"}
    answers = {"tools/list": {"tools": listed, "nextCursor": "more"}, "prompts/list": prompts}
    async with Servers([raw_server(tmp_path, answers)]) as servers:
        await servers.meet(30)
        (facts,) = await servers.describe()
        assert facts.tools == ("good",) and len(facts.prompts) == 1
