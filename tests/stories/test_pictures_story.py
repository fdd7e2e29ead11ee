"""A photo that a person sends is before the model's eyes, as it was sent, for as long as it is
part of the conversation."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent_core.test_pictures import PNG
from tests.fakes.model_server import Say
from tests.stories.rig import PERSON, Rig, living, quick


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    quick(monkeypatch)
    async with living(tmp_path) as made:
        yield made


def photo(rig: Rig, data: bytes, caption: str) -> None:
    rig.telegram.files["p"] = data
    size = {"file_id": "p", "file_unique_id": "u", "width": 10, "height": 10}
    rig.telegram.say(PERSON, "", caption=caption, photo=[size | {"file_size": len(data)}])


def shown(rig: Rig, n: int = -1) -> list[bytes]:
    return [
        base64.b64decode(part["image_url"]["url"].partition(",")[2])
        for message in rig.model.requests[n].body["messages"]
        for part in (message["content"] if isinstance(message["content"], list) else ())
        if part["type"] == "image_url"
    ]


async def test_a_photo_is_seen_and_stays_as_it_was(rig: Rig) -> None:
    rig.model.script(Say("a dot"), Say("a dot still"), Say("the same dot"))
    await rig.start()
    photo(rig, PNG, "what is this?")
    await rig.shows("a dot")
    await rig.quiet()
    assert shown(rig) == [PNG]
    assert "[file: incoming/photo_" in str(rig.seen(role="user"))
    (path,) = (rig.workspace() / "incoming").iterdir()
    path.write_bytes(b"something else")
    await rig.crash()
    await rig.start()
    rig.telegram.say(PERSON, "are you sure?")
    await rig.shows("a dot still")
    await rig.quiet()
    first, second = (request.body["messages"] for request in rig.model.requests)
    assert shown(rig) == [PNG] and second[: len(first)] == first
    rig.telegram.say(PERSON, "/undo")
    await rig.shows("taken back")
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("the same dot")
    await rig.quiet()
    assert shown(rig) == [PNG] and len(rig.model.requests) == 3


async def test_what_is_no_picture_is_a_file_only(rig: Rig) -> None:
    await rig.start()
    photo(rig, b"not a picture at all", "what is this?")
    await rig.shows("ack")
    await rig.quiet()
    assert shown(rig) == [] and "incoming/photo_" in rig.seen(role="user")[-1]
