"""Redacts the files that people are sent: secrets are replaced in a text, and found elsewhere."""

import codecs
import gzip
import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

from agent_core.guardrails.redaction import Redactions, StreamRedactor

PIECE = 1 << 18
MAX_UNPACKED = 100_000_000
"""Bytes of packed content that are searched."""
_UNREADABLE = (
    OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


class FileRedactor:
    """Passes on a file's bytes, with names in place of the words. `text`: all of it is UTF-8."""

    def __init__(self, words: Redactions, write: Callable[[bytes], object]) -> None:
        self.text = True
        self.digest = hashlib.sha256()
        self._given = hashlib.sha256()
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._stream = None if words.empty else StreamRedactor(words, self._show)

    @property
    def is_changed(self) -> bool:
        """True if it held some of the words."""
        return self.digest.digest() != self._given.digest()

    def add(self, piece: bytes) -> None:
        """Add bytes; none: the file has ended."""
        self._given.update(piece)
        self.text = self.text and b"\0" not in piece
        if self._stream is None:
            self._pass_on(piece)
            return
        self._stream.add(self._decoder.decode(piece, not piece))
        if not piece:
            self._stream.end()

    def _show(self, text: str) -> None:
        try:
            data = text.encode()
        except UnicodeEncodeError:
            self.text, data = False, text.encode(errors="surrogateescape")
        self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        self.digest.update(data)
        self._write(data)


def read_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Read a file to its end, and an empty piece."""
    while piece := file.read(PIECE):
        yield piece
    yield b""


def holds_words(file: BinaryIO, words: Redactions) -> bool:
    """Search a file that is no text for what its bytes do not show: the words in UTF-16, and in the
    files that a zip (also an office document) or gzip packs."""
    if words.empty:
        return False
    file.seek(0)
    if _find(words, (_narrow(piece) for piece in read_pieces(file))):
        return True
    with suppress(*_UNREADABLE):  # damaged or encrypted
        return any(_find(words, pieces) for pieces in _unpack(file))
    return False


def _narrow(piece: bytes) -> bytes:
    """Return the ASCII in a piece of UTF-16; nothing of other data, which is searched already."""
    return piece.replace(b"\0", b"") if piece.count(0) * 4 > len(piece) else b""


def _find(words: Redactions, pieces: Iterable[bytes]) -> bool:
    found = FileRedactor(words, lambda _: None)
    for piece in pieces:
        if piece:
            found.add(piece)
    found.add(b"")
    return found.is_changed


def _unpack(file: BinaryIO) -> Iterator[Iterator[bytes]]:
    """Yield the packed files, each in pieces."""
    left = MAX_UNPACKED

    def read(take: Callable[[int], bytes]) -> Iterator[bytes]:
        nonlocal left
        while left > 0 and (piece := take(PIECE)):
            left -= len(piece)
            yield piece

    file.seek(0)
    if file.read(2) == b"\x1f\x8b":
        file.seek(0)
        yield read(gzip.GzipFile(fileobj=file).read)
    elif zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as packed:
            for name in packed.namelist():
                with packed.open(name) as one:
                    yield read(one.read)
