"""Notes of an erasure about what it removes, stored before the removal.

An erasure that was interrupted, or left something held by another process, finds them when it is
run again with any of the person's accounts. They are deleted at its end. - `erasing:<digest>`: one
erasure under way.
"""

from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.messages import digest
from gateway.store.port import Directory

PREFIX = "erasing:"


class ErasureNote(Struct, frozen=True, kw_only=True):
    """The person's accounts, and of the removed content: private conversations, copies of sent
    files, and words said elsewhere, as JSON has them."""

    accounts: frozenset[str]
    removed: frozenset[str] = frozenset()
    refs: frozenset[str] = frozenset()
    phrases: frozenset[bytes] = frozenset()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ErasureNote).decode


class ErasureNotes:
    """The note of one erasure; each change is stored before it returns."""

    def __init__(
        self, directory: Directory, own: str, others: frozenset[str], note: ErasureNote
    ) -> None:
        self._directory = directory
        self._own, self._others = own, others
        self.note = note

    @classmethod
    async def open(cls, directory: Directory, accounts: frozenset[str]) -> "ErasureNotes":
        """Begin with these accounts, or continue their interrupted erasure. StoreFailed."""
        own = PREFIX + digest(" ".join(sorted(accounts)).encode())
        others, note = set[str](), ErasureNote(accounts=accounts)
        for name in await directory.keys(PREFIX):
            body = await directory.get(name)
            with suppress(msgspec.MsgspecError):
                known = _decode(body or b"")
                if known.accounts & note.accounts:
                    others |= {name} - {own}
                    note = ErasureNote(
                        accounts=note.accounts | known.accounts,
                        removed=note.removed | known.removed,
                        refs=note.refs | known.refs,
                        phrases=note.phrases | known.phrases,
                    )
        await directory.put(own, _encode(note))
        return cls(directory, own, frozenset(others), note)

    async def add(
        self,
        *,
        removed: frozenset[str] = frozenset(),
        refs: frozenset[str] = frozenset(),
        phrases: frozenset[bytes] = frozenset(),
    ) -> None:
        """Note content before its removal. StoreFailed."""
        note = self.note
        new = replace(
            note,
            removed=note.removed | removed,
            refs=note.refs | refs,
            phrases=note.phrases | phrases,
        )
        if new != note:
            await self._directory.put(self._own, _encode(new))
            self.note = new

    async def drop(self) -> None:
        """Delete the note: the erasure is complete. StoreFailed."""
        for name in (*sorted(self._others), self._own):
            await self._directory.put(name, None)
