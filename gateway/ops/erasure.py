"""Erases a person: their private conversations, their words elsewhere, and every document about
them.

Idempotent: it can be repeated after an interruption.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.journal import Noted
from agent_core.journal import encode as encode_record
from agent_core.messages import text_of
from gateway.access.pairing import MACHINE
from gateway.messages import Inbound, read_conversation, sender_of
from gateway.ops.erasure_notes import ErasureNotes
from gateway.ports import person_scope
from gateway.services.audit_trail import AuditTrail
from gateway.services.memory_removals import note_erased
from gateway.store.port import Store
from gateway.store.removal.port import Position, Removal
from gateway.store.removal.stored import Contents, Stored
from gateway.store.rows import (
    AuditRow,
    Changes,
    ConversationRow,
    Letter,
    OutboxRow,
    QuestionRow,
    TranscriptRow,
    TurnRow,
)
from gateway.views import ReplyView

log = logging.getLogger("turnkeeper.retention")

ERASED = "(erased)"
OWNER = "erasure"
TTL = 120.0
"""Seconds that a group may take."""
PAGE = 100
MIN_WORDS = 16
"""Minimum characters of a phrase that is searched for in others' messages; shorter ones are too
common."""
REF = re.compile(rb'"([0-9a-f]{2}/[0-9a-f]{64})"')

Closed = Callable[[str], AbstractAsyncContextManager[None]]
Tell = Callable[[str], None]
_encode = msgspec.json.Encoder().encode
_inbound = msgspec.json.Decoder(Inbound).decode
OWN_MEMORY = "memory:own:"
_PLAIN = (
    OWN_MEMORY,
    "person:",
    "identity:",
    "quota:",
    "zone:",
    "zonetold:",
    "wrong:",
    "shown:",
    "linkshown:",
    "pagelink:",
    "signin:",
    "sessions:",
)
"""Name prefixes of documents that belong to one account."""


class _Shown(Struct):
    """A code that an account was shown."""

    code: str


class _Person(Struct):
    """The person of an account."""

    person: str


@dataclass(slots=True, kw_only=True)
class Erased:
    """The result. `busy`: conversations held by another process, which are unchanged."""

    conversations: int = 0
    rows: int = 0
    documents: int = 0
    removed: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)


class Erasure:
    """Works on one store. `closed` keeps a conversation's session away while it is worked on;
    `finish` removes a marked conversation."""

    def __init__(
        self,
        store: Store,
        removal: Removal,
        contents: Contents,
        closed: Closed,
        finish: Callable[[str], Awaitable[None]],
        trail: AuditTrail,
    ) -> None:
        self._store = store
        self._removal = removal
        self._contents = contents
        self._closed = closed
        self._finish = finish
        self._trail = trail

    async def erase(self, notes: ErasureNotes, tell: Tell, *, beside: bool = False) -> Erased:
        """Erase the person of `notes`, except for jobs and files. `beside`: note that another
        memory has to forget them too."""
        done, accounts = Erased(), notes.note.accounts
        await self._finish_begun(notes.note.removed)
        await self._erase_private(notes, done, tell)
        await self._erase_shared(notes, done, tell)
        removed, phrases = notes.note.removed - frozenset(done.busy), notes.note.phrases
        done.rows += await self._contents.edit_messages(
            removed, lambda body: _blank_message(body, accounts, phrases)
        )
        done.rows += await self._contents.edit_audit(
            lambda body: self._blank_line(body, accounts, phrases, removed)
        )
        await self._drop_documents(accounts, done, beside)
        detail = f"{done.conversations} conversations, {done.rows} rows, {done.documents} documents"
        await self._trail.note(MACHINE, "erased", detail)
        log.info("erased", extra={"conversations": done.conversations, "rows": done.rows})
        return done

    def _blank_line(
        self,
        body: bytes,
        accounts: frozenset[str],
        phrases: frozenset[bytes],
        removed: frozenset[str],
    ) -> bytes:
        """Blank the words and the person in an audit line; the event stays."""
        line = _read(body, AuditRow)
        if line is None:
            return body
        theirs, gone = line.who in accounts, line.where in removed
        said = any(phrase in body for phrase in phrases)
        named = any(name in line.detail for name in (*removed, *accounts))
        if not (theirs or gone or said or named):
            return body
        return _encode(
            self._trail.signer.erase(
                line,
                who=ERASED if theirs else line.who,
                where=ERASED if gone else line.where,
                detail=ERASED,
            )
        )

    # ---- conversations -------------------------------------------------------------------

    async def _finish_begun(self, removed: frozenset[str]) -> None:
        """Remove the conversations that an interrupted erasure had taken out of the person's
        list."""
        for name in await self._removal.find_marked():
            if name in removed:
                async with self._closed(name):
                    await self._finish(name)

    async def _erase_private(self, notes: ErasureNotes, done: Erased, tell: Tell) -> None:
        for account in sorted(notes.note.accounts):
            tried: set[str] = set()
            while page := await self._find_private(account, tried):
                for name in page:
                    tried.add(name)
                    await self._remove(name, notes, done)
                    tell(f"private conversations: {done.conversations}")

    async def _find_private(self, account: str, tried: set[str]) -> list[str]:
        found = await self._store.recent(person_scope(account), PAGE + len(tried))
        return [one.conversation for one in found if one.conversation not in tried]

    async def _remove(self, conversation: str, notes: ErasureNotes, done: Erased) -> None:
        async with self._closed(conversation):
            rows = self._contents.read_all(conversation)
            refs = [ref.decode() async for row in rows for ref in REF.findall(row.body)]
            await notes.add(removed=frozenset({conversation}), refs=frozenset(refs))
            if not await self._removal.begin(conversation, None):
                done.busy.append(conversation)
                return
            await self._finish(conversation)
        done.conversations += 1
        done.removed.append(conversation)

    async def _erase_shared(self, notes: ErasureNotes, done: Erased, tell: Tell) -> None:
        """Blank the person's turns in conversations shared with others."""
        after, seen = Position(), 0
        while page := await self._removal.find_idle(float("inf"), PAGE, after):
            after = page[-1]
            for place in page:
                if not read_conversation(place.conversation).private:
                    await self._blank(place.conversation, notes, done)
            seen += len(page)
            tell(f"looked through: {seen}")

    async def _blank(self, conversation: str, notes: ErasureNotes, done: Erased) -> None:
        accounts = notes.note.accounts
        theirs, phrases = await self._find_turns(conversation, notes)
        if not theirs:
            return
        async with self._closed(conversation):
            opened = await self._store.acquire(conversation, OWNER, TTL)
            if opened is None:
                done.busy.append(conversation)
                return
            await notes.add(phrases=phrases)
            try:
                turns = tuple(
                    replace(turn, status="cancelled") for turn in opened.turns if turn.id in theirs
                )
                questions = tuple(
                    replace(one, status="cancelled")
                    for one in opened.questions
                    if one.turn in theirs
                )
                await self._store.submit(opened.lease, Changes(turns=turns, questions=questions))
                rows = [row async for row in self._contents.read_all(conversation)]
                words = notes.note.phrases
                edited = [_blank_row(row, theirs, accounts, words) for row in rows]
                new = [one for one, row in zip(edited, rows, strict=True) if one.body != row.body]
                await self._contents.write_all(conversation, new)
                done.rows += len(new)
            finally:
                await self._store.give_back(opened.lease)

    async def _find_turns(
        self, conversation: str, notes: ErasureNotes
    ) -> tuple[frozenset[str], frozenset[bytes]]:
        """Return the person's turns, and their words as JSON has them."""
        accounts, theirs, refs = notes.note.accounts, set[str](), set[str]()
        phrases: set[bytes] = set()
        async for row in self._contents.read_all(conversation):
            if row.kind == "turn":
                turn = _read(row.body, TurnRow)
                if turn is not None and turn.sender in accounts:
                    theirs.add(turn.id)
                    phrases |= _phrase(turn.text)
            elif row.kind == "transcript":
                entry = _read(row.body, TranscriptRow)
                if entry is not None and entry.person in accounts:
                    theirs.add(entry.turn)
                    phrases |= _find_spoken(entry)
            elif (
                row.kind == "view" and (view := _read(row.body, OutboxRow)) and view.turn in theirs
            ):
                refs.update(ref.decode() for ref in REF.findall(row.body))
        await notes.add(refs=frozenset(refs))
        return frozenset(theirs), frozenset(phrases)

    # ---- documents -----------------------------------------------------------------------

    async def _drop_documents(self, accounts: frozenset[str], done: Erased, beside: bool) -> None:
        for account in sorted(accounts):
            for kind in ("", "link"):
                body = await self._store.get(f"{kind}shown:{account}")
                if body is not None:
                    code = msgspec.json.decode(body, type=_Shown).code
                    await self._store.put(f"{kind}code:{code}", None)
            body = await self._store.get(f"identity:{account}")
            if body is not None:
                person = msgspec.json.decode(body, type=_Person).person
                await self._store.put(f"accounts:{person}", None)
            if beside:
                await note_erased(self._store, OWN_MEMORY + account)
            for prefix in _PLAIN:
                if await self._store.get(prefix + account) is not None:
                    await self._store.put(prefix + account, None)
                    done.documents += 1


