"""What a gateway drops by itself: a conversation after its period, with its folder; nothing in an
installation that is older than the settings."""

import sqlite3
from pathlib import Path

import pytest

from gateway.services.retention import REST
from gateway.store.removal.periods import CREATED
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import Shifted
from tests.stories.rig import FRIEND, PERSON, Rig, living, write

HOUR, DAY = 3_600.0, 86_400.0


def age(rig: Rig, chat: int, days: float) -> None:
    """Move the last message of a chat into the past; the gateway has stopped."""
    store = sqlite3.connect(rig.home / "turnkeeper.db")
    with store:
        for table, column in (("conversations", "id"), ("lists", "conversation")):
            sql = f"UPDATE {table} SET at = at - ? WHERE {column} = ?"
            store.execute(sql, (days * DAY, rig.where(chat).id))
        sql = "UPDATE conversations SET listed = listed - ? WHERE id = ?"
        store.execute(sql, (days * DAY, rig.where(chat).id))
    store.close()


@pytest.mark.pick("an old conversation", 2)
@pytest.mark.parametrize(
    ("old", "given", "stays"),
    [
        (False, {}, False),
        (True, {}, True),
        (True, {"RETENTION_CONVERSATIONS_DAYS": "60"}, False),
        (False, {"RETENTION_CONVERSATIONS_DAYS": "never"}, True),
    ],
)
async def test_an_old_conversation_goes_when_that_was_chosen(
    tmp_path: Path, old: bool, given: dict[str, str], stays: bool
) -> None:
    async with living(tmp_path) as rig:
        await rig.start()
        rig.model.script(write("a.txt"), Say("the first answer"))
        rig.telegram.say(PERSON, "write it")
        card = await rig.card()
        rig.press(card, "Approve once")
        await rig.shows("the first answer")
        rig.telegram.say(FRIEND, "hello")
        await rig.shows("ack hello", FRIEND)
        await rig.quiet()
        if old:
            await rig.store.put(CREATED, None)
        await rig.stop()
        age(rig, PERSON, 100)

        await rig.start(**given)
        workspace = rig.workspace()
        await rig.host._sweep()
        assert (await rig.store.summary(rig.where(PERSON).id) is not None) is stays
        assert await rig.store.summary(rig.where(FRIEND).id) is not None
        assert workspace.exists() is stays
        assert len(list(workspace.parent.glob("*/a.txt"))) == 1, "it was used lately: aside"

        rig.model.script(Say("the second answer"))
        rig.telegram.say(PERSON, "what did I say?")
        await rig.shows("the second answer")
        seen = "\n".join(rig.seen())
        assert ("write it" in seen) is stays
        await rig.stop()


@pytest.mark.parametrize("ahead", [2 * HOUR, 61 * DAY, 100 * DAY, 70 * 365 * DAY])
async def test_a_clock_that_is_set_ahead_deletes_nothing(
    tmp_path: Path, clock: Shifted, ahead: float
) -> None:
    async with living(tmp_path) as rig:
        await rig.start(RETENTION_CONVERSATIONS_DAYS="60")
        rig.telegram.say(PERSON, "hello")
        await rig.shows("ack hello")
        await rig.quiet()
        await rig.host._sweep()
        clock.offset += ahead
        for _ in range(3):
            assert rig.host.services.retention is not None
            rig.host.services.retention._rested = -REST
            await rig.host._sweep()
        await rig.host._tidy()
        assert await rig.store.summary(rig.where(PERSON).id) is not None
        await rig.stop()
