"""Falls back when a provider fails: to its next key, then to the next provider of the list.

A refused key is read from the settings again once, then rests. A request refused for its content
(400, a content policy) would be refused everywhere and never falls back. All routes but the last
try once, so that waits do not add up. People see the answer start again; the log says why.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.config.declaration import SettingsError
from agent_core.errors import ModelFailed
from agent_core.messages import Text, ToolResult
from agent_core.models.catalog import Catalog
from agent_core.models.endpoint import Endpoint
from agent_core.models.port import Delta, Model, ModelReply, ModelRequest, OnDelta, Restarted
from agent_core.models.providers import Effort
from agent_core.phrases import phrase

log = logging.getLogger("turnkeeper.models")

REST = 600.0
"""Seconds that a refused key rests. One over its rate limit rests as long as the provider asks."""
LEAST = 0.9
"""Tokens that a server counts for each word, at least, if it read them all."""
BYTES = 4
"""Bytes of a request that make a token, at most."""


class Keys:
    """A provider's keys in their order, with a client for each that was used. Safe to make
    clients in a thread: that may import an SDK."""

    def __init__(
        self,
        endpoints: tuple[Endpoint, ...],
        connect: Callable[[Endpoint], Model],
        reread: Callable[[], tuple[Endpoint, ...]],
    ) -> None:
        self.endpoints = endpoints
        self.provider = endpoints[0].provider
        self._connect = connect
        self._reread = reread
        self._clients: dict[str, Model] = {}
        self._rests: dict[str, float] = {}
        self._making = threading.Lock()

    def client(self, endpoint: Endpoint) -> Model:
        """Return the client with this key, created at first use."""
        known = self._clients.get(endpoint.api_key)
        if known is not None:
            return known
        with self._making:
            if endpoint.api_key not in self._clients:
                self._clients[endpoint.api_key] = self._connect(endpoint)
            return self._clients[endpoint.api_key]

    def has_client(self, endpoint: Endpoint) -> bool:
        """Return True if the client with this key exists."""
        return endpoint.api_key in self._clients

    def rest(self, endpoint: Endpoint, seconds: float) -> None:
        """Use this key only where there is no other one for so long."""
        self._rests[endpoint.api_key] = ambient.monotonic() + min(seconds, REST)

    def rests(self, endpoint: Endpoint) -> bool:
        """True if this key is better left alone for now."""
        return bool(self._rests) and self._rests.get(endpoint.api_key, 0.0) > ambient.monotonic()

    def reread(self) -> tuple[Endpoint, ...]:
        """Read the keys from the settings again; return the new ones. Reads files."""
        before = {endpoint.api_key for endpoint in self.endpoints}
        try:
            found = self._reread()
        except SettingsError as error:
            log.warning("keys_not_reread", extra={"provider": self.provider, "why": str(error)})
            return ()
        self.endpoints = found
        return tuple(endpoint for endpoint in found if endpoint.api_key not in before)

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


class Route(NamedTuple):
    """A model at a provider; "": the one that the request names."""

    keys: Keys
    model: str


class _Place(NamedTuple):
    """A route with one of its keys."""

    route: Route
    endpoint: Endpoint


class Chain:
    """A Model over several routes: the first one that can answers. `effort`: the reasoning effort
    for all; `catalog` is told of a window that turned out to be smaller."""

    def __init__(
        self,
        routes: tuple[Route, ...],
        effort: Effort | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        self.provider = routes[0].keys.provider
        self._routes = routes
        self._effort = effort
        self._catalog = catalog

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The whole answer to `request`; raises ModelFailed."""
        request = replace(request, effort=self._effort) if self._effort else request
        shown = False

        def show(delta: Delta) -> None:
            nonlocal shown
            shown = True
            on_delta(delta)

        failures: list[ModelFailed] = []
        reread: set[str] = set()
        left = self._places()
        while True:
            place, *left = left
            try:
                reply = await self._ask(place, request, show, bool(left))
                self._check_whole(place, request, reply)
            except ModelFailed as failed:
                failures.append(failed)
                if failed.fault in ("overflow", "truncated") and self._catalog is not None:
                    model = place.route.model or request.model
                    held = failed.window or _weigh(request) * 3 // 4
                    self._catalog.learn(place.route.keys.provider, model, held)
                left = await self._choose_next(place, failed, left, reread)
                if not left:
                    if shown and failed.fault == "truncated":
                        on_delta(Restarted())  # it answered only a part of the request
                    raise _join_failures(failures) from None
                _tell(_name(place, request), _name(left[0], request), failed)
                if shown:
                    shown = False
                    on_delta(Restarted())
            else:
                if place.route is self._routes[0]:
                    return reply
                return replace(reply, instead_of=f"{self.provider}/{request.model}")

    async def close(self) -> None:
        """Close all connections."""
        for route in self._routes:
            await route.keys.close()

    def _check_whole(self, place: _Place, request: ModelRequest, reply: ModelReply) -> None:
        """Raise ModelFailed if a server that cuts silently counted fewer tokens than the request
        has words."""
        provider, model = place.route.keys.provider, place.route.model or request.model
        read = reply.usage.input_tokens
        if not read or self._catalog is None or not self._catalog.find_trained(provider, model):
            return
        if read < _count_words(request) * LEAST:
            said = phrase("fault_truncated", name=provider, tokens=f"{read:,}")
            raise ModelFailed(said, "truncated", window=read)

    def _places(self) -> list[_Place]:
        """Return the places to ask, in order; resting keys only if there is nothing else."""
        every = [_Place(route, end) for route in self._routes for end in route.keys.endpoints]
        if len(every) == 1:
            return every
        return [place for place in every if not place.route.keys.rests(place.endpoint)] or every

    async def _ask(
        self, place: _Place, request: ModelRequest, show: OnDelta, more: bool
    ) -> ModelReply:
        route, endpoint = place
        client = (
            route.keys.client(endpoint)
            if route.keys.has_client(endpoint)
            else await asyncio.to_thread(route.keys.client, endpoint)
        )
        if more or route.model:
            retries = 0 if more else request.retries
            request = replace(request, model=route.model or request.model, retries=retries)
        return await client.complete(request, show)

    async def _choose_next(
        self, place: _Place, failed: ModelFailed, left: list[_Place], reread: set[str]
    ) -> list[_Place]:
        """Return the places to try after a failure."""
        keys = place.route.keys
        match failed.fault:
            case "rejected" | "overflow" | "truncated":
                return []
            case "auth":
                keys.rest(place.endpoint, REST)
                if keys.provider in reread:
                    return left
                reread.add(keys.provider)
                new = await asyncio.to_thread(keys.reread)
                return [*(_Place(place.route, endpoint) for endpoint in new), *left]
            case "unpaid":
                keys.rest(place.endpoint, REST)
                return left
            case "missing":
                return left  # another key may have it
            case "rate_limited":
                if failed.retry_after:
                    keys.rest(place.endpoint, failed.retry_after)
                return left
            case _:
                elsewhere = [other for other in left if other.route is not place.route]
                return elsewhere or ([] if failed.fault in ("timeout", "endless") else left)


