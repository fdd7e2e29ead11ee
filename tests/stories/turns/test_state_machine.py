"""Anything in any order: a hypothesis state machine over the real host, sessions, outbox and
SQLite store, with people, a platform and a model that write down what happened.

Time is virtual and the store works inside the loop, so a run depends on its rules alone. A kill
drops a gateway with all that it has under way; a partition takes its store away until another
replica owns its conversations. What must hold is `facts/reliability.md` section 9.
"""

import asyncio
import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import gateway.store.sqlite as sqlite_module
from agent_core import ambient
from agent_core.scope import Scope
from gateway.access.access import Access, AllowLists
from gateway.conversation.host import Host
from gateway.conversation.services import Services
from gateway.errors import StoreFailed
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    Conversation,
    Inbound,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    QuestionExpired,
    Sender,
    button_token,
)
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite_threads import Writer, _resolve
from gateway.texts import say
from gateway.views import Card, ChoiceCard, ReplyView, View
from gateway.wiring.features import load_features
from tests.fakes.world import SIGNER, LedgerAdapter, ScriptedAgent, _view
from tests.sampling import examples

PEOPLE = [Sender(platform="test", id=name, name=name.title()) for name in ("ann", "bob")]
ROOT = Sender(platform="test", id="root", name="Root")
EVE = Sender(platform="test", id="eve", name="Eve")
ROOMS = [
    Conversation(platform="test", account="a", channel=name, private=True)
    for name in ("one", "two")
]
TTL = 30.0
EXPIRES = 100.0
BEGIN = 1_800_000_000.0
TEXTS = ("hello", "do note", "do look|add", "do deploy", "do note deploy|look", "do pick")
FOLDERS = "/dev/shm" if Path("/dev/shm").is_dir() else None


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that runs when it is asked to; its time goes on when it is told."""

    virtual = 0.0

    def time(self) -> float:
        return self.virtual

    def steps(self, n: int) -> None:
        for _ in range(n):
            self.call_soon(self.stop)
            self.run_forever()

    def _due(self) -> float | None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        return min(timers) if timers else None

    def idle(self) -> None:
        """Run what can run now; a loop that never rests is a bug of the product."""
        for _ in range(20_000):
            due = self._due()
            if not self._ready and (due is None or due > self.virtual):
                return
            self.steps(1)
        raise AssertionError("it spins")

    def advance(self, seconds: float) -> None:
        end = self.virtual + seconds
        self.idle()
        while (due := self._due()) is not None and due <= end:
            self.virtual = max(self.virtual, due)
            self.steps(1)
            self.idle()
        self.virtual = end
        self.idle()


class VirtualClock:
    """The machine's clock follows the loop's."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return BEGIN + self._loop.virtual

    def monotonic(self) -> float:
        return 1000.0 + self._loop.virtual

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class InlineWriter(Writer):
    """The real group commit, in the loop instead of a thread. `dead`: its process was killed;
    `cut`: the store cannot be reached."""

    dead = False
    cut = False
    trips = 0
    """Writes that fail from here on."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], check: Callable[[], None]
    ) -> None:
        self._check = check
        self._loop = asyncio.get_running_loop()
        self._connection = connect()
        self._items: list = []
        self.commits = 0
        self.failed = ""

    async def wait_started(self) -> None:
        return

    def submit(self, work: Callable, broken: Callable[[], None] | None = None) -> asyncio.Future:
        if self.dead:
            raise asyncio.CancelledError  # nobody is left who could wait for it
        future = self._loop.create_future()
        if self.cut or self.trips:
            self.trips = max(0, self.trips - 1)
            if broken is not None:
                broken()
            self._loop.call_soon(_resolve, [(future, None, StoreFailed("cut off"))])
            return future
        self._items.append((work, future, broken))
        if len(self._items) == 1:
            self._loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        batch, self._items = self._items, []
        if not self.dead and batch:
            self._loop.call_soon(_resolve, self._commit(batch))

    async def close(self) -> None:
        self._connection.close()


class InlineStore(SqliteStore):
    """The real store without threads."""

    def __init__(self, path: Path) -> None:
        real, sqlite_module.Writer = sqlite_module.Writer, InlineWriter
        try:
            super().__init__(path)
        finally:
            sqlite_module.Writer = real

    async def _read(self, work: Callable) -> object:
        await asyncio.sleep(0)
        if self._writer.dead or self._writer.cut:
            raise StoreFailed("cut off")
        return self._reader.run_here(work)


class Notes:
    """What happened, as a list."""

    def __init__(self) -> None:
        self.lines: list[dict] = []

    def note(self, what: str, **fields: object) -> None:
        self.lines.append({"what": what, **fields})


class NoPoints:
    def hit(self, name: str) -> None:
        return


class Platform(LedgerAdapter):
    """One gateway's connection to the platform that all of them share."""

    def __init__(self, world: "Simulation", gateway: "Gateway") -> None:
        super().__init__(Notes(), NoPoints())
        self._world, self._gateway = world, gateway

    async def send(self, conversation: Conversation, payload: bytes) -> str:
        await asyncio.sleep(0)
        self._gateway.must_live()
        self._world.trip("send")
        native = str(len(self._world.sent) + 1)
        view = _view(payload)
        self._world.sent.append((native, conversation.id, view))
        self._world.screen[native] = (conversation.id, view)
        await asyncio.sleep(self._world.slow_sends)
        self._world.trip("sent")
        return native

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        await asyncio.sleep(0)
        self._gateway.must_live()
        self._world.trip("edit")
        self._world.screen[native] = (conversation.id, _view(payload))
        await asyncio.sleep(self._world.slow_sends)


