"""The rig of Slack's stories."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.slack import receive
from adapters.slack.adapter import SlackAdapter
from gateway.views import Abilities
from tests.stories.slack_rig import SlackRig, living


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlackRig]:
    """A gateway beside a Slack, paced faster than in life; it has not started."""
    monkeypatch.setattr(SlackAdapter, "abilities", Abilities(edit_interval=0.05, send_timeout=14.0))
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)
    async with living(tmp_path) as made:
        yield made
