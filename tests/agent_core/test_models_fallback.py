"""Where a call goes when a provider fails: the next key, the next provider, or nowhere."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from agent_core import ambient
from agent_core.errors import ModelFailed
from agent_core.messages import Text, Thinking, ToolCall, user
from agent_core.models.fallback import REST
from agent_core.models.port import Delta, ModelReply, ModelRequest, Restarted, TextDelta
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings, SettingsError
from tests.agent_core.asking import TOOL, ask, assistant, ignore, tool
from tests.fakes.model_server import (
    Call,
    Cut,
    Empty,
    Events,
    Fail,
    Hang,
    ModelServer,
    Say,
    Step,
    Stop,
)

Env = dict[str, str]
BROKEN = Events(("{nope",))
FAILING: dict[str, Step] = {
    "over its rate": Fail(429, retry_after=30.0),
    "out of order": Fail(500),
    "overloaded": Fail(529),
    "not paid": Fail(402),
    "refused": Fail(401),
    "forbidden": Fail(403),
    "silent": Hang(),
    "cut": Cut(),
    "ended early": Stop(),
    "malformed": BROKEN,
    "empty": Empty(),
}


class Clock(ambient.SystemClock):
    """Goes on by itself and by hand."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    ambient.use(clock)
    yield clock
    ambient.use(ambient.SystemClock())


class Two:
    """An OpenAI and an Anthropic on loopback."""

    def __init__(self, openai: ModelServer, anthropic: ModelServer, env: Env) -> None:
        self.openai, self.anthropic, self.env = openai, anthropic, env
        self.models = Models(ModelSettings.read(env))

    def set(self, reread: Callable[[], ModelSettings] | None = None, **more: str) -> None:
        self.env |= more
        self.models = Models(ModelSettings.read(self.env), reread)

    async def ask(
        self,
        name: str = "pro",
        request: ModelRequest | None = None,
        deltas: list[Delta] | None = None,
    ) -> ModelReply:
        model, known_as = await asyncio.to_thread(self.models.pick, name)
        asked = ask(*(request.messages if request else ()), model=known_as, tools=(TOOL,))
        return await model.complete(asked, ignore if deltas is None else deltas.append)

    def keys(self, server: ModelServer) -> list[str]:
        return [
            (one.headers.get("Authorization") or one.headers["x-api-key"]).removeprefix("Bearer ")
            for one in server.requests
        ]


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    openai, anthropic = ModelServer(), ModelServer()
    env = {
        "OPENAI_API_KEY": "key-o1",
        "OPENAI_BASE_URL": f"{await openai.start()}/v1",
        "ANTHROPIC_API_KEY": "key-a1",
        "ANTHROPIC_BASE_URL": await anthropic.start(),
        "PRO_MODEL": "openai/big",
        "FALLBACK_PROVIDERS": "anthropic/other",
    }
    made = Two(openai, anthropic, env)
    yield made
    await made.models.close()
    await openai.close()
    await anthropic.close()


