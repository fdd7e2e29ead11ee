"""Turns that are told by their events."""

import sqlite3
from contextlib import closing

from agent_core.context.record_events import events_of
from agent_core.events import (
    AgentEvent,
)
from agent_core.journal import decode
from tests.fakes.web_pages import WebPages
from tests.stories.research_rig import fact
from tests.stories.rig import Rig

BROWSED = {"browser_action", "browser_stream"}
"""What a turn with a browser emits: tests/stories/agent/test_browser_story.py."""

APP_STARTED = {"app_preview"}
"""What a turn emits that starts an app: tests/stories/sandbox_stories.py."""

FILES_TOLD = {"files_changed"}
"""What a turn emits that changed files unasked: tests/stories/sandbox_stories.py."""

PROGRESSED = {"tool_progress"}
"""What a server's call emits that says how far it is: tests/stories/agent/test_mcp_story.py."""


def kind(event: AgentEvent) -> str:
    return str(event.__struct_config__.tag)


def journaled(rig: Rig) -> set[str]:
    """The kinds of all that the gateway's journals tell."""
    (store,) = rig.home.glob("*.db")
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        bodies = [body for (body,) in db.execute("SELECT body FROM records")]
    return {kind(event) for body in bodies for event in events_of(decode(body))}


def fill(site: WebPages) -> None:
    for n, name in enumerate(("Alpha", "Beta", "Gamma")):
        words = " ".join(f"{name.lower()}{word}" for word in ("one", "two", "three", "four"))
        site.put(f"/{name}", name, f"{words}. " * 6, fact(name, n))