Row = TypeVar("Row", bound=Struct)


def _read(body: bytes, kind: type[Row]) -> Row | None:
    """The row, None if this version cannot read it."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError):
        return None


def _phrase(text: str) -> set[bytes]:
    """Return the text as it occurs within a JSON string, and its lines, also without an author's
    name."""
    lines = text.splitlines()
    parts = {text, *lines, *(line.partition(": ")[2] for line in lines)}
    return {_encode(one)[1:-1] for one in parts if len(one.strip()) >= MIN_WORDS}


def _find_spoken(entry: TranscriptRow) -> set[bytes]:
    found: set[bytes] = set()
    for message in entry.messages:
        if message.role == "user":
            found |= _phrase(text_of(message))
    return found


def _cut(body: bytes, phrases: Sequence[bytes]) -> bytes:
    for phrase in phrases:
        body = body.replace(phrase, ERASED.encode())
    return body


def _blank_row(
    row: Stored, theirs: frozenset[str], accounts: frozenset[str], phrases: frozenset[bytes]
) -> Stored:
    """Return the row without the person's words, and without the words said to them."""
    longest = sorted(phrases, key=len, reverse=True)
    match row.kind:
        case "turn" if (turn := _read(row.body, TurnRow)) is not None and turn.id in theirs:
            body = _encode(replace(turn, text="", sender_name=""))
        case "record" if row.key.rpartition(" ")[0] in theirs:
            body = encode_record(Noted(key=row.key, value=msgspec.Raw(b"null")))
        case "view" if (view := _read(row.body, OutboxRow)) is not None and view.turn in theirs:
            body = _encode(replace(view, view=ReplyView(text=ERASED)))
        case "question" if (one := _read(row.body, QuestionRow)) is not None and one.turn in theirs:
            body = _cut(_encode(replace(one, votes=())), longest)
        case "transcript" if (entry := _read(row.body, TranscriptRow)) is not None:
            own = entry.turn in theirs or entry.person in accounts
            # summaries and copies of messages from elsewhere may contain anybody's words
            mixed = entry.kind in ("summary", "resumed")
            body = _encode(replace(entry, messages=())) if own or mixed else _cut(row.body, longest)
        case "letter" if (letter := _read(row.body, Letter)) is not None:
            body = _blank_letter(letter, theirs, accounts, longest)
        case "conversation" if (known := _read(row.body, ConversationRow)) is not None:
            said = any(known.title.encode()[:40] in phrase for phrase in longest)
            body = _cut(_encode(replace(known, title="" if said else known.title)), longest)
        case _:
            body = _cut(row.body, longest)
    return row._replace(body=body)


def _blank_letter(
    letter: Letter, theirs: frozenset[str], accounts: frozenset[str], longest: Sequence[bytes]
) -> bytes:
    name = letter.name.split(" ")[0]
    sender = _sender_key(letter.payload)
    if name in theirs or letter.turn in theirs or sender in accounts:
        return _encode(replace(letter, payload=b"{}", kind="conversation"))
    return _encode(replace(letter, payload=_cut(letter.payload, longest)))


def _sender_key(payload: bytes) -> str:
    try:
        sender = sender_of(_inbound(payload))
    except (msgspec.MsgspecError, ValueError):
        return ""
    return sender.key if sender is not None else ""


def _blank_message(body: bytes, accounts: frozenset[str], phrases: frozenset[bytes]) -> bytes:
    """Remove a message of the person; blank quotes of them in others' messages."""
    if _sender_key(body) in accounts:
        return b"{}"
    return _cut(body, sorted(phrases, key=len, reverse=True))
