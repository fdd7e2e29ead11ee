"""The agent behind every conversation: its workspaces, its tools, its models, its policy."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.context import pictures
from agent_core.context.limits import SMALL_WINDOW, ContextLimits, limit_observed
from agent_core.context.prompt import system_prompt
from agent_core.errors import Cancelled, LeaseLost, ModelFailed, ToolFailed
from agent_core.events import FilesChanged
from agent_core.guardrails.guard import Guard
from agent_core.guardrails.models import load_models
from agent_core.mcp.mentions import add_mentions, find_mentions
from agent_core.memory.flush import flusher
from agent_core.memory.past import PastTalk
from agent_core.memory.port import Memory
from agent_core.memory.provider import MemoryProvider, ProvidedMemory, add_recalled
from agent_core.messages import Mention, Message, Picture
from agent_core.models.catalog import WINDOW, Price
from agent_core.models.port import Model, ModelReply, ModelRequest, OnDelta
from agent_core.models.provider_settings import PRICES
from agent_core.models.tiers import Models
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.given_command import run_given_command
from agent_core.orchestration.orchestrator import work
from agent_core.orchestration.routes.classifier import Route, classify
from agent_core.policy import Bond, Grant, Mode, Situation, Verdict
from agent_core.profiles import choice
from agent_core.profiles.choice import Kit
from agent_core.profiles.profile import select_recent
from agent_core.research.depths import ResearchDeps
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.masks import find_secret_files, has_committed
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.previews.again import AppStarter, start_nothing
from agent_core.sandboxes.snapshots import Snapshots, name_after, name_before
from agent_core.sandboxes.states.revived_news import describe_revived
from agent_core.sandboxes.states.scan import SnapshotRefused
from agent_core.scope import Scope
from agent_core.settings import TIERS, ModelSettings
from agent_core.skills.built_in.all import built_in
from agent_core.skills.direct import SKILLS as DIRECT_MODES
from agent_core.skills.direct import direct, skill_of
from agent_core.tools import hooks, paths
from agent_core.tools.browser.enclosure import Walls
from agent_core.tools.code.script.execute_script import NAME as SCRIPT
from agent_core.tools.code.script.running import RunningScripts
from agent_core.tools.facts import find_call_bond, judge_call
from agent_core.tools.finding.mcp_tools import ToolRegistry
from agent_core.tools.finding.tools import finding_tools
from agent_core.tools.send import FileStore
from agent_core.tools.toolbox import Prepared, Toolbox
from agent_core.tools.turn.terminate import terminate_tool
from agent_core.tools.web.tools import web_of
from gateway.conversation.agent import PolicyContext
from gateway.declaration import SettingsError
from gateway.features.history.past import search_past
from gateway.features.history.resume import PastDeps
from gateway.messages import Conversation, digest
from gateway.services.ledger import Ledger, Payer, price_reply
from gateway.services.memory import Memories
from gateway.services.operator_rules import OperatorRules
from gateway.services.sign_ins import SignIns
from gateway.services.vault import Vault
from gateway.store.rows import ConversationSettings
from gateway.texts import say
from gateway.wiring.jobs import JobWork
from gateway.wiring.model_choice import find_problem, list_models
from gateway.wiring.models_now import read_models_now
from gateway.wiring.previews import make_browser, make_preview
from gateway.wiring.server_directory import GatewayServers
from gateway.wiring.start_checks import SKILLS, check_prices
from gateway.wiring.toolkit import ToolDeps, toolkit

log = logging.getLogger("turnkeeper.agent")
MAX_NAMED = 5
"""Changed files that are named."""
TIER = "pro"
"""The tier of a conversation that chose no model."""


class Equipment(Struct, frozen=True, kw_only=True):
    """The agent's equipment besides models and tools. `ask_all`: every call is asked about;
    `memory` makes the memory, with an additional one if set; `job_ledger`: for runs of jobs with a
    limit of their own, where nothing else is limited; `walls`: the browser's sandbox, if there is
    one."""

    jobs: JobWork
    memory: Callable[[MemoryProvider | None], Memories | None]
    ledger: Ledger | None
    job_ledger: Ledger
    operator: OperatorRules
    past: PastDeps
    vault: Vault
    sign_ins: SignIns
    snapshots: Snapshots
    walls: Walls | None = None
    ask_all: bool = False


class TurnkeeperAgent:
    """Makes turns for conversations. `folder` holds a workspace for each, `file_store` the copies
    of sent files. Model calls wait for `warm`."""

    def __init__(
        self,
        folder: Path,
        models: ModelSettings,
        sandbox: SandboxPool,
        file_store: FileStore,
        equipment: Equipment,
    ) -> None:
        self.models = Models(models, read_models_now)
        self._settings = models
        self._folder = folder
        self._ask_all = equipment.ask_all
        self.operator = equipment.operator
        self._file_store = file_store
        self._background = Background()
        self._scripts = RunningScripts()
        self._sandbox = sandbox
        tools, home = models.tools, folder.parent
        self._warm, self._answered, self._tried = (asyncio.Event() for _ in range(3))
        starter = AppStarter(sandbox, self._tried.wait)
        again = start_nothing if equipment.ask_all else starter.start
        self._preview = make_preview(models, sandbox, home, again)
        self._snapshots = equipment.snapshots
        self._hooks = hooks.load(models.tools.hooks)
        self.vault = equipment.vault
        self.jobs = equipment.jobs
        guards, seen = models.guardrails, tools.web.allowed
        self._guard = Guard(guards, load_models(guards), seen)
        self._research = ResearchDeps(web=web_of(tools.web), file_store=file_store)
        self._skills = built_in(models, folder.parent / SKILLS)
        self._browser = make_browser(models, sandbox, home, self._preview, equipment.walls)
        deps = ToolDeps(
            settings=models,
            sandbox=sandbox,
            preview=self._preview,
            background=self._background,
            file_store=file_store,
            vault=self.vault,
            research=self._research,
            job=self.jobs.tool(self.check_model),
            skills=self._skills,
            browser=self._browser,
            scripts=self._scripts,
        )
        directory = GatewayServers(tools, folder.parent / "mcp", file_store, equipment.sign_ins)
        self.server_directory, self.servers = directory, directory.servers
        last = (terminate_tool(), *finding_tools(self.servers.names))
        self._toolbox = Toolbox((*toolkit(deps), *last), self.servers)
        always = (SCRIPT,) if tools.execution_mode == "codeact" else ()
        lines = self._toolbox.lines
        self._kit = Kit(lines=lines, servers=self.servers, sets=tools.sets, always=always)
        self.ledger = equipment.ledger
        self.job_ledger = equipment.job_ledger
        self._past, self._beside = equipment.past, directory.find_memory(models.memory)
        self.memory = equipment.memory(self._beside)
        self._served: dict[str, tuple[str, str]] = {}
        """Provider and model behind a name, as far as seen."""
        self._picked: dict[str, tuple[Model, str]] = {}

    async def open(self, stack: AsyncExitStack) -> None:
        """Prepare connections to tool servers, which `stack` closes. Starts none of them."""
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # collects the output of servers
        stack.push_async_callback(self.close)
        await stack.enter_async_context(self.servers)
        await stack.enter_async_context(self._browser)
        await self._show_old_links()

    async def warm(self) -> None:
        """Import the models' SDKs in a thread, then release waiting calls; run the sandbox's
        self-test, for which tool calls wait."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sandbox.check())
            await self._import_models()
            self._warm.set()
        self._tried.set()

    async def _show_old_links(self) -> None:
        try:
            await self._preview.listen()
        except OSError as error:
            log.error("preview_port_taken", extra={"why": str(error)})

    async def learn_windows(self) -> None:
        """Ask servers how much their models hold, as they are loaded and once they answered."""
        try:
            if await self.models.learn_windows():
                await self._answered.wait()
                await self.models.learn_windows()
        except SettingsError as error:
            log.error("model_not_ready", extra={"why": str(error)})

    async def _import_models(self) -> None:
        try:
            await asyncio.to_thread(self.models.warm)
        except SettingsError as error:
            log.error("model_not_ready", extra={"why": str(error)})
        except Exception:  # boundary: an SDK that cannot be imported fails turns, not the gateway
            log.exception("model_not_ready")

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        """Make the brief of a turn, which is recorded at its start. The demo model makes no
        plans."""
        own, demo, name = self._settings.agent, self.models.demo, _name(conversation)
        window = self._find_window(settings.model or TIER)
        small = window <= SMALL_WINDOW
        kind = classify(text, settings.mode or "task", own.short_words)
        is_direct = settings.mode in DIRECT_MODES and not demo
        first = direct(settings.mode, text, not conversation.private) if is_direct else None
        routes: dict[Route, Literal["simple", "planned", "research"]]
        routes = {"complex": "planned", "research": "research", "simple": "simple"}
        brief = Brief(
            text=text,
            route="simple" if demo else routes[kind],
            routing="rules" if settings.mode or demo else own.routing,
            max_turns=own.max_turns,
            max_replans=own.max_replans,
            max_rounds=own.max_rounds,
            step_rounds=own.step_rounds,
            review=settings.plans == "on",
            debug=own.debug,
            system=system_prompt(small=small),
            model=settings.model or TIER,
            room=self._find_limits(settings.model or TIER),
            most_observed=limit_observed(window),
            tools=self._toolbox.names,
            workspace=str(self._folder / name),
            cache_key=name,
            direct=first,
        )
        places = (conversation.platform, conversation.id)
        profile = "" if first is not None else settings.profile  # the skill must be reachable
        specs = self._toolbox.specs if small else None
        return choice.apply_choice(brief, self._kit, profile, places, specs, settings.tools)

    def find_mentions(self, texts: tuple[str, ...]) -> tuple[Mention, ...]:
        """Find the server resources (`@…`) and prompts that people name."""
        return find_mentions(texts, self.servers.names)

    def picture(self, conversation: Conversation, path: str) -> Picture | None:
        """The file `path` of the workspace, kept as it is now, if a model can be shown it."""
        try:
            with paths.open_read(self.workspace(conversation), path) as file:
                mime = pictures.kind(file.read(12))
                if not mime or os.fstat(file.fileno()).st_size > pictures.MAX_BYTES:
                    return None
            kept = self._file_store.keep(self.workspace(conversation), path)
        except ToolFailed:
            return None
        return Picture(ref=kept.ref, path=path, mime=mime, size=kept.size)

    def list_missing(self, profile: str) -> tuple[str, ...]:
        """Tools that a profile is made for and that are not here."""
        return choice.list_missing(self._kit, profile)

    def why_unusable(self, mode: str) -> str:
        """Return the reason why the skill of `mode` cannot be used here, "" if it can or there is
        none."""
        skill = skill_of(mode)
        return self._skills.why_unusable(skill) if skill else ""

    def _find_limits(self, model: str) -> ContextLimits:
        """Return the limits of a request to `model`. The model set for it summarises, otherwise
        FLASH; a model chosen by name does it itself."""
        served = self._find_served(model)
        if served is None:
            return ContextLimits()  # the turn's first call explains the problem
        own = "compression" in self._settings.auxiliary or "/" not in model
        window = self.models.catalog.window(*served)
        return self._settings.context.make_limits(window, "auxiliary.compression" if own else model)

    def _find_window(self, model: str) -> int:
        """Tokens that `model` holds, as far as is known."""
        served = self._find_served(model)
        return self.models.catalog.window(*served) if served is not None else WINDOW

    def _find_served(self, model: str) -> tuple[str, str] | None:
        """Provider and model behind `model`; None: the demo model, or nothing that works."""
        if self.models.demo:
            return None
        if model not in self._served:
            try:
                provider, _, name = self.models.describe(model).partition("/")
            except SettingsError:
                return None
            self._served[model] = provider, name
        return self._served[model]

    def workspace(self, conversation: Conversation) -> Path:
        """The conversation's own folder; made when a tool first needs it."""
        return self._folder / _name(conversation)

    def permission(
        self, conversation: Conversation, settings: ConversationSettings, asker: tuple[str, str]
    ) -> Mode:
        """Return the mode chosen here, in a group by this person; otherwise auto for an admin in
        private, else ask. Auto requires the role that may choose it, whatever was chosen before."""
        person, role = asker
        if role != "admin":
            return "ask"
        if not conversation.private:
            return settings.find_mode(person) or "ask"
        return settings.permission or "auto"

    def model_name(self, settings: ConversationSettings) -> str:
        """Return the model in use, in words, and its fallbacks."""
        first, *others = (settings.model or TIER).split(",")
        return " → ".join((self.models.describe(first), *others))

    async def list_models(self) -> tuple[str, ...]:
        """The tiers, then models that the providers which are set list, by provider/model."""
        return () if self.models.demo else await list_models(self._settings)

    async def check_model(self, name: str, language: str) -> str:
        """Return the reason why `name` cannot be used, "" if it can; asks its provider for its
        models."""
        if self.models.demo:
            return "" if name in TIERS else say("model_demo", language)
        try:
            problem, listed = await find_problem(self._settings, name, language)
            if not problem:
                self.models.describe(name)
                self.check_prices(name)
        except SettingsError as error:
            return str(error)
        if listed and not problem:
            await self.models.learn_windows((name,))
        return problem

    def hands(self, circumstances: PolicyContext) -> Hands:
        """Models, tools and policy; the conversation's settings are read at each judgement."""
        conversation = circumstances.conversation
        self.jobs.enter(circumstances)
        bounds = self._kit.sets.reach((f"role:{circumstances.asker()[1]}",))

        unsaved, exposed, committed = "", False, False

        async def snapshot() -> None:
            nonlocal unsaved, exposed, committed
            turn, workspace = circumstances.payer().turn, self.workspace(conversation)
            unsaved = await self._snapshot(workspace, name_before(turn))
            if self._sandbox.isolated:  # otherwise every command needs an approval anyway
                secrets = await asyncio.to_thread(find_secret_files, workspace)
                exposed = not secrets.complete or bool(secrets.names and not self._sandbox.masks)
                committed = await asyncio.to_thread(has_committed, workspace, secrets)

        def look_around() -> Situation:
            situation = self._look_around(circumstances)
            return replace(situation, unsaved=unsaved, exposed=exposed, committed=committed)

        def judge(item: Prepared) -> Verdict:
            now = look_around()
            return judge_call(item.tool, item.arguments, item.digest, now, item.sources)

        def bond(item: Prepared) -> Bond:
            return find_call_bond(item.tool, item.arguments, look_around())

        limited = circumstances.payer().limit and not self.models.demo
        ledger = self.ledger or (self.job_ledger if limited else None)

        async def complete_paid(name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
            assert ledger is not None
            accounts = await circumstances.find_accounts()
            payer = replace(circumstances.payer(), accounts=accounts)
            return await self._complete_paid((ledger, payer), name, request, on_delta)

        hands = Hands(
            complete=self._complete if ledger is None else complete_paid,
            toolbox=self._toolbox.show_more((), bounds, self._find_registry(circumstances)),
            judge=judge,
            live=circumstances.output,
            hooks=self._hooks,
            guard=self._guard,
            hides=self.vault.words,
            research=self._research,
            bond=bond,
            refresh=partial(self._refresh, circumstances),
            snapshot=snapshot,
            hosts=lambda: look_around().open_hosts,
        )
        return self._add_memory(hands, circumstances)

    async def _refresh(self, circumstances: PolicyContext) -> None:
        """Update the facts by which calls are judged; runs the sandbox's self-test, also in a
        resumed turn whose model was asked by an earlier process."""
        await self._tried.wait()
        await circumstances.refresh()

    def _find_registry(self, circumstances: PolicyContext) -> ToolRegistry | None:
        """The servers as the turn's person reaches them, where that makes a difference."""
        return self.server_directory.reach(circumstances) if self.servers.ask_sign_ins else None

    async def _search_past(self, circumstances: PolicyContext, words: str) -> tuple[PastTalk, ...]:
        """Search what the turn's person said, or was told, elsewhere."""
        where, sender = circumstances.conversation, circumstances.sender()
        return await search_past(self._past, where, sender, words)

    def _look_around(self, circumstances: PolicyContext) -> Situation:
        """Return the circumstances now in force for a turn."""
        settings, conversation = circumstances.settings(), circumstances.conversation
        person, role = circumstances.asker()
        return Situation(
            mode=self.permission(conversation, settings, (person, role)),
            person=person,
            ask_all=self._ask_all,
            rules=tuple(
                Grant(tool=r.tool, pattern=r.pattern, person=r.person, lasting=r.lasting)
                for r in circumstances.rules()
            ),
            secrets=self.vault.names(conversation.id),
            contained=self._sandbox.contains,
            hosts=self._settings.tools.web.open,
            role=role,
            places=self._settings.tools.web.allowed,
            operator=self.operator.rules,
            conversation=conversation.id,
            now=ambient.now(),
        )

    def _add_memory(self, hands: Hands, circumstances: PolicyContext) -> Hands:
        """Return `hands` with the memory of their conversation, a summariser of older messages that
        is also used to extract memories, and a search of earlier conversations."""
        hands = replace(hands, past=partial(self._search_past, circumstances))
        if self.memory is None:
            return hands
        (person, _), settings = circumstances.asker(), circumstances.settings
        where, language = circumstances.conversation, circumstances.sender().language
        own = self.memory.open_for(where, person, lambda: settings().memory == "off", language)
        memory: Memory = own
        if self._beside is not None and own.space:
            memory = ProvidedMemory(own, self._beside, own.space, own.settle)
        flush = flusher(
            memory, hands.complete, lambda: self._find_limits(settings().model or TIER).by
        )
        return replace(hands, memory=memory, flush=flush)

    def tidy(self, before: float) -> int:
        """Remove copies of sent files made before `before`; return how many."""
        return self._file_store.forget(before)

    async def code(
        self,
        scope: Scope,
        brief: Brief,
        hands: Hands,
        history: tuple[Message, ...],
        past: tuple[Message, ...],
    ) -> TurnResult:
        """Run the turn's code over its scope. A stopped turn ends the background work of its
        conversation, one that parks or ends leaves it running."""
        # the current location: the data folder may have been moved or restored elsewhere
        workspace = self._folder / os.path.basename(brief.workspace)
        brief = replace(brief, workspace=str(workspace))
        box = hands.toolbox.show_more(brief.more, hands.toolbox.bounds)
        hands = replace(hands, toolbox=box)
        if brief.most_messages:
            history = select_recent(history, brief.most_messages)
        if brief.mentions and not past:
            reader = self.server_directory.find_reader(hands.toolbox.registry)
            brief = await add_mentions(scope, brief, reader)
        if isinstance(hands.memory, ProvidedMemory) and not past:
            brief = await add_recalled(scope, brief, hands.memory)
        if (history or not scope.is_new) and self._snapshots.may_have_lost(workspace):
            await asyncio.to_thread(self._snapshots.revive, workspace)
        hands = replace(hands, news=partial(self._take_news, scope, workspace))
        try:
            run = run_given_command if brief.command and not past else work
            result = await run(scope, brief, hands, history, past)
        except (Cancelled, LeaseLost, asyncio.CancelledError):
            self._background.halt(workspace)
            self._sandbox.halt(workspace)
            self._browser.halt(workspace)
            if scope.is_stopped:
                await self._preview.let_lie(workspace)
            raise
        self._snapshots.forget_news(workspace)
        if self._snapshots.find(workspace, name_before(scope.turn_id)) is not None:
            await self._snapshot(workspace, name_after(scope.turn_id))
            await self._tell_changed(scope, workspace)
        return result

    def _take_news(self, scope: Scope, workspace: Path) -> str:
        """Return the news about lost and restored files."""
        if (revived := self._snapshots.take_news(workspace)) is None:
            return ""
        writers = {one.name for one in self._toolbox.tools if one.access in ("write", "shell")}
        calls = scope.list_finished(revived.at)
        return describe_revived(revived, [one for one in calls if one.name in writers])

    async def _tell_changed(self, scope: Scope, workspace: Path) -> None:
        """Tell people which files calls changed unasked, so that they can restore them."""
        await self._tried.wait()
        if not self._sandbox.contains or not self._sandbox.isolated:
            return
        turn = scope.turn_id
        look = partial(self._snapshots.list_changed, workspace, name_before(turn), name_after(turn))
        changed = await scope.once(
            "changed", partial(asyncio.to_thread, look), kind=tuple[str, ...]
        )
        if changed:
            shown = changed[:MAX_NAMED]
            scope.emit(FilesChanged(turn=turn, paths=shown, more=len(changed) - len(shown)))

    async def _snapshot(self, workspace: Path, name: str) -> str:
        """Keep the workspace under this name; why it cannot be, "" if it is."""
        try:
            await asyncio.to_thread(self._snapshots.take, workspace, name)
        except SnapshotRefused as error:
            log.warning("snapshot_refused", extra={"why": str(error)})
            return str(error)
        return ""

    def holds(self, turn: str) -> bool:
        """Return True if the parked turn still holds a script or a server call in this process."""
        scripts = any(token.startswith(f"{turn}/") for token in self._scripts.tokens)
        return scripts or self.servers.holds(turn)

    def end_turn(self, turn: str) -> None:
        """Release what the finished turn holds."""
        self._scripts.end_turn(turn)
        self.servers.end_turn(turn)

    async def close(self) -> None:
        """End background work and close the models' connections."""
        await self._preview.close()
        self._sandbox.halt()  # before the commands end one by one: what ran is remembered
        await self._background.close()
        await self.models.close()

    async def _complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        model, known_as = self._picked.get(name) or await self._pick(name)
        request = await pictures.attach_pictures(
            replace(request, model=known_as), self._file_store.read
        )
        reply = await model.complete(request, on_delta)
        self._answered.set()
        price = self._price(reply.provider, reply.model, known_as)
        return replace(reply, usage=replace(reply.usage, cost=price_reply(reply, price)))

    def _price(self, provider: str, *names: str) -> Price | None:
        """Return the price by the provider's name of the model, otherwise by the requested one."""
        prices = (self.models.catalog.price(provider, name) for name in names)
        return next(filter(None, prices), None)

    async def _complete_paid(
        self, purse: tuple[Ledger, Payer], name: str, request: ModelRequest, on_delta: OnDelta
    ) -> ModelReply:
        """Complete within the spending limits; see `_complete`."""
        ledger, payer = purse
        model, known_as = self._picked.get(name) or await self._pick(name)
        price = self._price(model.provider, known_as)
        if price is None:
            mend = f"The price of {model.provider}/{known_as} is not known: set {PRICES.name}."
            raise ModelFailed(mend, "rejected")
        call = partial(self._complete, name, request, on_delta)
        return await ledger.pay(payer, request, price, call)

    def check_prices(self, *names: str) -> None:
        """SettingsError for models without a known price where money is limited."""
        check_prices(self._settings, self.models, names)

    async def _pick(self, name: str) -> tuple[Model, str]:
        """Pick the model in a thread, as a provider's SDK is imported at first use."""
        await self._warm.wait()
        try:
            picked = await asyncio.to_thread(self.models.pick, name)
        except SettingsError as error:
            raise ModelFailed(str(error), "rejected") from None
        self._picked[name] = picked
        return picked


def _name(conversation: Conversation) -> str:
    return digest(conversation.id.encode())
