"""Reading stored rows one by one: a row that this version cannot read stops only itself."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from agent_core.journal import Record
from agent_core.journal import decode as decode_record
from gateway.errors import Unreadable

log = logging.getLogger("turnkeeper.store")

T = TypeVar("T")


def as_bytes(body: object) -> bytes:
    """Return a stored body as bytes. A damaged one may have any type: SQLite accepts text and
    numbers too."""
    match body:
        case bytes():
            return body
        case str():
            return body.encode(errors="replace")
        case _:
            return str(body).encode()


def read_row(kind: str, name: str, body: bytes, read: Callable[[bytes], T]) -> T:
    """The row `name`; raises Unreadable."""
    try:
        return read(as_bytes(body))
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise Unreadable(f"{kind} {name}: {error}") from error


def read_record(turn: str, n: int, body: bytes) -> Record:
    """Record `n` of a turn; raises Unreadable."""
    return read_row("record", f"{turn}/{n}", body, decode_record)


def readable(kind: str, read: Callable[[bytes], T], rows: Iterable[Sequence[bytes]]) -> Iterator[T]:
    """The rows, each with its body first, that can be read; the others are logged."""
    for row in rows:
        try:
            yield read(as_bytes(row[0]))
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            log.error("row_unreadable", extra={"row": kind, "why": str(error)})


def read_document(key: str, body: bytes | None, read: Callable[[bytes], T]) -> T | None:
    """Return a document of the directory; None if there is none, or if it is unreadable: its next
    write replaces it, and until then nobody is held up by it."""
    if body is None:
        return None
    try:
        return read(body)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        log.error("document_unreadable", extra={"key": key, "why": str(error)})
        return None
