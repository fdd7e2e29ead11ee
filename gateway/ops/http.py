"""The HTTP server: health, readiness, metrics, and the routes of adapters."""

import asyncio
import errno
import importlib
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct

from agent_core import ambient
from agent_core.config.declaration import Setting
from gateway.conversation.slots import Slots
from gateway.errors import StoreFailed
from gateway.ops.connection_limits import ConnectionLimits
from gateway.ports import Adapter
from gateway.settings import PORT
from gateway.store.port import PROBED, Store

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

log = logging.getLogger("turnkeeper.http")

MAX_BODY = 1 << 20
"""Bytes of a body that a handler reads whole; uploads come in pieces, with a limit of their own."""
DEAF = 120.0
"""Seconds without contact after which an adapter is not ready: three long polls."""
GRACE = 2.0
"""Seconds that open requests get at a stop."""
PROBE, PROBE_SECONDS, PROBE_PATIENCE = "probe", 1.0, 2.0
"""A document of the store; seconds for which a result counts, and that writing it may take."""
WRITABLE = "writable"


_ABOUT_US = ("origin", "sec-fetch-site")
_DECIDES = re.compile(
    r"origin|sec-fetch-site|authorization|webhook-id"
    r"|(?:[a-z-]{1,40}-)?(?:signature(?:-256)?|timestamp|secret-token)"
)
"""Headers that identify a request's page or sender; aiohttp itself refuses a repeated Host."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Guard = Callable[[Handler], Handler]
"""Lets through who may."""


class Condition(Struct, frozen=True, kw_only=True):
    """The state of one adapter. `age`: seconds since inbound was last proven live, None before."""

    ready: bool
    age: float | None = None
    error: str = ""


class Readiness(Struct, frozen=True, kw_only=True):
    """Conditions for accepting a message."""

    ready: bool
    store: str
    adapters: dict[str, Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the process. `adapters` may still grow; `failed`: adapters that gave up, and
    why; `sessions`: conversations at work."""

    store: Store
    counters: Mapping[str, int]
    slots: Slots
    sessions: Sized
    adapters: Mapping[str, Adapter]
    failed: dict[str, str] = field(default_factory=dict)
    stopping: Callable[[], bool] = lambda: False
    """True once it was told to stop: it takes no new traffic."""
    probe: "StoreProbe" = field(default_factory=lambda: StoreProbe())

    async def readiness(self) -> Readiness:
        """The state of all that a message needs on its way in."""
        store = await self.probe.state(self.store)
        adapters = {name: self.condition(name) for name in self.adapters}
        ready = store == WRITABLE and all(one.ready for one in adapters.values())
        ready = ready and not self.stopping()
        return Readiness(ready=ready, store=store, adapters=adapters)

    def condition(self, platform: str) -> Condition:
        """The state of one adapter."""
        contact = self.adapters[platform].last_contact
        if platform in self.failed or not contact:
            return Condition(ready=False, error=self.failed.get(platform, ""))
        age = ambient.monotonic() - contact
        return Condition(ready=age < DEAF, age=round(age, 3))


class StoreProbe:
    """Tests whether the store can be written, at most once a second, however many ask."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._known: tuple[float, str] | None = None

    async def state(self, store: Store) -> str:
        """WRITABLE, or why it is not."""
        async with self._lock:
            if self._known is None or ambient.monotonic() - self._known[0] >= PROBE_SECONDS:
                said = WRITABLE
                try:
                    async with ambient.limit(PROBE_PATIENCE):
                        await store.put(PROBE, PROBED)
                except StoreFailed as error:
                    said = str(error)
                except TimeoutError:
                    said = f"no answer within {PROBE_PATIENCE:g} s"
                self._known = ambient.monotonic(), said
            return self._known[1]


def listen(host: str, port: int, setting: Setting[int] = PORT) -> socket.socket:
    """Open a listening socket; SettingsError, which names the `setting` of the port, if the address
    cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        where, why = f"{host}:{port}", os.strerror(number) if number else str(error)
        mend = f"cannot listen on {where} ({why})"
        if number == errno.EADDRINUSE:
            mend += "; stop the program that does, or choose another port (0: any)"
        raise setting.error("", f"{mend}.") from None


