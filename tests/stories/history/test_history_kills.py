"""Killed at every point: a turn that is compressed in its middle, a /retry, and a Restore."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.context.limits import ContextLimits
from agent_core.messages import Message, Text, ToolCall, text_of
from agent_core.orchestration.brief import Brief
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from gateway.messages import Conversation, turn_token
from gateway.store.rows import ConversationSettings
from gateway.views import ApprovalCard, Notice, ReplyView
from tests.fakes.lives import Story, count_points, killed_everywhere
from tests.fakes.world import ROOM, Ledger, Life, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean

MINUTE = re.compile(r"(?<=\[Now: )[^;\]]+ UTC")
"""When a message says that it was written; what is asked anew may be of the next minute."""

ROUNDS = ("note", "look", "add", "deploy", "look")


class ShortAgent(ScriptedAgent):
    """Sees little at once. Its summary says how many rounds are done."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        room = ContextLimits(limit=800, keep=3)
        return replace(super().brief(conversation, settings, text), room=room)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        words = "\n".join(map(text_of, messages))
        counted = [int(n) for n in re.findall(r"rounds done: (\d+)", words)]
        if words.startswith("user: "):
            self._ledger.note("summary", of=words)
            done = len(re.findall(r"^result of", words, re.M)) + max(counted, default=0)
            return [Text(text=f"rounds done: {done} " + "s" * 200)]
        if "work" not in words:
            return [Text(text="hi " + "h" * 300)]
        done = sum(m.role == "tool" for m in messages) + max(counted, default=0)
        if done == len(ROUNDS):
            return [Text(text="all is done")]
        name = ROUNDS[done]
        arguments = json.dumps({"text": f"{name} {'x' * 600}"})
        return [ToolCall(id=f"c{done}", name=name, arguments=arguments)]


def shortly(life: Life) -> None:
    life.agent = ShortAgent(life.ledger, life.points, life.folder)


def open_card(life: Life) -> ApprovalCard | None:
    cards = [c for c in life.cards() if isinstance(c, ApprovalCard) and c.state == "open"]
    return cards[0] if cards else None


def finals(life: Life, text: str) -> list[ReplyView]:
    views = life.screen().values()
    return [
        v
        for v in views
        if isinstance(v, ReplyView) and v.state == "final" and v.text.startswith(text)
    ]


async def long_story(life: Life) -> None:
    await life.say("m1", "hello")
    await life.say("m2", "work")
    await life.until(lambda: open_card(life) or finals(life, "all is done"))
    if (card := open_card(life)) is not None:
        await life.press("p1", card.buttons[0].token)
    await life.until(lambda: finals(life, "all is done"))
    await life.quiet()
    await assert_clean(life, 3)
    _, whole, kept = await life.store.transcript(ROOM.id, 0, 3)
    assert (whole.kind, kept.kind, kept.shows) == ("turn", "summary", ((2, 3),))
    assert len([m for m in whole.messages if m.role == "tool"]) == len(ROUNDS)
    assert text_of(kept.messages[0]).startswith("[Earlier messages, summarised]\nrounds done")
    assert await life.store.thread(ROOM.id, kept.shows) == (kept.messages,)


