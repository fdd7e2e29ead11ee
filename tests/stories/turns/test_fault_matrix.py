"""Every port x every kind of failure x when, on both stores, judged by invariants.

A case: something fails for one conversation (or for all, where the port knows none) while another
one goes on. Afterwards the process lives, nobody saw a message more than twice, no model was asked
without an end, and whatever was accepted is answered, told or a dead letter.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import ModelFailed, ToolFailed
from gateway.conversation import host
from gateway.delivery import outbox
from gateway.messages import Attachment, Conversation, MessageReceived
from gateway.store.redis import RedisStore
from gateway.views import Abilities, Notice
from tests.contracts.redis_server import redis_server
from tests.fakes.faults import KINDS, Fault, Jump, Kind, refusal_of
from tests.fakes.world import ANN, ROOM, Life
from tests.sampling import take

OTHER = Conversation(platform="test", account="a", channel="other", private=True)
WHENS = ("before", "during", "growing", "parked", "after", "start")
PURE = ("adapter.render", "agent.brief", "agent.tidy", "agent.workspace")
WHOLE = ("store.take_in", "store.work", "store.due", "store.renew", "store.sweep", "agent.tidy")
"""What fails there fails for all conversations at once."""
PORTS = (
    *WHOLE, "store.acquire", "store.submit", "store.release", "store.arrivals", "store.records",
    "store.outbox", "store.transcript", "store.find", "store.give_back", "adapter.render",
    "adapter.send", "adapter.edit", "adapter.receipt", "adapter.tell", "agent.complete",
    "agent.tool", "agent.brief", "adapter.fetch", "agent.workspace",
)  # fmt: skip
FILES = ("adapter.fetch", "agent.workspace")
"""What is asked when a message brings a file."""
CLOCKS = ("ahead", "back", "slept")
HOLD, SOON = 0.5, 12.0
"""Seconds that a fault lasts, and within which all flows again."""
MAX_CALLS = 12
"""Of the model, in all: at most two requests of three calls, and what others ask meanwhile."""
SAMPLE, AT_ONCE = 10, 5
"""Cases of a quick run, and how many are played at once."""


class Case(NamedTuple):
    """One failure."""

    port: str
    kind: Kind
    when: str


def can_be(case: Case) -> bool:
    """Pure functions neither hang nor are half done, only stores are full."""
    if case.port in PURE and case.kind not in ("raises_once", "raises", "garbage"):
        return False
    if case.kind == "full" and not case.port.startswith("store"):
        return False
    # nothing is read of what these give
    mute = ("store.submit", "store.give_back", "adapter.receipt", "adapter.tell", "adapter.edit")
    return not (case.kind == "garbage" and case.port in mute)


CASES = [case for case in map(Case._make, itertools.product(PORTS, KINDS, WHENS)) if can_be(case)]


class Play:
    """One case from its first message to its judgement."""

    def __init__(self, folder: Path, case: Case, url: str) -> None:
        self.case, self.crashes = case, 0
        self.fault: Fault | Jump
        self._folder, self._url = folder, url
        self.one = self._life()
        self.accepted: dict[str, str] = {}
        """What was accepted in the troubled conversation, with a part of its answer."""

    def _life(self) -> Life:
        open_store = (lambda _: RedisStore.open(self._url)) if self._url else None
        one = Life(self._folder, open_store)
        one.adapter.abilities = Abilities(edit_interval=0.02)
        one.ttl = 1.5
        one.agent.delays = {"growing": 0.08, "note": 0.08}
        return one

    async def run(self) -> None:
        async with self.one.living(lambda: self._put(begin=False)):
            await self._say_elsewhere("b0")
            if self.case.when == "start":
                await self._say("a1", "do note|look", "done note")
                await self._until(lambda: self.one.ledger.all("tool"))
            else:
                await self._reach()
                await self._hold()
                return await self._judge()
        self.crashes, self.one = 1, self._life()
        async with self.one.living(lambda: self._put(begin=True)):
            await self._hold()
            await self._judge()
        return None

    def _put(self, begin: bool) -> None:
        """The fault in its place."""
        one, port = self.one, self.case.port
        if port == "clock":
            self.fault = Jump(self.case.kind)
            if begin:
                self.fault.begin()
            return
        owner, _, name = port.partition(".")
        refusals: dict[str, Callable[[], Exception]] = {
            "agent.tool": lambda: ToolFailed("never"),
            "agent.complete": lambda: ModelFailed("never", "rejected"),
        }
        fault = Fault(self.case.kind, refusals.get(port) or refusal_of(port))
        self.fault = fault
        if begin:
            fault.begin()
        if port == "agent.tool":
            tools = one.agent.toolbox._tools
            for name, tool in tools.items():
                tools[name] = replace(tool, call=fault.wrap(tool.call, lambda *_: True))
            return
        target = getattr(one, owner)
        wrap = fault.wrap_pure if port in PURE else fault.wrap
        if port in ("store.submit", "store.release"):
            wrap = fault.wrap_queued
        setattr(target, name, wrap(getattr(target, name), self._concerns))

    def _concerns(self, *args: object) -> bool:
        """The call is about the conversation that has the trouble."""
        return self.case.port in WHOLE or "other" not in " ".join(map(str, args))

    # ---- what happens ----------------------------------------------------------------------

    async def _reach(self) -> None:
        """Begin the fault at the moment that the case names."""
        one, fault = self.one, self.fault
        match self.case.when:
            case "before":
                fault.begin()
                await self._say("a1", "hello a1", "ack hello a1")
            case "after":
                await self._say("a0", "hello a0", "ack hello a0")
                await self._until(lambda: self._shown("ack hello a0"))
                await one.quiet()
                fault.begin()
                await self._say("a1", "hello a1", "ack hello a1")
            case "during":
                await self._say("a1", "do note|look", "done note")
                await self._until(lambda: one.ledger.all("tool"))
                fault.begin()
            case "growing":
                await self._say("a1", "hello a1", "ack hello a1")
                await self._until(lambda: len(one.ledger.all("model")) > 1)
                fault.begin()
            case _:
                await self._say("a1", "do deploy", "done deploy")
                await self._until(one.cards)
                await one.quiet()
                token = one.cards()[0].buttons[0].token
                fault.begin()
                await self._deliver(lambda: one.press("p1", token))

    async def _say(self, event: str, text: str, answer: str) -> None:
        file = Attachment(ref="f", name="a.txt", size=4)
        files = (file,) if self.case.port in FILES else ()
        said = MessageReceived(
            conversation=ROOM, sender=ANN, event=event, message=event, text=text, attachments=files
        )
        await self._deliver(lambda: self.one.host.accept([said]))
        self.accepted[event] = answer

    async def _deliver(self, give: Callable[[], object]) -> None:
        """As a platform does: what was not kept comes again. It gives up on nothing, the fault
        gives way meanwhile."""
        ends = asyncio.get_running_loop().time() + HOLD
        while True:
            if asyncio.get_running_loop().time() > ends:
                self.fault.end()
            try:
                async with asyncio.timeout(HOLD / 2):
                    return await give()  # type: ignore[misc]
            except Exception:
                await asyncio.sleep(0.02)

    async def _say_elsewhere(self, event: str) -> None:
        await self.one.say(event, f"hello {event}", where=OTHER)
        await self._until(lambda: self._shown(f"ack hello {event}"))

    async def _hold(self) -> None:
        """The fault lasts; the other conversation goes on meanwhile."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + HOLD
        if self.case.port not in (*WHOLE, "agent.tool"):
            await self._say_elsewhere("b1")
        await asyncio.sleep(max(0.0, ends - loop.time()))
        self.fault.end()

    # ---- what must be true -----------------------------------------------------------------

    async def _judge(self) -> None:
        one = self.one
        assert not one.task.done(), "the host lives"
        await self._say_elsewhere("b2")
        await self._say("a2", "hello a2", "ack hello a2")
        await self._until(lambda: self._shown("ack hello a2"))
        await one.quiet(SOON)
        assert not await one.store.arrivals(ROOM.id, 0), "nothing is left lying"
        most = max(self._copies().values(), default=0)
        assert most <= 2 + self.crashes, self._copies()
        assert len(one.ledger.all("model")) <= MAX_CALLS, "models are not asked for ever"
        words = [view.text for view in one.screen().values() if isinstance(view, Notice)]
        letters = await one.store.letters(50)
        for event, answer in self.accepted.items():
            assert self._shown(answer) or words or letters, f"{event} is lost"

    def _copies(self) -> Counter[str]:
        """How often each finished text was sent as a new message."""
        final = (line["view"] for line in self.one.ledger.all("send"))
        texts = (str(view.get("text")) for view in final if view.get("state") == "final")
        return Counter(text for text in texts if text)

    def _shown(self, text: str) -> bool:
        lines = (*self.one.ledger.all("send"), *self.one.ledger.all("edit"))
        return any(text in str(line["view"]) for line in lines)

    async def _until(self, met: Callable[[], object]) -> None:
        await self.one.until(met, SOON)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes as tenths of seconds."""
    monkeypatch.setattr(outbox, "SEND_LIMIT", 0.25)
    monkeypatch.setattr(outbox, "MAX_BACKOFF", 0.3)
    monkeypatch.setattr(host, "RETRY_DELAY", 0.1)
    monkeypatch.setattr(host, "TIDY_EVERY", 0.1)


@pytest.fixture
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A Redis of its own, "" for a file."""
    if request.param == "sqlite":
        yield ""
        return
    server = redis_server(tmp_path)
    yield server.url
    server.end()


