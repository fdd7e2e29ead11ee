"""Undoes the last turn: the model's view of it, and the files it changed."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Sequence
from functools import partial
from pathlib import Path
from posixpath import normpath
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.errors import ToolFailed, is_shortage
from agent_core.journal import Record, ToolStarted
from agent_core.messages import ToolCall
from agent_core.sandboxes.snapshots import Snapshots, join_names, name_after, name_before
from agent_core.sandboxes.states.file_states import Snapshot
from agent_core.sandboxes.states.scan import SnapshotRefused
from agent_core.tools.backups import go_back
from gateway.access.access import Role
from gateway.conversation.inbox.parts import join_rows
from gateway.conversation.inbox.reading import TurnInput
from gateway.conversation.inbox.reading import words as write_words
from gateway.conversation.turns import OpenTurn, new_row, read_asked, read_brief, read_retry
from gateway.delivery.retire import fold_said, retire_plan
from gateway.feature import Context, Meaning
from gateway.messages import CommandGiven, MessageReceived, Sender, is_forwarded
from gateway.store.rows import EditedWords, InboxRow, Spans, Thread, TranscriptRow, TurnRow
from gateway.store.spans import without_last
from gateway.texts import say
from gateway.texts.signs import visible
from gateway.texts.tool_names import name_tool

T = TypeVar("T")
WRITERS = frozenset({"write_file", "str_replace_editor"})
"""Tools whose changes are backed up for undo."""
SHELLS = frozenset(
    {
        *("run_command", "bash", "sandbox_shell", "execute_code", "python_execute"),
        *("normal_python_execute", "execute_script", "rollback", "check_command"),
    }
)
"""Tools that change files of the workspace in any way, and in a sandbox nothing else."""
FILE_LINE = re.compile(r"^\[[^\]\n]+\]$", re.MULTILINE)
"""A message's line about an attached file, for the model or for people."""
Refusal = Literal["nothing_to_undo", "not_yours"]


class Past(Struct, frozen=True, kw_only=True):
    """The last turn, its effects, and the history before it. `snapshots`: where its files are kept
    as they were."""

    turn: TurnRow
    snapshots: Snapshots
    records: tuple[Record, ...]
    shows: Spans
    rows: Thread


class Restored(Struct, frozen=True, kw_only=True):
    """The result for a turn's effects: restored files, files that could not be, files left alone,
    and tools whose effects stay."""

    files: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    def describe(self, language: str) -> str:
        """Describe the result, "" if there is nothing to say."""
        tools = tuple(dict.fromkeys(visible(name_tool(one, language)) for one in self.tools))
        said = (
            ("undone_files", self.files),
            ("undone_not", self.changed),
            ("undone_left", self.left),
            ("undone_stays", tools),
        )
        return "".join(
            f"\n{say(key, language, names=join_names(names))}"  # type: ignore[arg-type]  # of texts
            for key, names in said
            if names
        )


def busy(context: Context) -> bool:
    """True if something runs or waits: the last turn may change at any moment."""
    running = any(turn.status == "running" for turn in context.state.turns.values())
    return running or context.state.active is not None or bool(context.state.queue)


async def last_turn(context: Context, sender: Sender, role: Role) -> Past | Refusal:
    """Return the turn that /undo takes back, or the reason why `sender` cannot."""
    shows = context.state.row.shows
    row = await _last_row(context, shows)
    turn = await context.services.store.turn(row.turn) if row is not None and row.turn else None
    if row is None or turn is None:
        return "nothing_to_undo"
    access = context.services.access
    if not (
        context.state.conversation.private or await access.may_act_for(turn.sender, sender, role)
    ):
        return "not_yours"
    if row.kind == "summary":
        before = turn.history
        rows = await context.turns.history.read(before)
    else:
        before = without_last(shows)
        rows = (await context.turns.history.rows())[:-1]
    records = await context.services.store.records(turn.id)
    kept = context.services.snapshots
    return Past(turn=turn, snapshots=kept, records=records, shows=before, rows=rows)


