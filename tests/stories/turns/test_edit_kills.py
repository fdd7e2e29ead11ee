"""Words among people in a thread that an edit addresses to the agent: answered once, wherever the
gateway is killed meanwhile, and also where it had work in that thread before."""

from pathlib import Path

import pytest

from gateway.access.policy import Policy
from gateway.messages import CommandGiven, Conversation, MessageEdited, MessageReceived, add_said
from gateway.views import ReplyView
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import ANN, BOB, Ledger, Life
from tests.sampling import some_and_every
from tests.stories.kills_rig import ON_BOTH_STORES

TOPIC = Conversation(platform="test", account="a", channel="team", thread="t")
OLD, NEW = "what is six", "agent, what is seven"


def follow_threads(life: Life) -> None:
    life.services.access.policy = Policy(group="thread")


def words(text: str, message: str, *, addressed: bool = False) -> MessageReceived:
    return MessageReceived(
        conversation=TOPIC, sender=ANN, event=f"e {message}", message=message, text=text,
        addressed=addressed,
    )  # fmt: skip


def edited(text: str, message: str, event: str) -> MessageEdited:
    edit = MessageEdited(conversation=TOPIC, sender=ANN, event=event, message=message, text=text)
    return add_said(edit, words(text, message, addressed=True), 60.0)


def answers(ledger: Ledger) -> list[ReplyView]:
    views = ledger.read_screen(TOPIC).values()
    return [view for view in views if isinstance(view, ReplyView) and view.state == "final"]


async def give_command(life: Life) -> None:
    """The agent is known in the thread, and nobody has asked it anything."""
    follow_threads(life)
    status = CommandGiven(
        conversation=TOPIC, sender=BOB, event="c1", message="c1", name="status"
    )  # fmt: skip
    await life.host.accept([status])
    await life.until(lambda: life.screen(TOPIC))
    await life.quiet()


async def end(life: Life) -> None:
    await life.until(lambda: answers(life.ledger))
    await life.quiet()
    opened = await life.store.acquire(TOPIC.id, life.owner, 30.0)
    assert (opened.inbox, opened.turns, opened.views) == ((), (), ())


async def story_of_a_later_edit(life: Life) -> None:
    await give_command(life)
    await life.host.accept([words(OLD, "m1")])
    await life.quiet()
    await life.host.accept([edited(NEW, "m1", "x1")])
    await end(life)


async def story_of_an_edit_at_once(life: Life) -> None:
    """Both are stored before anybody looks at them."""
    await give_command(life)
    await life.store.accept([words(OLD, "m1")])
    await life.host.accept([edited(NEW, "m1", "x1")])
    await end(life)


async def story_of_one_batch(life: Life) -> None:
    """As after an outage, in which both came."""
    await give_command(life)
    await life.host.accept([words(OLD, "m1"), edited(NEW, "m1", "x1")])
    await end(life)


STORIES = (story_of_a_later_edit, story_of_an_edit_at_once, story_of_one_batch)


def check(folder: Path, label: str) -> None:
    """What was sent in the moment of the kill may stand there twice, and says so."""
    told = answers(Ledger(folder / "ledger.jsonl"))
    assert told and all(NEW in view.text for view in told), f"{label}: {told}"
    assert len(told) <= 2 and sum(not view.note for view in told) <= 1, f"{label}: {told}"


@ON_BOTH_STORES
@pytest.mark.pick("edits that address", 2)
@pytest.mark.parametrize("story", STORIES)
async def test_an_edit_that_addresses_the_agent_is_answered_once(
    tmp_path: Path, prepare_store: object, story
) -> None:
    life = Life(tmp_path)
    prepare_store(life)
    async with life.living():
        await story(life)
        await life.host.accept([edited(NEW, "m1", "x1"), words(OLD, "m1")])
        await life.quiet()
        assert len(answers(life.ledger)) == 1


@pytest.mark.timeout(240)
@pytest.mark.parametrize("story", STORIES)
@some_and_every(3, "edits that address, killed")
def test_a_kill_at_every_point_of_an_edit_that_addresses(story, some: int) -> None:
    killed_everywhere(count_points(story), story, check, some=some, hit=0.6)