async def play_all(folder: Path, cases: list[Case], url: str, at_once: int = AT_ONCE) -> None:
    """All cases, some at once: they mostly wait. Each has a file or a database of its own."""
    free = asyncio.Queue[int]()
    for n in range(at_once):
        free.put_nowait(n)

    async def play(n: int, case: Case) -> None:
        place = await free.get()
        home = folder / str(n)
        home.mkdir()
        own = f"{url}?db={place}" if url else ""
        if own:
            store = await RedisStore.open(own)
            await store.call(("FLUSHDB",))
            await store.close()
        one = Play(home, case, own)
        try:
            async with asyncio.timeout(4 * SOON):
                await one.run()
        except Exception as error:
            text = f"{case}: {type(error).__name__}: {error}\n"
            shown = "\n".join(map(str, one.one.ledger.all()))
            raise AssertionError(text + shown) from error
        free.put_nowait(place)

    async with asyncio.TaskGroup() as group:
        for n, case in enumerate(cases):
            group.create_task(play(n, case))


@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
@pytest.mark.timeout(200)
@pytest.mark.sampled
async def test_a_sample_of_failures(tmp_path: Path, url: str) -> None:
    await play_all(tmp_path, take(CASES, SAMPLE, bool(url)), url)


@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
@pytest.mark.parametrize("kind", CLOCKS)
@pytest.mark.sampled
@pytest.mark.pick("a clock that jumps", 2)
@pytest.mark.timeout(200)
async def test_a_clock_that_jumps(tmp_path: Path, url: str, kind: Kind) -> None:
    whens = take(WHENS, 2, kind, bool(url))
    try:
        await play_all(tmp_path, [Case("clock", kind, when) for when in whens], url, 1)
    finally:
        ambient.use(ambient.SystemClock())


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
@pytest.mark.parametrize("kind", CLOCKS)
@pytest.mark.timeout(200)
async def test_a_clock_that_jumps_at_any_moment(tmp_path: Path, url: str, kind: Kind) -> None:
    try:
        await play_all(tmp_path, [Case("clock", kind, when) for when in WHENS], url, 1)
    finally:
        ambient.use(ambient.SystemClock())


@pytest.mark.slow
@pytest.mark.parametrize("url", ["sqlite", "redis"], indirect=True)
@pytest.mark.parametrize("port", PORTS)
@pytest.mark.timeout(1_500)
async def test_all_failures(tmp_path: Path, url: str, port: str) -> None:
    await play_all(tmp_path, [case for case in CASES if case.port == port], url)