async def _last_row(context: Context, shows: Spans) -> TranscriptRow | None:
    if not shows:
        return None
    n = shows[-1][1]
    rows = await context.services.store.transcript(context.state.lease.conversation, n - 1, n)
    return rows[0] if rows else None


async def find_changed_since(past: Past) -> tuple[str, ...]:
    """Files that the turn changed, and something else after it."""
    kept = await asyncio.to_thread(_find_snapshots, past)
    if kept is None:
        return ()
    return (await asyncio.to_thread(past.snapshots.find_changed, *kept)).changed


def _find_snapshots(past: Past) -> tuple[Path, Snapshot, Snapshot] | None:
    """The workspace as the turn found it and as it left it; where it was cut off, as it is."""
    if not any(isinstance(record, ToolStarted) for record in past.records):
        return None
    workspace, keeper = Path(read_brief(past.records).workspace), past.snapshots
    keeper.revive(workspace)
    before = keeper.find(workspace, name_before(past.turn.id))
    if before is None:
        return None
    try:
        return workspace, before, keeper.take(workspace, name_after(past.turn.id))
    except SnapshotRefused as error:
        if is_shortage(error):
            raise
        return None


async def put_off(context: Context, asked: tuple[int, str], work: Awaitable[T]) -> T | None:
    """Return what `work` on files returns; None where the machine is short of something, which is
    told. `asked`: the inbox row that wants it, and its language."""
    try:
        return await work
    except Exception as error:
        if not is_shortage(error):
            raise
    seq, language = asked
    context.state.notice(seq, say("undone_later", language))
    return None


async def restore(past: Past, *, changed_too: bool = False) -> Restored:
    """Restore the files from before the turn, as far as known; with `changed_too` also those
    changed by something else since. Idempotent. An error for which `is_shortage` is true leaves the
    rest to another try."""
    started = [record.call for record in past.records if isinstance(record, ToolStarted)]
    if not started:
        return Restored()
    kept = await asyncio.to_thread(_find_snapshots, past)
    if kept is not None:
        take_back_files = partial(past.snapshots.take_back, changed_too=changed_too)
        done = await asyncio.to_thread(take_back_files, *kept)
        own = (*WRITERS, *SHELLS)
        stays = dict.fromkeys(
            one.name for one in started if one.name not in own or _names_hosts(one.arguments)
        )
        files = tuple(sorted((*done.restored, *done.already)))
        return Restored(files=files, changed=done.changed, tools=tuple(stays))
    return await _restore_written(past, started)


def _names_hosts(arguments: str) -> bool:
    """The call could reach hosts of the network."""
    try:
        return bool(msgspec.json.decode(arguments, type=_Hosts).hosts)
    except msgspec.DecodeError:
        return False


class _Hosts(Struct):
    hosts: list[str] = []


async def _restore_written(past: Past, started: list[ToolCall]) -> Restored:
    """Restore from backups of single files: there is no snapshot, or no longer."""
    workspace = Path(read_brief(past.records).workspace)
    writes = Counter(path for one in started if (path := _written_file(one.name, one.arguments)))
    files: list[str] = []
    changed: list[str] = []
    for path, count in writes.items():
        try:
            gone_back = await asyncio.to_thread(go_back, path, workspace, past.turn.begun, count)
        except ToolFailed as error:
            if is_shortage(error):
                raise
            gone_back = False
        (files if gone_back else changed).append(path)
    tools = dict.fromkeys(one.name for one in started if one.name not in (*WRITERS, "rollback"))
    return Restored(files=tuple(files), changed=tuple(changed), tools=tuple(tools))


def _written_file(name: str, arguments: str) -> str:
    """Return the file that the call wrote, "" for none."""
    if name not in WRITERS:
        return ""
    try:
        path = msgspec.json.decode(arguments, type=_Path).path
    except msgspec.DecodeError:
        return ""
    return normpath(path) if path else ""


class _Path(Struct):
    path: str = ""


def take_back(context: Context, past: Past) -> None:
    """Hide the turn from the model from the next commit on."""
    context.turns.history.show("undone", past.shows, past.rows, past.turn.id)


