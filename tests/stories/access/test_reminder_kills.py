"""A reminder is sent once: a kill at every point of a story in which a question waits for long."""

import asyncio
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from gateway.store.port import Store
from gateway.store.rows import Changes, Lease
from gateway.store.sqlite import SqliteStore
from gateway.views import ApprovalCard
from tests.fakes.lives import count_points, killed_everywhere, life
from tests.fakes.world import Ledger, Life, _view
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean

sends: Counter[int] = Counter()


def reminders(life: Life) -> list[str]:
    return [line["id"] for line in life.ledger.all("send") if is_reminder(line)]


def is_reminder(line: dict) -> bool:
    return line["view"].get("text", "").startswith("Still waiting")


def remind_soon(life: Life) -> None:
    life.prepares.append(lambda: life.equip(question_reminder=0.03))


async def story(life: Life) -> None:
    """A card, a reminder of it, a press."""
    await life.say("m1", "do deploy")
    await life.until(lambda: card(life) is not None)
    await life.until(lambda: reminders(life))
    await life.quiet()
    found = card(life)
    assert found is not None
    if found.state == "open":
        await life.press("p1", found.buttons[0].token)
    await life.until(lambda: any("done deploy" in text(line) for line in life.ledger.all()))
    await life.quiet()
    await assert_clean(life, 1)


def text(line: dict) -> str:
    return str(line.get("view", {}).get("text", ""))


def card(life: Life) -> ApprovalCard | None:
    cards = [view for view in life.cards() if isinstance(view, ApprovalCard)]
    return cards[-1] if cards else None


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    found = [line for line in ledger.all("send") if is_reminder(line)]
    assert 1 <= len(found) <= 2, f"{label}: {len(found)} reminders"
    sends[len(found)] += 1
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["deploy"] <= 1, label
    screen = [_view(json.dumps(line["view"]).encode()) for line in ledger.all("edit")]
    assert any(isinstance(v, ApprovalCard) and v.state == "approved" for v in screen), label


@pytest.mark.timeout(240)
@some_and_every(7)
def test_a_kill_at_every_point_reminds_once(some: int) -> None:
    sends.clear()
    points = count_points(story, remind_soon)
    names = points["names"]
    assert names.count("commit") > 5, names
    killed_everywhere(points, story, check, remind_soon, some=some)
    # between the platform's answer and the commit of it nothing can tell whether it stands there
    assert sends[2] <= 3, sends


class Dying:
    """A store whose process dies right before the commit of the reminder, or right after it."""

    def __init__(self, store: Store, when: str) -> None:
        self._store, self._when = store, when

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def submit(self, lease: Lease, changes: Changes) -> "asyncio.Future[None]":
        reminds = any("Still waiting" in str(row.view) for row in changes.views)
        if reminds and self._when == "before":
            die()
        future = self._store.submit(lease, changes)
        if reminds:
            future.add_done_callback(lambda _: die())
        return future


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_reminder_and_its_mark_are_one_commit(tmp_path: Path, when: str) -> None:
    """Killed right before its commit, and between that and the send: it comes, and once."""

    async def open_store(folder: Path) -> Store:
        store = await SqliteStore.open(folder / "store.db")
        return cast(Store, Dying(cast(Store, store), when))

    def prepare(one: Life) -> None:
        one.open_store = open_store
        remind_soon(one)

    sends.clear()
    assert life(tmp_path, story, prepare) is None
    life(tmp_path, story, remind_soon)
    check(tmp_path, f"killed {when} the commit")
    assert sends == {1: 1}