class Agent(ScriptedAgent):
    """The scripted agent of one gateway; notes turns that run at once, and each effect."""

    def __init__(self, world: "Simulation", gateway: "Gateway") -> None:
        self.world, self.gateway = world, gateway
        super().__init__(self, NoPoints(), world.folder)
        self.delays = world.delays

    def note(self, what: str, **fields: object) -> None:
        if what == "tool":
            self.gateway.must_live()
            name, key = str(fields["name"]), str(fields["key"])
            if name in ("note", "deploy"):
                self.world.effects[key] += 1
            if name == "deploy":
                self.world.deployed.append(key.partition("/")[0])

    async def code(self, scope: Scope, brief: object, *rest: object) -> object:
        where, mine = brief.cache_key, (self.gateway.name, scope.turn_id)
        known = self.world.running.get(where)
        if known is not None:
            self.world.overlaps.append((known, mine))
        self.world.running[where] = mine
        if scope.turn_id not in self.world.begun:
            self.world.begun.append(scope.turn_id)
        try:
            return await super().code(scope, brief, *rest)
        finally:
            self.world.running.pop(where, None)

    async def complete(self, *given: object) -> object:
        self.world.trip("model")
        return await super().complete(*given)


class Gateway:
    """One process: the real host over the shared file."""

    def __init__(self, world: "Simulation", name: str, owner: str) -> None:
        self.world, self.name, self.owner = world, name, owner
        self.dead = False
        self.host: Host
        self.store: InlineStore | None = None
        self.services: Services | None = None
        self.tasks: list[asyncio.Task] = []

    def must_live(self) -> None:
        if self.dead:
            raise asyncio.CancelledError

    def begin(self, work: Coroutine[object, object, None]) -> None:
        self.tasks.append(self.world.loop.create_task(work))

    async def run(self, ready: asyncio.Event) -> None:
        self.store = await InlineStore.open(self.world.folder / "store.db")
        self.store._leases = self.world.leases  # several processes: by the store's clock
        people = AllowLists(allowed=frozenset({"ann", "bob"}), admins=frozenset({"root"}))
        self.host = Host(
            lambda ports: Services(
                store=self.store, adapters={"test": Platform(self.world, self)},
                agent=Agent(self.world, self), access=Access({"test": people}, {}),
                spawn=ports.spawn, alarm=ports.alarm, deliver=ports.deliver, owner=self.owner,
                signer=SIGNER,
                ttl=TTL, question_expires=EXPIRES,
            ), load_features(),
        )  # fmt: skip
        self.services = self.host.services
        while True:
            with contextlib.suppress(StoreFailed):
                await self.host.run(ready)
            await asyncio.sleep(1.0)

    async def accept(self, inbounds: list[Inbound]) -> None:
        with contextlib.suppress(StoreFailed):
            await self.host.accept(inbounds)
            self.world.accepted.update(inbound.event for inbound in inbounds)

    @property
    def cut(self) -> bool:
        return self.store is not None and self.store._writer.cut


