"""The story of `test_kills` with something else at every point: an answer, a /stop, a message that
steers, a stolen lease. Nothing is lost, doubled or left open."""

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from gateway.messages import CommandGiven, button_token
from gateway.views import ApprovalCard, Notice, ReplyView
from tests.fakes.lives import Died, count_points, life
from tests.fakes.world import ANN, ROOM, Ledger, Life, _view
from tests.sampling import some_and_every, spread
from tests.stories.kills_rig import check, finals, open_card

Act = Callable[[Life], Awaitable[None]]


def at_point(k: int, act: Act) -> Callable[[Life], None]:
    """Prepare a life so that `act` begins at point k."""

    async def acting(one: Life) -> None:
        await act(one)
        one.acted = True

    def prepare(one: Life) -> None:
        def do() -> None:
            one.acted = False
            one.host.spawn(partial(acting, one), "interference")

        one.points.at, one.points.do = k, do

    return prepare


def screen(folder: Path) -> list:
    shown = {}
    for line in Ledger(folder / "ledger.jsonl").all():
        if line["what"] in ("send", "edit"):
            shown[line["id"]] = _view(json.dumps(line["view"]).encode())
    return list(shown.values())


def at_each_point(
    act: Act,
    story: Callable[[Life], Awaitable[None]],
    look: Callable[[Path, str], None],
    some: int,
) -> None:
    points = count_points(story)
    met = 0
    chosen = spread(points["count"], some, act.__qualname__)
    for k in chosen:
        folder = Path(tempfile.mkdtemp(prefix="tk-act-"))
        try:
            label = f"at {k} ({points['names'][k - 1]})"
            try:
                found = life(folder, story, at_point(k, act))
            except Died as error:
                raise AssertionError(f"{label}: {str(error)[-400:]}") from None
            if found is not None and found["count"] >= k:  # commits may be fewer, taken together
                met += 1
                look(folder, label)
        finally:
            shutil.rmtree(folder)
    assert met >= len(chosen) * 0.9 - 1


async def short_story(one: Life) -> None:
    """One message with tools and an approval that the interference may decide or end."""
    await one.say("m2", "do note look|deploy add")
    await one.until(lambda: open_card(one) or _over(one))
    if open_card(one):
        await one.press("p1", open_card(one).buttons[0].token)
    await one.until(lambda: _over(one))
    await one.quiet()
    await one.say("m3", "bye")
    await one.until(lambda: _over(one, "m3", "bye"))
    await one.until(lambda: one.acted and not one.host.sessions and not one.host._starting)
    assert await one.store.work("r1") == ()


def _over(one: Life, event: str = "m2", words: str = "do note look") -> bool:
    """The message's turn has ended, one way or another."""
    db = sqlite3.connect(one.folder / "store.db", timeout=10)
    try:
        sql = f"SELECT count(*) FROM inbox WHERE message LIKE '%m{event}' AND state = 1"
        going = (
            f"SELECT count(*) FROM turns WHERE instr(CAST(body AS TEXT), '{words}')"
            " AND status IN ('running', 'parked')"
        )
        return db.execute(sql).fetchone()[0] == 1 and db.execute(going).fetchone()[0] == 0
    finally:
        db.close()


@pytest.mark.timeout(200)
@some_and_every()
def test_a_stop_at_every_point_ends_the_turn_and_leaves_nothing_open(some: int) -> None:
    async def stop(one: Life) -> None:
        await one.host.accept(
            [CommandGiven(conversation=ROOM, sender=ANN, event="s1", message="s1", name="stop")]
        )

    def look(folder: Path, label: str) -> None:
        views = screen(folder)
        tools = Counter(line["name"] for line in Ledger(folder / "ledger.jsonl").all("tool"))
        assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
        cards = [v for v in views if isinstance(v, ApprovalCard)]
        assert all(card.state != "open" for card in cards), f"{label}: {cards}"
        answered = sum(isinstance(v, ReplyView) and v.text == "ack bye" for v in views)
        stopped = any(isinstance(v, Notice) for v in views)
        marked = any(isinstance(v, ReplyView) and v.state == "stopped" for v in views)
        assert answered == 1 or stopped or marked, f"{label}: {views}"
        _clean_but_transcript(folder, label)

    at_each_point(stop, short_story, look, some)