@pytest.mark.parametrize("kind", FAILING)
async def test_what_fails_is_asked_elsewhere_at_once(
    two: Two, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    if kind == "silent":
        two.set(MODEL_TIMEOUT="1")
    two.openai.script(FAILING[kind])
    two.anthropic.script(Say("from the other"))
    deltas: list[Delta] = []
    with caplog.at_level(logging.WARNING, "turnkeeper.models"):
        reply = await two.ask(deltas=deltas)
    assert (reply.provider, reply.model) == ("anthropic", "other")
    assert reply.instead_of == "openai/big"
    shown = deltas[deltas.index(Restarted()) + 1 :] if Restarted() in deltas else deltas
    assert "".join(d.text for d in shown if isinstance(d, TextDelta)) == "from the other"
    assert (Restarted() in deltas) == (kind in ("cut", "ended early"))
    assert (len(two.openai.requests), len(two.anthropic.requests)) == (1, 1)
    (said,) = [r for r in caplog.records if r.msg == "model_fell_back"]
    assert (said.__dict__["model"], said.__dict__["next"]) == ("openai/big", "anthropic/other")


@pytest.mark.parametrize("status", [400, 422])
async def test_what_is_not_accepted_is_asked_nowhere_else(two: Two, status: int) -> None:
    two.openai.script(Fail(status))
    with pytest.raises(ModelFailed) as caught:
        await two.ask()
    assert caught.value.fault == "rejected"
    assert two.anthropic.requests == []


@pytest.mark.parametrize(
    "refusal",
    [
        Fail(404, message="The model `big` does not exist"),
        Fail(402),
        Fail(429, body={"error": {"message": "You exceeded your current quota",
                                  "type": "insufficient_quota", "code": "insufficient_quota"}}),
        Fail(400, message="Your credit balance is too low to access the API."),
    ],
)  # fmt: skip
async def test_no_model_and_no_credit_are_not_everywhere(two: Two, refusal: Fail) -> None:
    two.openai.script(refusal)
    two.anthropic.script(Say("from the other"))
    assert (await two.ask()).instead_of == "openai/big"
    await two.models.close()
    two.set(FALLBACK_PROVIDERS="")
    two.openai.script(refusal)
    with pytest.raises(ModelFailed) as caught:
        await two.ask()
    unpaid = refusal.status != 404
    assert caught.value.fault == ("unpaid" if unpaid else "missing")
    assert ("no credit left" in str(caught.value)) == unpaid
    assert len(two.openai.requests) == 2, "it is not tried again"


async def test_what_one_key_may_not_use_another_may_and_both_go_on(two: Two) -> None:
    entry = {"name": "house", "base_url": two.env["OPENAI_BASE_URL"], "api_key": ["k-1", "k-2"]}
    two.set(OPENAI_COMPATIBLE_PROVIDERS=json.dumps([entry]), PRO_MODEL="house/big")
    for n in range(2):
        two.openai.script(Fail(403, message="No access to model `big`"), Say(f"the second {n}"))
        assert (await two.ask()).provider == "house"
    assert two.keys(two.openai) == ["k-1", "k-2"] * 2, "the first one is not set aside"
    assert two.anthropic.requests == []


async def test_a_pause_of_an_hour_is_not_made(two: Two) -> None:
    two.set(PRO_MODEL="anthropic/other", FALLBACK_PROVIDERS="")
    two.anthropic.script(Fail(429, retry_after=3600.0))
    with pytest.raises(ModelFailed) as caught:
        await two.ask()
    assert (caught.value.fault, caught.value.retry_after) == ("rate_limited", 3600.0)
    assert len(two.anthropic.requests) == 1


async def test_a_request_that_a_proxy_calls_too_large_is_too_long(two: Two) -> None:
    two.openai.script(Fail(413, message="Request Entity Too Large"))
    with pytest.raises(ModelFailed) as caught:
        await two.ask()
    assert caught.value.fault == "overflow"
    assert two.anthropic.requests == []


async def test_a_refusal_is_an_answer(two: Two) -> None:
    line = {"choices": [{"delta": {"content": "I will not."}, "finish_reason": "content_filter"}]}
    two.openai.script(Events((json.dumps(line),)))
    reply = await two.ask()
    assert (reply.finish, reply.instead_of) == ("refused", "")
    assert two.anthropic.requests == []


async def test_arguments_that_are_no_json_are_an_answer(two: Two) -> None:
    two.openai.script(Call("look", '{"path": '))
    reply = await two.ask()
    assert reply.parts == (ToolCall(id="call_1_0", name="look", arguments='{"path": '),)
    assert two.anthropic.requests == []


async def test_the_last_one_is_tried_as_often_as_a_single_one(two: Two) -> None:
    two.openai.script(Fail(500))
    two.anthropic.script(Fail(529, retry_after=0.01), Fail(500, retry_after=0.01), Say("third"))
    assert (await two.ask()).parts == (Text(text="third"),)
    assert (len(two.openai.requests), len(two.anthropic.requests)) == (1, 3)


async def test_a_connection_that_was_closed_meanwhile_is_no_failure(two: Two) -> None:
    """The provider ended an idle connection: the call is made again there, at once and once."""
    came = 0
    answer = {"choices": [{"message": {"content": "here"}, "finish_reason": "stop"}]}
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        if came in (2, 3, 4):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head.encode() + b"\r\nconnection: close\r\n\r\n" + body * (came == 2))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}/v1"
        two.set(OPENAI_BASE_URL=address, OPENAI_API_MODE="chat_completions")
        assert (await two.ask()).parts == (Text(text="here"),)
        assert came == 2
        came = 10
        assert (await two.ask()).provider == "anthropic"
        assert came == 12


