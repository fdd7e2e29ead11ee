"""All tools of a conversation without anything behind them: for judging calls that are never
made."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from agent_core.errors import ToolFailed
from agent_core.research.depths import ResearchDeps
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.port import (
    NO_PERMITS,
    ChannelCommand,
    ChannelSandbox,
    Language,
    NetworkLoan,
    Permits,
    ProcessResult,
    Running,
    Shell,
)
from agent_core.settings import ModelSettings
from agent_core.skills.built_in.all import built_in
from agent_core.tools.browser.browser import Browser
from agent_core.tools.code.script.running import RunningScripts
from agent_core.tools.contract import Tool
from agent_core.tools.finding.tools import finding_tools
from agent_core.tools.send import FileStore
from agent_core.tools.turn.terminate import terminate_tool
from agent_core.tools.web.tools import web_of
from gateway.services.vault import Vault
from gateway.wiring.jobs import make_job_tool
from gateway.wiring.toolkit import ToolDeps, toolkit

CLOSED = "Nothing is run here."
_NOWHERE = Path("/nonexistent")


class ClosedSandbox:
    """A sandbox that runs nothing, of a tier that isolates or not."""

    name = "closed"
    about = CLOSED
    programs: Mapping[Language, str] = {
        "python": "python3",
        "javascript": "node",
        "typescript": "node",
        "bash": "bash",
    }

    def __init__(self, isolated: bool) -> None:
        self.isolated = isolated

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        permits: Permits = NO_PERMITS,
    ) -> ProcessResult:
        """Refuse."""
        raise ToolFailed(CLOSED)

    async def start(
        self,
        command: str,
        cwd: Path,
        limit: float,
        permits: Permits = NO_PERMITS,
    ) -> Running:
        """Refuse."""
        raise ToolFailed(CLOSED)

    async def open_shell(self, cwd: Path, limit: float) -> Shell:
        """Refuse."""
        raise ToolFailed(CLOSED)

    @property
    def channels(self) -> ChannelSandbox | None:
        """Itself, so that tools that need a channel exist."""
        return self

    async def start_talking(
        self, command: str, cwd: Path, limit: float, permits: Permits = NO_PERMITS
    ) -> ChannelCommand:
        """Refuse."""
        raise ToolFailed(CLOSED)

    def lend_network(self, hosts: frozenset[str]) -> AbstractContextManager[NetworkLoan]:
        """Refuse."""
        raise ToolFailed(CLOSED)

    def take_lost(self, workspace: Path) -> str:
        """Return nothing."""
        return ""

    def end_when_idle(self, workspace: Path, seconds: float) -> None:
        """Do nothing: there is none."""


class _ClosedPreview:
    is_public = False

    async def open(self, workspace: Path, port: int, start: str = "") -> str:
        raise ToolFailed(CLOSED)


def make_closed_tools(settings: ModelSettings, *, isolated: bool) -> tuple[Tool, ...]:
    """Make the tools of a gateway with these settings; none can be called, and no disk is used."""

    async def refuse(*_: object) -> str:
        raise ToolFailed(CLOSED)

    file_store = FileStore(_NOWHERE)
    deps = ToolDeps(
        settings=settings,
        sandbox=ClosedSandbox(isolated),
        preview=_ClosedPreview(),
        background=Background(),
        file_store=file_store,
        vault=Vault(_NOWHERE),
        research=ResearchDeps(web=web_of(settings.tools.web), file_store=file_store),
        job=make_job_tool(refuse),
        skills=built_in(settings),
        browser=Browser(_NOWHERE, settings.tools.web.allowed),  # no sandbox is running
        scripts=RunningScripts(),
    )
    return (*toolkit(deps), terminate_tool(), *finding_tools(()))


def list_tool_names() -> tuple[str, ...]:
    """Return the names of all tools that a gateway may have itself, with any settings."""
    return tuple(one.name for one in make_closed_tools(ModelSettings.read({}), isolated=True))
