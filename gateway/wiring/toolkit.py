"""The tools that every conversation's agent has, before profiles and sets choose among them."""

from msgspec import Struct

from agent_core.memory.tool import memory_tool
from agent_core.research.depths import ResearchDeps
from agent_core.research.tool import research_tool
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.port import Sandbox
from agent_core.settings import ModelSettings
from agent_core.skills.apps.tools import Preview
from agent_core.skills.built_in.all import tools_of
from agent_core.skills.registry import Skills
from agent_core.tools.ask import ask_tool
from agent_core.tools.backups import rollback_tool
from agent_core.tools.browser.browser import Browser
from agent_core.tools.browser.tools import Works, browser_tools
from agent_core.tools.code.all import every_code_tool
from agent_core.tools.code.bash import Bash
from agent_core.tools.code.script.running import RunningScripts
from agent_core.tools.contract import Tool
from agent_core.tools.editing.editor import editor_tool
from agent_core.tools.files import file_tools
from agent_core.tools.planning import planning_tool
from agent_core.tools.send import FileStore, send_tool
from agent_core.tools.shell import command_tools
from agent_core.tools.turn.analyze_image import analyze_tool
from agent_core.tools.turn.session_search import session_search_tool
from agent_core.tools.turn.todo import todo_tool
from agent_core.tools.web.tools import web_tools
from gateway.services.vault import Vault


class ToolDeps(Struct, frozen=True, kw_only=True):
    """The parts from which tools are built; `job` is the tool of another package."""

    settings: ModelSettings
    sandbox: Sandbox
    preview: Preview
    background: Background
    file_store: FileStore
    vault: Vault
    research: ResearchDeps
    job: Tool
    skills: Skills
    browser: Browser
    scripts: RunningScripts


def toolkit(deps: ToolDeps) -> tuple[Tool, ...]:
    """Build the tools in the order shown to models, which is part of every prompt."""
    limit = deps.settings.tools.command_max_seconds
    commands = command_tools(deps.sandbox, deps.background, limit, deps.vault)
    own = (
        rollback_tool(),
        *commands,
        ask_tool(),
        send_tool(deps.file_store),
        planning_tool(),
        todo_tool(),
    )
    web = (*web_tools(deps.research.web), research_tool(deps.research))
    mind = (memory_tool(),) if deps.settings.memory.enabled else ()
    mind = (*mind, session_search_tool())
    shells = deps.background.shells
    bash = Bash(deps.sandbox, shells, limit, deps.vault)
    code = every_code_tool(bash, deps.file_store, deps.scripts)
    skilled = tools_of(deps.skills, deps.settings, deps.file_store, deps.preview)
    works = Works(browser=deps.browser, search=deps.research.web.search, keep=deps.file_store.keep)
    sights = (analyze_tool(deps.file_store.keep, deps.settings.tools.web.allowed),)
    seeing = (*browser_tools(works), *sights)
    files = file_tools(deps.file_store)
    return (*files, *own, deps.job, editor_tool(), *web, *mind, *code, *skilled, *seeing)
