"""The audit as hash chains: each line is signed together with the one before it, with a key that
the store does not have. Pure.

A conversation has one chain, numbered from 1, and a sealed note of its end, which changes in the
same commit as its lines; each replica has one for what belongs to no conversation. Retention leaves
a sealed note of a chain's new begin. Personal fields enter a signature as salted digests: erasing a
person removes salt and words and leaves the digests, sealed, so that the chain still verifies.
"""

import base64
import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from gateway.store.rows import AuditRow, ChainEnd, ConversationRow, ErasedWords

Purpose = Literal["line", "begin", "end", "erased"]
FlawKind = Literal[
    "changed", "missing", "twice", "foreign", "cut", "endless", "unknown_key", "gone"
]

NOTE = "audit-chain:"
"""Name prefix of the documents that repeat a chain's end: a conversation that is deleted together
with its lines leaves it."""

_encode = msgspec.json.Encoder().encode


def note_end(row: ConversationRow | None, lines: Sequence[AuditRow]) -> tuple[str, bytes] | None:
    """The document that repeats a chain's end, as a commit with these lines leaves it; None without
    lines."""
    end = row.audited if row is not None and lines else None
    return (NOTE + end.chain, _encode(end)) if end is not None else None


class AuditSigner:
    """Signs with the first of `keys`; checks with all of them. They are texts."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = {_name_key(key): key.encode() for key in keys}
        self._own = next(iter(self._keys))

    def link(
        self, end: ChainEnd | None, lines: Iterable[AuditRow]
    ) -> tuple[tuple[AuditRow, ...], ChainEnd]:
        """`lines` signed, as they follow `end`, None: as a chain's first ones; and the new end."""
        at = end or ChainEnd(chain=ambient.new_id())
        chain, n, mac = at.chain, at.n, at.mac
        signed = []
        for line in lines:
            n += 1
            line = replace(line, chain=chain, n=n, salt=ambient.secret_id(), key=self._own, mac="")
            mac = self._sign_line(line, mac)
            signed.append(replace(line, mac=mac))
        return tuple(signed), self.seal("end", chain, n, mac)

    def seal(self, purpose: Literal["begin", "end"], chain: str, n: int, mac: str) -> ChainEnd:
        """Seal that line `n` with the signature `mac` is the last one before a chain's begin, or
        its last one."""
        seal = self._sign(self._own, purpose, chain, n, mac)
        return ChainEnd(chain=chain, n=n, mac=mac, key=self._own, seal=seal)

    def erase(self, line: AuditRow, *, who: str, where: str, detail: str) -> AuditRow:
        """Return `line` with its personal fields replaced irreversibly."""
        if not line.chain:
            return replace(line, who=who, where=where, detail=detail)
        digests = _digest_words(line)
        line = replace(line, who=who, where=where, detail=detail, salt="", erased=None)
        if line.key not in self._keys:  # nobody can sign it with a key that is missing here
            return replace(line, erased=ErasedWords(digests=digests, key="", seal=""))
        seal = self._sign_erased(line, digests, self._own)
        return replace(line, erased=ErasedWords(digests=digests, key=self._own, seal=seal))

    def knows(self, key: str) -> bool:
        """The key with this name is here."""
        return key in self._keys

    def is_sealed(self, purpose: Literal["begin", "end"], note: ChainEnd) -> bool:
        """The seal of `note` is ours."""
        if note.key not in self._keys:
            return False
        return _is_same(self._sign(note.key, purpose, note.chain, note.n, note.mac), note.seal)

    def is_true(self, line: AuditRow, before: str) -> bool:
        """Return True if the line is unchanged and follows the one with the signature `before`."""
        if line.erased is not None:
            seal = self._sign_erased(line, line.erased.digests, line.erased.key)
            if line.erased.key not in self._keys or not _is_same(seal, line.erased.seal):
                return False
        return _is_same(self._sign_line(line, before), line.mac)

    def _sign_line(self, line: AuditRow, before: str) -> str:
        place = (line.chain, line.n, before, line.at, line.what)
        return self._sign(line.key, "line", *place, *_digest_words(line))

    def _sign_erased(self, line: AuditRow, digests: Sequence[str], key: str) -> str:
        words = (line.who, line.where, line.detail)
        return self._sign(key, "erased", line.chain, line.n, *digests, *words)

    def _sign(self, key: str, purpose: Purpose, *said: str | float) -> str:
        secret = self._keys.get(key, b"")
        return _shorten(hmac.digest(secret, _encode((purpose, *said)), "sha256"))


