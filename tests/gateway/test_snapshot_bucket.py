"""SNAPSHOT_STORE: what doctor says of it, /undo by it, and that it forgets whom the gateway does."""

from collections.abc import AsyncIterator

import pytest

from gateway.messages import digest
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.s3_server import KEY_ID, REGION, SECRET, S3Server
from tests.gateway.process import World
from tests.stories.rig import ADMIN, Rig


@pytest.fixture
async def s3() -> AsyncIterator[S3Server]:
    server = S3Server()
    await server.start()
    yield server
    await server.close()


def set_up(s3: S3Server, **more: str) -> dict[str, str]:
    known = {
        "SNAPSHOT_STORE": "s3://states/kept",
        "SNAPSHOT_S3_ENDPOINT": s3.url,
        "SNAPSHOT_S3_REGION": REGION,
        "SNAPSHOT_S3_KEY_ID": KEY_ID,
        "SNAPSHOT_S3_SECRET": SECRET,
    }
    return known | more


@pytest.mark.pick("a doctor in a process", 2)
async def test_doctor_tries_the_bucket(world: World, s3: S3Server) -> None:
    code, said = await world.command("doctor", SANDBOX_PROVIDER="unsafe-subprocess", **set_up(s3))
    assert code == 0 and "ok       snapshots: s3://states/kept takes and gives" in said
    assert s3.objects == {}
    wrong = set_up(s3, SNAPSHOT_S3_SECRET="another-secret-of-theirs")
    code, said = await world.command("doctor", SANDBOX_PROVIDER="unsafe-subprocess", **wrong)
    assert code == 1 and "wrong    snapshots: s3://states/kept: " in said
    assert "another-secret-of-theirs" not in said and "Traceback" not in said


@NEEDS_BWRAP
async def test_a_turn_is_taken_back_and_a_person_is_forgotten(rig: Rig, s3: S3Server) -> None:
    run = '{"command": "echo two > a.txt"}'
    rig.model.script(Call("run_command", run), Say("Done."))
    await rig.start(SANDBOX_PROVIDER="bwrap", **set_up(s3))
    place = rig.workspace(ADMIN)
    place.mkdir(parents=True)
    (place / "a.txt").write_text("one")
    rig.telegram.say(ADMIN, "change it")
    await rig.shows("Done.", ADMIN)
    await rig.quiet()
    top = f"states/kept/{digest(rig.where(ADMIN).id.encode())}"
    assert len(s3.names(f"{top}/contents/")) == 2 and len(s3.names(f"{top}/lists/")) == 2
    rig.telegram.say(ADMIN, "/undo")
    await rig.shows("The last request is undone", ADMIN)
    await rig.quiet()
    assert (place / "a.txt").read_text() == "one"
    assert rig.host.services.retention is not None
    assert await rig.host.services.retention.remove(rig.where(ADMIN).id)
    assert s3.objects == {}
