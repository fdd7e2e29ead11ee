"""The audit outside of conversations' commits: lines that belong to none, the ends of chains, and
their verification."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from gateway.store.audit_chain import NOTE, AuditSigner, ChainCheck, ChainReport, decode_lines
from gateway.store.port import Directory
from gateway.store.removal.stored import AuditLines
from gateway.store.rows import AuditRow, ChainEnd, ConversationRow

SLACK = 86_400.0
"""Seconds that a line is kept longer for those before it, whose clock may have been ahead."""
BEGIN, END, MACHINE = "audit-begin:", "audit-end:", "audit-machine:"
"""Name prefixes of the documents with the begins and ends of chains."""

_encode = msgspec.json.Encoder().encode
_decode_end = msgspec.json.Decoder(ChainEnd).decode


class _Last(Struct, frozen=True, kw_only=True):
    """The end of a replica's own chain with its last line, so that a crash between the two writes
    loses neither."""

    end: ChainEnd
    line: AuditRow


_decode_last = msgspec.json.Decoder(_Last).decode


class AuditTrail:
    """The audit of this replica. `owner`: the replica, whose own chain holds what belongs to no
    conversation."""

    def __init__(
        self, signer: AuditSigner, lines: AuditLines, directory: Directory, owner: str
    ) -> None:
        self.signer = signer
        self._lines = lines
        self._directory = directory
        self._name = MACHINE + owner
        self._end: ChainEnd | None = None
        self._known = False
        self._turn = asyncio.Lock()

    async def note(self, who: str, what: str, detail: str) -> None:
        """Add a line that belongs to no conversation. Raises StoreFailed."""
        async with self._turn:
            if not self._known:
                await self._recall()
            line = AuditRow(at=ambient.now(), who=who, what=what, detail=detail)
            (line,), end = self.signer.link(self._end, (line,))
            self._known = False  # until it is committed
            await self._put(_Last(end=end, line=line))
            self._end, self._known = end, True

    async def _recall(self) -> None:
        """Read the chain's end, and append its last line again in case the write was
        interrupted."""
        body = await self._directory.get(self._name)
        last = _decode_last(body) if body is not None else None
        if last is not None:
            await self._put(last)
        self._end, self._known = (last.end if last is not None else None), True

    async def _put(self, last: _Last) -> None:
        name = f"{last.line.chain}.{last.line.n}"
        await self._lines.note(last.line.at, name, _encode(last.line), self._name, _encode(last))

    async def mark_dropped(self, before: float, bodies: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of `bodies`, reported as older than `before`, that may be dropped: their
        chains begin after them.

        Only valid consecutive lines from the begin of a chain are sealed as dropped; others count
        as missing from then on. Raises StoreFailed.
        """
        go, chains = set(bodies), dict[str, dict[int, tuple[AuditRow, bytes]]]()
        for body in bodies:
            for line in decode_lines((body,)):
                if line.chain:
                    chains.setdefault(line.chain, {})[line.n] = line, body
                if line.at >= before:  # its own time says that it is not old
                    go.discard(body)
        for chain, lines in chains.items():
            old = {n: line for n, (line, body) in lines.items() if body in go}
            last = await self._seal_dropped(chain, old)
            waits = [n for n in old if n > last and old[n].at >= before - SLACK]
            go.difference_update(lines[n][1] for n in waits)
        return frozenset(go)

    async def _seal_dropped(self, chain: str, lines: Mapping[int, AuditRow]) -> int:
        """Seal a new begin of a chain, after those of `lines` that follow the present one. Return
        the number of the last dropped line."""
        begin = await self._read_end(BEGIN + chain)
        if begin is not None and not self.signer.is_sealed("begin", begin):
            return 0
        known = begin or ChainEnd(chain=chain)
        at, mac = known.n, known.mac
        while (line := lines.get(at + 1)) is not None and self.signer.is_true(line, mac):
            at, mac = line.n, line.mac
        if at == known.n:
            return at
        end = await self._read_end(END + chain)
        if end is not None and end.n <= at:  # all of it is deleted
            for prefix in (BEGIN, END, NOTE):
                await self._directory.put(prefix + chain, None)
            return at
        again = min(lines) <= known.n  # entries of an earlier period remain
        behind = (known.behind, known.behind_mac) if again else (known.n, known.mac)
        sealed = self.signer.seal("begin", chain, at, mac)
        begin = replace(sealed, behind=behind[0], behind_mac=behind[1])
        await self._directory.put(BEGIN + chain, _encode(begin))
        return at

    async def close(self, conversation: str) -> None:
        """A conversation is about to be removed: keep where its chain ends. Raises StoreFailed."""
        body = await self._lines.read_row(conversation)
        end = _read_audited(body) if body is not None else None
        if end is None:
            return
        begin = await self._read_end(BEGIN + end.chain)
        if begin is not None and begin.n >= end.n:
            for prefix in (BEGIN, NOTE):
                await self._directory.put(prefix + end.chain, None)
        else:
            await self._directory.put(END + end.chain, _encode(end))

    async def _read_end(self, name: str) -> ChainEnd | None:
        body = await self._directory.get(name)
        return _decode_end(body) if body is not None else None

    async def verify(self) -> ChainReport:
        """Verify all lines. Raises StoreFailed. Concurrent work may look like a flaw, so a flaw is
        checked twice."""
        report = await self._verify_once()
        return report if not report.flaws else await self._verify_once()

    async def _verify_once(self) -> ChainReport:
        found = [_decode_end(body) for body in await self._read_documents(BEGIN)]
        begins = {begin.chain: begin for begin in found}
        ends = await self._read_ends()
        check = ChainCheck(self.signer, begins)
        await self.read(check.add)
        notes = [_decode_end(body) for body in await self._read_documents(NOTE)]
        return check.finish(ends, notes)

    async def _read_ends(self) -> list[tuple[str, ChainEnd]]:
        found = []
        async for conversation, body in self._lines.read_rows():
            if (end := _read_audited(body)) is not None:
                found.append((conversation, end))
        found += [("", _decode_end(body)) for body in await self._read_documents(END)]
        found += [("", _decode_last(body).end) for body in await self._read_documents(MACHINE)]
        return found

    async def _read_documents(self, prefix: str) -> list[bytes]:
        bodies = [await self._directory.get(name) for name in await self._directory.keys(prefix)]
        return [body for body in bodies if body is not None]

    async def read(self, take: Callable[[AuditRow], None]) -> None:
        """Give all lines to `take`, the oldest first. Raises StoreFailed."""
        async for bodies in self._lines.read_audit():
            for line in decode_lines(bodies):
                take(line)


def _read_audited(body: bytes) -> ChainEnd | None:
    try:
        return msgspec.json.decode(body, type=ConversationRow).audited
    except (msgspec.MsgspecError, ValueError):
        return None  # set aside when the conversation is opened