async def test_when_all_fail_each_says_why(two: Two) -> None:
    two.openai.script(Fail(529))
    two.anthropic.script(Fail(401))
    with pytest.raises(ModelFailed) as caught:
        await two.ask()
    assert "openai is overloaded or down (529: scripted failure)" in str(caught.value)
    assert "anthropic rejected the API key (401). Check ANTHROPIC_API_KEY" in str(caught.value)


async def test_over_its_rate_the_next_key_is_tried_first(two: Two, clock: Clock) -> None:
    two.set(OPENAI_API_KEY="key-o1,key-o2")
    two.openai.script(Fail(429, retry_after=20.0), Say("second"), Say("second again"))
    reply = await two.ask()
    assert (reply.provider, reply.instead_of) == ("openai", "")
    await two.ask()
    assert two.keys(two.openai) == ["key-o1", "key-o2", "key-o2"]
    clock.ahead = 21.0
    await two.ask()
    assert two.keys(two.openai)[-1] == "key-o1"
    assert two.anthropic.requests == []


async def test_out_of_order_no_other_key_helps(two: Two) -> None:
    two.set(OPENAI_API_KEY="key-o1,key-o2")
    two.openai.script(Fail(503))
    assert (await two.ask()).provider == "anthropic"
    assert two.keys(two.openai) == ["key-o1"]


async def test_a_refused_key_rests(two: Two, clock: Clock) -> None:
    two.set(OPENAI_API_KEY="key-o1,key-o2")
    two.openai.script(Fail(401), Say("x"), Fail(401))
    await two.ask()
    assert (await two.ask()).provider == "anthropic"
    assert (await two.ask()).provider == "anthropic"
    assert two.keys(two.openai) == ["key-o1", "key-o2", "key-o2"]
    clock.ahead = REST + 1
    assert (await two.ask()).provider == "openai"
    assert two.keys(two.openai)[-1] == "key-o1"


async def test_a_refused_key_that_is_alone_is_tried_again(two: Two) -> None:
    two.set(FALLBACK_PROVIDERS="")
    two.openai.script(Fail(401), Say("paid"))
    with pytest.raises(ModelFailed, match=r"rejected the API key \(401\). Check OPENAI_API_KEY"):
        await two.ask()
    assert (await two.ask()).parts == (Text(text="paid"),)


async def test_a_refused_key_is_read_anew(two: Two) -> None:
    two.set(lambda: ModelSettings.read(two.env))
    two.env["OPENAI_API_KEY"] = "key-new"
    two.openai.script(Fail(401), Say("x"), Say("y"))
    assert (await two.ask()).provider == "openai"
    await two.ask()
    assert two.keys(two.openai) == ["key-o1", "key-new", "key-new"]
    assert two.anthropic.requests == []


