"""E2B on loopback: its API and its sandboxes, as the real SDK speaks to them.

A sandbox is a folder of this machine, and what runs in it are processes of this machine: nothing
isolates them, which the gateway's self-test has to find out. Time passes by `pass_time`.
"""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from aiohttp import BodyPartReader, web

from agent_core import ambient
from agent_core.sandboxes.supervisor import list_alive
from tests.fakes.waiting import PATIENCE

KEY = "e2b_0123456789abcdef0123456789abcdef01234567"
_ENVELOPE = struct.Struct(">BI")
Json = dict[str, Any]


class Process:
    """One that `commands.run` started; what it writes is lost while nobody listens."""

    def __init__(self, process: asyncio.subprocess.Process, config: Json) -> None:
        self.process, self.config = process, config
        self.listeners: set[asyncio.Queue[Json | None]] = set()
        self.reading: asyncio.Task[None] | None = None
        self.gate = asyncio.Event()

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, event: Json | None) -> None:
        for one in list(self.listeners):
            one.put_nowait(event)

    async def read(self) -> None:
        """Tell listeners what it writes, and how it ended."""
        await self.gate.wait()
        streams = (("stdout", self.process.stdout), ("stderr", self.process.stderr))
        async with asyncio.TaskGroup() as group:
            for name, stream in streams:
                assert stream is not None
                group.create_task(self._pass(name, stream))
        code = await self.process.wait()
        end = {"exitCode": max(code, 0) or (-1 if code else 0), "exited": code >= 0}
        self.tell({"event": {"end": end | {"status": f"exit status {code}"}}})

    async def _pass(self, name: str, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(32_768):
            self.tell({"event": {"data": {name: base64.b64encode(data).decode()}}})


class Box:
    """One sandbox."""

    def __init__(self, name: str, folder: Path, asked: Json, until: float) -> None:
        self.name, self.folder, self.until = name, folder, until
        self.template: str = asked["templateID"]
        self.metadata: dict[str, str] = asked.get("metadata") or {}
        self.asked = asked
        self.state = "running"
        self.started = ambient.utc(ambient.now())
        self.processes: dict[int, Process] = {}
        self._stopped: set[int] = set()

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def signal(self, how: signal.Signals) -> None:
        """All that runs in it, also what lost its parent after it was stopped."""
        for one in self.processes.values():
            self._stopped |= {*list_alive(one.pid)} if one.process.returncode is None else set()
        for pid in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        if how == signal.SIGCONT:
            self._stopped.clear()

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        for one in self.processes.values():
            one.tell(None)


class E2BServer:
    """The API, and all sandboxes behind one address. `boxes`: those that there are. `asked`: the
    requests, as method and path. `failing`: what requests get whose path contains the key: a
    status, and how often."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.boxes: dict[str, Box] = {}
        self.snapshots: dict[str, Path] = {}
        self.asked: list[str] = []
        self.failing: dict[str, list[int]] = {}
        self.now = 0.0
        self.made = self.saved = 0
        self._runner: web.AppRunner | None = None
        self._port = 0
        self._streaming: dict[int, web.Request] = {}
        self._all: list[Process] = []

    # ---- what tests do -------------------------------------------------------------------

    def running(self) -> list[Box]:
        return [one for one in self.boxes.values() if one.state == "running"]

    @property
    def only(self) -> Box:
        (box,) = self.boxes.values()
        return box

    def pass_time(self, seconds: float) -> None:
        """Sandboxes end whose time is up."""
        self.now += seconds
        for one in list(self.boxes.values()):
            if one.state == "running" and one.until <= self.now:
                self.lose(one)

    def lose(self, box: Box) -> None:
        """It is gone, as E2B ends one."""
        box.end()
        self.boxes.pop(box.name, None)

    def fail(self, path: str, status: int, times: int = 1) -> None:
        self.failing[path] = [status] * times

    def cut(self) -> None:
        """All connections of streams break."""
        for request in list(self._streaming.values()):
            if request.transport is not None:
                request.transport.abort()

    async def down(self) -> None:
        """Nobody answers any more."""
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    async def end(self) -> None:
        """End all, and see it gone: a loop does not close while processes are not reaped."""
        for box in list(self.boxes.values()):
            self.lose(box)
        for one in self._all:
            one.gate.set()
        tasks = [one.reading for one in self._all if one.reading is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        await self.down()

    async def up(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        assert site._server is not None
        self._port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def env(self, **more: str) -> dict[str, str]:
        """The settings of a gateway that uses it."""
        return {
            "SANDBOX_PROVIDER": "e2b", "E2B_API_KEY": KEY, "E2B_API_URL": self.url,
            "E2B_SANDBOX_URL": self.url,
        } | more  # fmt: skip

    # ---- the API -------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        for path, left in self.failing.items():
            if path in request.path and left:
                return _refuse(left.pop(0), "as the test wants it")
        if (name := request.headers.get("E2b-Sandbox-Id")) is not None:
            box = self.boxes.get(name)
            if box is None or box.state != "running":
                return _refuse(502, "The sandbox was not found")
            return await self._answer_inside(request, box)
        if request.headers.get("X-API-KEY") != KEY:
            return _refuse(401, "Invalid API key")
        parts = [unquote(one) for one in request.raw_path.partition("?")[0].split("/") if one]
        parts = parts[1:] if parts[:1] == ["v2"] else parts
        body = await request.json() if request.can_read_body else {}
        match (request.method, *parts):
            case ("POST", "sandboxes"):
                return self._create(body)
            case ("GET", "sandboxes"):
                return self._list(request)
            case ("DELETE", "templates", snapshot):
                found = self.snapshots.pop(snapshot, None)
                return web.Response(status=204) if found else _refuse(404, "no such template")
            case (_, "sandboxes", name, *act) if (box := self.boxes.get(name)) is not None:
                return self._act(box, "/".join(act), body)
        return _refuse(404, "no such sandbox")

    def _create(self, asked: Json) -> web.Response:
        template = asked["templateID"]
        if template.startswith("snapshot-") and template not in self.snapshots:
            return _refuse(404, f"template '{template}' not found")
        self.made += 1
        name = f"box{self.made}"
        box = Box(name, self.folder / name, asked, self.now + asked.get("timeout", 15))
        if template in self.snapshots:
            shutil.copytree(self.snapshots[template], box.folder, symlinks=True)
        box.home.mkdir(parents=True, exist_ok=True)
        self.boxes[name] = box
        return web.json_response(_describe(box), status=201)

    def _list(self, request: web.Request) -> web.Response:
        wanted = {unquote(k): unquote(v) for k, v in parse_qsl(request.query.get("metadata", ""))}
        states = [one for given in request.query.getall("state", []) for one in given.split(",")]
        found = [
            _describe(one) | {
                "startedAt": one.started.isoformat(), "endAt": one.started.isoformat(),
                "cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1000, "metadata": one.metadata,
                "state": one.state,
            }
            for one in self.boxes.values()
            if wanted.items() <= one.metadata.items() and (not states or one.state in states)
        ]  # fmt: skip
        return web.json_response(found)

    def _act(self, box: Box, act: str, body: Json) -> web.Response:
        match act:
            case "":
                self.lose(box)
                return web.Response(status=204)
            case "timeout":
                box.until = self.now + body["timeout"]
                return web.Response(status=204)
            case "pause":
                if box.state == "paused":
                    return _refuse(409, "already paused")
                box.signal(signal.SIGSTOP)
                box.state = "paused"
                self.cut()
                return web.Response(status=204)
            case "connect":
                was, box.state = box.state, "running"
                box.until = max(box.until if was == "running" else 0, self.now + body["timeout"])
                box.signal(signal.SIGCONT)
                return web.json_response(_describe(box), status=200 if was == "running" else 201)
            case "snapshots":
                self.saved += 1
                name = f"snapshot-{self.saved}:{box.name}"
                place = self.folder / name.replace(":", "-")
                shutil.copytree(box.folder, place, symlinks=True)
                self.snapshots[name] = place
                self.cut()
                return web.json_response({"snapshotID": name, "names": [name]}, status=201)
        return _refuse(404, f"no such act: {act}")

    # ---- inside of a sandbox -------------------------------------------------------------

    async def _answer_inside(self, request: web.Request, box: Box) -> web.StreamResponse:
        match request.method, request.path:
            case _, "/health":
                return web.Response(status=204)
            case "GET", "/files":
                return self._read(box, request.query["path"])
            case "POST", "/files":
                return await self._write(box, request)
            case "POST", "/process.Process/Start":
                return await self._start(request, box)
            case "POST", "/process.Process/Connect":
                asked = (await _unwrap(request))["process"]["pid"]
                if (one := box.processes.get(asked)) is None:
                    return _refuse_call(404, "not_found", "no such process")
                return await self._stream(request, one)
            case "POST", "/process.Process/List":
                return web.json_response(
                    {"processes": [{"config": one.config, "pid": one.pid} for one in box.processes.values() if one.process.returncode is None]}
                )  # fmt: skip
        body = await request.json()
        known = box.processes.get(body.get("process", {}).get("pid"))
        if known is None or known.process.returncode is not None:
            return _refuse_call(404, "not_found", "no such process")
        if request.path == "/process.Process/SendInput":
            assert known.process.stdin is not None
            known.process.stdin.write(base64.b64decode(body["input"]["stdin"]))
            await known.process.stdin.drain()
            return web.json_response({})
        if request.path == "/process.Process/SendSignal":
            with contextlib.suppress(ProcessLookupError):
                known.process.send_signal(signal.SIGKILL)
            return web.json_response({})
        return _refuse_call(404, "unimplemented", request.path)

    def _place(self, box: Box, path: str) -> Path:
        return box.home / path  # an absolute path stays what it is

    def _read(self, box: Box, path: str) -> web.StreamResponse:
        place = self._place(box, path)
        if not place.is_file():
            return _refuse(404, f"path '{path}' does not exist")
        return web.Response(body=place.read_bytes())

    async def _write(self, box: Box, request: web.Request) -> web.Response:
        written = []
        if request.content_type == "multipart/form-data":
            async for part in await request.multipart():
                assert isinstance(part, BodyPartReader)
                path = request.query.get("path") or part.filename or ""
                written.append((path, bytes(await part.read())))
        else:
            written.append((request.query["path"], await request.read()))
        for path, data in written:
            place = self._place(box, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        return web.json_response(
            [{"name": Path(path).name, "type": "file", "path": path} for path, _ in written]
        )

    async def _start(self, request: web.Request, box: Box) -> web.StreamResponse:
        asked = await _unwrap(request)
        config: Json = asked["process"]
        env = {"PATH": os.environ["PATH"], "HOME": str(box.home), "USER": "user"}
        process = await asyncio.create_subprocess_exec(
            config["cmd"],
            *config.get("args", ()),
            stdin=asyncio.subprocess.PIPE if asked.get("stdin") else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env | config.get("envs", {}),
            cwd=config.get("cwd") or box.home,
            start_new_session=True,
        )
        one = Process(process, config)
        box.processes[one.pid] = one
        self._all.append(one)
        one.reading = asyncio.create_task(one.read())
        return await self._stream(request, one)

    async def _stream(self, request: web.Request, one: Process) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/connect+json"})
        queue: asyncio.Queue[Json | None] = asyncio.Queue()
        one.listeners.add(queue)
        self._streaming[id(request)] = request
        try:
            await answer.prepare(request)
            await answer.write(_wrap({"event": {"start": {"pid": one.pid}}}))
            one.gate.set()
            while (event := await queue.get()) is not None:
                await answer.write(_wrap(event))
                if "end" in event["event"]:
                    await answer.write(_wrap({}, 2))
                    break
            else:
                unavailable = {"code": "unavailable", "message": "the connection was lost"}
                await answer.write(_wrap({"error": unavailable}, 2))
        except ConnectionError:
            pass
        finally:
            one.listeners.discard(queue)
            del self._streaming[id(request)]
        return answer


def _describe(box: Box) -> Json:
    return {
        "sandboxID": box.name, "templateID": box.template, "clientID": "here",
        "envdVersion": "0.6.4", "envdAccessToken": "token", "alias": box.template,
    }  # fmt: skip


def _refuse(status: int, message: str) -> web.Response:
    return web.json_response({"code": status, "message": message}, status=status)


def _refuse_call(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"code": code, "message": message}, status=status)


def _wrap(event: Json, flags: int = 0) -> bytes:
    data = json.dumps(event).encode()
    return _ENVELOPE.pack(flags, len(data)) + data


async def _unwrap(request: web.Request) -> Json:
    data = await request.read()
    _, length = _ENVELOPE.unpack_from(data)
    return dict(json.loads(data[_ENVELOPE.size : _ENVELOPE.size + length]))


@asynccontextmanager
async def serve_e2b(folder: Path) -> AsyncIterator[E2BServer]:
    server = E2BServer(folder)
    await server.up()
    try:
        yield server
    finally:
        await server.end()
