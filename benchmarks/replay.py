"""What it takes to go on: the time a long turn needs to replay, and the commits that turns cost.

`python -m benchmarks.replay [times]` prints JSON and a row for benchmarks/README.md. The replay is
timed from the store to the turn's frontier, where it waits for a person: load, decode, fold, run.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import cast

from agent_core.errors import Parked
from agent_core.events import OutputAdded
from agent_core.journal import Record
from agent_core.messages import Message
from agent_core.orchestration.brief import TurnResult
from agent_core.orchestration.drive import drive
from agent_core.scope import Scope, Turn
from benchmarks.quiet import Quiet, percentiles, room
from gateway.conversation.agent import PolicyContext
from gateway.conversation.turns import OpenTurn, read_brief
from gateway.delivery.fold import ViewFold
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.store.sqlite import SqliteStore

LONG = "do " + "note note note|note add note|" * 11 + "deploy"
"""22 rounds of three effects, then a question: about 200 records."""
PLANNED = "do " + "|".join(["look look", "note", "add note", "look", "note note", "add"])
"""Six steps with nine tool calls."""
GOAL_MS = 10.0
GOAL_COMMITS = 6


class Alone:
    """Company for a turn that nobody watches."""

    def live(self, event: object) -> None:
        return None

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return ()


class Circumstances:
    """What the policy asks for, as a new conversation has it."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    def settings(self) -> ConversationSettings:
        return ConversationSettings()

    def asker(self) -> tuple[str, str]:
        return "test:ann", "user"

    def output(self, event: OutputAdded) -> None:
        return None


def refuse(turn: OpenTurn, records: tuple[Record, ...]) -> Awaitable[None]:
    """A replay that writes has not replayed."""
    raise AssertionError(f"written again: {records}")


async def replay(gateway: Quiet, turn_id: str) -> tuple[int, dict[str, float]]:
    """Records read, and seconds by part of one replay."""
    began = time.perf_counter()
    row = await gateway.store.turn(turn_id)
    assert row is not None
    records = await gateway.store.records(turn_id)
    await gateway.store.outbox(room(0).id, turn_id)
    loaded = time.perf_counter()
    folded = OpenTurn(row, read_brief(records), ViewFold(asker=row.sender_name), records, refuse)
    shaped = time.perf_counter()
    turn = Turn(turn_id, folded.journal, Alone())
    hands = gateway.agent.hands(cast(PolicyContext, Circumstances(room(0))))

    async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
        return await gateway.agent.code(scope, folded.brief, hands, (), past)

    try:
        await drive(turn, code)
    except Parked:
        ended = time.perf_counter()
        assert len(folded.journal.records) == len(records)
        return len(records), {
            "load_and_decode": loaded - began,
            "fold": shaped - loaded,
            "run": ended - shaped,
            "all": ended - began,
        }
    raise AssertionError("the turn ended instead of waiting")


async def commits(gateway: Quiet, n: int, text: str) -> int:
    """Commits from the message to the released conversation."""
    store = gateway.store
    assert isinstance(store, SqliteStore)
    before = store.commits
    await gateway.say([n], text, "m")
    await gateway.quiet()
    return store.commits - before


async def measure(times: int) -> dict[str, object]:
    """One long parked turn replayed `times` times, then resumed; then turns that end."""
    with tempfile.TemporaryDirectory() as folder:
        async with Quiet(Path(folder)).living() as gateway:
            await gateway.say([0], LONG, "m")
            await gateway.quiet()
            turn_id = gateway.turn(0)
            await replay(gateway, turn_id)  # everything is imported
            runs = [await replay(gateway, turn_id) for _ in range(times)]
            resumed = await resume(gateway)
            await commits(gateway, 1, "warm")
            simple = [await commits(gateway, n, "hello") for n in range(2, 12)]
            planned = [await commits(gateway, n, PLANNED) for n in range(12, 22)]
    parts = {name: percentiles([run[name] for _, run in runs]) for name in runs[0][1]}
    return {
        "records": runs[0][0],
        "replay": parts,
        "press_to_tool_ms": round(resumed * 1000, 2),
        "commits_simple": max(simple),
        "commits_planned": max(planned),
        "tools_planned": len(PLANNED[3:].replace("|", " ").split()),
    }


async def resume(gateway: Quiet) -> float:
    """Seconds from the press to the long turn's next tool, with all commits on the way."""
    ran = asyncio.Event()
    gateway.agent.on_tool = lambda name: ran.set()
    question = gateway.question(0)
    began = time.perf_counter()
    await gateway.press(0, question)
    async with asyncio.timeout(30):
        await ran.wait()
    took = time.perf_counter() - began
    await gateway.quiet()
    return took


def main() -> int:
    """0 if every goal is met."""
    found = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
    print(json.dumps(found))
    parts = found["replay"]
    assert isinstance(parts, dict)
    p50 = {name: part["p50_ms"] for name, part in parts.items()}
    print(
        f"| {found['records']} | {p50['all']} ms | {p50['load_and_decode']} + {p50['fold']} + "
        f"{p50['run']} ms | {found['press_to_tool_ms']} ms | {found['commits_simple']} "
        f"| {found['commits_planned']} for {found['tools_planned']} tools |"
    )
    met = p50["all"] < GOAL_MS and int(str(found["commits_simple"])) <= GOAL_COMMITS
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
