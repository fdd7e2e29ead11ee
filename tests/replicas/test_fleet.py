"""Three real gateways over one Redis, each behind a network of its own, while people write, press and
answer: whatever breaks, all is answered, no command runs twice, no answer comes twice without a
label, and none that lost its network for a lease's time calls a model."""

import asyncio
import collections
import json
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, web

from tests.contracts.redis_server import redis_server
from tests.fakes.model_dialect import Dialect
from tests.fakes.model_server import Call, Json, ModelServer, Say
from tests.fakes.model_steps import Step
from tests.fakes.ports import free_port
from tests.fakes.tcp_proxy import TcpProxy
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import TOKEN, Run, World

LEASE = 30.0
PEOPLE = (11, 12, 13, 14)
SECRET = "a-long-random-secret-0123"
SAID = re.compile(r"(say|do|ask) (p\d+n\d+)\.")
ENOUGH = 150.0


class HeardProxy(TcpProxy):
    """Knows when a reply came through last."""

    heard = 0.0

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, replies: bool
    ) -> None:
        write = sink.write

        def note(data: bytes) -> None:
            self.heard = time.monotonic() if replies else self.heard
            write(data)

        sink.write = note  # type: ignore[method-assign]
        await super()._carry(source, sink, replies)


class Answering(ModelServer):
    """Answers each request by its words; the key tells which gateway asks."""

    def __init__(self, fleet: "Fleet") -> None:
        super().__init__()
        self.fleet = fleet

    async def _serve(self, request: web.Request, dialect: Dialect) -> web.StreamResponse:
        proxy = self.fleet.proxies[int(request.headers["Authorization"][-1])]
        if time.monotonic() - proxy.heard > LEASE:
            self.fleet.late.append(request.headers["Authorization"])
        await asyncio.sleep(self.fleet.rng.choice((0.0, 0.3, 2.0)))
        return await super()._serve(request, dialect)

    def _next(self, body: Json, dialect: Dialect) -> Step:
        said = SAID.findall(dialect.last_user(body))
        names, kinds = "_".join(name for _, name in said), {kind for kind, _ in said}
        if kinds <= {"say"} or body[dialect.turns][-1]["role"] == "tool":
            return Say(f"about {names}_")
        if "ask" in kinds:
            return Call("ask_user", '{"question": "Which?", "options": ["red", "blue"]}')
        command = f"echo {names} >> {self.fleet.folder}/ran; sleep {self.fleet.rng.choice((0, 2))}"
        return Call("run_command", json.dumps({"command": command}))


class Hooked(TelegramServer):
    """Calls the webhook of any gateway, until one acknowledges."""

    fleet: "Fleet"

    def redeliver(self, update: Json) -> Json:
        self.fleet.spawn(self._deliver(update))
        return update

    async def _deliver(self, update: Json) -> None:
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        async with ClientSession(timeout=ClientTimeout(total=6.0), headers=headers) as client:
            while True:
                run = self.fleet.rng.choice(self.fleet.runs)
                try:
                    async with client.post(f"{run.url}telegram/webhook", json=update) as answer:
                        if answer.status == 200:
                            return
                except (ClientError, TimeoutError, OSError):
                    pass
                await asyncio.sleep(0.3)