def _weigh(request: ModelRequest) -> int:
    """Tokens of `request`, about: less than it has, so that a window learnt by it is no larger
    than the model's."""
    sent = (request.system, request.messages, request.tools)
    return len(msgspec.json.encode(sent)) // BYTES


def _count_words(request: ModelRequest) -> int:
    """Count the words of the instructions and messages: each has at least one token, in any
    language."""
    texts = [request.system]
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, ToolResult):
                texts.append(part.content)
    return sum(len(text.split()) for text in texts)


def _name(place: _Place, request: ModelRequest) -> str:
    return f"{place.route.keys.provider}/{place.route.model or request.model}"


def _tell(model: str, after: str, failed: ModelFailed) -> None:
    fields = {"model": model, "next": after, "fault": failed.fault, "why": str(failed)}
    log.warning("model_fell_back", extra=fields)


def _join_failures(failures: list[ModelFailed]) -> ModelFailed:
    """Join the failures of all places into one; it counts as the last one."""
    last = failures[-1]
    different = list({str(failed): failed for failed in failures}.values())
    if len(different) == 1:
        return last
    phrases = tuple(one for failed in different for one in failed.phrases)
    known = all(failed.phrases for failed in different)
    said = phrases if known else " ".join(map(str, different))
    return ModelFailed(said, last.fault, last.retry_after, last.window)
