"""Definitions under which the operator's `allow` lets tools run unasked, drawn at random beside the
plain rule: the first one."""

import json
import random
from pathlib import Path

import pytest

from agent_core.mcp import vouching
from agent_core.mcp.settings import McpServer
from agent_core.mcp.vouching import Vouching
from agent_core.tools.finding.mcp_tools import Definition
from tests.sampling import dice

TOOLS = ("search_a", "search_b", "write", "list_resources")


def define(tool: str, said: int, *, ours: bool = False) -> Definition:
    about = "ours" if ours else f"Says {said}."
    return Definition(
        name=f"s__{tool}", server="s", tool=tool, description=about, parameters={}, ours=ours
    )


def draw(chance: random.Random) -> Definition:
    tool = chance.choice(TOOLS)
    ours = tool == "list_resources" and chance.random() < 0.5
    return define(tool, chance.randrange(4), ours=ours)


def make_server(*allow: str) -> McpServer:
    return McpServer(name="s", command="x", allow=allow)


@pytest.mark.parametrize("n", range(20))
def test_only_what_was_seen_first_runs_unasked(tmp_path: Path, n: int) -> None:
    """Also after restarts."""
    chance = dice("vouching", n)
    server, known = make_server("search_*", "list_*"), dict[str, str]()
    vouched = Vouching(tmp_path)
    for _ in range(60):
        one = draw(chance)
        if chance.random() < 0.5:
            vouched.meet(server, [one])
            known.setdefault(one.tool, one.description)
        else:
            vouched = Vouching(tmp_path)
            vouched.recall(server)
        one = draw(chance)
        trusted = one.ours or one.tool not in known or one.description == known[one.tool]
        assert vouched.is_vouched(server, one) is (trusted and one.tool != "write")


def test_taking_a_tool_out_of_allow_begins_anew(tmp_path: Path) -> None:
    first, second = define("search_a", 1), define("search_a", 2)
    server = make_server("*")
    vouched = Vouching(tmp_path)
    vouched.meet(server, [first, define("write", 1)])
    again = Vouching(tmp_path)
    again.recall(make_server("write"))
    again.meet(make_server("write"), [second])
    last = Vouching(tmp_path)
    last.recall(server)
    last.meet(server, [second])
    assert last.is_vouched(server, second) and not last.is_vouched(server, first)
    assert last.is_vouched(server, define("write", 1))
    assert not last.is_vouched(server, define("write", 2))


def test_a_flood_of_names_makes_room_for_no_other_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vouching, "MAX_VOUCHED", 5)
    server, vouched = make_server("*"), Vouching(tmp_path)
    vouched.meet(server, [define("search_a", 1)])
    vouched.meet(server, [define(f"t{n}", 1) for n in range(20)])
    assert len(json.loads((tmp_path / "s.allowed.json").read_bytes())) == 5
    assert vouched.is_vouched(server, define("search_a", 1))
    assert not vouched.is_vouched(server, define("search_a", 2))
    assert not vouched.is_vouched(server, define("t19", 1)), "no room: it is asked about"


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"write": 1}', b"\xff"])
def test_a_damaged_file_stops_nothing(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "s.allowed.json").write_bytes(damage)
    server, vouched = make_server("*"), Vouching(tmp_path)
    vouched.recall(server)
    vouched.meet(server, [define("write", 0)])
    assert vouched.is_vouched(server, define("write", 0))
    assert not vouched.is_vouched(server, define("write", 1))