def _reword(words: str, before: str) -> str:
    """Other words for a message, with the files that came with it."""
    return "\n".join((words, *FILE_LINE.findall(before)))


def _reword_request(rows: Sequence[InboxRow], words: str, new: InboxRow, before: str) -> str:
    """Other words for a request, with all that came with it: what it replies to, the thread before
    it, its files. `rows`: its messages, `new`: the same with the other words."""
    joined = join_rows(rows) if rows else None
    old = write_words(joined) if joined is not None else ""
    stands = list(re.finditer(rf"^{re.escape(old)}$", before, re.MULTILINE)) if old else []
    if joined is None or not stands or not getattr(joined.inbound, "text", ""):
        return _reword(words, before)
    return f"{before[: stands[-1].start()]}{write_words(new)}{before[stands[-1].end() :]}"


def _put_words(
    rows: Sequence[InboxRow], words: str, edited: EditedWords | None, command: str
) -> tuple[InboxRow, ...]:
    """Return the rows of a request with other words in it: those of each edited part, else all in
    the first and none in the others; what was forwarded stays."""
    edits = dict(edited.parts) if edited is not None and edited.text == words else {}
    put: list[InboxRow] = []
    for row in rows:
        said = row.inbound
        if isinstance(said, MessageReceived) and not is_forwarded(said):
            text = edits.get(said.message, said.text) if edits else "" if put else words
            kept = said.described and text == said.text
            said = replace(said, text=text, command=command, described=kept)
        put.append(replace(row, inbound=said))
    return tuple(put)


def _ask_again(context: Context, past: Past, words: str, meant: Meaning | None) -> TurnInput:
    """The input of a turn that asks the last request again, with other `words` if there are any;
    `meant`: the message that they stand for as a command."""
    brief, rows = read_brief(past.records), read_asked(past.records)
    same = TurnInput(
        text=brief.request_text(),
        said=brief.said,
        fetched=True,
        pictures=brief.pictures,
        files=brief.files,
        mentions=brief.mentions,
        command=brief.command,
        retry=read_retry(brief),
        rows=rows,
    )
    if not words:
        return same
    text, command = (meant.text, meant.command) if meant is not None else (words, "")
    edited = context.state.row.edited
    put = _put_words(rows, text, edited if meant is None else None, command)
    joined = join_rows(put) if put else None
    return replace(
        same,
        text=_reword_request(rows, text, joined, same.text) if joined else _reword(text, same.text),
        said=_reword(words, brief.said),
        mentions=context.services.agent.find_mentions((text,)),
        command=command,
        retry=None,
        rows=put,
    )


async def begin_again(context: Context, row: InboxRow, command: CommandGiven) -> OpenTurn | None:
    """Run /retry: ask the last message again, or other words that were given, in a turn whose first
    commit undoes the last turn and ends the command's row, so that a crash leaves all of it to do
    or nothing."""
    context.state.queue.popleft()
    sender, role = command.sender, context.services.access.role(command.sender) or "viewer"
    past = await last_turn(context, sender, role)
    if isinstance(past, str) or not past.records:
        why = past if isinstance(past, str) else "nothing_to_undo"
        context.state.notice(row.seq, say(why, sender.language))
        return None
    meant = context.find_meaning(command.arguments, role)
    if meant is None and context.find_command(command.arguments) is not None:
        context.state.notice(row.seq, say("edited_command", sender.language))
        return None
    if await put_off(context, (row.seq, sender.language), restore(past)) is None:
        return None
    message, version = command.message or past.turn.message, context.services.version
    turn = new_row((row.seq,), sender, role, message, past.turn.text, version)
    turn = replace(turn, firing=past.turn.firing)
    asked = _ask_again(context, past, command.arguments, meant)
    for name, retired in (("plan", retire_plan("plan_anew")), ("said", fold_said("retried"))):
        context.state.along += await context.state.redraw(past.turn.id, name, retired)
    # a commit before that of the turn would undo this turn alone
    prepare = partial(take_back, context, past)
    return await context.turns.start(turn, asked, (row.seq,), prepare=prepare)