class Simulation:
    """Everything that outlives a process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tk-machine-", dir=FOLDERS))
        self.loop = VirtualLoop()
        self.sent: list[tuple[str, str, View]] = []
        self.screen: dict[str, tuple[str, View]] = {}
        self.effects: Counter[str] = Counter()
        self.deployed: list[str] = []
        self.running: dict[str, tuple[str, str]] = {}
        self.overlaps: list[object] = []
        self.begun: list[str] = []
        self.accepted: set[str] = set()
        self.leases: dict[str, tuple[int, float]] = {}
        self.inbounds: list[Inbound] = []
        self.delays: dict[str, float] = {}
        self.slow_sends = 0.0
        self.counters: Counter[str] = Counter()
        self.crashes = 0
        self.doubts = 0
        """Sends that were carried out and failed, and writes that failed."""
        self.trips: Counter[str] = Counter()
        self.gateways: list[Gateway] = []
        self.lives = 0
        ambient.use(VirtualClock(self.loop))

    def trip(self, port: str) -> None:
        """Fail as something that nobody expects, if this port is to."""
        if self.trips[port]:
            self.trips[port] -= 1
            raise RuntimeError(f"out of the blue: {port}")

    def open(self, owner: str) -> None:
        self.lives += 1
        gateway = Gateway(self, f"{owner}-{self.lives}", owner)
        ready = asyncio.Event()
        gateway.begin(gateway.run(ready))
        self.gateways.append(gateway)
        for _ in range(100):
            if ready.is_set():
                return
            self.loop.steps(1)
        raise AssertionError("the gateway does not begin")

    def kill(self, gateway: Gateway) -> None:
        """Nothing of it is kept, written or sent from here on."""
        gateway.dead = gateway.store._writer.dead = True
        self.counters.update(gateway.services.counters)
        for task in gateway.tasks:
            task.cancel()
        for _ in range(1000):
            if all(task.done() for task in gateway.tasks):
                break
            self.loop.steps(1)
        else:
            raise AssertionError("a killed gateway lives on")
        gateway.store._writer._connection.close()
        if gateway.store._reader._connection is not None:
            gateway.store._reader._connection.close()
        self.gateways.remove(gateway)

    def close(self) -> None:
        for gateway in list(self.gateways):
            self.kill(gateway)
        self.loop.steps(5)
        self.loop.close()
        ambient.use(ambient.SystemClock())
        shutil.rmtree(self.folder)

    def rows(self, sql: str) -> list[tuple]:
        db = sqlite3.connect(self.folder / "store.db")
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def cards(self) -> list[tuple[str, Card]]:
        return [(where, view) for where, view in self.screen.values() if isinstance(view, Card)]


class Machine(RuleBasedStateMachine):
    """What people, platforms and machines do, in any order."""

    BAD: tuple[str, ...] = (
        *("rows_failed", "rows_dead", "turns_failed", "turns_dead", "work_failed"),
        *("sessions_failed", "senders_failed", "commits_refused", "inbound_refused"),
        *("views_doubt", "views_failed", "views_refused", "views_unsent", "rows_unreadable"),
    )
    """Counters that stay zero."""

    @initialize()
    def begin(self) -> None:
        self.world = Simulation()
        self.world.open("r1")
        self.count = 0

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self._end_well()
        finally:
            self.world.close()

    def _new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _give(self, inbounds: list[Inbound], at: int = 0, keep: bool = True) -> None:
        if keep:
            self.world.inbounds.extend(inbounds)
        gateways = self.world.gateways
        gateway = gateways[at % len(gateways)]
        gateway.begin(gateway.accept(inbounds))

    # ---- people --------------------------------------------------------------------------

    @rule(
        room=st.integers(0, 1),
        who=st.integers(0, 1),
        text=st.sampled_from(TEXTS),
        at=st.integers(0, 1),
    )
    def deliver(self, room: int, who: int, text: str, at: int) -> None:
        name = self._new("m")
        message = MessageReceived(
            conversation=ROOMS[room], sender=PEOPLE[who], event=name, message=name,
            text=f"{text}\n<{name}>",
        )  # fmt: skip
        self._give([message], at)

    @rule(n=st.integers(0, 50), at=st.integers(0, 1))
    def redeliver(self, n: int, at: int) -> None:
        if self.world.inbounds:
            self._give([self.world.inbounds[n % len(self.world.inbounds)]], at, keep=False)

    @rule(n=st.integers(0, 50))
    def redeliver_in_reverse(self, n: int) -> None:
        some = self.world.inbounds[-(n % 5) - 1 :]
        if some:
            self._give(list(reversed(some)), keep=False)

    def _press(self, n: int, who: Sender, option: str, room: int | None = None) -> Inbound | None:
        cards = self.world.cards()
        if not cards:
            return None
        where, card = cards[-1 - n % len(cards)]
        home = next(room for room in ROOMS if room.id == where)
        name = self._new("p")
        if isinstance(card, ChoiceCard):
            option = "0"
        return ButtonPressed(
            conversation=home if room is None else ROOMS[room], sender=who, event=name,
            message="", token=button_token(card.question, option), press=name,
        )  # fmt: skip

    @rule(
        n=st.integers(0, 3),
        who=st.sampled_from([*PEOPLE, ROOT]),
        option=st.sampled_from(["once", "once", "deny"]),
        at=st.integers(0, 1),
    )
    def press(self, n: int, who: Sender, option: str, at: int) -> None:
        if pressed := self._press(n, who, option):
            self._give([pressed], at)

    @rule(
        n=st.integers(0, 3),
        twice=st.booleans(),
        options=st.tuples(*[st.sampled_from(["once", "deny"])] * 2),
    )
    def two_answers_at_once(self, n: int, twice: bool, options: tuple[str, str]) -> None:
        one, two = self._press(n, ROOT, options[0]), self._press(n, ROOT, options[1])
        if one is None or two is None:
            return
        if twice:
            self._give([one], 0)
            self._give([two], 1)
        else:
            self._give([one, two])

    @rule(
        n=st.integers(0, 3),
        how=st.sampled_from(["stranger", "forged", "elsewhere"]),
        room=st.integers(0, 1),
    )
    def press_that_must_not_count(self, n: int, how: str, room: int) -> None:
        cards = self.world.cards()
        if not cards:
            return
        if how == "stranger":
            pressed = self._press(n, EVE, "once")
        elif how == "forged":
            pressed = self._press(n, ROOT, "sudo")
        else:
            where = cards[-1 - n % len(cards)][0]
            pressed = self._press(n, ROOT, "once", 0 if where == ROOMS[1].id else 1)
        self._give([pressed])

    @rule(
        text=st.sampled_from(["do deploy", "do note deploy"]),
        option=st.sampled_from(["once", "deny"]),
        steps=st.integers(0, 12),
    )
    def answer_in_the_moment_of_parking(self, text: str, option: str, steps: int) -> None:
        """The press comes `steps` steps after its card can be seen."""
        before = len(self.world.cards())
        self.deliver(0, 0, text, 0)
        for _ in range(400):
            if len(self.world.cards()) > before:
                break
            self.world.loop.steps(1)
        self.world.loop.steps(steps)
        if len(self.world.cards()) > before and (pressed := self._press(0, ROOT, option)):
            self._give([pressed])

    @rule(
        room=st.integers(0, 1),
        who=st.sampled_from([*PEOPLE, ROOT]),
        words=st.sampled_from(["", "all"]),
    )
    def stop(self, room: int, who: Sender, words: str) -> None:
        name = self._new("s")
        self._give(
            [
                CommandGiven(
                    conversation=ROOMS[room], sender=who, event=name, message=name, name="stop",
                    arguments=words,
                )
            ]
        )  # fmt: skip

    @rule(room=st.integers(0, 1), mode=st.sampled_from(["queue", "steer", "interrupt"]))
    def mode(self, room: int, mode: str) -> None:
        name = self._new("c")
        self._give(
            [
                CommandGiven(
                    conversation=ROOMS[room], sender=ROOT, event=name, message=name, name="mode",
                    arguments=mode,
                )
            ]
        )  # fmt: skip

    @rule(n=st.integers(0, 5), delete=st.booleans())
    def edit_or_delete(self, n: int, delete: bool) -> None:
        known = [i for i in self.world.inbounds if isinstance(i, MessageReceived)]
        if not known:
            return
        old, name = known[-1 - n % len(known)], self._new("e")
        common = {"conversation": old.conversation, "sender": old.sender, "event": name}
        if delete:
            self._give([MessageDeleted(**common, message=old.message)])
        else:
            text = f"{old.text} edited as {name}"
            self._give([MessageEdited(**common, message=old.message, text=text)])

    # ---- time and machines ---------------------------------------------------------------

    @rule(n=st.integers(1, 60))
    def tick(self, n: int) -> None:
        self.world.loop.steps(n)

    @rule(seconds=st.sampled_from([0.05, 0.3, 1.0, 5.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.loop.advance(seconds)

    @rule()
    def questions_expire(self) -> None:
        self.world.loop.advance(EXPIRES + 1)

    @rule(slow=st.booleans(), busy=st.booleans())
    def weather(self, slow: bool, busy: bool) -> None:
        self.world.slow_sends = 0.3 if slow else 0.0
        self.world.delays.update(dict.fromkeys(("model", "note", "deploy"), 0.4 if busy else 0.0))

    @rule(which=st.integers(0, 1), pause=st.sampled_from([0.0, 0.0, 3.0]))
    def kill(self, which: int, pause: float) -> None:
        world = self.world
        gateway = world.gateways[which % len(world.gateways)]
        world.crashes += 1
        world.kill(gateway)
        world.loop.advance(pause)
        world.open(gateway.owner)

    @rule()
    def lose_the_lease(self) -> None:
        """Its store is out of reach for so long that another replica takes over."""
        world = self.world
        if len(world.gateways) > 1:
            return
        lost = world.gateways[0]
        lost.store._writer.cut = True
        world.crashes += 1
        world.loop.advance(TTL + 1)
        world.open("r2" if lost.owner == "r1" else "r1")

    @rule()
    def heal(self) -> None:
        for gateway in self.world.gateways:
            gateway.store._writer.cut = False

    @rule()
    def one_replica_leaves(self) -> None:
        if len(self.world.gateways) > 1:
            self.world.crashes += 1
            self.world.kill(self.world.gateways[0])
            self.world.gateways[0].store._writer.cut = False

    # ---- what must hold ------------------------------------------------------------------

    @invariant()
    def holds_at_any_time(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        assert not world.overlaps, f"two turns at once: {world.overlaps}"
        twice = {key: n for key, n in world.effects.items() if n > 1}
        assert not twice, f"effects done twice: {twice}"

    def _end_well(self) -> None:
        world = self.world
        self.heal()
        self.weather(False, False)
        world.loop.advance(1.0)
        for inbound in list(world.inbounds):
            if inbound.event not in world.accepted:
                self._give([inbound], keep=False)
                world.loop.idle()
        for _ in range(40):
            world.loop.advance(EXPIRES + TTL)
            if not world.rows(
                "SELECT 1 FROM turns WHERE status IN ('running', 'parked')"
            ) and not any(gateway.host.sessions for gateway in world.gateways):
                break
        else:
            raise AssertionError(f"it never rests: {world.rows('SELECT id, status FROM turns')}")
        self.holds_at_any_time()
        for gateway in world.gateways:
            world.counters.update(gateway.services.counters)
        self._nothing_is_lost()
        self._order_is_kept()
        self._approvals_are_honoured()
        self._the_screen_is_right()
        self._nothing_is_left()

    def _nothing_is_left(self) -> None:
        world = self.world
        for sql in (
            "SELECT count(*) FROM questions WHERE status = 'open'",
            "SELECT count(*) FROM outbox WHERE unsent = 1",
            "SELECT count(*) FROM inbox WHERE state = 0",
            "SELECT count(*) FROM conversations WHERE work = 1 OR owner IS NOT NULL OR last > seen",
        ):
            assert world.rows(sql) == [(0,)], sql
        given_up = ("rows_dead", "turns_dead") if world.crashes >= 3 else ()
        for name in set(self.BAD).difference(given_up):
            assert not world.counters[name], f"{name}: {world.counters[name]}"

    def _turns(self) -> list[dict]:
        return [json.loads(body) for (body,) in self.world.rows("SELECT body FROM turns")]

    def gives_up(self) -> bool:
        """Something may be a dead letter by now."""
        return self.world.crashes >= 3

    def _nothing_is_lost(self) -> None:
        """Each accepted message was answered once, or stopped, steered or withdrawn once."""
        world = self.world
        seqs = dict(world.rows("SELECT event, seq FROM inbox"))
        letters = [json.loads(body) for (body,) in world.rows("SELECT body FROM letters")]
        dead = {one["name"] for one in letters if one["kind"] == "message"}
        unseen = {one["turn"] for one in letters if one["kind"] == "view"}
        turns = self._turns()
        taken = [
            (turn, seq)
            for turn, body in world.rows("SELECT turn, CAST(body AS TEXT) FROM records")
            if '"kind":"steered"' in body
            for seq in json.loads(body)["rows"]
        ]
        steered = Counter(seq for _, seq in taken)
        event_of = {seq: event.removeprefix("test:a:") for event, seq in seqs.items()}
        notices = {turn for (turn,) in world.rows("SELECT turn FROM outbox WHERE name = 'notice'")}
        edited = [i for i in world.inbounds if isinstance(i, MessageEdited)]
        withdrawn = {i.message for i in world.inbounds if isinstance(i, MessageDeleted)}
        finals = [
            v for _, v in world.screen.values() if isinstance(v, ReplyView) and v.state == "final"
        ]
        for inbound in world.inbounds:
            if not isinstance(inbound, MessageReceived):
                continue
            seq = seqs.get(f"test:a:{inbound.event}")
            assert seq is not None, f"{inbound.event} was never kept"
            if str(seq) in dead:
                assert self.gives_up(), f"{inbound.event} was given up"
                continue
            mine = [turn for turn in turns if seq in turn["inbox"]]
            used = len(mine) + steered[seq]
            if not used:
                assert f"row-{seq}" in notices or inbound.message in withdrawn, (
                    f"{inbound.event} got no answer"
                )
                continue
            assert used == 1, f"{inbound.event} was used {used} times"
            if mine and mine[0]["status"] == "done":
                # the scripted model answers the newest `do`: one that steered counts, too
                steers = [event_of[s] for turn, s in taken if turn == mine[0]["id"]]
                marks = [f"<{event}>" for event in (inbound.event, *steers)]
                answers = [v for v in finals if any(mark in v.text for mark in marks)]
                aside = mine[0]["id"] in unseen and self.gives_up()
                assert answers or aside, f"{inbound.event}: its answer is not to be seen"
                plain = [v for v in answers if not v.note]
                edits = {
                    seqs.get(f"test:a:{e.event}") for e in edited if e.message == inbound.message
                }
                told = {turn["id"]: {s for of, s in taken if of == turn["id"]} for turn in turns}
                later = sum(
                    not edits.isdisjoint({*turn["inbox"], *told[turn["id"]]}) for turn in turns
                )
                assert len(plain) <= 1 + later, f"{inbound.event} was answered twice: {answers}"

    def _order_is_kept(self) -> None:
        first = {turn["id"]: turn["inbox"][0] for turn in self._turns()}
        where = dict(self.world.rows("SELECT id, conversation FROM turns"))
        messages = {
            seq for (seq,) in self.world.rows("SELECT seq FROM inbox WHERE message NOTNULL")
        }
        for room in ROOMS:
            order = [
                first[turn]
                for turn in self.world.begun
                if turn in first and where[turn] == room.id and first[turn] in messages
            ]  # an edit of a running turn's message goes before what waits
            assert order == sorted(order), f"turns began out of order: {order}"

    def _approvals_are_honoured(self) -> None:
        """A deploy ran only if the first valid row about its question allowed it."""
        world = self.world
        asker = {turn["id"]: turn["sender"] for turn in self._turns()}
        inbox = [
            msgspec.json.decode(body, type=Inbound)
            for (body,) in world.rows("SELECT body FROM inbox ORDER BY seq")
        ]
        questions = [
            (where, json.loads(body))
            for where, body in world.rows("SELECT conversation, body FROM questions")
        ]
        for turn in world.deployed:
            verdicts = []
            for where, question in questions:
                if question["turn"] == turn and question["question"]["kind"] == "approval":
                    row = next(
                        (i for i in inbox if _decides(i, question["id"], where, asker[turn])), None
                    )
                    verdicts.append(isinstance(row, ButtonPressed) and row.token.endswith(":once"))
            assert any(verdicts), f"{turn} deployed without a valid press"

    def _the_screen_is_right(self) -> None:
        """No open card, no answer under way; a second copy says so, and came from a crash."""
        world = self.world
        copies: dict[tuple, list[View]] = {}
        for native, where, first in world.sent:
            now = world.screen[native][1]
            if isinstance(now, ReplyView):
                copies.setdefault((where, now.text), []).append(now)
            elif isinstance(now, Card):
                copies.setdefault((where, now.question), []).append(now)
            del first
        spare = 0
        given_up = self._given_up_cards()
        withdrawn = Counter(
            one.conversation.id for one in world.inbounds if isinstance(one, MessageDeleted)
        )
        for key, views in copies.items():
            if say("deleted") in str(key[1]):  # as many answers have the same words
                views = views[max(0, min(withdrawn[key[0]], len(views)) - 1) :]
            spare += len(views) - 1
            assert len(views) <= 2 + world.crashes, f"more than two without a crash: {views}"
            last = views[-1]
            if isinstance(last, ReplyView):
                assert last.state != "streaming", key
                assert len(views) == 1 or last.note, f"a copy does not say so: {views}"
            elif last.question not in given_up:
                assert last.state != "open", f"an open card is left: {views}"
        most = world.crashes * len(ROOMS) + world.doubts  # a crash meets a send in each room
        assert spare <= most, f"{spare} copies from {world.crashes} crashes, {world.doubts} doubts"

    def _given_up_cards(self) -> set[str]:
        """Questions whose card may stand unanswered: the platform never told what became of it."""
        letters = [json.loads(body) for (body,) in self.world.rows("SELECT body FROM letters")]
        aside = {one["turn"] for one in letters if one["kind"] == "view"}
        questions = [json.loads(body) for (body,) in self.world.rows("SELECT body FROM questions")]
        return {one["id"] for one in questions if one["turn"] in aside and self.gives_up()}


def _decides(inbound: Inbound, question: str, where: str, asker: str) -> bool:
    if inbound.conversation.id != where:
        return isinstance(inbound, QuestionExpired) and inbound.question == question
    if isinstance(inbound, QuestionExpired):
        return inbound.question == question
    if not isinstance(inbound, ButtonPressed):
        return False
    entitled = inbound.sender.id == "root" or inbound.sender.key == asker
    return entitled and inbound.token in (
        button_token(question, "once"),
        button_token(question, "deny"),
    )


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}


class Long(Machine):
    """The same, for `make prove`."""


class Faulty(Machine):
    """The same, with failures that nobody expects mixed in."""

    BAD = ("rows_failed", "rows_dead", "sessions_failed", "senders_failed", "commits_refused",
           "inbound_refused", "views_failed", "views_unsent",
           "rows_unreadable")  # fmt: skip

    @rule(port=st.sampled_from(["send", "sent", "edit", "model"]), times=st.integers(1, 2))
    def something_fails(self, port: str, times: int) -> None:
        self.world.trips[port] += times
        self.world.doubts += times if port in ("sent", "edit") else 0

    @rule(which=st.integers(0, 1), times=st.integers(1, 3))
    def writes_fail(self, which: int, times: int) -> None:
        gateways = self.world.gateways
        gateways[which % len(gateways)].store._writer.trips += times
        self.world.doubts += times  # a send that is not noted is made again

    def gives_up(self) -> bool:
        return True

    def _end_well(self) -> None:
        self.world.trips.clear()
        for gateway in self.world.gateways:
            gateway.store._writer.trips = 0
        super()._end_well()


class LongAndFaulty(Faulty):
    """The same, for `make prove`."""


TestAnything = Machine.TestCase
TestAnything.settings = settings(
    max_examples=examples(60), stateful_step_count=30, derandomize=True, database=None, **COMMON
)
TestAnything.pytestmark = [pytest.mark.timeout(300)]
TestFailures = Faulty.TestCase
TestFailures.settings = settings(
    max_examples=examples(40), stateful_step_count=30, derandomize=True, database=None, **COMMON
)
TestFailures.pytestmark = [pytest.mark.timeout(300)]
TestLongFailures = LongAndFaulty.TestCase
TestLongFailures.settings = settings(
    max_examples=800, stateful_step_count=60, print_blob=True, **COMMON
)
TestLongFailures.pytestmark = [pytest.mark.slow, pytest.mark.timeout(1700)]
TestLongAndAnything = Long.TestCase
TestLongAndAnything.settings = settings(
    max_examples=1500, stateful_step_count=60, print_blob=True, **COMMON
)
TestLongAndAnything.pytestmark = [pytest.mark.slow, pytest.mark.timeout(1700)]


def test_an_edit_of_a_waiting_message_is_done_with_it() -> None:
    machine = Machine()
    machine.begin()
    machine.weather(slow=False, busy=True)
    machine.deliver(0, 0, "do note", 0)
    machine.tick(40)
    machine.deliver(0, 0, "hello", 0)
    machine.tick(20)
    machine.edit_or_delete(0, False)
    machine.tick(20)
    machine.teardown()


def test_an_edit_of_a_turn_that_parks_is_not_forgotten() -> None:
    machine = Machine()
    machine.begin()
    machine.weather(slow=False, busy=True)
    machine.deliver(0, 0, "do deploy", 0)
    machine.tick(40)
    machine.edit_or_delete(0, False)
    machine.tick(20)
    machine.time_passes(20.0)
    waiting = machine.world.rows("SELECT count(*) FROM inbox WHERE state = 0")
    held = bool(machine.world.gateways[0].host.sessions)
    machine.teardown()
    assert waiting == [(0,)] or held


def test_a_change_that_comes_too_late_for_its_turn_is_told_to_no_other() -> None:
    m = Long()
    m.begin()
    m.mode(mode="steer", room=0)
    m.deliver(at=0, room=0, text="do pick", who=0)
    m.tick(n=41)
    m.deliver(at=0, room=0, text="hello", who=1)
    m.edit_or_delete(delete=False, n=0)
    m.teardown()
