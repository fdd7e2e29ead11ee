"""Stories re-run with a kill at every point: before and after each commit, model call, tool,
send and edit. Each message is answered once, each effect runs at most once, each approval is
honoured, and the same native messages are edited on."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from gateway.store.redis import RedisStore
from gateway.views import ApprovalCard, Reply
from tests.contracts.redis_server import redis_server
from tests.fakes.lives import count_points, killed_at, killed_everywhere
from tests.fakes.world import ROOM, Ledger, Life, _view
from tests.sampling import some_and_every

MESSAGES = {"m1": "hello", "m2": "do note look|deploy add", "m3": "bye"}
ANSWERS = {
    "m1": ["ack hello"],
    "m2": ["done note look|deploy add: "],
    "m3": ["ack bye"],
}


async def story(life: Life) -> None:
    """Three messages; the second runs tools and waits for an approval. Redelivers everything."""
    await life.say("m1", MESSAGES["m1"])
    await life.say("m2", MESSAGES["m2"])
    await life.until(lambda: _card(life) or _finals(life, "done note"))
    if _card(life):
        await life.press("p1", _card(life).buttons[0].token)
    await life.until(lambda: _finals(life, "done note"))
    await life.say("m3", MESSAGES["m3"])
    await life.until(lambda: _finals(life, "ack bye"))
    await life.quiet()
    await assert_clean(life, 3)


def _card(life: Life) -> ApprovalCard | None:
    return next((card for card in life.cards() if card.state == "open"), None)


def _finals(life: Life, start: str) -> list[Reply]:
    views = life.screen().values()
    return [
        v for v in views if isinstance(v, Reply) and v.state == "final" and v.text.startswith(start)
    ]


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    sends = ledger.all("send")
    screen = {}
    for line in ledger.all():
        if line["what"] in ("send", "edit"):
            screen[line["id"]] = _view(json.dumps(line["view"]).encode())
    replies = [view for view in screen.values() if isinstance(view, Reply)]
    for event, starts in ANSWERS.items():
        mine = [r for r in replies if r.text.startswith(starts[0])]
        unlabelled = [r for r in mine if not r.note]
        assert mine, f"{label}: {event} was not answered"
        assert len(unlabelled) <= 1, f"{label}: {event} answered twice: {mine}"
        assert len(mine) <= 2, f"{label}: {event}: {mine}"
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
    final = next(r for r in replies if r.text.startswith("done note"))
    assert "deploy ok" in final.text or "Outcome unknown" in final.text, f"{label}: {final}"
    assert tools["deploy"] == 1 or "Outcome unknown" in final.text, f"{label}: {final} {tools}"
    assert len(sends) - len({line["id"] for line in sends}) == 0
    cards = [view for view in screen.values() if isinstance(view, ApprovalCard)]
    assert any(card.state == "approved" for card in cards), f"{label}: {cards}"
    doubts = len(sends) - 5  # three replies, an activity, a card
    assert doubts in (0, 1), f"{label}: {len(sends)} messages {[s['view']['kind'] for s in sends]}"
    if doubts == 0:
        assert all(card.state != "open" for card in cards), f"{label}: {cards}"


async def assert_clean(life: Life, transcript: int) -> None:
    """Nothing waits, runs, is open or unsent; each ended turn is in the transcript once."""
    assert await life.store.work(life.owner) == ()
    assert await life.store.next_due() is None
    opened = await life.store.acquire(ROOM.id, life.owner, 30.0)
    assert (opened.inbox, opened.turns, opened.views, opened.questions) == ((), (), (), ())
    assert not opened.crashed
    assert opened.row.end == transcript, opened.row


def on_sqlite(life: Life) -> None:
    """The default of a life."""


@pytest.fixture(scope="module")
def on_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Life], None]]:
    """Lives over a real redis-server, emptied for each world."""
    server = redis_server(tmp_path_factory.mktemp("redis"))

    def prepare(life: Life) -> None:
        life.open_store = lambda folder: RedisStore.open(server.url)
        if not (life.folder / "ledger.jsonl").exists() and not (life.folder / "begun").exists():
            (life.folder / "begun").touch()
            client = redis.Redis(unix_socket_path=str(server.socket))
            client.flushall()
            client.close()

    yield prepare
    server.end()


@pytest.mark.timeout(240)
@some_and_every()
@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_a_kill_at_every_point_loses_and_doubles_nothing(
    store: str, some: int, request: pytest.FixtureRequest
) -> None:
    prepare = request.getfixturevalue("on_redis") if store == "redis" else on_sqlite
    points = count_points(story, prepare)
    assert points["count"] > 60, points
    killed_everywhere(points, story, check, prepare, some=some)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_kills_at_random_points_lose_nothing() -> None:
    points = count_points(story)
    dice = random.Random(7)

    def stubborn(life: Life) -> None:
        """Three kills without progress between them are no dead letter here."""
        life.give_up_after = 10

    def finished(folder: Path, label: str) -> None:
        """The story's own last life ended, so its world is clean."""

    for n in range(200):
        kills = [{dice.randrange(1, points["count"] + 1)} for _ in range(3)]
        killed_at(kills, story, finished, f"run {n}: {kills}", stubborn)
