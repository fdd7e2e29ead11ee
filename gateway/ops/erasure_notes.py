"""What an erasure has to know of what it removed: noted before that goes, so that one which was cut
off, or left something that another process held, still finds it when it is given again by any of
the person's accounts; gone when all is done.

- `erasing:<digest>`: one erasure under way.
"""

from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.messages import digest
from gateway.store.port import Directory

PREFIX = "erasing:"


class ErasureNote(Struct, frozen=True, kw_only=True):
    """The person's accounts; of what is gone: private conversations, copies of given files, and
    what was said elsewhere, as it stands in JSON."""

    accounts: frozenset[str]
    removed: frozenset[str] = frozenset()
    refs: frozenset[str] = frozenset()
    phrases: frozenset[bytes] = frozenset()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ErasureNote).decode


class ErasureNotes:
    """The note of one erasure; each change of it is stored before it returns."""

    def __init__(
        self, directory: Directory, own: str, others: frozenset[str], note: ErasureNote
    ) -> None:
        self._directory = directory
        self._own, self._others = own, others
        self.note = note

    @classmethod
    async def open(cls, directory: Directory, accounts: frozenset[str]) -> "ErasureNotes":
        """Begin with these accounts, and go on from what was cut off of them. StoreFailed."""
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
        """Keep this too, before it goes. StoreFailed."""
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
        """All is done. StoreFailed."""
        for name in (*sorted(self._others), self._own):
            await self._directory.put(name, None)