class ChainFlaw(Struct, frozen=True, kw_only=True):
    """A flaw in the lines `first` to `last` of a chain. `where`: the conversation, as far as
    known."""

    kind: FlawKind
    chain: str
    where: str = ""
    first: int = 0
    last: int = 0


class ChainReport(Struct, frozen=True, kw_only=True):
    """The result of verifying the whole audit. `unsigned`: lines from before there were chains."""

    lines: int
    chains: int
    unsigned: int
    erased: int
    flaws: tuple[ChainFlaw, ...]


class _Chain:
    """The state of one chain. `before`: the signature of the last line; None: it is missing, so the
    next one cannot be verified."""

    def __init__(self, begin: ChainEnd | None) -> None:
        known = begin or ChainEnd()
        self.begin = known.n
        self.next = self.begin + 1
        self.before: str | None = known.mac
        self.behind = known.behind, known.behind_mac
        self.leaving: dict[int, AuditRow] = {}
        self.waiting: dict[int, AuditRow] = {}
        self.where = ""


class ChainCheck:
    """Verifies all lines, in any order within a chain, and reports flaws. `begins`: by chain, where
    retention cut it."""

    def __init__(self, signer: AuditSigner, begins: Mapping[str, ChainEnd]) -> None:
        self._signer = signer
        self._chains: dict[str, _Chain] = {}
        self._flaws: list[ChainFlaw] = []
        self._lines = self._unsigned = self._erased = 0
        self._unknown: set[str] = set()
        self._begins: dict[str, ChainEnd] = {}
        for name, begin in begins.items():
            if signer.is_sealed("begin", begin) and begin.chain == name:
                self._begins[name] = begin
            else:
                kind: FlawKind = "changed" if signer.knows(begin.key) else "unknown_key"
                self._flaws.append(ChainFlaw(kind=kind, chain=name, first=begin.n, last=begin.n))

    def add(self, line: AuditRow) -> None:
        """The next line as it is stored."""
        if not line.chain:
            if self._chains:  # with chains, each line belongs to one
                self._flaws.append(ChainFlaw(kind="foreign", chain="", where=line.where))
            self._unsigned += 1
            return
        chain = self._chains.get(line.chain)
        if chain is None:
            chain = self._chains[line.chain] = _Chain(self._begins.get(line.chain))
        chain.where = chain.where or line.where
        leaves = line.n <= chain.begin
        if line.n in (chain.leaving if leaves else chain.waiting):
            self._flag("twice", line.chain, chain, line.n, line.n)
            return
        if leaves:
            chain.leaving[line.n] = line
            return
        if line.n < chain.next:
            self._flag("twice", line.chain, chain, line.n, line.n)
            return
        chain.waiting[line.n] = line
        self._follow(line.chain, chain)

    def finish(
        self, ends: Iterable[tuple[str, ChainEnd]], notes: Iterable[ChainEnd] = ()
    ) -> ChainReport:
        """The report. `ends`: with their conversations, of all chains that go on or have lines;
        `notes`: ends that were noted elsewhere, of those and of none that is dropped as a whole."""
        for name, chain in self._chains.items():
            self._judge_leaving(name, chain)
            while chain.waiting:
                there = min(chain.waiting)
                self._flag("missing", name, chain, chain.next, there - 1)
                chain.next, chain.before = there, None
                self._follow(name, chain)
        ended = set()
        for where, end in ends:
            ended.add(end.chain)
            self._check_end(where, end)
        for note in notes:
            self._check_note(note, ended)
        for name, chain in self._chains.items():
            if name not in ended:
                self._flag("endless", name, chain, chain.next - 1, chain.next - 1)
        return ChainReport(
            lines=self._lines,
            chains=len(self._chains),
            unsigned=self._unsigned,
            erased=self._erased,
            flaws=tuple(self._flaws),
        )

    def _check_end(self, where: str, end: ChainEnd) -> None:
        chain = self._chains.get(end.chain)
        if chain is None:
            chain = _Chain(self._begins.get(end.chain))
            chain.where = where
        if not self._signer.is_sealed("end", end):
            kind: FlawKind = "changed" if self._signer.knows(end.key) else "unknown_key"
            self._flag(kind, end.chain, chain, end.n, end.n)
        elif end.n >= chain.next:
            self._flag("cut", end.chain, chain, chain.next, end.n)

    def _check_note(self, note: ChainEnd, ended: Collection[str]) -> None:
        """A chain is at least as long as was noted of it."""
        known = [flaw for flaw in self._flaws if flaw.chain == note.chain and flaw.kind == "cut"]
        if note.chain not in ended and note.chain not in self._chains:
            begin = self._begins.get(note.chain) or ChainEnd()
            if not self._signer.is_sealed("end", note) or note.n > begin.n:
                lost = ChainFlaw(kind="gone", chain=note.chain, first=begin.n + 1, last=note.n)
                self._flaws.append(lost)
        elif not known:
            self._check_end("", note)

    def _judge_leaving(self, name: str, chain: _Chain) -> None:
        """Lines that retention was about to drop: whoever puts others there gets them nowhere."""
        at, mac = chain.behind
        for n in sorted(chain.leaving):
            line = chain.leaving[n]
            if n != at + 1 or not self._signer.is_true(line, mac):
                self._flag("changed", name, chain, n, n)
            at, mac = n, line.mac

    def _follow(self, name: str, chain: _Chain) -> None:
        while (line := chain.waiting.pop(chain.next, None)) is not None:
            chain.next += 1
            self._lines += 1
            self._erased += line.erased is not None
            if not self._signer.knows(line.key):
                if line.key not in self._unknown:
                    self._unknown.add(line.key)
                    self._flag("unknown_key", name, chain, line.n, line.n)
            elif chain.before is not None and not self._signer.is_true(line, chain.before):
                self._flag("changed", name, chain, line.n, line.n)
            chain.before = line.mac

    def _flag(self, kind: FlawKind, name: str, chain: _Chain, first: int, last: int) -> None:
        flaw = ChainFlaw(kind=kind, chain=name, where=chain.where, first=first, last=last)
        self._flaws.append(flaw)


def decode_lines(bodies: Iterable[bytes]) -> Iterator[AuditRow]:
    """The lines that this version can read; one that it cannot is a damaged one, which the chain
    misses."""
    for body in bodies:
        try:
            yield msgspec.json.decode(body, type=AuditRow)
        except (msgspec.MsgspecError, ValueError):
            continue


def _digest_words(line: AuditRow) -> tuple[str, str, str]:
    if line.erased is not None:
        return line.erased.digests
    salt = line.salt.encode()
    who, where, detail = (
        _shorten(hashlib.sha256(salt + b"\0" + words.encode(errors="replace")).digest())
        for words in (line.who, line.where, line.detail)
    )
    return who, where, detail


def _name_key(key: str) -> str:
    return _shorten(hashlib.sha256(b"key\0" + key.encode()).digest())[:8]


def _shorten(digest: bytes) -> str:
    """Return 128 bits of it in 22 characters."""
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode(errors="replace"))
