"""People who type in bursts: 'hey', 'can you', 'look at the log' is one request, whatever happens in
between; and nobody waits for a rest that may not come."""

import asyncio
from collections.abc import Callable

import pytest

from tests.fakes.model_server import Call, Say
from tests.stories.jobs_rig import jobs_of, only
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, mention

BURST = {"MESSAGE_BURST": "60"}


def gate(rig: Rig) -> Callable[[], None]:
    """Hold all answers of the model; what is returned lets them go."""
    rig.model.gate = gate = asyncio.Event()
    return gate.set


async def asked(rig: Rig, *texts: str) -> None:
    """The model is being asked about these, and nothing else."""

    def holds() -> bool:
        return rig.model.inflight == 1 and rig.seen(role="user")[-1:] == ["\n".join(texts)]

    await rig.model.wait(lambda: bool(rig.model.requests) and holds())


async def test_a_burst_is_one_request(rig: Rig) -> None:
    await rig.start(**BURST)
    release = gate(rig)
    rig.telegram.say(PERSON, "hey")
    await asked(rig, "hey")
    rig.telegram.say(PERSON, "can you")
    await asked(rig, "hey", "can you")
    rig.telegram.say(PERSON, "look at the log")
    await asked(rig, "hey", "can you", "look at the log")
    rig.telegram.say(PERSON, "and the date")
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    release()
    await rig.shows("ack and the date")
    await rig.quiet()
    assert rig.said() == ["ack hey\ncan you\nlook at the log", "ack and the date"]
    assert rig.seen(role="user") == ["hey\ncan you\nlook at the log", "and the date"]
    assert len(rig.model.requests) == 4


async def test_a_run_that_comes_within_a_burst_cuts_it_not_in_two(rig: Rig) -> None:
    await rig.start(**BURST)
    rig.telegram.say(PERSON, "/jobs add every day at 9: look around")
    await rig.shows("look around")
    await rig.quiet()
    release = gate(rig)
    rig.telegram.say(PERSON, "hey")
    await asked(rig, "hey")
    assert await jobs_of(rig).book.run_now((await only(rig)).id, "k")
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    rig.telegram.say(PERSON, "can you")
    await asked(rig, "hey", "can you")
    release()
    await rig.until(lambda: any("look around" in text for text in rig.said()[1:]))
    await rig.quiet()
    assert rig.said()[1] == "ack hey\ncan you" and len(rig.said()) == 3


async def test_what_is_seen_already_is_finished_first(rig: Rig) -> None:
    rig.model.script(Call("list_files"), Say("Hello."), Say("so"))
    await rig.start(**BURST)
    begin = gate(rig)
    rig.telegram.say(PERSON, "hey")
    await asked(rig, "hey")
    release = gate(rig)
    begin()
    await rig.model.wait(lambda: len(rig.model.requests) == 2 and rig.model.inflight == 1)
    rig.telegram.say(PERSON, "look at the log")
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    release()
    await rig.shows("so")
    await rig.quiet()
    assert [text for text in rig.said() if "files" not in text] == ["Hello.", "so"]
    assert rig.seen(role="user") == ["hey", "look at the log"]


@pytest.mark.parametrize("rows", [1, 2])
async def test_a_crash_in_a_burst_loses_nothing_and_doubles_nothing(rig: Rig, rows: int) -> None:
    await rig.start(**BURST)
    gate(rig)
    for n in range(rows):
        rig.telegram.say(PERSON, ("hey", "can you")[n])
        await asked(rig, *("hey", "can you")[: n + 1])
    await rig.crash()
    rig.telegram.say(PERSON, "look at the log")
    release = gate(rig)
    await rig.start(**BURST)
    await asked(rig, *("hey", "can you")[:rows], "look at the log")
    release()
    await rig.shows("look at the log")
    await rig.quiet()
    assert len(rig.said()) == 1


async def test_in_a_group_only_the_same_person_goes_on(rig: Rig) -> None:
    await rig.start(**BURST)
    release = gate(rig)
    rig.telegram.say(GROUP, "@test_bot hey", user=PERSON, **mention("@test_bot"))
    await rig.model.wait_inflight(1)
    rig.telegram.say(GROUP, "@test_bot look", user=FRIEND, **mention("@test_bot"))
    await rig.until(lambda: (s := rig.session(GROUP)) is not None and s.state.queue)
    release()
    await rig.shows("look", GROUP)
    await rig.quiet()
    assert len(rig.model.requests) == 2


async def test_it_can_be_switched_off(rig: Rig) -> None:
    await rig.start(MESSAGE_BURST="never")
    release = gate(rig)
    rig.telegram.say(PERSON, "hey")
    await asked(rig, "hey")
    rig.telegram.say(PERSON, "look at the log")
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    release()
    await rig.shows("ack look at the log")
    await rig.quiet()
    assert rig.said() == ["ack hey", "ack look at the log"]


async def test_stop_ends_all_of_a_burst(rig: Rig) -> None:
    await rig.start(**BURST)
    gate(rig)
    rig.telegram.say(PERSON, "hey")
    await asked(rig, "hey")
    rig.telegram.say(PERSON, "look at the log")
    await asked(rig, "hey", "look at the log")
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Stopped.")
    await rig.quiet()
    assert len(rig.model.requests) == 2 and rig.model.inflight == 0
