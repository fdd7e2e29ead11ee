"""A photo that a person sends is before the model's eyes, as it was sent, for as long as it is
part of the conversation."""

import json

from tests.fakes.model_server import Call, Say
from tests.fakes.pictures import PNG
from tests.stories.pictures_rig import photo, shown
from tests.stories.rig import PERSON, Rig


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
    await rig.shows("undone")
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("the same dot")
    await rig.quiet()
    assert shown(rig) == [PNG] and len(rig.model.requests) == 3


async def test_a_picture_of_the_workspace_is_shown_when_it_is_read(rig: Rig) -> None:
    await rig.start()
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "dot.txt").write_bytes(PNG)  # what it is called is not believed
    (rig.workspace() / "large.png").write_bytes(PNG + bytes(4_000_000))
    rig.model.script(read("dot.txt"), read("large.png"), read("none.png"), Say("a dot"))
    rig.telegram.say(PERSON, "what is on it?")
    await rig.shows("a dot")
    await rig.quiet()
    assert shown(rig) == [PNG]
    small, large, none = rig.seen(role="tool")
    assert "is shown to you" in small and "larger than 3 MB" in large and "none.png" in none


def read(path: str) -> Call:
    return Call("read_file", json.dumps({"path": path}))


async def test_what_is_no_picture_is_a_file_only(rig: Rig) -> None:
    await rig.start()
    photo(rig, b"not a picture at all", "what is this?")
    await rig.shows("ack")
    await rig.quiet()
    assert shown(rig) == [] and "incoming/photo_" in rig.seen(role="user")[-1]
