"""Wires the preview server, and the browser that sees apps and the web."""

from pathlib import Path

from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.previews.again import StartsAgain
from agent_core.sandboxes.previews.server import PreviewServer
from agent_core.settings import ModelSettings
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.enclosure import Walls
from gateway.delivery.phrasing import say_to_browser


def make_preview(
    models: ModelSettings, sandbox: SandboxPool, home: Path, again: StartsAgain
) -> PreviewServer:
    """Make the server of what runs in sandboxes, with the gateway's texts on its pages."""
    tools = models.tools
    place = tools.preview_port, tools.preview_url, tools.preview_host
    return PreviewServer(sandbox.connect, *place, home=home, again=again, speak=say_to_browser)


def make_browser(
    models: ModelSettings,
    sandbox: SandboxPool,
    home: Path,
    origin: PreviewServer,
    walls: Walls | None,
) -> Browser:
    """Make the browser, which reaches what runs in sandboxes if their ports are not this
    machine's."""
    return Browser(
        home / "browser",
        models.tools.web.allowed,
        origin=origin,
        connect=sandbox.connect if sandbox.isolated and sandbox.serves else None,
        walls=walls,
    )
