"""Erases a person: their private conversations, their words elsewhere, and every document about
them.

Idempotent: it can be repeated after an interruption.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.access.pairing import MACHINE
from gateway.messages import read_conversation
from gateway.ops.erasure_notes import ErasureNote, ErasureNotes
from gateway.ops.erasure_rows import (
    ERASED,
    Traces,
    blank_message,
    blank_row,
    find_answered,
    find_asked,
    find_phrases,
    find_report,
    find_said,
    find_spoken,
    read_row,
    sort_phrases,
)
from gateway.ports import person_scope
from gateway.services.audit_trail import AuditTrail
from gateway.services.memory_removals import note_erased
from gateway.store.port import Store
from gateway.store.reading import read_document
from gateway.store.removal.port import Position, Removal
from gateway.store.removal.stored import Contents
from gateway.store.rows import (
    AuditRow,
    Changes,
    OutboxRow,
    QuestionRow,
    TranscriptRow,
    TurnRow,
    find_brought,
    find_reported,
)

log = logging.getLogger("turnkeeper.retention")

OWNER = "erasure"
TTL = 120.0
"""Seconds that a group may take."""
PAGE = 100
REF = re.compile(rb'"([0-9a-f]{2}/[0-9a-f]{64})"')

Closed = Callable[[str], AbstractAsyncContextManager[None]]
Tell = Callable[[str], None]
_encode = msgspec.json.Encoder().encode
OWN_MEMORY = "memory:own:"
_PLAIN = (
    OWN_MEMORY,
    "person:",
    "standing:",
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


_shown = msgspec.json.Decoder(_Shown).decode
_person = msgspec.json.Decoder(_Person).decode


@dataclass(slots=True, kw_only=True)
class Erased:
    """The result. `busy`: conversations held by another process, which are unchanged."""

    conversations: int = 0
    rows: int = 0
    documents: int = 0
    removed: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)


class _Found(Struct, frozen=True, kw_only=True):
    """The person's traces in one conversation: their `turns`, what is to be noted, and whether
    others' turns have some (`touched`)."""

    note: ErasureNote
    turns: frozenset[str]
    touched: bool

    def __bool__(self) -> bool:
        return self.touched or bool(self.turns) or bool(self.note.questions)


