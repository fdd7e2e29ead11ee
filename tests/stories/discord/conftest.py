"""The rig of Discord's stories."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.discord_server import DiscordServer
from tests.stories.discord_rig import DiscordRig, opened


@pytest.fixture
def discord() -> DiscordServer:
    """The server beside the gateway; a file may have another one."""
    return DiscordServer()


@pytest.fixture
async def rig(
    discord: DiscordServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DiscordRig]:
    """A gateway beside a Discord; it has not started."""
    async with opened(discord, tmp_path, monkeypatch) as made:
        yield made
