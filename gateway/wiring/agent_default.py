"""The agent behind every conversation: its workspaces, its tools, its models, its policy."""

import asyncio
import logging
from pathlib import Path

from msgspec.structs import replace

from agent_core.context.prompt import system_prompt
from agent_core.errors import Cancelled, LeaseLost, ModelFailed
from agent_core.messages import Message
from agent_core.models.port import Model, OnDelta, Reply, Request
from agent_core.models.tiers import Models
from agent_core.orchestration.classifier import classify
from agent_core.orchestration.executor import Brief, Hands, Result
from agent_core.orchestration.orchestrator import work
from agent_core.policy import Grant, Mode, Situation, Verdict, decide
from agent_core.sandboxes.background import Background
from agent_core.sandboxes.port import Sandbox
from agent_core.scope import Scope
from agent_core.settings import ModelSettings, SettingsError
from agent_core.tools import hooks
from agent_core.tools.ask import ask_tool
from agent_core.tools.backups import rollback_tool
from agent_core.tools.files import file_tools
from agent_core.tools.send import Kept, send_tool
from agent_core.tools.shell import command_tools
from agent_core.tools.toolbox import Prepared, Toolbox, bind
from gateway.agent import Circumstances
from gateway.messages import Conversation, digest
from gateway.store.rows import ConversationSettings

log = logging.getLogger("turnkeeper.agent")

TIER = "pro"
"""What a conversation uses that chose no model."""


class TurnkeeperAgent:
    """Makes turns for conversations. `folder` holds a workspace for each, `kept` the copies of
    files given to people; `ask_all`: every call is asked. Model calls wait for `warm`."""

    def __init__(
        self,
        folder: Path,
        models: ModelSettings,
        sandbox: Sandbox,
        kept: Kept,
        *,
        ask_all: bool = False,
    ) -> None:
        self.models = Models(models)
        self._settings = models
        self._folder = folder
        self._ask_all = ask_all
        self._kept = kept
        self._background = Background()
        self._hooks = hooks.load(models.tools.hooks)
        limit = models.tools.command_max_seconds
        commands = command_tools(sandbox, self._background, limit)
        tools = (*file_tools(), rollback_tool(), *commands, ask_tool(), send_tool(kept))
        self._toolbox = Toolbox(tools)
        self._system = system_prompt()
        self._warm = asyncio.Event()
        self._picked: dict[str, tuple[Model, str]] = {}

    async def warm(self) -> None:
        """Import the models' SDKs beside the loop, then let the waiting calls go."""
        try:
            await asyncio.to_thread(self.models.warm)
        except SettingsError as error:
            log.error("model_not_ready", extra={"why": str(error)})
        except Exception:  # the border: an SDK that cannot be imported fails turns, not the gateway
            log.exception("model_not_ready")
        finally:
            self._warm.set()

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        """What a turn begins with; recorded at its start. The demo model makes no plans."""
        several = not self.models.demo and classify(text) == "complex"
        return Brief(
            text=text,
            route="planned" if several else "simple",
            system=self._system,
            model=settings.model or TIER,
            tools=self._toolbox.names,
            workspace=str(self.workspace(conversation)),
            cache_key=_name(conversation),
        )

    def workspace(self, conversation: Conversation) -> Path:
        """The conversation's own folder; made when a tool first needs it."""
        return self._folder / _name(conversation)

    def permission(
        self, conversation: Conversation, settings: ConversationSettings, role: str
    ) -> Mode:
        """What was chosen here, else auto for an admin in private, else ask."""
        if settings.permission:
            return settings.permission
        return "auto" if role == "admin" and conversation.private else "ask"

    def model_name(self, settings: ConversationSettings) -> str:
        """The model in use, in words."""
        return self.models.describe(settings.model or TIER)

    def check_model(self, name: str) -> str:
        """Why `name` cannot be used, "" if it can; imports nothing and calls nobody."""
        try:
            self.models.describe(name)
            provider, slash, _ = name.partition("/")
            if slash and not self.models.demo:
                self._settings.endpoint(provider, "model")
        except SettingsError as error:
            return str(error)
        return ""

    def hands(self, circumstances: Circumstances) -> Hands:
        """Models, tools and policy; the conversation's settings are read at each judgement."""
        conversation = circumstances.conversation
        workspace = self.workspace(conversation)

        def judge(item: Prepared) -> Verdict:
            settings = circumstances.settings()
            person, role = circumstances.asker()
            situation = Situation(
                mode=self.permission(conversation, settings, role),
                person=person,
                ask_all=self._ask_all,
                rules=tuple(
                    Grant(tool=r.tool, pattern=r.pattern, person=r.person, lasting=r.lasting)
                    for r in settings.rules
                ),
            )
            return decide(item.tool, item.arguments, bind(item, workspace), situation)

        return Hands(
            complete=self._complete,
            toolbox=self._toolbox,
            judge=judge,
            live=circumstances.output,
            hooks=self._hooks,
        )

    def tidy(self, before: float) -> int:
        """Remove copies of given files that were made before `before`; how many."""
        return self._kept.forget(before)

    async def code(
        self,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        history: tuple[Message, ...],
        past: tuple[Message, ...],
    ) -> Result:
        """The turn's code over its scope. A turn that is stopped takes along what runs in the
        background of its conversation, one that parks or ends leaves it running."""
        try:
            return await work(scope, brief, hands, history, past)
        except (Cancelled, LeaseLost, asyncio.CancelledError):
            self._background.halt(Path(brief.workspace))
            raise

    async def close(self) -> None:
        """End what runs in the background; close the models' connections."""
        await self._background.close()
        await self.models.close()

    async def _complete(self, name: str, request: Request, on_delta: OnDelta) -> Reply:
        model, known_as = self._picked.get(name) or await self._pick(name)
        return await model.complete(replace(request, model=known_as), on_delta)

    async def _pick(self, name: str) -> tuple[Model, str]:
        """In a thread: a provider met for the first time imports its SDK."""
        await self._warm.wait()
        try:
            picked = await asyncio.to_thread(self.models.pick, name)
        except SettingsError as error:
            raise ModelFailed(str(error), "rejected") from None
        self._picked[name] = picked
        return picked


def _name(conversation: Conversation) -> str:
    return digest(conversation.id.encode())
