"""Assembles one gateway: everything behind the adapters.

Imported after the first poll went out, as people wait for that.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from agent_core import ambient
from agent_core.guardrails.redaction import Hides
from agent_core.memory.provider import MemoryProvider
from agent_core.sandboxes.buckets.bucket import make_bucket
from agent_core.sandboxes.network import SandboxNetwork
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.snapshots import Snapshots
from agent_core.sandboxes.tier import Tier
from agent_core.settings import ModelSettings, ToolSettings
from agent_core.tools.browser.enclosure import Walls
from agent_core.tools.browser.walls import choose_walls
from agent_core.tools.send import FileStore
from gateway.access.access import Access
from gateway.access.linking import DirectoryLinking
from gateway.access.page_links import DirectoryPageLinks
from gateway.access.pairing import DirectoryPairing
from gateway.conversation.host import Host
from gateway.conversation.outage import Outage
from gateway.conversation.services import HostPorts, Services
from gateway.conversation.slots import Slots
from gateway.declaration import Env, SettingsError
from gateway.errors import StoreFailed, StoreUnfit
from gateway.feature import Features
from gateway.features.jobs.api import JobBookBackend
from gateway.features.jobs.deps import JobDeps
from gateway.features.jobs.hook_calls import KnownCalls
from gateway.features.jobs.hooks import WebhookCalls, check_secrets
from gateway.messages import Inbound, Sender
from gateway.ops import control, lock, logs
from gateway.ops.http import WRITABLE, Health
from gateway.ops.restore_swap import remove_leftovers
from gateway.ops.store_identity import StoreIdentity
from gateway.ops.stored_contents import make_retention, make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.ports import (
    Accept,
    Adapter,
    Hooked,
    JobBackend,
    NoteAudit,
    SignInPages,
    WebhookReceiver,
)
from gateway.services.audit_trail import AuditTrail
from gateway.services.ledger import Ledger
from gateway.services.memory import Memories
from gateway.services.memory_removals import MemoryRemovals
from gateway.services.operator_instructions import OperatorInstructions
from gateway.services.operator_rules import OperatorRules
from gateway.services.retention import Retention
from gateway.services.sign_ins import SignIns, SignInVisits
from gateway.services.vault import Vault
from gateway.services.workspaces import WORKSPACES, is_erased
from gateway.settings import REPLICA_ID, VERSION, Settings, find_odd_names
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Directory, Store
from gateway.store.sqlite import SqliteStore
from gateway.wiring.agent_default import TIER, Equipment, TurnkeeperAgent
from gateway.wiring.closed_tools import list_tool_names
from gateway.wiring.features import load_features
from gateway.wiring.job_means import find_missing_means
from gateway.wiring.jobs import JobWork, make_job_ports
from gateway.wiring.models_now import find_models
from gateway.wiring.plugin_settings import find_declared
from gateway.wiring.start_checks import check_commands
from gateway.wiring.voice import LazyTranscriber
from gateway.wiring.web_backend import GatewayBackend

log = logging.getLogger("turnkeeper.assembly")

STORE = "turnkeeper.db"
DEMO = "This is a demo: a script answers. Set OPENAI_API_KEY or ANTHROPIC_API_KEY for a real model."
WEB_SECRET = "secret:web"
MIN_SECRET = 16
"""Minimum bytes of the secret that signs sessions."""


@dataclass(slots=True, kw_only=True)
class Parts:
    """The parts of a running gateway."""

    settings: Settings
    host: Host
    agent: TurnkeeperAgent
    trail: AuditTrail
    hold_name: Callable[[], Coroutine[None, None, None]]
    """Keeps this replica's name until cancelled; SettingsError if another process has it."""
    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def services(self) -> Services:
        """The services shared by all sessions."""
        return self.host.services

    async def run_removals(self) -> None:
        """Let another memory remove what left ours, until cancelled."""
        memory = self.services.memory
        if memory is not None and memory.removals is not None:
            await memory.removals.run()

    async def watch_store(self) -> None:
        """Notice a replaced store, until cancelled."""
        services = self.services
        await StoreIdentity(self.settings.home, services.store, services.count).watch()

    async def reload(self) -> None:
        """Reload the access lists, the operator's rules and instructions, and the webhook's
        secret."""
        async with self._reloading:
            try:
                settings = await asyncio.to_thread(Settings.read, declared=find_declared)
                self._rehook(settings)
                check_commands(settings)
                self.agent.operator.load()
                if self.services.instructions is not None:
                    self.services.instructions.load(settings.instructions)
                self.services.access.replace_lists(settings.people, settings.policy)
            except (SettingsError, StoreFailed, ValueError) as error:
                log.error("not_reloaded", extra={"why": str(error)})
                return
            self.settings = settings
            log.info("reloaded")

    def _rehook(self, settings: Settings) -> None:
        bot, old = settings.telegram, self.settings.telegram
        adapter = self.services.adapters.get("telegram")
        if bot is None or old is None or not isinstance(adapter, Hooked):
            return
        if (bot.webhook_url, bot.webhook_secret) != (old.webhook_url, old.webhook_secret):
            adapter.change_webhook(bot.webhook_url, bot.webhook_secret)

    def describe_start(self, url: str, state: str = "is ready") -> str:
        """Describe in two lines where it is and what it talks to."""
        lines = [
            f"Turnkeeper {VERSION} {state}: {url}",
            f"Platforms: {', '.join(self.services.adapters)}",
            f"Model: {self.agent.models.describe(TIER)}",
        ]
        if self.agent.models.demo:
            lines.append(DEMO)
        return "\n".join(lines)

    async def redeem_page_link(self, token: str) -> str:
        """Return the person of a page link from a chat, "" if it is not valid."""
        pages = self.services.page_links
        return await pages.redeem(token) if pages is not None else ""

    @property
    def web_backend(self) -> GatewayBackend:
        """The backend of the page."""
        return GatewayBackend(self.host)

    @property
    def hooks(self) -> WebhookReceiver:
        """The receiver of webhook calls."""
        store, jobs = self.services.store, self.agent.jobs.ports
        return WebhookCalls(jobs, self.agent.vault, KnownCalls(store), store, self.host.accept)

    @property
    def sign_in_pages(self) -> SignInPages:
        """The pages behind sign-in links."""
        directory = self.agent.server_directory
        return SignInVisits(
            directory.sign_ins, directory.servers, self.host.accept, self.trail.note
        )

    @property
    def job_backend(self) -> JobBackend:
        """The job operations of the HTTP API."""
        return JobBookBackend(self.agent.jobs.ports, self.services)

    def operations(
        self,
        health: Health,
        url: str,
        issue: Callable[[str], str],
        stop: Callable[[], None],
        restore: Callable[[str], bool],
    ) -> control.Operations:
        """Make the control socket's operations; `issue` makes a one-time token for a person of the
        page, "" for its owner."""

        def link(name: str) -> str:
            if name and self.services.access.role(Sender(platform="web", id=name)) is None:
                raise ValueError(
                    f"{name!r} may not use the page. Add the name to WEB_ALLOWED_USERS, "
                    "WEB_ADMIN_USERS or WEB_VIEWER_USERS and start the gateway anew."
                )
            base = f"{self.settings.public_url}/" if self.settings.public_url else url
            return f"{base}signin/{issue(name)}"

        live = control.Live(
            status=partial(self._describe_state, health, url),
            link=link,
            wake=self.host.wake,
            stop=stop,
            restore=restore,
            platforms=frozenset(self.services.adapters),
        )
        return control.Operations(
            store=self.services.store,
            pairing=self.services.pairing,
            jobs=self.agent.jobs.make_console(self.agent.check_model),
            live=live,
            upkeep=StoreUpkeep(self.settings, self.services.store, self.trail, self.host),
            trail=self.trail,
        )

    async def _describe_state(self, health: Health, url: str) -> str:
        found = await health.readiness()
        state = "is ready" if found.ready else "runs, but is not ready"
        state = "is stopping" if health.stopping() else state
        lines = [self.describe_start(url, state)]
        store = "ready" if found.store == WRITABLE else found.store
        lines += (f"store: {store}", f"sessions: {len(self.host.sessions)}")
        for platform in self.services.adapters:
            one = health.condition(platform)
            age = "" if one.age is None else f", last contact {one.age:.0f} s ago"
            lines.append(f"{platform}: {'ready' if one.ready else one.error or 'not ready'}{age}")
        lines += (f"{name}: {n}" for name, n in sorted(self.services.counters.items()))
        return "\n".join(lines)


