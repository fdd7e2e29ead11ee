"""`turnkeeper doctor`: checks everything that a gateway needs and says what is missing."""

import asyncio
import shutil
from collections.abc import Callable

import aiohttp

from agent_core.errors import ToolFailed
from agent_core.guardrails.models import find_packages, load_models
from agent_core.guardrails.settings import GuardrailSettings
from agent_core.mcp.connection import START
from agent_core.mcp.servers import Servers
from agent_core.memory.provider import MemoryProvider, find_provider
from agent_core.sandboxes.buckets.bucket import make_bucket
from agent_core.sandboxes.buckets.settings import read_bucket
from agent_core.sandboxes.cgroups.groups import ControlGroups, open_control_groups
from agent_core.sandboxes.detect import MissingTier, find_tier
from agent_core.sandboxes.docker.tier import (
    IMAGE,
    RECIPE,
    EngineMissing,
    ImageMissing,
    inspect_docker,
)
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.tier import TierUnusable, describe_leaks
from agent_core.tools.browser import chromium
from agent_core.tools.browser.walls import choose_walls
from agent_core.tools.tool_settings import PREVIEW_HOST, PREVIEW_PORT
from gateway.cli.probes import (
    Platforms,
    ProbeResult,
    find_unused_addresses,
    has_fault,
    probe_models,
)
from gateway.declaration import SettingsError
from gateway.errors import StoreFailed
from gateway.model_settings import read_models
from gateway.ops import control, lock
from gateway.ops.http import listen
from gateway.ops.store_damage import find_damage
from gateway.ops.store_identity import REPLACED, is_replaced
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.services.operator_instructions import OperatorInstructions
from gateway.services.operator_rules import OperatorRules
from gateway.settings import Settings, find_odd_names
from gateway.wiring.assembly import STORE, open_store
from gateway.wiring.closed_tools import list_tool_names
from gateway.wiring.models_now import find_models
from gateway.wiring.start_checks import find_faults

Say = Callable[[str], None]
PROBE = "doctor"
MEND_STORE = "Stop the gateway, and put a backup in place: turnkeeper restore FILE"
HOLDERS = {
    "kernel": "ok       limits: the kernel enforces those of memory and processes, by control "
    "groups.",
    "watch": "note     limits: a sandbox is watched four times a second; this process may make no "
    "control groups, by which the kernel would enforce them. In a systemd unit, Delegate=yes lets "
    "it.",
}
"""Sentences about the holder of a sandbox's limits; none for the sandbox itself."""
LITTLE = 2**30
"""Bytes of a disk that are few."""


def examine(settings: Settings, say: Say) -> int:
    """Print one line for each part. Return 0 if a gateway can run with these settings, otherwise
    1."""
    return asyncio.run(_examine(settings, say))


async def _examine(settings: Settings, say: Say) -> int:
    bad = 0
    try:
        models = await find_models(settings)
        found = [*await probe_models(models), *find_unused_addresses(models)]
        faults = await asyncio.to_thread(find_faults, settings, models)
        found += (ProbeResult("wrong", "start", one) for one in faults)
    except SettingsError as error:
        found = [ProbeResult("wrong", "models", str(error))]
    found += await _probe_platforms(settings)
    found += await asyncio.to_thread(_check_place, settings)
    for one in found:
        say(str(one))
    bad += has_fault(found)
    bad += _check_rules(settings, say)
    bad += _check_instructions(settings, say)
    bad += _check_guardrails(settings, say)
    bad += await _check_servers(settings, say)
    bad += await _check_memory(settings, say)
    bad += await _store(settings, say)
    if settings.redis_url and not settings.audit_key:
        say("note     audit: replicas on other machines need the same AUDIT_KEY, and none is set.")
    bad += await _sandbox(settings, say)
    bad += await _check_bucket(settings, say)
    for name, nearest in find_odd_names(settings.env, settings.known).items():
        say(f"note     {name} is set and is no setting; did you mean {nearest}?")
    for platform, listed in settings.people.items():
        if platform == "telegram" and settings.telegram and not (listed.admins or listed.allowed):
            say("note     telegram: nobody is allowed yet; strangers are shown a pairing code.")
    for platform, why in settings.find_undecided().items():
        say(f"note     approvals: on {platform} nobody could decide by APPROVERS: {why}.")
    if not settings.bots:
        say("note     no bot's token is set (Telegram, Discord, Slack); only the page runs.")
    return 1 if bad else 0


async def _probe_platforms(settings: Settings) -> list[ProbeResult]:
    """Check each bot by its token, its allowed people, and the clock by the platforms' answers."""
    async with aiohttp.ClientSession(trust_env=True) as session:
        platforms = Platforms(session)
        found: list[ProbeResult] = []
        bots = {"telegram": settings.telegram, "discord": settings.discord, "slack": settings.slack}
        for name, bot in bots.items():
            if bot is None:
                continue
            token = await platforms.probe_bot(bot)
            found += token
            if not has_fault(token):
                listed = settings.people[name]
                ids = listed.allowed | listed.admins | listed.viewers
                found += await platforms.probe_people(bot, ids)
        return [*found, *platforms.check_clock()]


