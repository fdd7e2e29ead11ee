"""The rigs of stories: a clock that can be set, and stores for lives that are killed."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis

from adapters.telegram import receive
from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.store.redis import RedisStore
from tests.contracts.redis_server import redis_server
from tests.fakes.discord_server import DiscordServer
from tests.fakes.lives import Prepare
from tests.fakes.world import Life
from tests.stories.discord_rig import DiscordRig, opened
from tests.stories.jobs_rig import Shifted
from tests.stories.kills_rig import on_sqlite
from tests.stories.slack_rig import SlackRig, living


@pytest.fixture(autouse=True)
def _menus_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telegram's menus of commands in all languages are 24 calls at each start of a gateway, which
    no story is about."""
    monkeypatch.setattr(receive, "_list_languages", lambda: [""])


@pytest.fixture
def clock() -> Iterator[Shifted]:
    """The machine's clock, which a test may set to another time."""
    shifted = Shifted()
    ambient.use(shifted)
    yield shifted
    ambient.use(SystemClock())


@pytest.fixture
async def slack(tmp_path: Path) -> AsyncIterator[SlackRig]:
    """A gateway beside a Slack; it has not started."""
    async with living(tmp_path) as made:
        yield made


@pytest.fixture
async def discord(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordRig]:
    """A gateway beside a Discord; it has not started."""
    async with opened(DiscordServer(), tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture(scope="session")
def on_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Life], None]]:
    """Lives over a real redis-server, emptied for each world."""
    server = redis_server(tmp_path_factory.mktemp("redis"))

    def prepare(life: Life) -> None:
        life.open_store = lambda folder: RedisStore.open(server.url)
        if not (life.folder / "ledger.jsonl").exists() and not (life.folder / "begun").exists():
            (life.folder / "begun").touch()
            client = redis.Redis(unix_socket_path=str(server.socket))
            client.flushall()
            client.close()

    yield prepare
    server.end()


@pytest.fixture
def prepare_store(request: pytest.FixtureRequest) -> Prepare:
    """Lives over the store that is the parameter."""
    return request.getfixturevalue("on_redis") if request.param == "redis" else on_sqlite
