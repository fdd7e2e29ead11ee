"""A kill at every point of the loss of a chat in which one turn waits for a button, one is worked at
and one message waits: all of it ends, and each person is told once."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.errors import ChatClosed
from gateway.messages import ChatLost, Conversation
from gateway.texts import say
from gateway.views import Notice
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import ANN, BOB, ROOM, Ledger, Life

TEAM = Conversation(platform="test", account="a", channel="team")
BOBS = Conversation(platform="test", account="a", channel="bobs", private=True)
LOST = say("chat_lost", "")


def list_words(ledger: Ledger, where: Conversation) -> list[Notice]:
    views = ledger.read_screen(where).values()
    return [view for view in views if isinstance(view, Notice) and LOST in view.text]


def is_told(life: Life) -> bool:
    return all(list_words(life.ledger, where) for where in (ROOM, BOBS))


ASKED = "asked"
"""A file with how often the model was asked when the turn began that is to be lost."""


def note_asked(life: Life) -> None:
    """A life that takes up that turn may have asked for it before its story does anything."""
    if (mark := life.folder / ASKED).exists():
        mark.write_text(str(len(life.ledger.all("model"))))


async def lose_it(life: Life, lose: Callable[[Life], Awaitable[None]]) -> None:
    life.agent.delays["model"] = 0.05
    for where, who in ((ROOM, ANN), (BOBS, BOB)):
        await life.say(f"hi {who.id}", "hi", who, where)
        await life.until(lambda there=where: life.screen(there))
    await life.say("m1", "do deploy", ANN, TEAM)
    await life.until(lambda: life.cards(TEAM) or is_told(life))
    if not (life.folder / ASKED).exists():
        (life.folder / ASKED).write_text(str(len(life.ledger.all("model"))))
    asked = int((life.folder / ASKED).read_text())
    life.agent.delays["model"] = 0.25  # it is lost before they are answered, also on a busy machine
    await life.say("m2", "do look", BOB, TEAM)
    await life.say("m3", "count them", ANN, TEAM)
    await life.until(lambda: len(life.ledger.all("model")) > asked or is_told(life), 2.0)
    await lose(life)
    await life.until(lambda: is_told(life))
    await life.quiet()
    opened = await life.store.acquire(TEAM.id, life.owner, 30.0)
    assert (opened.inbox, opened.turns, opened.views, opened.questions) == ((), (), (), ())


async def story_told(life: Life) -> None:
    """The platform says that the agent was put out."""

    async def lose(life: Life) -> None:
        await life.host.accept([ChatLost(conversation=TEAM, event="put out")])

    await lose_it(life, lose)


async def story_refused(life: Life) -> None:
    """The platform refuses what is sent there."""
    mark, send, edit = life.folder / "closed", life.adapter.send, life.adapter.edit

    async def refuse(call: Callable[..., Awaitable[object]], where: Conversation, *rest: object):
        if where == TEAM and mark.exists():
            life.points.hit("refused")
            raise ChatClosed("Forbidden: the bot was put out")
        return await call(where, *rest)

    life.adapter.send = lambda *given: refuse(send, *given)  # type: ignore[method-assign,assignment]
    life.adapter.edit = lambda *given: refuse(edit, *given)  # type: ignore[method-assign,assignment]

    async def lose(life: Life) -> None:
        mark.touch()

    await lose_it(life, lose)


def check(folder: Path, label: str) -> None:
    """A word that was sent in the moment of the kill may stand there twice, and says so."""
    ledger = Ledger(folder / "ledger.jsonl")
    for where in (ROOM, BOBS):
        told = list_words(ledger, where)
        assert len(told) in (1, 2) and sum(view.text == LOST for view in told) <= 1, (label, told)
    assert not [line for line in ledger.all("tool") if line["name"] == "deploy"], label


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("story", [story_told, story_refused])
def test_a_kill_at_every_point_of_a_lost_chat(story: Callable[[Life], Awaitable[None]]) -> None:
    points = count_points(story, note_asked)
    killed_everywhere(points, story, check, note_asked, hit=0.6)