def _check_place(settings: Settings) -> list[ProbeResult]:
    """The page's port, and the disk under the data folder."""
    found = []
    if (settings.home / control.SOCKET).exists() and control.ask(
        settings.home, control.ControlRequest(command="status")
    ):
        found.append(ProbeResult("ok", "page", "in use by the running gateway"))
    else:
        try:
            with listen(settings.host, settings.port):
                found.append(ProbeResult("ok", "page", f"{settings.host}:{settings.port} is free"))
        except SettingsError as error:
            found.append(ProbeResult("wrong", "page", str(error)))
        found += _check_previews(settings)
    home = next(one for one in (settings.home, *settings.home.resolve().parents) if one.exists())
    free = shutil.disk_usage(home).free
    if free < LITTLE:
        text = f"only {free / 2**20:,.0f} MB are free where {settings.home} lies"
        found.append(ProbeResult("note", "disk", text))
    return found


def _check_previews(settings: Settings) -> list[ProbeResult]:
    """The port for previews, if one is chosen. A gateway runs without it, and says so to people."""
    try:
        if port := PREVIEW_PORT.read(settings.env):
            listen(PREVIEW_HOST.read(settings.env), port, PREVIEW_PORT).close()
    except SettingsError as error:
        return [ProbeResult("note", "previews", str(error))]
    return []


def _check_rules(settings: Settings, say: Say) -> int:
    """The operator's rules, where there are some."""
    rules = OperatorRules(settings.home, list_tool_names())
    try:
        rules.load()
    except SettingsError as error:
        say(f"wrong    policy: {error}")
        return 1
    if rules.rules:
        say(f"ok       policy: {len(rules.rules)} rules of yours")
    return 0


def _check_instructions(settings: Settings, say: Say) -> int:
    """The operator's instructions in the data folder, where there are some."""
    instructions = OperatorInstructions(settings.home)
    try:
        instructions.load(settings.instructions)
    except SettingsError as error:
        say(f"wrong    instructions: {error}")
        return 1
    for unused in instructions.find_unused():
        say(f"note     instructions: {unused}")
    return 0


def _check_guardrails(settings: Settings, say: Say) -> int:
    """Check which scanners are active, and which are left out because their models are missing."""
    try:
        guardrails = GuardrailSettings.read(settings.env)
        load_models(guardrails)
    except SettingsError as error:
        say(f"wrong    guardrails: {error}")
        return 1
    if not (guardrails.input or guardrails.output or guardrails.tool):
        say("note     guardrails: switched off.")
        return 0
    named = (
        f"{name} {'found' if there else 'not installed'}" for name, there in find_packages().items()
    )
    say(f"ok       guardrails: rules; {', '.join(named)}")
    return 0


async def _check_servers(settings: Settings, say: Say) -> int:
    """Check that each MCP server can be reached and that its lists can be used."""
    try:
        set_up = read_models(settings).tools.mcp.servers
    except SettingsError:
        return 0  # reported already
    bad = 0
    async with Servers(set_up) as servers:
        await servers.meet(START)
        for one in await servers.describe():
            if one.asks_sign_in:
                say(f"note     mcp: {one.name}: people sign in there; it was not tried")
            elif not one.there:
                say(f"wrong    mcp: {one.name}: {one.why or 'it does not answer'}")
                bad += 1
            else:
                count = len(one.tools)
                say(f"ok       mcp: {one.name}: {count} tool{'s' if count != 1 else ''}")
                for what, why in one.left_out:
                    say(f"note     mcp: {one.name}: left out {what}: {why}")
    return bad


async def _check_memory(settings: Settings, say: Say) -> int:
    """Check the additional memory, if there is one, by a look-up."""
    try:
        models = read_models(settings)
    except SettingsError:
        return 0  # reported already
    wanted = models.memory.provider
    servers = models.tools.mcp.servers
    running = Servers(one for one in servers if wanted is not None and one.name == wanted.server)
    try:
        known = {one.name: bool(one.auth) for one in servers}
        provider = find_provider(models.memory, known, running.ask_tool)
    except SettingsError as error:
        say(f"wrong    memory: {error}")
        return 1
    if provider is None:
        return 0
    async with running:
        fault = await _probe_memory(provider)
    say(f"wrong    memory: {fault}" if fault else f"ok       memory: {provider.name} answers")
    return int(bool(fault))


async def _probe_memory(provider: MemoryProvider) -> str:
    """Return the reason why it cannot be used, "" if it can."""
    try:
        await provider.recall(PROBE, PROBE)
    except ToolFailed as error:
        return str(error)
    return ""


