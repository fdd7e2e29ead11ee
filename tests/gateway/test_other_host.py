"""Two gateways with folders of their own over one Redis: one is killed, the other goes on."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.contracts.redis_server import redis_server
from tests.fakes.model_server import Call, ModelServer, Say
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import KEY, PERSON, START, TOKEN, World

LEASE = 30.0


@pytest.mark.slow
async def test_a_turn_goes_on_on_another_host(tmp_path: Path) -> None:
    redis = redis_server(tmp_path)
    model = ModelServer(KEY)
    worlds: list[World] = []
    try:
        async with TelegramServer(token=TOKEN) as telegram:
            url = await model.start()
            for name in ("one", "other"):
                folder = tmp_path / name
                folder.mkdir()
                worlds.append(World(folder, telegram, model))
                worlds[-1].model_url = url
            first = await worlds[0].start(REDIS_URL=redis.url, REPLICA_ID="one")

            def held(_: object) -> Say:
                model.gate = asyncio.Event()
                return Say("there is nothing")

            model.script(Call("list_files", "{}"), held, Say("there is nothing"))
            telegram.say(PERSON, "what is there?")
            await model.wait(lambda: model.gate is not None, START)
            await worlds[1].start(REDIS_URL=redis.url, REPLICA_ID="other")
            await first.end(signal.SIGKILL)
            loop = asyncio.get_running_loop()
            killed = loop.time()
            model.gate, gate = None, model.gate
            assert gate is not None
            gate.set()
            await telegram.wait_text(PERSON, "there is nothing", LEASE + 10.0)
            assert loop.time() - killed < LEASE + 5.0
            answers = [m for m in telegram.chats[PERSON] if "nothing" in m["text"]]
            assert len(answers) == 1 and telegram.violations == []
            calls = [r for r in model.requests if len(r.body["messages"]) == 2]
            assert len(calls) == 1, "the first answer was in the journal"
    finally:
        for world in worlds:
            for run in world.runs:
                await run.end(signal.SIGKILL)
        await model.close()
        redis.end()