async def assemble(
    settings: Settings,
    adapters: Mapping[str, Adapter],
    tier: Tier,
    stack: AsyncExitStack,
    port: int,
) -> Parts:
    """Assemble everything behind the adapters; `stack` closes it. `tier`: of sandboxes; `port`: of
    the page. SettingsError, StoreFailed."""
    features = load_features(settings.plugins, settings.quick)
    models = await find_models(settings)
    network = SandboxNetwork(models.tools.web.allowed)
    snapshots = make_snapshots(models.tools)
    walls = await choose_walls(tier, settings.sandbox)
    encloses = walls.name if walls is not None else ""
    sandbox = SandboxPool(tier, network=network, keeper=snapshots, encloses=encloses)
    stack.push_async_callback(sandbox.close)
    store = await open_store(settings)
    stack.push_async_callback(store.close)
    owner = settings.replica or lock.replica_id(settings.home, ambient.new_id)
    hold_name = await claim_name(store, owner, stack)
    listener = models.listener()
    transcriber = LazyTranscriber(*listener) if listener is not None else None
    if transcriber is not None:
        stack.push_async_callback(transcriber.close)
    trail = make_trail(settings, store)
    supplies = Supplies(
        settings=settings,
        models=models,
        sandbox=sandbox,
        store=store,
        adapters=adapters,
        access=open_access(settings, store),
        feature_env=_select_env(features, settings),
        owner=owner,
        transcriber=transcriber,
        retention=await make_retention(settings, store, trail),
        trail=trail,
        base=settings.link_base(port),
        snapshots=snapshots,
        walls=walls,
    )
    host = Host(partial(_build_services, supplies), features)
    agent = host.services.agent
    assert isinstance(agent, TurnkeeperAgent)
    await agent.open(stack)
    about = {"model": agent.models.describe(TIER), "sandbox": sandbox.name, "owner": owner}
    log.info("assembled", extra={"version": VERSION, **about})
    for platform, why in settings.find_undecided().items():
        log.warning("nobody_approves", extra={"platform": platform, "why": why})
    for name, nearest in find_odd_names(settings.env, settings.known).items():
        log.warning("setting_unknown", extra={"setting": name, "nearest": nearest})
    return Parts(settings=settings, host=host, agent=agent, trail=trail, hold_name=hold_name)


