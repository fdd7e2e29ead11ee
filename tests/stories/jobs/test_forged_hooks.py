"""Calls of a hook from a grammar, through a running gateway: what is signed as it has to be begins a
run, once, in whatever dress; what is forged in one thing begins nothing."""

import io

import aiohttp
import pytest

from agent_core import ambient
from gateway.features.jobs.hooks import WINDOW, Way
from tests.attacks import webhook_grammar
from tests.attacks.webhook_grammar import Call, Key, draw_forged, draw_true
from tests.fakes.model_server import Say
from tests.sampling import dice
from tests.stories.hooks_rig import OTHER, SECRET, give, prepare
from tests.stories.jobs_rig import runs
from tests.stories.rig import Rig

WAYS: tuple[Way, ...] = ("standard", "plain", "github")
FEW, MANY = 60, 2_500
ROUND = 3
"""True calls that are made before their runs have ended."""


def cases() -> list[object]:
    """A few calls of one way in a quick run, many of all ways in a slow one."""
    marks = [pytest.mark.sampled, pytest.mark.pick("forged hooks")]
    few = [pytest.param(way, FEW, id=f"{way}-some", marks=marks) for way in WAYS]
    return [
        *few,
        *(pytest.param(way, MANY, id=f"{way}-many", marks=pytest.mark.slow) for way in WAYS),
    ]


@pytest.mark.parametrize(("way", "count"), cases())
async def test_only_what_is_signed_begins_a_run_and_once(rig: Rig, way: Way, count: int) -> None:
    assert webhook_grammar.WINDOW == WINDOW
    prepare(rig.home, rig.where().id)
    give(rig.home, way)
    key, chance = Key(way=way, written=SECRET if way == "standard" else OTHER), dice("hooks", way)
    rig.model.steps[:] = [Say("seen")] * (2 * count)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    begun = 0
    async with aiohttp.ClientSession() as http:
        for n in range(count):
            now = int(ambient.now())
            call = (draw_true if n % 20 < ROUND else draw_forged)(key, now, chance)
            status = await send(http, rig, call)
            if not call.good:
                assert status in (400, 401, 404, 405), (status, call)
                continue
            assert status == 202, call
            assert await send(http, rig, call) == 202, "known again"
            begun += 1
            if n % 20 == ROUND - 1:
                await rig.until(lambda known=begun: count_worked(rig) >= known)
                await rig.quiet()
    await rig.until(lambda: count_worked(rig) >= begun)
    await rig.quiet()
    assert count_worked(rig) == begun, "each of them, and nothing else, was worked at"
    assert len(await runs(rig)) == min(begun, 100)


def count_worked(rig: Rig) -> int:
    """Requests of runs; without tools are those that sum up."""
    return sum(1 for one in rig.model.requests if one.body.get("tools"))


async def send(http: aiohttp.ClientSession, rig: Rig, call: Call) -> int:
    data = io.BytesIO(call.body)
    async with http.request(
        call.method,
        f"{rig.url}hooks/deploy",
        data=data,
        headers=call.headers,
        skip_auto_headers=["Content-Type"],
    ) as answer:
        await answer.read()
        return answer.status
