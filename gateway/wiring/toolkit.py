"""The tools that every conversation's agent has, before profiles and sets choose among them."""

from msgspec import Struct

from agent_core.memory.tool import memory_tool
from agent_core.research.means import Means
from agent_core.research.tool import research_tool
from agent_core.sandboxes.background import Background
from agent_core.sandboxes.port import Sandbox
from agent_core.settings import ModelSettings
from agent_core.tools.ask import ask_tool
from agent_core.tools.backups import rollback_tool
from agent_core.tools.contract import Tool
from agent_core.tools.editing.editor import editor_tool
from agent_core.tools.files import file_tools
from agent_core.tools.planning import planning_tool
from agent_core.tools.send import Kept, send_tool
from agent_core.tools.shell import command_tools
from agent_core.tools.web.tools import web_tools
from gateway.vault.vault import Vault


class Ground(Struct, frozen=True, kw_only=True):
    """What the tools stand on; `job` is the tool of another package."""

    settings: ModelSettings
    sandbox: Sandbox
    background: Background
    kept: Kept
    vault: Vault
    means: Means
    job: Tool


def toolkit(ground: Ground) -> tuple[Tool, ...]:
    """In the order in which models are shown them; it is part of every prompt."""
    limit = ground.settings.tools.command_max_seconds
    commands = command_tools(ground.sandbox, ground.background, limit, ground.vault)
    own = (rollback_tool(), *commands, ask_tool(), send_tool(ground.kept), planning_tool())
    web = (*web_tools(ground.means.web), research_tool(ground.means))
    mind = (memory_tool(),) if ground.settings.memory.enabled else ()
    return (*file_tools(), *own, ground.job, editor_tool(), *web, *mind)
