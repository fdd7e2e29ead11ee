"""What E2B holds of a workspace that is gone is ended, by its real SDK beside its API on loopback."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.sandboxes.e2b import tier as e2b_tier
from agent_core.sandboxes.e2b.client import E2BClient
from agent_core.sandboxes.e2b.erasing import BoxEraser
from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.e2b.state import BoxState, store_state
from agent_core.sandboxes.e2b.tier import E2BTier
from agent_core.sandboxes.pool import SandboxPool
from tests.fakes.e2b_server import KEY, E2BServer, serve_e2b


@pytest.fixture
async def e2b(tmp_path: Path) -> AsyncIterator[E2BServer]:
    async with serve_e2b(tmp_path / "e2b") as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def access(e2b: E2BServer, key: str = KEY) -> E2BAccess:
    return E2BAccess(api_key=key, api_url=e2b.url, sandbox_url=e2b.url)


async def begin(e2b: E2BServer, place: Path) -> None:
    """A paused machine and a snapshot of it, known by the workspace's folder."""
    client = E2BClient(access(e2b))
    box = await client.create({})
    made = await box.create_snapshot()
    await client.pause(box.sandbox_id)
    store_state(place, BoxState(box=box.sandbox_id, snapshot=made.snapshot_id, calls=("make",)))


async def erase(eraser: BoxEraser, what: str | None) -> None:
    assert what is not None
    await asyncio.to_thread(eraser.erase, "ws", what)


async def test_a_paused_machine_and_its_snapshot_are_ended(e2b: E2BServer, place: Path) -> None:
    await begin(e2b, place)
    eraser = BoxEraser(access(e2b))
    what = eraser.find(place)
    assert what is not None and "make" not in what, "no more than is needed for it"
    await erase(eraser, what)
    assert (e2b.boxes, e2b.snapshots) == ({}, {})
    await erase(eraser, what)  # a second time there is nothing to do


async def test_of_a_machine_that_is_gone_the_snapshot_is_ended(e2b: E2BServer, place: Path) -> None:
    await begin(e2b, place)
    e2b.boxes.clear()
    eraser = BoxEraser(access(e2b))
    await erase(eraser, eraser.find(place))
    assert e2b.snapshots == {}


async def test_a_workspace_that_was_never_there_asks_for_nothing(
    e2b: E2BServer, place: Path
) -> None:
    eraser = BoxEraser(access(e2b))
    assert eraser.find(place) is None and eraser.find(place / "none") is None
    assert e2b.asked == []


async def test_what_cannot_be_ended_now_is_an_error_that_is_tried_again(
    e2b: E2BServer, place: Path
) -> None:
    await begin(e2b, place)
    refused = BoxEraser(access(e2b, "e2b_" + "0" * 40))
    with pytest.raises(OSError, match="E2B: "):
        await erase(refused, refused.find(place))
    eraser = BoxEraser(access(e2b))
    await e2b.down()
    with pytest.raises(OSError, match="E2B: "):
        await erase(eraser, eraser.find(place))
    await e2b.up()
    await erase(eraser, eraser.find(place))
    assert (e2b.boxes, e2b.snapshots) == ({}, {})


async def test_a_gateway_that_runs_for_long_ends_what_was_paused_for_long(
    e2b: E2BServer, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = E2BClient(access(e2b))
    old = await client.create({e2b_tier.KEEPS: "yes"})
    await client.pause(old.sandbox_id)
    tier = E2BTier(access(e2b))
    later = ambient.now() + e2b_tier.SECONDS_KEPT + 60
    monkeypatch.setattr(ambient, "now", lambda: later)
    pool = SandboxPool(tier)
    await pool.run("true", place, 30.0, lambda _: None)
    assert old.sandbox_id in e2b.boxes, "it was looked for at the start"
    await pool.close()
    tier._rescued -= e2b_tier.SECONDS_BETWEEN_RESCUES + 1
    pool = SandboxPool(tier)
    await pool.run("true", place, 30.0, lambda _: None)
    assert old.sandbox_id not in e2b.boxes
    await pool.close()
