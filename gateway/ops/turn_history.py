"""The last turns of a conversation in the store, and their totals."""

from collections import Counter
from statistics import median

from msgspec import Struct

from agent_core import ambient
from agent_core.messages import Message, ToolResult
from gateway.store.port import Store
from gateway.store.rows import TranscriptRow, TurnRow

MAX_TURNS = 100
READ = 4 * MAX_TURNS
"""Rows of a transcript that are looked at: summaries and the like are among them."""
MAX_WORDS = 60


class PastTurn(Struct, frozen=True, kw_only=True):
    """One ended turn. `seconds`: from start to end, with its waits; `calls`: tool calls, `failed`:
    those that failed. `row` None: it is older than journals are kept."""

    entry: TranscriptRow
    row: TurnRow | None
    seconds: float
    calls: int
    failed: int


async def read_past_turns(store: Store, conversation: str) -> tuple[PastTurn, ...]:
    """The last MAX_TURNS that ended there, oldest first. StoreFailed."""
    entries = [row for row in await store.newest(conversation, READ) if row.kind == "turn"]
    return tuple([await _read_turn(store, one) for one in entries[-MAX_TURNS:]])


async def _read_turn(store: Store, entry: TranscriptRow) -> PastTurn:
    row = await store.turn(entry.turn)
    results = [part for message in entry.messages for part in _results(message)]
    failed = sum(one.error or (one.command is not None and one.command.failed) for one in results)
    seconds = max(0.0, entry.at - row.begun) if row is not None else 0.0
    return PastTurn(entry=entry, row=row, seconds=seconds, calls=len(results), failed=failed)


def _results(message: Message) -> list[ToolResult]:
    return [part for part in message.parts if isinstance(part, ToolResult)]


def describe_turns(turns: tuple[PastTurn, ...]) -> str:
    """A line a turn, and one for all of them."""
    return "\n".join((*map(_describe, turns), _sum_up(turns))) if turns else "No turn ended there."


def _describe(one: PastTurn) -> str:
    when = ambient.utc(one.entry.at).isoformat(timespec="seconds")
    how = one.row.status if one.row is not None else "ended"
    words = " ".join(one.row.text.split())[:MAX_WORDS] if one.row is not None else ""
    tools = f"{one.calls} calls, {one.failed} failed"
    return f"{one.entry.turn}  {when}  {how}  {one.seconds:.1f} s  {tools}  {words}".rstrip()


def _sum_up(turns: tuple[PastTurn, ...]) -> str:
    known = [one for one in turns if one.row is not None]
    ends = Counter(one.row.status for one in known if one.row is not None)
    ended = ", ".join(f"{count} {how}" for how, count in sorted(ends.items()))
    calls, failed = sum(one.calls for one in turns), sum(one.failed for one in turns)
    middle = f"{median(one.seconds for one in known):.1f} s" if known else "unknown"
    return (
        f"{len(turns)} turns ({ended or 'older than their journals'}), median {middle}, "
        f"{calls} calls of tools, {failed} failed"
    )