def make_snapshots(tools: ToolSettings) -> Snapshots:
    """Make the snapshot store. SettingsError."""
    kept, bucket = tools.snapshot_hours * 3_600.0, make_bucket(tools.bucket)
    return Snapshots(kept, tools.snapshot_bytes, bucket, is_erased)


class Supplies(Struct, frozen=True, kw_only=True):
    """Values from which the services are built."""

    settings: Settings
    models: ModelSettings
    sandbox: SandboxPool
    store: Store
    adapters: Mapping[str, Adapter]
    access: Access
    feature_env: Env
    owner: str
    transcriber: LazyTranscriber | None
    retention: Retention
    trail: AuditTrail
    base: str
    snapshots: Snapshots
    walls: Walls | None


def _select_env(features: Features, settings: Settings) -> Env:
    """Return the values of settings that features declare, and no others."""
    declared = features.settings.items()
    return {name: text for name, one in declared if (text := one.text(settings.env))}


def _build_services(supplies: Supplies, ports: HostPorts) -> Services:
    """Build the services shared by all sessions, around the host that runs them. SettingsError."""
    settings, store, lists = supplies.settings, supplies.store, supplies.access
    servers = (secret for one in supplies.models.tools.mcp.servers for secret in one.secrets)
    vault = Vault(settings.home, (*settings.secrets, *servers))
    logs.hide_lent(vault.words)
    jobs = _build_jobs(supplies, ports.deliver, vault)
    agent = _build_agent(supplies, jobs, ports.deliver, vault)
    instructions = OperatorInstructions(settings.home)
    instructions.load(settings.instructions)
    linking, note = DirectoryLinking(store, supplies.trail.note), supplies.trail.note
    public = bool(settings.public_url)
    page_links = DirectoryPageLinks(lists, linking, store, note, supplies.base, public=public)
    return Services(
        store=store,
        adapters=supplies.adapters,
        agent=agent,
        access=lists,
        spawn=ports.spawn,
        alarm=ports.alarm,
        deliver=ports.deliver,
        owner=supplies.owner,
        signer=supplies.trail.signer,
        question_expires=settings.question_expires,
        question_reminder=settings.question_reminder,
        burst=settings.message_burst,
        version=VERSION,
        slots=Slots(settings.turns_at_once),
        pairing=DirectoryPairing(store, lists, ports.deliver, supplies.trail.note),
        linking=linking,
        page_links=page_links,
        hearing=supplies.transcriber,
        ledger=agent.ledger,
        vault=agent.vault,
        memory=agent.memory,
        jobs=jobs.ports,
        sandbox=supplies.sandbox,
        snapshots=supplies.snapshots,
        retention=supplies.retention,
        instructions=instructions,
        feature_env=supplies.feature_env,
        outage=Outage(supplies.adapters, lists, ports.spawn),
    )


def _build_jobs(supplies: Supplies, deliver: Accept, vault: Vault) -> JobWork:
    settings, store = supplies.settings, supplies.store
    deps = JobDeps(
        store=store,
        accept=deliver,
        folder=settings.home / WORKSPACES,
        platforms=frozenset(supplies.adapters) | {"web"},
        fits=find_missing_means(supplies.models),
        hide=vault.hide,
    )
    limited = replace(settings.jobs, spend=supplies.models.agent.limits.job)
    ports = make_job_ports(make_jobs(store), limited, deps)
    return JobWork(ports, deps, supplies.access, settings.home, supplies.adapters)


