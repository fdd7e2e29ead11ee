"""A conversation of the page that is deleted, and begun anew under the same address."""

from pathlib import Path

import pytest

from tests.stories.rig import living
from tests.stories.surfaces import Web


@pytest.mark.parametrize("again", [1, 2, 5])
@pytest.mark.parametrize("before", [1, 3])
async def test_a_reader_who_was_away_sees_what_is_there_now(
    before: int, again: int, tmp_path: Path
) -> None:
    """However much was said before it was deleted and afterwards, nothing of the former one stays
    on their screen, and nothing of the new one is missing."""
    async with living(tmp_path) as rig:
        person = Web(rig)
        await person.open()
        for n in range(before):
            await person.say(f"former {n}")
            await person.shows(f"ack former {n}")
        await rig.quiet()
        async with person.away():
            await person.remove()
            for n in range(again):
                await person.say(f"new {n}")
                await rig.quiet()
        await person.settle()
        answers = [line for line in person.screen() if line.startswith("bot: ")]
        assert answers == [f"bot: ack new {n}" for n in range(again)]
        await person.close()
