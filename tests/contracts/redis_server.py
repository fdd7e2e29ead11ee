"""A real redis-server on a unix socket, and a relay that loses replies on the way back."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.fakes.ports import free_port


class RedisServer:
    """Debian's redis-server with its append-only file in `folder`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._folder = folder
        self._options = options
        self.port = int(options[options.index("--port") + 1]) if "--port" in options else 0
        self.start()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        durable = ("--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
        place = ("--bind", "127.0.0.1", "--port", "0", "--unixsocket", str(self.socket))
        self._process = subprocess.Popen(
            ["redis-server", *place, "--dir", str(self._folder), *durable, *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "ready to accept connections" in line.lower():
                return
        raise RuntimeError("redis-server did not start: " + "".join(said))

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def redis_server(folder: Path, *options: str) -> RedisServer:
    """A running server; skips where Debian's package is missing, but not in CI."""
    if shutil.which("redis-server") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the Debian package redis-server is missing")
        pytest.skip("the Debian package redis-server is missing")
    return RedisServer(folder, *options)


@contextmanager
def redis_pair(folder: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    """Two servers on ports of loopback."""
    servers: list[RedisServer] = []
    try:
        for name in ("one", "two"):
            (folder / name).mkdir()
            options = ("--port", str(free_port()), "--repl-diskless-sync-delay", "0")
            servers.append(redis_server(folder / name, *options))
        yield servers[0], servers[1]
    finally:
        for server in servers:
            server.kill()  # a master that is told to end waits for its copies


async def follow(master: RedisServer, copy: RedisServer) -> None:
    """Make `copy` follow `master`, until it has all."""
    await demote(copy, master)
    async with Redis.from_url(copy.url) as client:
        while (await client.info("replication"))["master_link_status"] != "up":
            await asyncio.sleep(0.02)


async def all_is_copied(master: RedisServer) -> None:
    """Until the copy has what was written so far."""
    async with Redis.from_url(master.url) as client:
        await client.set("mark", 1)
        assert await client.wait(1, 5_000) == 1


async def promote(copy: RedisServer) -> None:
    """A master from now on, with what it has."""
    async with Redis.from_url(copy.url) as client:
        await client.execute_command("REPLICAOF", "NO", "ONE")


async def demote(master: RedisServer, new: RedisServer) -> None:
    """Alive, and a copy of `new` from now on."""
    async with Redis.from_url(master.url) as client:
        await client.execute_command("REPLICAOF", "127.0.0.1", str(new.port))


class Relay:
    """Between store and server: carries everything, but may lose a reply with its connection."""

    def __init__(self, server: RedisServer, folder: Path) -> None:
        self.url = f"unix://{folder / 'relay.sock'}"
        self.lost = 0
        self.cut = False
        self._path = folder / "relay.sock"
        self._server = server
        self._losing = b""
        self._armed = False
        self._cutting = False

    async def __aenter__(self) -> "Relay":
        self._listener = await asyncio.start_unix_server(self._carry, self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        await self._listener.wait_closed()

    def lose_reply_to(self, words: bytes, *, cut: bool = False) -> None:
        """The next reply after a request that holds `words` never arrives; with `cut` no new
        connection is taken from then on, until `cut` is set back."""
        self._losing = words
        self._cutting = cut

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            writer.close()
            return
        back, forth = await asyncio.open_unix_connection(self._server.socket)
        there = asyncio.create_task(self._copy(reader, forth, False))
        here = asyncio.create_task(self._copy(back, writer, True))
        await asyncio.wait((there, here), return_when=asyncio.FIRST_COMPLETED)
        there.cancel()
        here.cancel()
        for end in (writer, forth):
            end.close()
            with suppress(OSError):
                await end.wait_closed()

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, replies: bool
    ) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                if not replies and self._losing and self._losing in data:
                    self._losing, self._armed = b"", True
                elif replies and self._armed:
                    self._armed = False
                    self.lost += 1
                    self.cut = self._cutting
                    return
                sink.write(data)
                await sink.drain()