async def _sandbox(settings: Settings, say: Say) -> int:
    groups = await asyncio.to_thread(open_control_groups)
    try:
        return await _try_sandbox(settings, groups, say)
    finally:
        await asyncio.to_thread(groups.close)


async def _try_sandbox(settings: Settings, groups: ControlGroups, say: Say) -> int:
    try:
        tier = await find_tier(settings.sandbox, settings.docker_host, settings.e2b, groups)
    except TierUnusable as error:
        say(f"wrong    sandbox: SANDBOX_PROVIDER={settings.sandbox} does not work here: {error}.")
        return 1
    walls = await choose_walls(tier, settings.sandbox)
    sandbox = SandboxPool(tier, lasts=False, encloses=walls.name if walls is not None else "")
    await sandbox.check()
    if sandbox.missing:
        mark, more = "missing", sandbox.missing
    elif not sandbox.isolated:
        mark, more = "note   ", "Install bubblewrap (and setpriv, as root), and use auto."
    elif sandbox.contains:
        known = f", but for {describe_leaks(sandbox.cannot)}" if sandbox.cannot else ""
        mark, more = "ok     ", f"Tried out: it contains what runs in it{known}."
    else:
        mark, more = "wrong  ", f"Tried out: within reach are {describe_leaks(sandbox.leaks)}."
    say(f"{mark}  sandbox: {sandbox.name}. {sandbox.about} {more}")
    if (holder := HOLDERS.get(sandbox.limit_holder)) is not None:
        say(holder)
    _check_browser(sandbox, say)
    if isinstance(tier, MissingTier):
        for name, fault in tier.faults.items():
            say(f"note     {name}: {fault}")
    elif tier.name not in ("docker", "e2b"):
        await _mention_docker(settings, say)
    return 0


def _check_browser(sandbox: SandboxPool, say: Say) -> None:
    """Say where the browser runs, if there is one."""
    if missing := chromium.find_missing(sandbox.encloses):
        say(f"note     browser: {missing}")
    elif sandbox.encloses == "docker":
        say("ok       browser: in a container of its own, by Docker, with the image's Chromium.")
    elif sandbox.encloses:
        say("ok       browser: in a sandbox of its own, by bubblewrap.")
    else:
        say(
            f"note     browser: on this machine, outside of the sandbox ({sandbox.name}). Where "
            "bubblewrap works and SANDBOX_PROVIDER isolates, it has a sandbox of its own."
        )
    if sandbox.name == "docker" and sandbox.encloses != "docker":
        say(
            f"note     browser: the image {IMAGE} has no Chromium, else the browser would run in a "
            f"container; build it anew: docker build -t {IMAGE} {RECIPE}"
        )


async def _check_bucket(settings: Settings, say: Say) -> int:
    """Check that the bucket for snapshots stores and deletes objects."""
    access = read_bucket(settings.env)
    try:
        bucket = make_bucket(access)
        if bucket is None:
            return 0
        await asyncio.to_thread(bucket.probe)
    except (SettingsError, OSError) as error:
        say(f"wrong    snapshots: {access.url}: {error}")
        return 1
    say(f"ok       snapshots: {access.url} takes and gives")
    return 0


async def _mention_docker(settings: Settings, say: Say) -> None:
    """Say what Docker lacks, where an engine is there but not used."""
    try:
        await inspect_docker(settings.docker_host)
    except ImageMissing as error:
        say(f"note     docker: the engine answers; for sandboxes by it, {error}")
    except EngineMissing:
        pass


async def _store(settings: Settings, say: Say) -> int:
    kind = "redis" if settings.redis_url else "store"
    file = settings.home / STORE
    if not settings.redis_url and (damage := await asyncio.to_thread(find_damage, file)):
        say(f"wrong    store: {file} is damaged: {' '.join(damage.split())}. {MEND_STORE}")
        return 1
    if (settings.home / control.SOCKET).exists():
        asked = control.ControlRequest(command="retention")
        running = await asyncio.to_thread(control.ask, settings.home, asked)
        if running is not None and not running.ok:
            say(f"wrong    {kind}: in use by the running gateway. {running.text}")
            return 1
        if running is not None:
            say(f"ok       {kind}: in use by the running gateway")
            say(f"note     retention: {running.text}")
            return 0
    try:
        with lock.hold(settings.home):
            store = await open_store(settings)
            await control.probe_store(store)
            replaced = await is_replaced(settings.home, store)
            report = await StoreUpkeep(
                settings, store, make_trail(settings, store)
            ).report_retention()
            await store.close()
    except (SettingsError, StoreFailed) as error:
        say(f"wrong    {kind}: {error}")
        return 1
    if replaced:
        say(f"wrong    {kind}: {REPLACED}.")
        return 1
    say(f"ok       {kind}: can be written")
    say(f"note     retention: {report}")
    return 0