@pytest.mark.timeout(200)
@some_and_every()
def test_an_answer_at_every_point_is_taken_once(some: int) -> None:
    async def answer(one: Life) -> None:
        session = next(iter(one.host.sessions.values()), None)
        for question in list(session.state.questions.values()) if session else []:
            await one.press("p0", button_token(question.id, "once"))

    def look(folder: Path, label: str) -> None:
        tools = Counter(line["name"] for line in Ledger(folder / "ledger.jsonl").all("tool"))
        assert tools["note"] == 1 and tools["deploy"] == 1, f"{label}: {tools}"
        views = screen(folder)
        done = [v for v in views if isinstance(v, ReplyView) and v.text.startswith("done note")]
        assert len(done) == 1 and "deploy ok" in done[0].text, f"{label}: {done}"
        cards = [v for v in views if isinstance(v, ApprovalCard)]
        assert [card.state for card in cards] == ["approved"], f"{label}: {cards}"
        _clean_but_transcript(folder, label)

    at_each_point(answer, short_story, look, some)


@pytest.mark.timeout(200)
@some_and_every(3)
@pytest.mark.parametrize("mode", ["steer", "queue", "interrupt"])
def test_a_message_at_every_point_is_used_exactly_once(mode: str, some: int) -> None:
    async def say(one: Life) -> None:
        await one.say("x1", "also this")

    async def story(one: Life) -> None:
        await one.host.accept(
            [
                CommandGiven(
                    conversation=ROOM,
                    sender=ANN,
                    event="c",
                    message="c",
                    name="mode",
                    arguments=mode,
                )
            ]
        )
        await one.until(lambda: any(isinstance(v, Notice) for v in one.screen().values()))
        await one.quiet()
        await short_story(one)

    def look(folder: Path, label: str) -> None:
        tools = Counter(line["name"] for line in Ledger(folder / "ledger.jsonl").all("tool"))
        assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
        views = screen(folder)
        used = [v for v in views if isinstance(v, ReplyView) and "also this" in v.text]
        texts = [getattr(v, "text", "") for v in views]
        assert len(used) == 1, f"{label} {mode}: {texts}"
        _clean_but_transcript(folder, label)

    at_each_point(say, story, look, some)


@pytest.mark.timeout(200)
@some_and_every()
def test_a_stolen_lease_at_every_point_writes_and_doubles_nothing(some: int) -> None:
    async def story(one: Life) -> None:
        await one.say("m2", "do note look|deploy add")
        await one.until(lambda: open_card(one) or _over(one) or _stolen(one))
        if open_card(one) and not _stolen(one):
            await one.press("p1", open_card(one).buttons[0].token)
        await one.until(lambda: _over(one) or _stolen(one))
        await one.quiet()

    def _stolen(one: Life) -> bool:
        return bool(one.ledger.all("stolen"))

    async def steal(one: Life) -> None:
        db = sqlite3.connect(one.folder / "store.db", timeout=10)
        with db:
            db.execute("UPDATE conversations SET token = token + 1, owner = 'r2', expires = 1e12")
        db.close()
        one.ledger.note("stolen")

    async def second(one: Life) -> None:
        for conversation, _ in await one.store.work("r2"):
            one.host.wake(conversation)
        await one.say("m1", "hello")
        await one.say("m2", "do note look|deploy add")
        await one.until(lambda: open_card(one) or finals(one, "done note"))
        if open_card(one):
            await one.press("p1", open_card(one).buttons[0].token)
        await one.until(lambda: finals(one, "done note"))
        await one.say("m3", "bye")
        await one.until(lambda: finals(one, "ack bye") and finals(one, "ack hello"))
        await one.quiet()

    points = count_points(story)
    for k in spread(points["count"], some, "stolen"):
        if k < 3:
            continue
        folder = Path(tempfile.mkdtemp(prefix="tk-act-"))
        label = f"stolen at {k} ({points['names'][k - 1]})"
        try:
            life(folder, story, at_point(k, steal))

            def as_r2(one: Life) -> None:
                one.owner = "r2"

            life(folder, second, as_r2)
            check(folder, label)
        finally:
            shutil.rmtree(folder)


def _clean_but_transcript(folder: Path, label: str) -> None:
    store = sqlite3.connect(folder / "store.db")
    try:
        turns = store.execute("SELECT count(*) FROM turns").fetchone()[0]
        rows = store.execute("SELECT count(*) FROM transcript").fetchone()[0]
        assert turns == rows, f"{label}: {turns} turns, {rows} in the transcript"
        for sql in (
            "SELECT count(*) FROM turns WHERE status IN ('running', 'parked')",
            "SELECT count(*) FROM questions WHERE status = 'open'",
            "SELECT count(*) FROM inbox WHERE state != 1",
            "SELECT count(*) FROM outbox WHERE unsent = 1",
            "SELECT count(*) FROM conversations WHERE work = 1 OR owner IS NOT NULL",
        ):
            assert store.execute(sql).fetchone()[0] == 0, f"{label}: {sql}"
    finally:
        store.close()