def make_traces(
    note: ErasureNote,
    turns: frozenset[str] = frozenset(),
    phrases: frozenset[bytes] | None = None,
    *,
    mixed: bool = True,
) -> Traces:
    """Return the traces that the note names; its phrases unless others are given."""
    return Traces(
        accounts=note.accounts,
        turns=turns,
        jobs=note.jobs,
        questions=note.questions,
        phrases=sort_phrases(note.phrases if phrases is None else phrases),
        mixed=mixed,
    )


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
        groups = await self._find_groups(notes)
        await self._erase_elsewhere(notes, groups, done, tell)
        removed, traces = notes.note.removed - frozenset(done.busy), make_traces(notes.note)
        done.rows += await self._contents.edit_messages(
            removed, lambda body: blank_message(body, traces)
        )
        done.rows += await self._contents.edit_audit(
            lambda body: self._blank_line(body, accounts, notes.note.phrases, removed)
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
        line = read_row(body, AuditRow)
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
            refs, questions = set[str](), set[str]()
            async for row in self._contents.read_all(conversation):
                refs.update(ref.decode() for ref in REF.findall(row.body))
                if row.kind == "question" and (one := read_row(row.body, QuestionRow)):
                    questions.add(one.id)
            await notes.add(
                ErasureNote(
                    accounts=notes.note.accounts,
                    removed=frozenset({conversation}),
                    refs=frozenset(refs),
                    questions=frozenset(questions),
                )
            )
            if not await self._removal.begin(conversation, None):
                done.busy.append(conversation)
                return
            await self._finish(conversation)
        done.conversations += 1
        done.removed.append(conversation)

    async def _find_groups(self, notes: ErasureNotes) -> frozenset[str]:
        """Return the groups to which the person's stored messages were said; note their words."""
        accounts, groups, phrases = notes.note.accounts, set[str](), set[bytes]()

        def look(body: bytes) -> bytes:
            if (said := find_said(body, accounts)) is not None:
                groups.add(said[0])
                phrases.update(said[1])
            return body

        await self._contents.edit_messages(frozenset(), look)
        await notes.add(ErasureNote(accounts=accounts, phrases=frozenset(phrases)))
        return frozenset(groups)

    async def _erase_elsewhere(
        self, notes: ErasureNotes, groups: frozenset[str], done: Erased, tell: Tell
    ) -> None:
        """Blank the person's turns and answers in conversations shared with others, and everywhere
        the reports of their jobs and the cards of their questions."""
        after, seen = Position(), 0
        while page := await self._removal.find_idle(float("inf"), PAGE, after):
            after = page[-1]
            for place in page:
                if place.conversation not in notes.note.removed:
                    await self._blank(place.conversation, notes, groups, done)
            seen += len(page)
            tell(f"looked through: {seen}")

    async def _blank(
        self, conversation: str, notes: ErasureNotes, groups: frozenset[str], done: Erased
    ) -> None:
        if not await self._find_traces(conversation, notes) and conversation not in groups:
            return
        async with self._closed(conversation):
            opened = await self._store.acquire(conversation, OWNER, TTL)
            if opened is None:
                done.busy.append(conversation)
                return
            try:
                # what was said meanwhile counts too
                found = await self._find_traces(conversation, notes)
                await notes.add(found.note)
                theirs = found.turns
                turns = tuple(
                    replace(turn, status="cancelled") for turn in opened.turns if turn.id in theirs
                )
                questions = tuple(
                    replace(one, status="cancelled")
                    for one in opened.questions
                    if one.turn in theirs
                )
                await self._store.submit(opened.lease, Changes(turns=turns, questions=questions))
                # others' private words are theirs, even where they are the same
                private = read_conversation(conversation).private
                said = found.note if private else notes.note
                traces = make_traces(notes.note, theirs, said.phrases, mixed=not private)
                rows = [row async for row in self._contents.read_all(conversation)]
                edited = [blank_row(row, traces) for row in rows]
                new = [one for one, row in zip(edited, rows, strict=True) if one.body != row.body]
                # answers last: after an interruption they lead here again
                new.sort(key=lambda one: one.kind == "record")
                await self._contents.write_all(conversation, new)
                done.rows += len(new)
            finally:
                await self._store.give_back(opened.lease)

    async def _find_traces(self, conversation: str, notes: ErasureNotes) -> "_Found":
        """Return the person's turns and words, also in others' turns."""
        accounts, jobs = notes.note.accounts, notes.note.jobs
        theirs, refs, questions, phrases = set[str](), set[str](), set[str](), set[bytes]()
        touched = False
        async for row in self._contents.read_all(conversation):
            match row.kind:
                case "turn" if (turn := read_row(row.body, TurnRow)) and turn.sender in accounts:
                    theirs.add(turn.id)
                    phrases |= find_phrases(turn.text)
                case "record" if (said := find_answered(row.body, accounts)) is not None:
                    touched = True
                    phrases |= said
                case "transcript" if (
                    entry := read_row(row.body, TranscriptRow)
                ) and entry.person in accounts:
                    theirs.add(entry.turn)
                    phrases |= find_spoken(entry)
                case "question" if (one := read_row(row.body, QuestionRow)) and one.turn in theirs:
                    phrases |= find_asked(one.question)
                case "view" if view := read_row(row.body, OutboxRow):
                    if view.turn in theirs:
                        refs.update(ref.decode() for ref in REF.findall(row.body))
                    elif find_reported(view)[0] in jobs:
                        phrases |= find_report(view)
                        touched = True
                    elif question := await self._find_brought(view, notes.note):
                        questions.add(question)
        note = ErasureNote(
            accounts=accounts,
            refs=frozenset(refs),
            questions=frozenset(questions),
            phrases=frozenset(phrases),
        )
        return _Found(note=note, turns=frozenset(theirs), touched=touched)

    async def _find_brought(self, view: OutboxRow, note: ErasureNote) -> str:
        """Return the question of another conversation that the view shows, if it was asked in a
        turn of the person; "" if not."""
        name = find_brought(view)
        if not name or name in note.questions:
            return name
        found = await self._store.find(name)
        turn = await self._store.turn(found[1].turn) if found is not None else None
        return name if turn is not None and turn.sender in note.accounts else ""

    # ---- documents -----------------------------------------------------------------------

    async def _drop_documents(self, accounts: frozenset[str], done: Erased, beside: bool) -> None:
        for account in sorted(accounts):
            for kind in ("", "link"):
                name = f"{kind}shown:{account}"
                shown = read_document(name, await self._store.get(name), _shown)
                if shown is not None:
                    await self._store.put(f"{kind}code:{shown.code}", None)
            name = f"identity:{account}"
            identity = read_document(name, await self._store.get(name), _person)
            if identity is not None:
                await self._store.put(f"accounts:{identity.person}", None)
            if beside:
                await note_erased(self._store, OWN_MEMORY + account)
            for prefix in _PLAIN:
                if await self._store.get(prefix + account) is not None:
                    await self._store.put(prefix + account, None)
                    done.documents += 1