def look_at_long(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and tools["deploy"] <= 1, f"{label}: {tools}"
    asked = Counter(line["of"] for line in ledger.all("summary"))
    assert len(asked) >= 2, f"{label}: earlier summaries are folded in: {asked}"
    assert sum(asked.values()) <= len(asked) + 1, f"{label}: only what was under way: {asked}"
    screen = ledger.read_screen()
    told = [v for v in screen.values() if isinstance(v, Notice) and "summarised" in v.text]
    assert len([one for one in told if "twice" not in one.text]) <= 1 <= len(told) <= 2, label


async def retry_story(life: Life) -> None:
    await life.say("m1", "hello")
    await life.say("m2", "do note")
    await life.until(lambda: finals(life, "done note: "))
    await life.quiet()
    await life.command("r1", "retry")
    await life.quiet()
    await assert_clean(life, 4)
    rows = await life.store.transcript(ROOM.id, 0, 4)
    assert [row.kind for row in rows] == ["turn", "turn", "undone", "turn"]
    assert rows[2].turn == rows[1].turn and rows[2].shows == ((0, 1),)
    again, before = (MINUTE.sub("", repr(rows[n].messages[0])) for n in (3, 1))
    assert again == before
    first, last = await life.store.thread(ROOM.id, ((0, 1), (3, 4)))
    assert (first, last) == (rows[0].messages, rows[3].messages)


class WorkingAgent(ScriptedAgent):
    """Has a workspace of its own."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), workspace=str(place(self)))


def place(agent: ScriptedAgent) -> Path:
    return agent._folder / "work"


def in_a_workspace(life: Life) -> None:
    life.agent = WorkingAgent(life.ledger, life.points, life.folder)


def change_files(work: Path, turn: str) -> None:
    """As if the turn had, and something else after it; once, however often it is called."""
    if (snapshots := Snapshots()).find(work, name_after(turn)) is not None:
        return
    work.mkdir(exist_ok=True)
    (work / "a.txt").write_text("old")
    snapshots.take(work, name_before(turn))
    (work / "a.txt").write_text("new")
    for name in ("b.txt", "c.txt"):
        (work / name).write_text("made")
    snapshots.take(work, name_after(turn))
    (work / "b.txt").write_text("another's")


def asks(life: Life) -> list[Notice]:
    """What names the files that something else changed: one that was cut off while it was sent
    stands there twice, and the first of them cannot be changed any more."""
    notices = [view for view in life.screen().values() if isinstance(view, Notice)]
    return [one for one in notices if "since then: b.txt" in one.text]


def says_undone(life: Life) -> list[str]:
    notices = [view for view in life.screen().values() if isinstance(view, Notice)]
    return [one.text for one in notices if one.text.startswith("The last request is undone")]


async def restore_story(life: Life) -> None:
    await life.say("m1", "hello")
    await life.say("m2", "do note")
    await life.until(lambda: finals(life, "done note: "))
    await life.quiet()
    turn = (await life.store.transcript(ROOM.id, 0, 2))[1].turn
    work = place(life.agent)
    change_files(work, turn)
    await life.press("p1", turn_token(turn, "restore"))
    await life.until(lambda: asks(life) or says_undone(life))
    if asked := [one for one in asks(life) if one.buttons]:
        await life.press("p2", asked[-1].buttons[0].token)
    await life.until(lambda: says_undone(life))
    await life.quiet()
    await assert_clean(life, 3)
    assert not all(one.buttons for one in asks(life)), "it offers nothing any more"
    assert (work / "a.txt").read_text() == "old"
    assert not (work / "b.txt").exists() and not (work / "c.txt").exists()
    rows = await life.store.transcript(ROOM.id, 0, 3)
    assert [row.kind for row in rows] == ["turn", "turn", "undone"]


def look_at_retry(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    notes = Counter(line["key"] for line in ledger.all("tool"))
    assert len(notes) == sum(notes.values()) <= 2, f"{label}: once a turn: {notes}"


@pytest.mark.timeout(240)
@some_and_every()
@pytest.mark.parametrize(
    ("story", "look", "prepare"),
    [
        (long_story, look_at_long, shortly),
        (retry_story, look_at_retry, None),
        (restore_story, look_at_retry, in_a_workspace),
    ],
    ids=["compressed", "retried", "restored"],
)
def test_killed_at_every_point(
    story: Story,
    look: Callable[[Path, str], None],
    prepare: Callable[[Life], None] | None,
    some: int,
) -> None:
    points = count_points(story, prepare)
    assert points["count"] > 40, points
    killed_everywhere(points, story, look, prepare, some=some)


@pytest.mark.timeout(240)
@some_and_every()
def test_a_restore_that_asks_is_killed_at_every_point_on_redis(
    on_redis: Callable[[Life], None], some: int
) -> None:
    def prepare(life: Life) -> None:
        on_redis(life)
        in_a_workspace(life)

    points = count_points(restore_story, prepare)
    assert points["count"] > 40, points
    killed_everywhere(points, restore_story, look_at_retry, prepare, some=some)
