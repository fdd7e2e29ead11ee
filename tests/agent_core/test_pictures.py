"""Pictures that people give are seen by models that can see, and named to those that cannot."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_core.context.compression import PICTURE, estimate
from agent_core.context.pictures import MAX_SHOWN, attach_pictures, kind
from agent_core.errors import ModelFailed
from agent_core.messages import Message, Text, text_of, user
from agent_core.models.port import Model, ModelRequest
from agent_core.settings import Endpoint
from agent_core.tools.send import FileStore
from tests.agent_core.asking import KEY, ask, assistant, ignore
from tests.fakes.model_server import Fail, ModelServer, Say
from tests.fakes.pictures import MAKERS, PNG, one


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer(key=KEY)
    yield server
    await server.close()


@pytest.fixture(params=MAKERS)
async def model(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[Model]:
    path, make = MAKERS[request.param]
    url = f"{await server.start()}{path}"
    made: Any = make(Endpoint(provider="p", base_url=url, api_key=KEY, key_setting="P_API_KEY"))
    yield made
    await made.close()


async def asked(*messages: Message) -> ModelRequest:
    return await attach_pictures(ask(*messages), lambda ref: PNG + ref.encode())


def images(server: ModelServer, n: int = -1) -> list[bytes]:
    """What was shown in a request, whatever its protocol."""
    body = server.requests[n].body
    found = []
    for message in body.get("messages", body.get("input", ())):
        content = message["content"]
        for part in content if isinstance(content, list) else ():
            match part:
                case {"image_url": {"url": url}} | {"image_url": url} if isinstance(url, str):
                    found.append(base64.b64decode(url.partition(",")[2]))
                case {"source": {"data": data}}:
                    found.append(base64.b64decode(data))
    return found


async def test_a_model_sees_it_where_it_was_given(server: ModelServer, model: Model) -> None:
    server.script(Say("a cat"), Say("still a cat"))
    first = user("what is this?", (one("a"),))
    answer = await model.complete(await asked(first), ignore)
    assert text_of(Message(role="assistant", parts=answer.parts)) == "a cat"
    assert images(server) == [PNG + b"a"]
    await model.complete(await asked(first, assistant(Text(text="a cat")), user("sure?")), ignore)
    turns = "input" if "input" in server.requests[0].body else "messages"
    before, after = (request.body[turns] for request in server.requests)

    assert after[: len(before)] == before, "each request begins with the one before it"


async def test_a_model_that_cannot_see_is_told_what_there_is(
    server: ModelServer, model: Model
) -> None:
    server.script(Fail(400, message="no image input"), Say("I cannot see"), Say("no"), Say("yes"))
    question = user("what is this?", (one("a"),))
    await model.complete(await asked(question), ignore)
    assert [len(images(server, n)) for n in (0, 1)] == [1, 0]
    assert "incoming/a.png cannot be shown" in str(server.requests[1].body)
    await model.complete(await asked(question), ignore)
    assert len(server.requests) == 3 and not images(server), "it is not tried again"
    await model.complete(await asked(question, user("and this?", (one("b"),))), ignore)
    assert images(server) == [PNG + b"b"], "another picture may be better"


async def test_a_refusal_for_another_reason_is_what_is_told(
    server: ModelServer, model: Model
) -> None:
    server.script(Fail(400, message="no such model"), Fail(400, message="no such model"), Say("ok"))
    with pytest.raises(ModelFailed) as failed:
        await model.complete(await asked(user("x", (one("a"),))), ignore)
    assert "no such model" in str(failed.value)
    await model.complete(await asked(user("x", (one("a"),))), ignore)
    assert images(server) == [PNG + b"a"], "it was not the picture's fault"


async def test_the_newest_are_shown_and_what_is_gone_is_named() -> None:
    large = MAX_SHOWN // 2 - 100
    history = (
        user("1", (one("old", large),)),
        user("2", (one("newer", large), one("gone"))),
        user("3", (one("newest", large), one("small", 5))),
    )

    def read(ref: str) -> bytes:
        if ref == "gone":
            raise FileNotFoundError(ref)
        return ref.encode()

    request = await attach_pictures(ask(*history), read)
    assert set(request.pictures) == {"newest", "newer", "small"}
    nothing = ask(user("x"))
    assert await attach_pictures(nothing, read) is nothing


@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (PNG[:12], "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg"),
        (b"GIF89a\0\0\0\0\0\0", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"<svg xmlns=", ""),
        (b"", ""),
    ],
)
def test_what_a_picture_is_shows_in_its_first_bytes(head: bytes, mime: str) -> None:
    assert kind(head) == mime


def test_a_picture_counts_in_the_room() -> None:
    assert estimate((user("x", (one("a"),)),)) - estimate((user("x"),)) >= PICTURE


def test_a_copy_that_was_forgotten_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    kept = FileStore(tmp_path / "kept")
    given = kept.keep(tmp_path, "a.png")
    assert kept.read(given.ref) == PNG
    assert kept.forget(2e9) == 1
    with pytest.raises(OSError, match=given.ref):
        kept.read(given.ref)
