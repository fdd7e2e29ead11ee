"""Discord's gateway on loopback: sessions that outlive their connections, strictly."""

import asyncio
import contextlib
import itertools
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.discord_schema import fields

Json = dict[str, Any]
DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 6, 7, 9, 10, 11
SERVERS, MESSAGES, DIRECT, CONTENT = 1, 1 << 9, 1 << 12, 1 << 15
LEAST = SERVERS | MESSAGES | DIRECT
LIVE = (LEAST, LEAST | CONTENT)


@dataclass
class Known:
    """A session: its events with their numbers."""

    id: str
    intents: int
    events: list[Json] = field(default_factory=list)


@dataclass
class GatewayServer:
    """The websocket half of the server. `ops`: what clients did, by connection."""

    token: str
    user: Json
    application: Json
    url: str = ""
    violations: list[str] = field(default_factory=list)
    ops: list[tuple[int, int]] = field(default_factory=list)
    sessions: dict[str, Known] = field(default_factory=dict)
    refuse: int = 0
    """A close code for whoever identifies."""
    privileged: bool = True
    """The intent for what is said in servers is switched on."""
    heartbeat: int = 41_250

    def __post_init__(self) -> None:
        self._names = itertools.count(1)
        self._connections = itertools.count(1)
        self._open: dict[web.WebSocketResponse, Known] = {}
        self.changed = asyncio.Event()

    @property
    def connected(self) -> bool:
        return bool(self._open)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            self.violations.append(f"gateway query {dict(request.query)}")
        me = next(self._connections)
        await self._send(socket, HELLO, {"heartbeat_interval": self.heartbeat})
        try:
            async for frame in socket:
                if frame.type is not WSMsgType.TEXT:
                    break
                if len(frame.data) > 4096:
                    self.violations.append("a frame over 4096 bytes")
                await self._took(socket, me, frame.json())
        finally:
            self._open.pop(socket, None)
            self.note()
        return socket

    async def _took(self, socket: web.WebSocketResponse, me: int, frame: Json) -> None:
        op, data = frame.get("op"), frame.get("d")
        self.ops.append((me, op))
        match op:
            case 1:
                if data is not None and type(data) is not int:
                    self.violations.append(f"heartbeat with {data!r}")
                await self._send(socket, ACK)
            case 2:
                await self._identify(socket, data)
            case 6:
                await self._resume(socket, data)
            case _:
                self.violations.append(f"op {op}")
        self.note()

    async def _identify(self, socket: web.WebSocketResponse, data: Json) -> None:
        known = {
            "token!": lambda v: isinstance(v, str),
            "properties!": lambda v: set(v) == {"os", "browser", "device"},
            "compress": lambda v: isinstance(v, bool),
            "large_threshold": lambda v: 50 <= v <= 250,
            "intents!": lambda v: v in LIVE,
        }
        self.violations += fields(data, known, "identify")
        code = 4004 if data["token"] != self.token else self.refuse
        if data["intents"] & CONTENT and not self.privileged:
            code = 4014
        if code:
            await socket.close(code=code)
            return
        session = Known(f"session{next(self._names)}", data["intents"])
        self.sessions[session.id] = session
        self._open[socket] = session
        ready = {"v": 10, "user": self.user, "guilds": [], "session_id": session.id}
        ready |= {"resume_gateway_url": self.url, "application": self.application}
        await self.dispatch_to(session, "READY", ready)

    async def _resume(self, socket: web.WebSocketResponse, data: Json) -> None:
        known = {
            "token!": lambda v: v == self.token,
            "session_id!": lambda v: isinstance(v, str),
            "seq!": lambda v: type(v) is int,
        }
        self.violations += fields(data, known, "resume")
        session = self.sessions.get(data["session_id"])
        if session is None:
            await self._send(socket, INVALID, False)
            return
        for event in list(session.events):
            if event["s"] > data["seq"]:
                await socket.send_json(event)
        self._open[socket] = session
        await self.dispatch_to(session, "RESUMED", {"_trace": []})

    async def dispatch_to(self, session: Known, kind: str, data: Json) -> None:
        event = {"op": DISPATCH, "t": kind, "s": len(session.events) + 1, "d": data}
        session.events.append(event)
        for socket, mine in list(self._open.items()):
            if mine is session:
                with contextlib.suppress(ConnectionError):  # it was killed: a resume brings it
                    await socket.send_json(event)

    async def send_raw(self, text: str) -> None:
        """Send any text as a frame, to all."""
        for socket in list(self._open):
            with contextlib.suppress(ConnectionError):
                await socket.send_str(text)

    async def again(self, order: list[int]) -> None:
        """Send the last events once more, as they were: `order` counts from the end (-1)."""
        for socket, session in list(self._open.items()):
            for place in order:
                await socket.send_json(session.events[place])

    async def dispatch(self, kind: str, data: Json) -> None:
        """To the newest session, whether or not anybody is connected."""
        if not self.sessions:
            return
        session = list(self.sessions.values())[-1]
        await self.dispatch_to(session, kind, self.allowed(session, kind, data))

    def allowed(self, session: Known, kind: str, data: Json) -> Json:
        """Without the intent, what is said in servers comes empty unless the bot is mentioned."""
        mine = self.user["id"] in [one["id"] for one in data.get("mentions", [])]
        if not kind.startswith("MESSAGE") or "guild_id" not in data or mine:
            return data
        if session.intents & CONTENT or "content" not in data:
            return data
        return data | {"content": "", "attachments": []}

    async def hang_up(self, op: int = 0, code: int = 4000, *, resumable: bool = True) -> None:
        """End all connections, by op 7, op 9 or a close code."""
        for socket in list(self._open):
            if op == RECONNECT:
                await self._send(socket, RECONNECT)
            elif op == INVALID:
                if not resumable:
                    self.sessions.pop(self._open[socket].id)
                await self._send(socket, INVALID, resumable)
            else:
                await socket.close(code=code)

    async def close(self) -> None:
        for socket in list(self._open):
            await socket.close(code=1001)

    async def _send(self, socket: web.WebSocketResponse, op: int, data: Any = None) -> None:
        await socket.send_json({"op": op, "d": data, "s": None, "t": None})

    def note(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()
