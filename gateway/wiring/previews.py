"""Where people look at apps."""

from pathlib import Path

from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.previews.again import StartsAgain
from agent_core.sandboxes.previews.server import PreviewServer
from agent_core.settings import ModelSettings
from gateway.delivery.phrasing import say_to_browser


def make_preview(
    models: ModelSettings, sandbox: SandboxPool, home: Path, again: StartsAgain
) -> PreviewServer:
    """The server of what runs in sandboxes, whose pages speak as the gateway does."""
    tools = models.tools
    place = tools.preview_port, tools.preview_url, tools.preview_host
    return PreviewServer(sandbox.connect, *place, home, again, say_to_browser)
