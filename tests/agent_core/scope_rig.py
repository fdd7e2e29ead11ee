"""A turn over records in memory, and calls that note that they were made."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

from agent_core.journal import (
    Journal,
    Record,
    decode,
    encode,
)
from agent_core.messages import Text, ToolCall
from agent_core.models.port import ModelReply, TextDelta
from agent_core.questions import Input
from agent_core.scope import Scope, Turn
from tests.fakes.waiting import PATIENCE

ASK = Input(text="may I?")


class Disk:
    """Commits in memory, through JSON. `hold` keeps a commit from standing."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records = [decode(encode(record)) for record in records]
        self.commits: list[tuple[str, ...]] = []
        self.hold: asyncio.Event | None = None

    def write(self, batch: tuple[Record, ...]) -> Awaitable[None]:
        self.records.extend(decode(encode(record)) for record in batch)
        self.commits.append(tuple(record.key for record in batch))
        stands = asyncio.get_running_loop().create_future()
        if self.hold is None:
            stands.set_result(None)
            return stands
        return asyncio.ensure_future(self.hold.wait())

    def keys(self) -> list[str]:
        return [record.key for record in self.records]


class Crew:
    """The company, the model and the tools of one life; what happened to them."""

    def __init__(self) -> None:
        self.did: Counter[str] = Counter()
        self.tokens: dict[str, str] = {}
        self.said: list[tuple[int, str]] = []
        self.seen: list[object] = []

    def live(self, event: object) -> None:
        self.seen.append(event)

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        taken, self.said = tuple(self.said), []
        return taken

    async def think(self, scope: Scope, name: str, text: str) -> str:
        async def call(on_delta: Callable[[TextDelta], None]) -> ModelReply:
            self.did[f"model {name}"] += 1
            on_delta(TextDelta(text=text))
            await asyncio.sleep(0)
            return ModelReply(parts=(Text(text=text),), model="m", provider="p", finish="stop")

        reply = await scope.model(call, name)
        return "".join(part.text for part in reply.parts if isinstance(part, Text))

    async def use(
        self, scope: Scope, name: str, repetition: str, wait: asyncio.Event | None = None
    ) -> str:
        async def run(token: str) -> str:
            self.tokens[name] = token
            self.did[name] += 1
            await (wait.wait() if wait is not None else asyncio.sleep(0))
            return f"{name} ok"

        return (await scope.tool(tool(name), repetition, run)).content


def tool(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=f"call-{name}", name=name, arguments=arguments)


def make(disk: Disk, crew: Crew) -> tuple[Turn, Scope]:
    """A turn whose code runs in this very task."""
    turn = Turn("t1", Journal(disk.records, disk.write), crew)
    turn.tasks.add(asyncio.current_task())
    return turn, Scope(turn)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0)


def raises(error: BaseException) -> Callable[[object], Awaitable[str]]:
    async def run(token: object) -> str:
        raise error

    return run
