"""Stories re-run with a kill at every point: before and after each commit, model call, tool,
send and edit. Each message is answered once, each effect runs at most once, each approval is
honoured, and the same native messages are edited on."""

import random
from pathlib import Path

import pytest

from tests.fakes.lives import Prepare, count_points, killed_at, killed_everywhere
from tests.fakes.world import Life
from tests.sampling import some_and_every
from tests.stories.kills_rig import ON_BOTH_STORES, assert_clean, check, finals, open_card

MESSAGES = {"m1": "hello", "m2": "do note look|deploy add", "m3": "bye"}


async def story(life: Life) -> None:
    """Three messages; the second runs tools and waits for an approval. Redelivers everything."""
    await life.say("m1", MESSAGES["m1"])
    await life.say("m2", MESSAGES["m2"])
    await life.until(lambda: open_card(life) or finals(life, "done note"))
    if open_card(life):
        await life.press("p1", open_card(life).buttons[0].token)
    await life.until(lambda: finals(life, "done note"))
    await life.say("m3", MESSAGES["m3"])
    await life.until(lambda: finals(life, "ack bye"))
    await life.quiet()
    await assert_clean(life, 3)


@pytest.mark.timeout(240)
@some_and_every()
@ON_BOTH_STORES
def test_a_kill_at_every_point_loses_and_doubles_nothing(prepare_store: Prepare, some: int) -> None:
    points = count_points(story, prepare_store)
    assert points["count"] > 60, points
    killed_everywhere(points, story, check, prepare_store, some=some)


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
