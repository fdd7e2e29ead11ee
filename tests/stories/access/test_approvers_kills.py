"""The approvers' chat over kills: a kill at every point between a question in one conversation and
its decision in another. It is brought there, decided and its end told, each once."""

import contextlib
import sqlite3
import threading
from collections import Counter
from pathlib import Path

import pytest

from gateway.access.policy import Policy
from gateway.messages import Conversation
from gateway.store.rows import Changes, Lease, OutboxRow
from gateway.store.sqlite import SqliteStore
from gateway.store.statements import read_view
from gateway.views import ApprovalCard
from tests.fakes.lives import count_points, killed_everywhere, life
from tests.fakes.world import ROOM, Ledger, Life
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean

BOARD = Conversation(platform="test", account="a", channel="board")


async def story(life: Life) -> None:
    """Asked in the room, pressed on the board, redelivered in each life."""
    life.services.access.policy = Policy(chat=BOARD.id)
    await life.say("m1", "do deploy")
    await life.until(lambda: on_board(life))
    found = on_board(life)[-1]
    if found.state == "open":
        await life.press("p1", found.buttons[0].token, where=BOARD)
    await life.until(lambda: any("done deploy" in text(line) for line in life.ledger.all()))
    await life.until(lambda: any(card.state == "approved" for card in on_board(life)))
    await life.quiet()
    await assert_clean(life, 1)


def on_board(life: Life) -> list[ApprovalCard]:
    return [card for card in life.cards(BOARD) if isinstance(card, ApprovalCard)]


def text(line: dict) -> str:
    return str(line.get("view", {}).get("text", ""))


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    sends = Counter(
        (line["to"], line["view"]["kind"], text(line)[:8]) for line in ledger.all("send")
    )
    assert sends[(BOARD.id, "approval", "")] >= 1, (label, sends)
    assert sends[(ROOM.id, "notice", "Sent to ")] >= 1, (label, sends)
    more = [what for what, times in sends.items() if times > 1]
    assert len(more) <= 1 and max(sends.values()) <= 2, (label, sends)
    # doubled only where a send was under way when it was killed, and the store knows that
    assert len(more) <= len(doubtful(folder)), (label, more)
    screen = ledger.read_screen(BOARD)
    assert any(isinstance(v, ApprovalCard) and v.state == "approved" for v in screen.values())
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["deploy"] <= 1, label


def doubtful(folder: Path) -> list[OutboxRow]:
    """Views whose first send was cut off."""
    with contextlib.closing(sqlite3.connect(folder / "store.db")) as store:
        rows = [read_view(body) for (body,) in store.execute("SELECT body FROM outbox")]
    return [row for row in rows if row.doubtful]


@pytest.mark.timeout(300)
@some_and_every()
def test_a_kill_at_every_point_between_two_conversations(some: int) -> None:
    points = count_points(story)
    killed_everywhere(points, story, check, some=some, hit=0.8)


def slow_disk(life: Life) -> None:
    """Every commit that has a question takes longer than anybody would wait for it."""
    apply = SqliteStore._apply

    def late(self: SqliteStore, c: sqlite3.Connection, lease: Lease, changes: Changes) -> None:
        threading.Event().wait(0.4 if changes.questions else 0.0)
        apply(self, c, lease, changes)

    SqliteStore._apply = late  # in this child only


def test_the_board_is_told_however_slow_the_disk_is(tmp_path: Path) -> None:
    life(tmp_path, story, slow_disk)
    check(tmp_path, "slow disk")
