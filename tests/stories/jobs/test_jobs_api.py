"""Jobs and runs over the HTTP API: the same rights as in a chat."""

import asyncio
import json

import aiohttp
import pytest
from msgspec.structs import replace

from agent_core import ambient
from agent_core.ambient import utc
from tests.fakes.model_server import Json, Say
from tests.stories.jobs_rig import Shifted, jobs_of, make, own, settled
from tests.stories.rig import Rig

BEARER = "a-token-of-the-page-0123456789"


@pytest.fixture
async def rig(rig: Rig) -> Rig:
    await rig.start(TURNKEEPER_TOKEN=BEARER)
    return rig


async def ask(rig: Rig, way: str, path: str, token: str = BEARER, **body: str) -> tuple[int, Json]:
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
        http.request(way, f"{rig.url}api/jobs{path}", json=body if way == "POST" else None) as got,
    ):
        return got.status, json.loads(await got.text())


async def test_list_run_read_pause_delete(rig: Rig) -> None:
    await own(rig)
    status, said = await ask(rig, "GET", "")
    (job,) = said["jobs"]
    assert (status, job["id"], job["zone"], len(job["next"])) == (200, "mine", "Europe/Berlin", 3)
    assert (job["words"], job["last"]) == ("At 09:00", None)
    rig.model.script(Say("all quiet"), Say("never"))
    for _ in range(2):
        assert await ask(rig, "POST", "/mine/run", key="k1") == (200, {"done": True, "key": "k1"})
    await settled(rig, "done")
    status, said = await ask(rig, "GET", "/mine/runs")
    (run,) = said["runs"]
    assert (run["slot"], run["state"], run["text"]) == ("now-k1", "done", "all quiet")
    assert (run["words"], (await ask(rig, "GET", ""))[1]["jobs"][0]["last"]) == ("done", run)
    assert (await ask(rig, "POST", "/mine/pause"))[0] == 200
    assert (await ask(rig, "POST", "/mine/pause"))[0] == 409
    assert (await ask(rig, "GET", ""))[1]["jobs"][0]["state"] == "paused"
    assert (await ask(rig, "POST", "/mine/resume"))[0] == 200
    assert (await ask(rig, "POST", "/mine/delete"))[0] == 200
    assert await ask(rig, "GET", "") == (200, {"jobs": []})


async def test_what_runs_is_not_begun_twice_and_what_is_over_not_resumed(
    rig: Rig, clock: Shifted
) -> None:
    job = await own(rig)
    rig.model.gate = asyncio.Event()
    assert (await ask(rig, "POST", "/mine/run", key="k1"))[0] == 200
    assert (await ask(rig, "POST", "/mine/run", key="k2"))[0] == 409
    rig.model.gate.set()
    await settled(rig, "done")
    once = replace(job, schedule=f"at {utc(ambient.now() + 600):%Y-%m-%dT%H:%M:%S}Z")
    due = replace(once, next_due=ambient.now() + 600, wake=ambient.now() + 600, state="paused")
    stored = await jobs_of(rig).store.get("mine")
    assert await jobs_of(rig).store.commit(stored, replace(due, version="x"), ())
    clock.offset = 900.0
    assert (await ask(rig, "POST", "/mine/resume"))[0] == 409
    assert (await ask(rig, "GET", ""))[1]["jobs"][0]["state"] == "ended"


async def test_nobody_elses_and_nothing_without_a_token(rig: Rig) -> None:
    theirs = await make(rig)
    assert await ask(rig, "GET", "") == (200, {"jobs": []})
    for way, path in (("GET", "runs"), ("POST", "run"), ("POST", "delete")):
        status, said = await ask(rig, way, f"/{theirs.id}/{path}")
        assert status == 404 and "no such job" in said["error"]
        status, _ = await ask(rig, way, f"/{theirs.id}/{path}", token="wrong")
        assert status == 401
    assert await jobs_of(rig).store.list_jobs() == (theirs,)
    assert (await ask(rig, "GET", "", token="wrong"))[0] == 401


async def test_the_description_is_accurate(rig: Rig) -> None:
    await own(rig)
    await ask(rig, "POST", "/mine/pause")
    rig.model.script(Say("all quiet"))
    await ask(rig, "POST", "/mine/run")
    await settled(rig, "done")
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {BEARER}"}) as http,
        http.get(f"{rig.url}api/openapi.json") as answer,
    ):
        described = await answer.json()
    paths = {path: set(item) - {"parameters"} for path, item in described["paths"].items()}
    assert {path: ways for path, ways in paths.items() if path.startswith("/api/jobs")} == {
        "/api/jobs": {"get"}, "/api/jobs/{id}/runs": {"get"}, "/api/jobs/{id}/edit": {"post"},
        "/api/jobs/{id}/{action}": {"post"},
    }  # fmt: skip
    (job,), (run,) = (
        (await ask(rig, "GET", ""))[1]["jobs"],
        (await ask(rig, "GET", "/mine/runs"))[1]["runs"],
    )
    schemas = described["components"]["schemas"]
    assert set(job) == set(schemas["Job"]["properties"])
    assert set(run) == set(schemas["Run"]["properties"])