@asynccontextmanager
async def serve(
    listening: socket.socket,
    health: Health,
    routes: Iterable[web.AbstractRouteDef],
    guard: Guard,
    most_each: int = 0,
) -> AsyncIterator[None]:
    """Serve at `listening` while the body runs. `guard` protects /metrics; one address may hold
    `most_each` connections (0: as `ConnectionLimits` says)."""

    async def healthz(request: web.Request) -> web.Response:
        failed = health.store.failed
        return web.Response(text="failed\n" if failed else "ok\n", status=503 if failed else 200)

    async def readyz(request: web.Request) -> web.Response:
        state = await health.readiness()
        status = 200 if state.ready else 503
        return web.Response(text="ready\n" if state.ready else "unready\n", status=status)

    logging.getLogger("aiohttp.server").addFilter(_is_ours)
    limits = ConnectionLimits(most_each=most_each)
    app = web.Application(
        client_max_size=MAX_BODY, middlewares=[limits.watch, check_target, word_errors]
    )
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    app.add_routes([web.get("/metrics", guard(Metrics(health).scrape)), *routes])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=GRACE)
    await runner.setup()
    loop, make = asyncio.get_running_loop(), runner.server
    if make is None:
        raise RuntimeError("the runner is set up")
    server = await loop.create_server(partial(limits.protocol, make), sock=listening, backlog=256)
    try:
        yield
    finally:
        server.close()
        limits.close()
        await runner.cleanup()


def _find_doubled(headers: "CIMultiDictProxy[str]") -> str:
    """Return a security-relevant header that has several values, "" if there is none. A proxy in
    front may have checked another value than the one used here."""
    names = dict.fromkeys(name.lower() for name in headers if _DECIDES.fullmatch(name.lower()))
    return next((name for name in names if len(set(headers.getall(name))) > 1), "")


@web.middleware
async def check_target(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a request with contradictory heads: a repeated header, or a request line that names
    another host, which RFC 9112, section 3.2.2, gives precedence."""
    if doubled := _find_doubled(request.headers):
        said = {"error": f"The header {doubled} has several values. Send one."}
        return web.json_response(said, status=400 if doubled in _ABOUT_US else 401)
    target = request.raw_path
    if not target.startswith("/"):
        host = re.split(r"[/?#]", target.partition("://")[2], maxsplit=1)[0]
        if host.lower() != request.headers.get("Host", "").lower():
            said = {"error": "The request's first line and its Host name different hosts."}
            return web.json_response(said, status=400)
    return await handler(request)


@web.middleware
async def word_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A path or method that the API does not know is refused as JSON, like all else there; so is
    a body that cannot be read."""
    try:
        return await handler(request)
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed) as error:
        if not request.path.startswith("/api/"):
            raise
        said = {"error": f"{error.reason}. /api/openapi.json says what there is."}
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return web.json_response(said, status=error.status, headers=headers)
    except web.RequestPayloadError:
        said = {"error": "The body cannot be read as its Content-Encoding says."}
        return web.json_response(said, status=400)
    except ConnectionResetError:
        if request.transport is not None and not request.transport.is_closing():
            raise
        raise web.HTTPBadRequest from None  # the client disconnected within the body


def _is_ours(record: logging.LogRecord) -> bool:
    """Return True if aiohttp's log record is an error of the gateway. Data that is not HTTP is the
    client's error: anybody who connects could fill the log with it."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError | web.RequestPayloadError):
        log.debug("no_http", extra={"kind": type(error).__name__})
        return False
    return True


class Metrics:
    """/metrics. The Prometheus client is imported at the first scrape."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def scrape(self, request: web.Request) -> web.Response:
        """Render the metrics of this process."""
        await asyncio.to_thread(importlib.import_module, "prometheus_client")
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        body = await asyncio.to_thread(generate_latest, registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4"})

    def collect(self) -> "Iterable[CounterMetricFamily | GaugeMetricFamily]":
        """Collect like a Prometheus collector."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        health = self._health
        own = [(name, getattr(health.store, name, 0)) for name in ("commits", "losses")]
        for name, value in sorted((*health.counters.items(), *own)):
            words = name.replace("_", " ")
            yield CounterMetricFamily(f"turnkeeper_{name}", f"{words} so far", value=value)
        sessions = len(health.sessions)
        yield GaugeMetricFamily("turnkeeper_sessions", "conversations at work", value=sessions)
        slots = health.slots
        yield GaugeMetricFamily("turnkeeper_turns_running", "turns at work", value=slots.running)
        yield GaugeMetricFamily(
            "turnkeeper_turns_waiting", "turns that wait for a place", value=slots.waiting
        )
        yield GaugeMetricFamily("turnkeeper_rss_bytes", "memory of this process", value=_rss())


def _rss() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
