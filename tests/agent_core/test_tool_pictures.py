"""A picture that a tool gave stands before the model's eyes in each protocol's own way, stays in
the journal, and no request is rewritten for it."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agent_core.context.compression import PICTURE, estimate
from agent_core.context.pictures import MAX_COUNTED, attach_pictures
from agent_core.context.transcript import messages_of
from agent_core.journal import Replied, ToolFinished, decode, encode
from agent_core.messages import Message, Picture, Text, ToolCall, ToolOutput, ToolResult, user
from agent_core.models.google.client import Gemini
from agent_core.models.port import Model, ModelReply, ModelRequest
from agent_core.settings import Endpoint
from tests.agent_core.asking import KEY, ask, assistant, ignore
from tests.agent_core.scope_rig import Crew, Disk, make
from tests.fakes.model_server import Fail, ModelServer, Say
from tests.fakes.pictures import MAKERS, PNG, one

EVERY = {**MAKERS, "google": ("", Gemini)}
CALL = ToolCall(id="c1", name="look", arguments="{}")


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer(key=KEY)
    yield server
    await server.close()


@pytest.fixture(params=EVERY)
async def model(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[Model]:
    path, provider = EVERY[request.param]
    url = f"{await server.start()}{path}"
    made: Any = provider(Endpoint(provider="p", base_url=url, api_key=KEY, key_setting="P_API_KEY"))
    yield made
    await made.close()


def gave(*pictures: Picture, content: str = "a page", error: bool = False) -> Message:
    result = ToolResult(call_id="c1", name="look", content=content, error=error, pictures=pictures)
    return Message(role="tool", parts=(result,))


async def asked(*messages: Message) -> ModelRequest:
    request = ask(*messages, model="gemini-3.8-flash")
    return await attach_pictures(request, lambda ref: PNG + ref.encode())


def images(value: object) -> Iterator[bytes]:
    """What is shown in a request, wherever it stands."""
    match value:
        case {"mimeType": _, "data": str(data)}:
            yield base64.urlsafe_b64decode(data)
        case {"media_type": _, "data": str(data)}:
            yield base64.b64decode(data)
        case str() if value.startswith("data:image/"):
            yield base64.b64decode(value.partition(",")[2])
        case dict():
            for inner in value.values():
                yield from images(inner)
        case list():
            for inner in value:
                yield from images(inner)


def turns(body: dict[str, Any]) -> Any:
    return body.get("messages") or body.get("input") or body["contents"]


async def test_each_provider_shows_it_behind_what_was_said(
    server: ModelServer, model: Model
) -> None:
    server.script(Say("a cat"), Say("a cat still"))
    history = (user("look"), assistant(CALL), gave(one("a"), one("b")))
    await model.complete(await asked(*history), ignore)
    assert list(images(server.requests[0].body)) == [PNG + b"a", PNG + b"b"]
    said = json.dumps(turns(server.requests[0].body))
    assert said.index("a page") < said.index(base64.b64encode(PNG).decode()[:40])
    more = (assistant(Text(text="a cat")), user("sure?"))
    await model.complete(await asked(*history, *more), ignore)
    before, after = (turns(request.body) for request in server.requests)
    assert after[: len(before)] == before, "each request begins with the one before it"


async def test_a_failure_is_words_alone(server: ModelServer, model: Model) -> None:
    server.script(Say("I see nothing"))
    history = (user("look"), assistant(CALL), gave(one("a"), error=True))
    await model.complete(await asked(*history), ignore)
    assert not list(images(server.requests[0].body))
    assert "incoming/a.png cannot be shown to you" in str(server.requests[0].body)


async def test_a_model_that_cannot_see_is_told_what_there_is(
    server: ModelServer, model: Model
) -> None:
    server.script(Fail(400, message="no image input"), Say("blind"), Say("blind"))
    request = await asked(user("look"), assistant(CALL), gave(one("a"), content=""))
    for _ in range(2):
        await model.complete(request, ignore)
    assert [len(list(images(one.body))) for one in server.requests] == [1, 0, 0]
    assert "incoming/a.png cannot be shown to you" in str(server.requests[2].body)


async def test_words_of_a_person_behind_it_keep_the_roles_in_turns(server: ModelServer) -> None:
    path, chat = MAKERS["chat"]
    model: Any = chat(Endpoint(provider="p", base_url=await server.start() + path, api_key=KEY))
    server.script(Say("yes"))
    history = (user("look"), assistant(CALL), gave(one("a")), user("and now?"))
    await model.complete(await asked(*history), ignore)
    _, *spoken = server.requests[0].body["messages"]
    assert [said["role"] for said in spoken] == ["user", "assistant", "tool", "user"]
    assert [part["type"] for part in spoken[-1]["content"]] == ["text", "image_url", "text"]
    await model.close()


async def test_the_record_keeps_it_and_a_replay_gives_it_back() -> None:
    async def look(token: str) -> ToolOutput:
        return ToolOutput(text="a page", pictures=(one("a"),))

    disk = Disk()
    for run in (look, None):
        _, scope = make(disk, Crew())
        result = await scope.tool(CALL, "effect", run)  # type: ignore[arg-type]
        assert result.pictures == (one("a"),)
    (record,) = (r for r in disk.records if isinstance(r, ToolFinished))
    assert decode(encode(record)) == record
    reply = Replied(key="r", reply=ModelReply(parts=(CALL,), model="m", provider="p"))
    assert messages_of((reply, record))[-1] == gave(one("a"))


async def test_the_oldest_go_in_leaps() -> None:
    """Between two leaps nothing is taken out of what was sent."""
    seen: list[set[str]] = []
    for count in range(MAX_COUNTED - 2, MAX_COUNTED + 40):
        history = tuple(gave(one(str(n), 10)) for n in range(count))
        seen.append(set((await asked(*history)).pictures))
    losses = [before - after for before, after in zip(seen, seen[1:], strict=False)]
    assert max(map(len, seen)) == MAX_COUNTED
    assert [len(lost) for lost in losses if lost] == [MAX_COUNTED // 2]


def test_it_counts_in_the_room() -> None:
    assert estimate((gave(one("a")),)) - estimate((gave(),)) >= PICTURE