async def test_settings_that_cannot_be_read_anew_stop_nothing(
    two: Two, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> ModelSettings:
        raise SettingsError("OPENAI_API_KEY", "", "is gone.")

    two.set(broken)
    two.openai.script(Fail(401))
    with caplog.at_level(logging.WARNING, "turnkeeper.models"):
        assert (await two.ask()).provider == "anthropic"
    assert "keys_not_reread" in [record.msg for record in caplog.records]


async def test_a_single_provider_is_tried_as_before(two: Two) -> None:
    two.set(FALLBACK_PROVIDERS="")
    two.openai.script(Fail(500, retry_after=0.01), Cut(), Say("third"))
    reply = await two.ask()
    assert (reply.parts, reply.instead_of) == ((Text(text="third"),), "")
    assert len(two.openai.requests) == 3


async def test_thinking_does_not_go_to_another_provider(two: Two) -> None:
    mine = Thinking(text="private", provider="openai")
    theirs = Thinking(text="signed", provider="anthropic", signature="sig-9")
    call = ToolCall(id="c1", name="look", arguments="{}")
    history = ask(user("hi"), assistant(mine, theirs, call), tool("c1"))
    two.openai.script(Fail(500))
    await two.ask(request=history)
    assert b"private" in two.openai.requests[0].raw
    assert b"sig-9" not in two.openai.requests[0].raw
    assert b"private" not in two.anthropic.requests[0].raw
    assert b"sig-9" in two.anthropic.requests[0].raw


async def test_work_beside_has_a_chain_of_its_own(two: Two) -> None:
    two.set(AUXILIARY_COMPRESSION="anthropic/small, openai/tiny", FLASH_MODEL="openai/quick")
    two.models.check()
    assert two.models.describe("auxiliary.compression") == "anthropic/small"
    two.anthropic.script(Fail(529))
    reply = await two.ask("auxiliary.compression")
    assert (reply.model, reply.instead_of) == ("tiny", "anthropic/small")
    two.openai.script(Fail(529))
    reply = await two.ask("auxiliary.vision")
    assert (reply.model, reply.instead_of) == ("other", "openai/quick")
    with pytest.raises(SettingsError, match="name one of: vision, compression, web_extract, ses"):
        two.models.pick("auxiliary.nothing")


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"FALLBACK_PROVIDERS": "gpt"}, "FALLBACK_PROVIDERS=gpt: write provider/model,provider/"),
        ({"FALLBACK_PROVIDERS": "nobody/x"}, "FALLBACK_PROVIDERS=nobody: no such provider"),
        ({"FALLBACK_PROVIDERS": "gemini/x"}, "FALLBACK_PROVIDERS=gemini: it has no key; set GEM"),
        ({"AUXILIARY_VISION": "nobody/x"}, "AUXILIARY_VISION=nobody: no such provider"),
        ({"AUXILIARY_WEB_EXTRACT": "/x"}, "AUXILIARY_WEB_EXTRACT=/x: write provider/model"),
        ({"MODEL_TIMEOUT": "0"}, "MODEL_TIMEOUT=0: write seconds, from 0.1 to 3600."),
        ({"OPENAI_API_MODE": "grpc"}, "OPENAI_API_MODE=grpc: use chat_completions or codex_resp"),
    ],
)
def test_chains_that_cannot_work_are_said_at_the_start(env: Env, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Models(ModelSettings.read({"OPENAI_API_KEY": "k"} | env)).check()
    assert str(caught.value).startswith(text)


async def test_keys_of_a_compatible_provider(two: Two) -> None:
    entry = {"name": "house", "base_url": two.env["OPENAI_BASE_URL"], "api_key": ["k-1", "k-2"]}
    two.set(
        OPENAI_COMPATIBLE_PROVIDERS=json.dumps([entry]),
        PRO_MODEL="house/m",
        FALLBACK_PROVIDERS="openai/big,house/m",
    )
    two.openai.script(Fail(429), Fail(429), Say("x"))
    reply = await two.ask()
    assert (reply.provider, reply.instead_of) == ("openai", "house/m")
    assert two.keys(two.openai) == ["k-1", "k-2", "key-o1"]


async def test_openai_by_its_responses(two: Two) -> None:
    two.set(OPENAI_API_MODE="codex_responses")
    two.anthropic.script(Say("x"))
    await two.ask()
    assert two.openai.requests[0].path == "/v1/responses"
    two.openai.script(Fail(500))
    assert (await two.ask()).provider == "anthropic"
