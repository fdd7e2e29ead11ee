"""Notes of an erasure about what it removes, stored before the removal.

An erasure that was interrupted, or left something held by another process, finds them when it is
run again with any of the person's accounts. They are deleted at its end. - `erasing:<digest>`: one
erasure under way.
"""

from contextlib import suppress

import msgspec
from msgspec import Struct

from gateway.messages import digest
from gateway.store.port import Directory

PREFIX = "erasing:"


class ErasureNote(Struct, frozen=True, kw_only=True):
    """The person's accounts, and of the removed content: private conversations, copies of sent
    files, jobs, questions asked for the person, and words said elsewhere, as JSON has them."""

    accounts: frozenset[str]
    removed: frozenset[str] = frozenset()
    refs: frozenset[str] = frozenset()
    phrases: frozenset[bytes] = frozenset()
    jobs: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()

    def join(self, other: "ErasureNote") -> "ErasureNote":
        """Return the note of both."""
        return ErasureNote(
            accounts=self.accounts | other.accounts,
            removed=self.removed | other.removed,
            refs=self.refs | other.refs,
            phrases=self.phrases | other.phrases,
            jobs=self.jobs | other.jobs,
            questions=self.questions | other.questions,
        )


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
                    note = note.join(known)
        await directory.put(own, _encode(note))
        return cls(directory, own, frozenset(others), note)

    async def add(self, new: ErasureNote) -> None:
        """Note content before its removal. StoreFailed."""
        note = self.note.join(new)
        if note != self.note:
            await self._directory.put(self._own, _encode(note))
            self.note = note

    async def drop(self) -> None:
        """Delete the note: the erasure is complete. StoreFailed."""
        for name in (*sorted(self._others), self._own):
            await self._directory.put(name, None)
