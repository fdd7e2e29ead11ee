"""`turnkeeper doctor`: looks at everything that a gateway needs and says what is missing."""

import asyncio
from collections.abc import Callable

from agent_core.sandboxes.detect import MissingTier, find_tier
from agent_core.sandboxes.docker.tier import EngineMissing, ImageMissing, inspect_docker
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.tier import TierUnusable
from gateway.declaration import SettingsError
from gateway.errors import StoreFailed
from gateway.model_settings import read_models
from gateway.ops import control, lock
from gateway.ops.upkeep import StoreUpkeep
from gateway.services.operator_instructions import OperatorInstructions
from gateway.services.operator_rules import OperatorRules
from gateway.settings import Settings
from gateway.wiring.assembly import open_store

Say = Callable[[str], None]
PROBE = "doctor"


def examine(settings: Settings, say: Say) -> int:
    """One line a part; 0 if a gateway can run with these settings, else 1."""
    return asyncio.run(_examine(settings, say))


async def _examine(settings: Settings, say: Say) -> int:
    bad = 0
    try:
        models = read_models(settings)
        named = "the demo model (no key is set)" if models.empty else "set"
        say(f"ok       models: {named}")
    except SettingsError as error:
        bad += 1
        say(f"wrong    models: {error}")
    bad += _check_rules(settings, say)
    bad += _check_instructions(settings, say)
    bad += await _store(settings, say)
    bad += await _sandbox(settings, say)
    for platform, listed in settings.people.items():
        if platform == "telegram" and settings.telegram and not (listed.admins or listed.allowed):
            say("note     telegram: nobody is allowed yet; strangers are shown a pairing code.")
    if not settings.bots:
        say("note     no bot's token is set (Telegram, Discord, Slack); only the page runs.")
    return 1 if bad else 0


def _check_rules(settings: Settings, say: Say) -> int:
    """The operator's rules, where there are some."""
    rules = OperatorRules(settings.home)
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
    try:
        OperatorInstructions(settings.home).load(settings.instructions)
    except SettingsError as error:
        say(f"wrong    instructions: {error}")
        return 1
    return 0


async def _sandbox(settings: Settings, say: Say) -> int:
    try:
        tier = await find_tier(settings.sandbox, settings.docker_host)
    except TierUnusable as error:
        say(f"wrong    sandbox: SANDBOX_PROVIDER={settings.sandbox} does not work here: {error}.")
        return 1
    sandbox = SandboxPool(tier)
    await sandbox.check()
    if sandbox.missing:
        mark, more = "missing", sandbox.missing
    elif not sandbox.isolated:
        mark, more = "note   ", "Install bubblewrap (and setpriv, as root), and use auto."
    elif sandbox.contains:
        known = f", but for {', '.join(sorted(sandbox.cannot))}" if sandbox.cannot else ""
        mark, more = "ok     ", f"Tried out: it contains what runs in it{known}."
    else:
        mark, more = "wrong  ", f"Tried out: within reach are {', '.join(sandbox.leaks)}."
    say(f"{mark}  sandbox: {sandbox.name}. {sandbox.about} {more}")
    if isinstance(tier, MissingTier):
        for name, fault in tier.faults.items():
            say(f"note     {name}: {fault}")
    elif tier.name != "docker":
        await _mention_docker(settings, say)
    return 0


async def _mention_docker(settings: Settings, say: Say) -> None:
    """Where an engine is there all the same, what it lacks."""
    try:
        await inspect_docker(settings.docker_host)
    except ImageMissing as error:
        say(f"note     docker: the engine answers; for sandboxes by it, {error}")
    except EngineMissing:
        pass


async def _store(settings: Settings, say: Say) -> int:
    kind = "redis" if settings.redis_url else "store"
    if not settings.redis_url and (settings.home / control.SOCKET).exists():
        asked = control.Question(command="retention")
        running = await asyncio.to_thread(control.ask, settings.home, asked)
        if running is not None:
            say("ok       store: in use by the running gateway")
            say(f"note     retention: {running.text}")
            return 0
    try:
        with lock.hold(settings.home):
            store = await open_store(settings)
            await store.put(PROBE, b"1")
            await store.put(PROBE, None)
            report = await StoreUpkeep(settings, store).report_retention()
            await store.close()
    except (SettingsError, StoreFailed) as error:
        say(f"wrong    {kind}: {error}")
        return 1
    say(f"ok       {kind}: can be written")
    say(f"note     retention: {report}")
    return 0
