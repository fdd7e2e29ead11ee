"""Killed at every point: what leaves our memory, by the agent or by hand, leaves the other one too."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.memory.provider import ProvidedMemory
from agent_core.memory.settings import MemorySettings
from agent_core.orchestration.brief import Hands
from gateway.conversation.agent import PolicyContext
from gateway.messages import Inbound
from gateway.services.memory import Memories
from gateway.services.memory_removals import PREFIX, MemoryRemovals
from tests.fakes.lives import count_points, killed_at
from tests.fakes.world import Life
from tests.sampling import some_and_every, spread, take
from tests.stories.kills_rig import assert_clean
from tests.stories.memory_lives_rig import (
    PointedDirectory,
    Refusing,
    RememberingAgent,
    alone,
    finals,
    keep_and_forget,
)


class FileMemory(Refusing):
    """Its entries lie in a file; points before and after each call."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life, self._file = life, life.folder / "beside.json"

    async def add(self, space: str, text: str) -> None:
        self._write({*self.read(), text})

    async def forget(self, space: str, text: str) -> None:
        self._write({one for one in self.read() if one != text})

    def read(self) -> list[str]:
        return json.loads(self._file.read_text()) if self._file.exists() else []

    def _write(self, entries: set[str]) -> None:
        self._life.points.hit("provider")
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(sorted(entries)))
        part.rename(self._file)
        self._life.points.hit("provided")


class BesideAgent(RememberingAgent):
    """The same beside another memory."""

    beside: FileMemory

    def hands(self, circumstances: PolicyContext) -> Hands:
        hands = super().hands(circumstances)
        own = hands.memory
        return replace(hands, memory=ProvidedMemory(own, self.beside, "s", own.settle))


def remembering(life: Life) -> None:
    agent = life.agent = BesideAgent(life)
    directory, agent.beside = PointedDirectory(life), FileMemory(life)

    async def deliver(inbounds: Sequence[Inbound]) -> None:
        await life.host.accept(inbounds)

    removals = MemoryRemovals(directory, agent.beside, deliver)
    agent.memories = Memories(directory, MemorySettings(), alone, removals)


async def story(life: Life) -> None:
    """Two are kept, one is dropped by the agent, the other by hand; then all are cleared."""
    memories = life.agent.memories
    await keep_and_forget(life)
    await life.say("m3", "keep")
    await finals(life, "keep: ok")
    await life.quiet()
    await life.command("f2", "memory clear")
    await life.quiet()
    await memories.removals._work_off()
    await assert_clean(life, 3)
    assert await life.store.keys(PREFIX) == ()


def look(folder: Path, label: str) -> None:
    beside = folder / "beside.json"
    assert json.loads(beside.read_text()) == [], label


@pytest.mark.timeout(240)
@some_and_every(group="removals are killed")
def test_killed_at_every_point_nothing_stays_beside(some: int) -> None:
    points = count_points(story, remembering)
    assert points["names"].count("provider") == 6, points
    names = enumerate(points["names"], 1)
    near = [n for n, name in names if name.startswith(("put", "provide"))]
    chosen = sorted({*spread(points["count"], some, "removals"), *take(near, some or len(near))})
    killed = 0
    for k in chosen:
        label = f"killed at {k} ({points['names'][k - 1]})"
        killed += killed_at([{k}], story, look, label, remembering)
    assert killed >= len(chosen) * 0.9
