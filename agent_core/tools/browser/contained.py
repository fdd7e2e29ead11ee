"""Stands for a browser in a container: its driver's file 3 is forwarded to the container's input,
and the container's output to file 4. Ends with either of them.

Arguments: the engine's socket, the file of the container's description, and further words for its
first process.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import TypeAlias, cast

import msgspec

from agent_core import ambient
from agent_core.sandboxes.docker.engine import DockerEngine, EngineFailed

_FROM_DRIVER, _TO_DRIVER = 3, 4
_STDERR = 2
SECONDS_TO_REMOVE = 10.0
_Spec: TypeAlias = dict[str, object]


class _Ends(asyncio.Protocol):
    """Forwards data from one side to the other, once that is there; `over` when it ends."""

    def __init__(self, over: asyncio.Event) -> None:
        self._over = over
        self.own: asyncio.Transport | None = None
        self.other: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.own = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over.set()


async def carry(engine: DockerEngine, spec: _Spec) -> None:
    """Run the container until it, or the driver, ends. EngineFailed."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    name = f"turnkeeper-{ambient.new_id()}"
    inside, driver = _Ends(over), _Ends(over)
    await engine.create(name, spec)
    try:
        stream = await engine.attach(name, inside)
        writer, _ = await loop.connect_write_pipe(lambda: _Ends(over), os.fdopen(_TO_DRIVER, "wb"))
        inside.other, driver.other = writer, inside.own
        await engine.start(name)
        await loop.connect_read_pipe(lambda: driver, os.fdopen(_FROM_DRIVER, "rb"))
        await over.wait()
        os.write(_STDERR, stream.said)
    finally:
        async with ambient.limit(SECONDS_TO_REMOVE):
            await engine.remove(name)


def main() -> None:
    """Stand for the browser."""
    socket, file, *words = sys.argv[1:]
    spec = msgspec.json.decode(Path(file).read_bytes(), type=_Spec)
    spec["Entrypoint"] = [*cast(list[str], spec["Entrypoint"]), *words]
    try:
        asyncio.run(carry(DockerEngine(socket), spec))
    except EngineFailed as error:
        sys.exit(f"the Docker engine says: {error}")


if __name__ == "__main__":
    main()
