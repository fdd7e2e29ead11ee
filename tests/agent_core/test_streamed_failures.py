"""Errors within a stream, through the whole chain of keys and providers: each place is asked once
for what it cannot give, and what was shown of a lost answer is taken back once."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from agent_core.errors import ModelFailed
from agent_core.models.fallback import Chain, Keys, Route
from agent_core.models.port import Delta, Restarted, TextDelta
from agent_core.settings import Endpoint
from tests.agent_core.asking import ask
from tests.agent_core.streams_rig import BLOCK, WIRES, events, words, write
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import RawServer, head, serving

RETRIES = 1
FAILURES: dict[str, tuple[Json, str]] = {
    "401": ({"code": 401, "message": "no"}, "auth"),
    "named": ({"type": "authentication_error", "message": "no"}, "auth"),
    "403": ({"code": 403, "message": "invalid api key"}, "auth"),
    "429": ({"code": 429, "message": "slow down. Try again in 20m."}, "rate_limited"),
    "limit": ({"type": "rate_limit_error", "message": "slow down"}, "rate_limited"),
    "overloaded": ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
    "500": ({"code": "500", "message": "broke"}, "overloaded"),
    "unpaid": ({"code": "insufficient_quota", "message": "pay"}, "unpaid"),
    "invalid": ({"code": 400, "message": "bad"}, "rejected"),
}
RESTS = ("auth", "unpaid")
"""Failures after which a key rests, whatever they say."""


def begin(wire: str) -> list[Json]:
    """Events that say a part of an answer."""
    match wire:
        case "chat":
            return events("chat")[:1]
        case "responses":
            return [{"type": "response.output_text.delta", "output_index": 0, "delta": "hel"}]
    start = {"type": "content_block_start", "index": 0, "content_block": BLOCK}
    said = {"type": "text_delta", "text": "hel"}
    return [start, {"type": "content_block_delta", "index": 0, "delta": said}]


def whole(wire: str) -> list[Json]:
    """Events that say hello, in two pieces."""
    match wire:
        case "chat":
            return events("chat")
        case "responses":
            more = {"type": "response.output_text.delta", "output_index": 0, "delta": "lo"}
            return [*begin(wire), more, *events(wire)]
    said = {"type": "text_delta", "text": "lo"}
    more = {"type": "content_block_delta", "index": 0, "delta": said}
    return [*begin(wire), more, *events(wire)[3:]]


def break_off(wire: str, error: Json, *, begun: bool) -> bytes:
    told = {"error": error} if wire == "chat" else {"type": "error", "error": error}
    return head() + write([*(begin(wire) if begun else ()), told])


@dataclass
class Place:
    """A key, and the answers that it gets; the last one again and again."""

    key: str
    answers: list[bytes]
    server: RawServer = field(init=False)

    def answer(self, n: int) -> bytes:
        return self.answers[min(n, len(self.answers)) - 1]


@contextlib.asynccontextmanager
async def chained(wire: str, *routes: list[Place]) -> AsyncIterator[tuple[Chain, list[Keys]]]:
    async with contextlib.AsyncExitStack() as stack:
        made = []
        for n, places in enumerate(routes):
            ends = []
            for place in places:
                base, place.server = await stack.enter_async_context(serving(place.answer))
                ends.append(
                    Endpoint(provider=f"p{n}", api_key=place.key, base_url=base, retries=RETRIES)
                )
            made.append(Keys(tuple(ends), lambda end: WIRES[wire](end), lambda e=tuple(ends): e))
        chain = Chain(tuple(Route(keys, "m") for keys in made))
        yield chain, made
        await chain.close()


def watch(shown: list[Delta]) -> str:
    """The words that stand there at the end."""
    text = ""
    for delta in shown:
        text = "" if isinstance(delta, Restarted) else text
        text += delta.text if isinstance(delta, TextDelta) else ""
    return text


async def run(chain: Chain, wanted: str = "hello") -> str:
    """Ask once; return the fault. The words shown are those of the answer."""
    shown: list[Delta] = []
    try:
        reply = await chain.complete(ask(), shown.append)
    except ModelFailed as failed:
        return failed.fault
    assert watch(shown) == words(reply) == wanted
    return ""


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("begun", [False, True])
async def test_another_key_answers(wire: str, kind: str, begun: bool) -> None:
    error, fault = FAILURES[kind]
    first = Place("k1", [break_off(wire, error, begun=begun)])
    second = Place("k2", [head() + write(whole(wire))])
    async with chained(wire, [first, second]) as (chain, (keys,)):
        told = await run(chain)
        assert told == ("rejected" if fault == "rejected" else "")
        assert (first.server.asked, second.server.asked) == (1, 0 if told else 1)
        rested = fault in RESTS or kind == "429"
        assert keys.rests(keys.endpoints[0]) == rested and not keys.rests(keys.endpoints[1])
        await run(chain)
        assert first.server.asked == (1 if rested else 2)


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("keys", [1, 2])
async def test_another_provider_answers(wire: str, kind: str, begun: bool, keys: int) -> None:
    error, fault = FAILURES[kind]
    failing = [Place(f"k{n}", [break_off(wire, error, begun=begun)]) for n in range(keys)]
    other = Place("other", [head() + write(whole(wire))])
    async with chained(wire, failing, [other]) as (chain, _):
        told = await run(chain)
        assert told == ("rejected" if fault == "rejected" else "")
        elsewhere = fault in ("overloaded", "rejected")
        asked = [place.server.asked for place in failing]
        assert asked == [1, *([0 if elsewhere else 1] * (keys - 1))]
        assert other.server.asked == (0 if told else 1)


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("begun", [False, True])
async def test_the_only_key_is_asked_again_only_for_what_passes(
    wire: str, kind: str, begun: bool
) -> None:
    error, fault = FAILURES[kind]
    passes = fault in ("rate_limited", "overloaded") and kind != "429"
    answers = [break_off(wire, error, begun=begun), head() + write(whole(wire))]
    only = Place("k", answers)
    async with chained(wire, [only]) as (chain, _):
        assert await run(chain) == ("" if passes else fault)
        assert only.server.asked == (2 if passes else 1)
    only = Place("k", answers[:1])
    async with chained(wire, [only]) as (chain, _):
        assert await run(chain) == fault
        assert only.server.asked == (RETRIES + 1 if passes else 1)


@pytest.mark.parametrize("wire", ["chat", "responses", "anthropic"])
async def test_all_fail_and_each_is_told(wire: str) -> None:
    kinds = ("401", "429", "overloaded")
    places = [
        Place(f"k{n}", [break_off(wire, FAILURES[kind][0], begun=n > 0)])
        for n, kind in enumerate(kinds)
    ]
    async with chained(wire, places[:2], places[2:]) as (chain, _):
        with pytest.raises(ModelFailed) as caught:
            await chain.complete(ask(), lambda delta: None)
    assert [place.server.asked for place in places] == [1, 1, RETRIES + 1]
    assert all(sign in str(caught.value) for sign in ("401", "429", "529"))
