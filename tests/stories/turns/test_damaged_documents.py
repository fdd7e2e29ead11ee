"""A document about a person that cannot be read (damaged, of another version, a zone that this
machine does not know) holds nobody up: it counts as missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.services.memory import decode_sheet
from tests.contracts.redis_server import RedisServer, redis_server
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, PERSON, STRANGER, Rig

BODIES = {
    "half": b'{"kind"', "object": b'{"kind": "of the future"}', "list": b"[5]", "bytes": b"\xff\0",
    "empty": b"", "name": b"Mars/Olympus",
}  # fmt: skip
KINDS = (
    "person", "identity", "quota", "zone", "zonetold", "standing", "memory:own", "shown", "wrong"
)  # fmt: skip
ADD = '{"action": "add", "target": "user", "text": "likes tea"}'


@pytest.fixture
def url(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    server: RedisServer = redis_server(tmp_path)
    yield server.url
    server.end()


@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
@pytest.mark.parametrize("body", BODIES)
async def test_people_are_answered_all_the_same(rig: Rig, url: str, body: str) -> None:
    await rig.start(QUOTA_TURNS_PER_HOUR="50", **({"REDIS_URL": url} if url else {}))
    directory = rig.host.services.store
    for n, kind in enumerate(KINDS):
        for person in (PERSON, ADMIN, STRANGER):
            await directory.put(f"{kind}:telegram:{person}", BODIES[body])
        rig.model.script(Say(f"answer {n} a"), Say(f"answer {n} b"))
        for person, name in ((PERSON, "a"), (ADMIN, "b")):
            rig.telegram.say(person, f"question {n}")
            await rig.shows(f"answer {n} {name}", person)
        rig.telegram.say(STRANGER, f"question {n}")
        await rig.until(lambda: len(rig.said(STRANGER)) == n + 1)  # noqa: B023
    assert all("Show this code" in text for text in rig.said(STRANGER))
    assert await directory.letters(9) == ()


async def test_a_memory_that_cannot_be_read_is_not_overwritten(rig: Rig) -> None:
    place = f"memory:own:telegram:{PERSON}"
    await rig.start()
    await rig.store.put(place, b'{"of": "the future"')
    rig.model.script(Call("memory", ADD), Say("It could not be stored."))
    rig.telegram.say(PERSON, "remember that I like tea")
    await rig.shows("could not be stored")
    await rig.quiet()
    assert "could not be stored" in rig.seen(role="tool")[-1]
    assert await rig.store.get(place) == b'{"of": "the future"'
    rig.telegram.say(PERSON, "/memory clear")
    await rig.shows("All memory here was cleared")
    assert decode_sheet(await rig.store.get(place) or b"").memory == ()
