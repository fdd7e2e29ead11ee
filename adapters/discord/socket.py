"""The SDK's websocket, made to bear frames of any kind.

The SDK starts a thread at each hello, beats at any pace that it is told, answers each beat that is
asked for until its own limit holds up the connection, stores any value as the number to resume
from, and unpacks a frame to any size.
"""

import math
from typing import TYPE_CHECKING, Any, Protocol

from discord import utils
from discord.gateway import DiscordWebSocket

from gateway import clock

if TYPE_CHECKING:
    import asyncio

    import aiohttp

MAX_FRAME = 16 << 20
"""Characters of an event, whether it comes packed or not; more close the connection."""
PIECE = 512
"""Packed bytes that are unpacked at once: zstd makes 128 KB of four of them."""
MIN_BEAT, MAX_BEAT, DEFAULT_BEAT = 1_000.0, 120_000.0, 41_250.0
"""Milliseconds between heartbeats."""
MIN_ANSWER = 1.0
"""Seconds between heartbeats that Discord asks for; those more often go unanswered."""
MAX_NUMBER = 1 << 53


class OddFrame(ValueError):
    """A frame that Discord does not send."""


class Unpacks(Protocol):
    """A decompressor of the SDK's."""

    def decompress(self, data: bytes, /) -> bytes: ...


class BoundedUnpacker:
    """Unpacks a frame up to MAX_FRAME; OddFrame beyond."""

    def __init__(self, inner: Unpacks) -> None:
        self._inner = inner

    def decompress(self, data: bytes, /) -> bytes:
        """Unpack piece by piece: neither library takes a limit."""
        whole = bytearray()
        for start in range(0, len(data), PIECE):
            whole += self._inner.decompress(bytes(data[start : start + PIECE]))
            if len(whole) > MAX_FRAME:
                raise OddFrame("a frame of Discord's is too large when unpacked")
        return bytes(whole)


class DiscordSocket(DiscordWebSocket):
    """A connection whose odd frames raise OddFrame, and whose repeated ones cost nothing."""

    def __init__(
        self, socket: "aiohttp.ClientWebSocketResponse", *, loop: "asyncio.AbstractEventLoop"
    ) -> None:
        super().__init__(socket, loop=loop)
        unpacking: Any = self._decompressor
        name = "decompressor" if hasattr(unpacking, "decompressor") else "context"  # zstd, zlib
        setattr(unpacking, name, BoundedUnpacker(getattr(unpacking, name)))
        self._answered = -math.inf
        self.size = 0
        """Characters of the last frame."""

    async def handle_frame(self, msg: Any, /) -> None:
        """Handle a frame like the SDK, unless there is nothing to handle."""
        text = self._decompressor.decompress(msg) if type(msg) is bytes else msg
        if text is None:
            return
        frame, self.size = _read_frame(text), len(text)
        op = frame.get("op")
        if op == self.HELLO:
            if self._keep_alive is not None:
                return
            text = utils._to_json(frame | {"d": {"heartbeat_interval": _read_beat(frame.get("d"))}})
        elif op == self.HEARTBEAT:
            if clock.monotonic() - self._answered < MIN_ANSWER:
                return
            self._answered = clock.monotonic()
        elif op not in (self.DISPATCH, self.RECONNECT, self.INVALIDATE_SESSION, self.HEARTBEAT_ACK):
            return
        await super().received_message(text)

    received_message = handle_frame  # the SDK's name for it


def _read_frame(text: str) -> dict[str, Any]:
    if len(text) > MAX_FRAME:
        raise OddFrame("a frame of Discord's is too large")
    frame = utils._from_json(text)
    if not isinstance(frame, dict):
        raise OddFrame("a frame of Discord's is no object")
    number, kind = frame.get("s"), frame.get("t")
    if number is not None and not (type(number) is int and 0 <= number < MAX_NUMBER):
        raise OddFrame("an event of Discord's has an odd number")
    if kind is not None and not isinstance(kind, str):
        raise OddFrame("an event of Discord's has an odd kind")
    if kind == "READY":
        _check_ready(frame)
    return frame


def _check_ready(frame: dict[str, Any]) -> None:
    about = frame.get("d")
    named = isinstance(about, dict) and isinstance(about.get("session_id"), str)
    if frame.get("s") is None or not named:
        raise OddFrame("Discord names no session")


def _read_beat(hello: object) -> float:
    """Return the milliseconds between heartbeats that a hello asks for, within reason."""
    told = hello.get("heartbeat_interval") if isinstance(hello, dict) else None
    if not isinstance(told, int | float) or not told > 0:
        return DEFAULT_BEAT
    return min(max(float(told), MIN_BEAT), MAX_BEAT)
