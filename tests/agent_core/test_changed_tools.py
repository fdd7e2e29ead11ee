"""A definition that changed in any place is another one to whoever approved it, whichever way the
gateway hears of it; one that is only in another order is the same."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent_core.mcp.servers import Servers
from agent_core.mcp.settings import McpServer
from agent_core.tools.finding.schema import Given
from tests.attacks.mcp_grammar import PLACES, RICH, Definition, change_at, shuffle
from tests.sampling import dice, examples

RAW = Path(__file__).parents[1] / "fakes" / "mcp_raw.py"
NAME = "raw__weather"


class Listed:
    """A server whose list of tools a test writes."""

    def __init__(self, servers: Servers, place: Path) -> None:
        self._servers, self._place = servers, place

    async def show(self, *tools: Definition) -> str:
        """The version of the tool once the server shows these."""
        self._place.write_text(json.dumps(tools))
        await self._servers._connections["raw"].look()
        return self.version

    @property
    def version(self) -> str:
        return self._servers.find([NAME])[0].version


@pytest.fixture
async def listed(tmp_path: Path) -> AsyncIterator[Listed]:
    place = tmp_path / "tools.json"
    place.write_text(json.dumps([RICH]))
    (tmp_path / "lines").write_text("")
    args = (str(RAW), str(tmp_path / "lines"), str(place))
    server = McpServer(name="raw", command=sys.executable, args=args)
    async with Servers([server], tmp_path / "known") as servers:
        await servers.meet(20)
        yield Listed(servers, place)


async def test_what_changes_anywhere_is_another_tool(listed: Listed) -> None:
    before = listed.version
    for n, place in enumerate(PLACES):
        changed = change_at(dice("changed", n), place)
        assert await listed.show(changed) != before, (place, changed)
    assert await listed.show(RICH) == before, "changed back, it is the one that was approved"
    assert await listed.show() == before, "its name leads to no other meanwhile"


async def test_another_order_is_the_same_tool(listed: Listed) -> None:
    before = listed.version
    for n in range(examples(80)):
        chance = dice("order", n)
        beside = [{**RICH, "name": name} for name in ("Weather", "we\u0430ther", "weather\u200b")]
        tools = chance.sample([shuffle(chance, RICH), *beside], 4)
        assert await listed.show(*tools) == before, tools


def find_rules(servers: Servers) -> Iterator[str]:
    for one in servers.find([NAME]):
        rule = servers.make(one).rule
        assert rule is not None
        yield str(rule(Given.model_validate({"city": "Ulm"})))


async def test_a_rule_names_so_much_of_it_that_no_other_has_the_same(listed: Listed) -> None:
    """A server writes both definitions: of 12 digits it finds two that begin alike in a minute."""
    (rule,) = find_rules(listed._servers)
    assert listed.version[:32] in rule
