"""A store that is emptied, exchanged or deleted is noticed wherever the data folder knows of an
earlier one; a new store of a new folder, and a known store of a new folder, are nothing unusual."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from gateway.cli import doctor
from gateway.ops import store_identity
from gateway.ops.store_identity import STORE_ID
from gateway.settings import Settings
from tests.contracts.redis_server import RedisServer, redis_server
from tests.fakes.model_server import Say
from tests.stories.rig import PERSON, Rig

Servers = tuple[RedisServer, RedisServer]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
    made = (redis_server(folders[0]), redis_server(folders[1]))
    yield made
    for server in made:
        server.end()


def empty(servers: Servers) -> None:
    with redis.Redis(unix_socket_path=str(servers[0].socket)) as client:
        client.flushall()


async def talk(rig: Rig, **settings: str) -> None:
    """One life, in which somebody is answered."""
    words = f"hello {len(rig.model.requests)}"
    rig.model.script(Say(words))
    await rig.start(**settings)
    rig.telegram.say(PERSON, "hello")
    await rig.shows(words)
    await rig.until(lambda: (rig.home / STORE_ID).exists())
    await rig.stop()


async def ask_doctor(rig: Rig, **settings: str) -> str:
    said: list[str] = []
    await doctor._store(Settings.read(rig.env(**settings), rig.folder), said.append)
    return "\n".join(said)


def delete_file(rig: Rig, servers: Servers) -> dict[str, str]:
    for file in rig.home.glob("turnkeeper.db*"):
        file.unlink()
    return {}


def flush(rig: Rig, servers: Servers) -> dict[str, str]:
    empty(servers)
    return {"REDIS_URL": servers[0].url}


def exchange(rig: Rig, servers: Servers) -> dict[str, str]:
    return {"REDIS_URL": servers[1].url}


def keep(rig: Rig, servers: Servers) -> dict[str, str]:
    return {"REDIS_URL": servers[0].url}


def move_home(rig: Rig, servers: Servers) -> dict[str, str]:
    shutil.rmtree(rig.home)
    return {"REDIS_URL": servers[0].url}


Break = Callable[[Rig, Servers], dict[str, str]]


@pytest.mark.parametrize(
    ("change", "noticed"),
    [(delete_file, True), (flush, True), (exchange, True), (keep, False), (move_home, False)],
)
async def test_a_replaced_store_is_told_of_once(
    rig: Rig, servers: Servers, change: Break, noticed: bool
) -> None:
    before = {} if change is delete_file else {"REDIS_URL": servers[0].url}
    await talk(rig, **before)
    assert "not the store that" not in await ask_doctor(rig, **before)
    after = change(rig, servers)
    assert ("not the store that" in await ask_doctor(rig, **after)) == noticed
    await talk(rig, **after)
    await rig.until(lambda: len(rig.log.named("store_replaced")) == noticed)
    assert "not the store that" not in await ask_doctor(rig, **after)
    await talk(rig, **after)
    assert len(rig.log.named("store_replaced")) == noticed


async def test_a_server_that_is_emptied_meanwhile_is_noticed(
    rig: Rig, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_identity, "EVERY", 0.05)
    await rig.start(REDIS_URL=servers[0].url)
    await rig.until(lambda: (rig.home / STORE_ID).exists())
    for times in (1, 2):
        empty(servers)
        await rig.until(lambda: len(rig.log.named("store_replaced")) == times)  # noqa: B023
    assert rig.host.services.counters["stores_replaced"] == 2


async def test_the_doctor_does_not_object_to_a_running_gateway(rig: Rig, servers: Servers) -> None:
    settings = {"REDIS_URL": servers[0].url}
    await rig.start(**settings)
    assert (await ask_doctor(rig, **settings)).startswith("ok       redis: in use by the running")
