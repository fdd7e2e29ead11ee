"""Calls of servers' tools under way: what is shown of them, and how long they may take."""

import asyncio
from pathlib import Path

import pytest
from mcp_types import CallToolResult

from agent_core.errors import ToolFailed
from agent_core.mcp import calls
from agent_core.mcp.calls import RunningCall
from agent_core.tools.contract import ToolContext


class Signs:
    """A call's context that notes what is shown."""

    def __init__(self, folder: Path) -> None:
        self.shown: list[str] = []
        self.context = ToolContext(
            workspace=folder, key="k", limit=9, output=lambda _: None, progress=self._add
        )

    async def _add(self, n: int, text: str) -> None:
        assert n == len(self.shown) + 1
        self.shown.append(text)


def run(send: calls.Send, group: asyncio.TaskGroup, limit: float = 9.0) -> RunningCall:
    return RunningCall("s", send, limit, lambda work: group.create_task(work))


async def test_a_server_that_says_much_is_shown_seldom(tmp_path: Path) -> None:
    signs, done = Signs(tmp_path), CallToolResult(content=[])

    async def send(call: RunningCall) -> CallToolResult:
        for n in range(100):
            await call.note_progress(n, 100, "x\u202e\n" * 500)
        return done

    async with asyncio.TaskGroup() as group:
        assert await run(send, group).follow(signs.context, str) is done
    (sign,) = signs.shown
    assert sign.startswith("x x x") and sign.endswith(" (0/100)") and len(sign) < 220


async def test_even_a_slow_one_is_shown_no_more_than_so_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PACE", 0.0)
    signs, done = Signs(tmp_path), CallToolResult(content=[])

    async def send(call: RunningCall) -> CallToolResult:
        for n in range(100):
            await call.note_progress(n, None, None)
        return done

    async with asyncio.TaskGroup() as group:
        assert await run(send, group).follow(signs.context, str) is done
    assert signs.shown == [str(n) for n in range(calls.MAX_SIGNS)]


async def test_signs_give_a_server_no_more_time(tmp_path: Path) -> None:
    async def send(call: RunningCall) -> CallToolResult:
        while True:
            await call.note_progress(1, None, None)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        call = run(send, group, 0.05)
        with pytest.raises(ToolFailed, match="may have taken effect"):
            await call.follow(Signs(tmp_path).context, str)
        call.cancel()
