"""A real gateway process in an empty home, and the servers around it."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from tests.fakes.model_server import ModelServer
from tests.fakes.telegram_server import TelegramServer
from tests.fakes.waiting import until

ROOT = Path(__file__).parents[2]
TOKEN = "123456789:AAfake-token-of-a-bot-0123456789"
KEY = "sk-fake-key-of-a-provider"
PERSON, STRANGER = 11, 77
START = 60.0
"""Seconds a start may take on a busy machine."""


class Run:
    """One life of a gateway. `out` and `log` are what it wrote so far."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.url = self.link = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return (self._folder / "log.txt").read_text()

    @property
    def out(self) -> str:
        return (self._folder / "out.txt").read_text()

    async def ready(self) -> "Run":
        """Until it has said where its page is."""
        while not (
            found := re.search(r"ready: (http\S+)\n(?s:.*)^open (http\S+)\n", self.out, re.M)
        ):
            if self._process.returncode is not None:
                raise AssertionError(f"ended with {self._process.returncode}: {self.log}")
            await asyncio.sleep(0.02)
        self.url, self.link = found[1], found[2]
        return self

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code after the signal."""
        self.signal(how)
        return await self.ended()

    def signal(self, how: signal.Signals) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(how)

    async def ended(self) -> int:
        """Its exit code, once it has ended."""
        async with asyncio.timeout(START):
            return await self._process.wait()


class World:
    """A folder, the servers around it, and the gateways that live in it one after another."""

    def __init__(self, folder: Path, telegram: TelegramServer, model: ModelServer) -> None:
        self.folder, self.telegram, self.model = folder, telegram, model
        self.model_url = ""
        self.runs: list[Run] = []

    def env(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(ROOT),
            "TURNKEEPER_PORT": "0", "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_API_BASE_URL": self.telegram.base_url,
            "TELEGRAM_ALLOWED_USERS": str(PERSON), "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{self.model_url}/v1", "PRO_MODEL": "openai/fake-model",
            "LOG_LEVEL": "debug", "SANDBOX_PROVIDER": "unsafe-subprocess",
        } | more  # fmt: skip

    async def start(self, **more: str) -> Run:
        out, log = (self.folder / "out.txt").open("w"), (self.folder / "log.txt").open("a")
        with out, log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gateway.cli.main", "run"),
                cwd=self.folder, env=self.env(**more), stdout=out, stderr=log,
            )  # fmt: skip
        run = Run(process, self.folder)
        self.runs.append(run)
        async with asyncio.timeout(START):
            return await run.ready()

    def approve_new(self, pressed: set[str]) -> None:
        """Say yes to each card of the person that waits, once. `pressed`: tokens that were."""
        for card in [one for one in self.telegram.chats[PERSON] if one.get("reply_markup")]:
            for row in card["reply_markup"].get("inline_keyboard", ()):
                token = row[0].get("callback_data", "") if row else ""
                if token and row[0]["text"].startswith("Approve") and token not in pressed:
                    pressed.add(token)
                    self.telegram.press(PERSON, card["message_id"], token)

    async def sent(self, count: int) -> None:
        """Until `count` views are sent, and that is on record: a kill from then on doubles none."""

        def recorded() -> bool:
            file = self.folder / ".turnkeeper" / "turnkeeper.db"
            with contextlib.closing(sqlite3.connect(file, timeout=START)) as store:
                found = [json.loads(body) for (body,) in store.execute("SELECT body FROM outbox")]
            known = [row for row in found if row.get("natives") and row.get("sending", -1) < 0]
            return len(known) == len(found) == count

        await until(recorded, START)

    async def command(self, *words: str, **more: str) -> tuple[int | None, str]:
        """Exit code and output of another command."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway.cli.main", *words),
            cwd=self.folder, env=self.env(**more),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            async with asyncio.timeout(START):
                said, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            said, _ = await process.communicate()
            raise AssertionError(f"{words} does not end: {said.decode()}") from None
        return process.returncode, said.decode()


@contextlib.asynccontextmanager
async def peopled(folder: Path) -> AsyncIterator[World]:
    """A world whose servers run; what lives in it at the end is killed."""
    model = ModelServer(KEY)
    async with TelegramServer(token=TOKEN) as telegram:
        made = World(folder, telegram, model)
        made.model_url = await model.start()
        try:
            yield made
        finally:
            for run in made.runs:
                await run.end(signal.SIGKILL)
            await model.close()
