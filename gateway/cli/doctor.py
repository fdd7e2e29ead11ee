"""`turnkeeper doctor`: looks at everything that a gateway needs and says what is missing."""

import asyncio
from collections.abc import Callable

from agent_core.sandboxes.bwrap import detect
from gateway.errors import StoreFailed
from gateway.model_settings import read_models
from gateway.ops import control, lock
from gateway.ops.upkeep import StoreUpkeep
from gateway.settings import ConfigurationError, Settings
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
    except ConfigurationError as error:
        bad += 1
        say(f"wrong    models: {error}")
    bad += await _store(settings, say)
    sandbox = await detect()
    mark = "ok     " if sandbox.isolated else "missing"
    advice = "" if sandbox.isolated else " Install bubblewrap (and setpriv, as root)."
    say(f"{mark}  sandbox: {sandbox.name}. {sandbox.about}{advice}")
    for platform, listed in settings.people.items():
        if platform == "telegram" and settings.telegram and not (listed.admins or listed.allowed):
            say("note     telegram: nobody is allowed yet; strangers are shown a pairing code.")
    if not settings.bots:
        say("note     no bot's token is set (Telegram, Discord, Slack); only the page runs.")
    return 1 if bad else 0


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
    except (ConfigurationError, StoreFailed) as error:
        say(f"wrong    {kind}: {error}")
        return 1
    say(f"ok       {kind}: can be written")
    say(f"note     retention: {report}")
    return 0