def _build_memory(
    supplies: Supplies, deliver: Accept, hides: Hides, provider: MemoryProvider | None
) -> Memories | None:
    """Build the memory, with `provider` as an additional one; None if it is off."""
    limits, store = supplies.models.memory, supplies.store
    removals = MemoryRemovals(store, provider, deliver) if provider is not None else None
    memories = Memories(store, limits, supplies.access.accounts, removals, hides)
    return memories if limits.enabled else None


def _build_agent(
    supplies: Supplies, jobs: JobWork, deliver: Accept, vault: Vault
) -> TurnkeeperAgent:
    """The agent, its limits and its memory. Where money is limited, each price must be known."""
    settings, models, store = supplies.settings, supplies.models, supplies.store
    ledger = Ledger(store, models.agent.limits)
    equipment = Equipment(
        jobs=jobs,
        memory=partial(_build_memory, supplies, deliver, vault.words),
        ledger=ledger if models.agent.limits.any else None,
        job_ledger=ledger,
        operator=OperatorRules(settings.home, list_tool_names()),
        past=supplies,
        vault=vault,
        sign_ins=SignIns(store, vault, supplies.base, public=bool(settings.public_url)),
        snapshots=supplies.snapshots,
        walls=supplies.walls,
        ask_all=settings.ask_all,
    )
    equipment.operator.load()
    folder, file_store = settings.home / WORKSPACES, FileStore(settings.outputs, vault.words)
    agent = TurnkeeperAgent(folder, models, supplies.sandbox, file_store, equipment)
    agent.check_prices()
    check_secrets(agent.vault)
    return agent


def make_pairing_alone(settings: Settings, store: Store, note: NoteAudit) -> DirectoryPairing:
    """Pairing while no gateway runs: its news wait in the store."""

    async def accept(inbounds: Sequence[Inbound]) -> None:
        await store.accept(inbounds)

    return DirectoryPairing(store, open_access(settings, store), accept, note)


def open_access(settings: Settings, directory: Directory) -> Access:
    """The lists of the settings, and who was paired. SettingsError."""
    check_commands(settings)
    return Access(settings.people, {}, settings.policy, directory.get)


async def open_store(settings: Settings) -> Store:
    """Redis where it is set, else the file in the data folder."""
    if lock.was_cut_off(settings.home):  # a command that reads settings stops it first
        raise StoreUnfit("a restore was cut off; give `turnkeeper restore FILE --force` again")
    await asyncio.to_thread(remove_leftovers, settings.home)
    if not settings.redis_url:
        return await SqliteStore.open(settings.home / STORE)
    from gateway.store.redis import RedisStore

    journals = settings.retention.periods.journals
    without_log = settings.redis_without_log
    return await RedisStore.open(settings.redis_url, without_log=without_log, journals=journals)


async def claim_name(
    store: Store, name: str, stack: AsyncExitStack
) -> Callable[[], Coroutine[None, None, None]]:
    """Claim the replica's name for this process, and return the function that keeps it.
    SettingsError. A store in a file has one process anyway."""
    if isinstance(store, SqliteStore):
        return keep_nothing
    from gateway.store.redis import RedisStore

    assert isinstance(store, RedisStore)
    presence = store.presence(name)
    if not await presence.claim():
        mend = "another running process has this name; give each replica a name of its own."
        raise REPLICA_ID.error(name, mend)
    stack.push_async_callback(presence.give_up)

    async def hold() -> None:
        await presence.hold()
        mend = "another process has taken this name while this one stood still; it ends."
        raise REPLICA_ID.error(name, mend)

    return hold


async def keep_nothing() -> None:
    """Do nothing: there is no name to keep."""


async def listen_for_hints(parts: Parts) -> None:
    """Wake conversations that other replicas leave to this one, where the store sends hints."""
    if parts.settings.redis_url:
        from gateway.store.redis import RedisStore

        if isinstance(store := parts.services.store, RedisStore):
            await store.hints(parts.host.wake, parts.host.look)


async def web_secret(directory: Directory) -> bytes:
    """Return the secret that signs sessions and sign-in links, shared by all replicas. A damaged
    one is replaced: people sign in again."""
    known = await directory.get(WEB_SECRET)
    if known is not None and len(known) < MIN_SECRET:
        log.error("web_secret_spoilt")
        await directory.put(WEB_SECRET, None, known or None)
        known = None
    if known is None:
        await directory.put(WEB_SECRET, (ambient.secret_id() * 2).encode(), b"")
        known = await directory.get(WEB_SECRET)
    return known or b""
