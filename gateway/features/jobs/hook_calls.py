"""The accepted calls of hooks, so that a repeated one is recognised.

A job keeps its newest 200 runs; an attacker with a recorded call could wait until it drops out of
these. Each call therefore has a small document of its own, kept for longer than any signed time is
valid.
"""

from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core import ambient
from gateway.store.reading import read_document

CALLS = "called:"
"""Name prefix of the documents."""
KEPT_SECONDS = 30 * 86_400.0
"""A call by GitHub's way, which has no time, is known for so long; senders try again for days."""
SWEEP_SECONDS = 3_600.0
SWEPT_AT_ONCE = 20


class CallDocuments(Protocol):
    """The part of the directory that is needed."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool: ...
    async def keys(self, prefix: str) -> tuple[str, ...]: ...


class CallNote(Struct, frozen=True, kw_only=True):
    """A call: the run that it is about, whether that was begun, until when it is known."""

    slot: str
    until: float
    begun: bool = False


_decode = msgspec.json.Decoder(CallNote).decode
_encode = msgspec.json.Encoder().encode


class KnownCalls:
    """The notes, the same for all replicas."""

    def __init__(self, documents: CallDocuments) -> None:
        self._documents = documents
        self._swept = ambient.monotonic()
        self._unswept: list[str] = []

    async def claim(self, hook: str, name: str, slot: str) -> CallNote:
        """Return the note of the call `name`; a new one for the run `slot` if there is none."""
        await self._sweep()
        key, known = f"{CALLS}{hook}:{name}", b""
        new = CallNote(slot=slot, until=ambient.now() + KEPT_SECONDS)
        while not await self._documents.put(key, _encode(new), known):
            known = await self._documents.get(key) or b""
            if (note := read_document(key, known or None, _decode)) is not None:
                return note
        return new

    async def mark_begun(self, hook: str, name: str, note: CallNote) -> None:
        """The run is on record; it is not begun again, also when the job has forgotten it."""
        begun = msgspec.structs.replace(note, begun=True)
        await self._documents.put(f"{CALLS}{hook}:{name}", _encode(begun))

    async def _sweep(self) -> None:
        """Forget old calls, now and then, a few at a time: this call is waited for."""
        if not self._unswept and ambient.monotonic() - self._swept >= SWEEP_SECONDS:
            self._swept = ambient.monotonic()
            self._unswept = list(await self._documents.keys(CALLS))
        few, self._unswept = self._unswept[-SWEPT_AT_ONCE:], self._unswept[:-SWEPT_AT_ONCE]
        for key in few:
            body = await self._documents.get(key)
            note = read_document(key, body, _decode)
            if body is not None and (note is None or note.until < ambient.now()):
                await self._documents.put(key, None, body)