class Fleet:
    """The gateways, their networks and their people."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.proxies: list[HeardProxy] = []
        self.worlds: list[World] = []
        self.runs: list[Run] = []
        self.late: list[str] = []
        self.said: list[tuple[int, str]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._pressed: set[int] = set()

    def spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def start(self, n: int) -> Run:
        return await self.worlds[n].start(
            REDIS_URL=self.proxies[n].url, REPLICA_ID=f"r{n}", OPENAI_API_KEY=f"sk-a-fake-key-{n}",
            TELEGRAM_WEBHOOK_URL="https://bot.example.com/telegram/webhook",
            TELEGRAM_WEBHOOK_SECRET=SECRET, TELEGRAM_ALLOWED_USERS=",".join(map(str, PEOPLE)),
        )  # fmt: skip

    async def talk(self, person: int, until: asyncio.Event) -> None:
        """Write, press what there is to press, write again."""
        n, telegram = 0, self.worlds[0].telegram
        while not until.is_set():
            n += 1
            self.said.append((person, f"p{person}n{n}"))
            telegram.say(person, f"Please {self.rng.choice(('say', 'do', 'ask'))} p{person}n{n}.")
            for _ in range(self.rng.choice((5, 30))):
                await asyncio.sleep(0.3)
                self.press(person)

    def press(self, person: int) -> None:
        telegram = self.worlds[0].telegram
        for message in telegram.chats[person]:
            rows = message.get("reply_markup", {}).get("inline_keyboard", ())
            for button in (one for row in rows for one in row):
                fresh = message["message_id"] not in self._pressed
                if fresh and re.search("Approve|red", button["text"]):
                    self._pressed.add(message["message_id"])
                    telegram.press(person, message["message_id"], button["callback_data"])

    def answers(self, person: int, name: str) -> list[str]:
        shown = (one["text"] for one in self.worlds[0].telegram.chats[person])
        return [text for text in shown if "about" in text and f"{name}_" in text]

    async def judge(self) -> None:
        async with asyncio.timeout(ENOUGH):
            while not all(self.answers(*one) for one in self.said):
                for person in PEOPLE:
                    self.press(person)
                await asyncio.sleep(0.3)
        await asyncio.sleep(3.0)
        for one in self.said:
            plain = [text for text in self.answers(*one) if "Possibly sent twice" not in text]
            assert len(plain) <= 1, plain
        ran = collections.Counter((self.folder / "ran").read_text().replace("_", "\n").split())
        assert [name for name, times in ran.items() if times > 1] == []
        assert self.late == []
        assert self.worlds[0].telegram.violations == []

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for run in self.runs:
            run.signal(signal.SIGCONT)
            await run.end(signal.SIGKILL)


@pytest.fixture
async def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Fleet]:
    redis = redis_server(tmp_path, "--port", str(free_port()), "--appendfsync", "always")
    fleet = Fleet(tmp_path, request.node.name)
    (tmp_path / "ran").touch()
    telegram, model = Hooked(token=TOKEN), Answering(fleet)
    telegram.fleet = fleet
    address = await model.start()
    async with telegram:
        try:
            for n in range(3):
                proxy = await HeardProxy(("127.0.0.1", redis.port)).__aenter__()
                fleet.proxies.append(proxy)
                (tmp_path / str(n)).mkdir()
                fleet.worlds.append(World(tmp_path / str(n), telegram, model))
                fleet.worlds[n].model_url = address
            for n in range(3):
                fleet.runs.append(await fleet.start(n))
            yield fleet
        finally:
            await fleet.close()
            await model.close()
            for proxy in fleet.proxies:
                await proxy.__aexit__()
            redis.kill()


async def part(fleet: Fleet, which: list[int], how: Callable[[TcpProxy], None]) -> None:
    for n in which:
        how(fleet.proxies[n])
    await asyncio.sleep(LEASE * 1.4)
    for proxy in fleet.proxies:
        proxy.heal()


async def stop(fleet: Fleet, which: list[int]) -> None:
    for n in which:
        fleet.runs[n].signal(signal.SIGSTOP)
    await asyncio.sleep(LEASE * 1.4)
    for n in which:
        fleet.runs[n].signal(signal.SIGCONT)


async def kill(fleet: Fleet, which: list[int]) -> None:
    """And start it again, while another one has no network."""
    first, second = which
    fleet.proxies[first].stall()
    await asyncio.sleep(2.0)
    await fleet.runs[second].end(signal.SIGKILL)
    fleet.runs[second] = await fleet.start(second)
    await asyncio.sleep(LEASE / 2)
    fleet.proxies[first].heal()


BREAKS: dict[str, Callable[[Fleet], Awaitable[None]]] = {
    "one is cut off": lambda fleet: part(fleet, [1], TcpProxy.cut),
    "two get no replies": lambda fleet: part(fleet, [0, 2], TcpProxy.lose_replies),
    "none gets through": lambda fleet: part(fleet, [0, 1, 2], TcpProxy.stall),
    "two stand still": lambda fleet: stop(fleet, [0, 1]),
    "one is killed beside one without a network": lambda fleet: kill(fleet, [0, 2]),
}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", BREAKS)
async def test_a_fleet_answers_all_of_it_once(fleet: Fleet, how: str) -> None:
    over = asyncio.Event()
    talks = [asyncio.ensure_future(fleet.talk(person, over)) for person in PEOPLE]
    await asyncio.sleep(5.0)
    await BREAKS[how](fleet)
    await asyncio.sleep(5.0)
    over.set()
    await asyncio.gather(*talks)
    assert len(fleet.said) > len(PEOPLE)
    await fleet.judge()
