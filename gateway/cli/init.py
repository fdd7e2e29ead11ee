"""`turnkeeper init`: asks for a model, a platform and who may talk, checks each by a real call, and
writes `.env`."""

import asyncio
import getpass
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import aiohttp

from agent_core.models.discovery import discover
from agent_core.models.provider_settings import (
    COMPATIBLE,
    CUSTOM,
    FALLBACKS,
    KEYS,
    LITE_PROVIDER,
    MODELS,
    PROVIDERS,
    URLS,
)
from agent_core.models.windows import ask_models, choose_talking
from agent_core.settings import BASE_URLS, TIERS, ModelSettings
from gateway.access.people import LISTS
from gateway.accounts import discord, slack, telegram
from gateway.cli.env_file import check_writable, write_settings
from gateway.cli.probes import (
    PERSON_IDS,
    Bot,
    Platforms,
    ProbeResult,
    has_fault,
    probe_models,
)
from gateway.declaration import Env, Setting, SettingsError
from gateway.settings import DISCOVERY, Settings

Ask: TypeAlias = Callable[[str, bool], str]
"""Asks for a line; True: it is not echoed. Raises EOFError if nobody answers."""
Say: TypeAlias = Callable[[str], None]
Asked: TypeAlias = tuple[dict[str, str], list[ProbeResult]]
"""The choices, and the result of their check."""
AskPart: TypeAlias = Callable[[Env, Ask, Say], Awaitable[Asked]]
OK, FAILED = 0, 1
UNREADABLE = "\ufffd"
"""The line of a terminal that sends another encoding than it says; nothing is that."""
TRIES = 5
ELSEWHERE = (
    "in the environment too, and that counts, not .env",
    "in the environment or in turnkeeper.toml, and stays so: remove it there",
)
"""Where a setting that is given, or emptied, in `.env` is set besides."""
PEOPLE = "3. Who may talk to it on {platform}. Nobody listed: strangers are shown a pairing code."
NONE, KEEP, OTHER = "none", "keep", "other"
SERVED_BY = "openai"
"""The provider that stands for other addresses that speak its protocol."""
PLATFORMS: dict[str, tuple[tuple[Setting[object], str], ...]] = {
    "telegram": ((telegram.TOKEN, "Token (from @BotFather, /newbot)"),),
    "discord": ((discord.TOKEN, "Token (Developer Portal, Bot, Reset Token)"),),
    "slack": (
        (slack.TOKEN, "Bot token, xoxb-… (OAuth & Permissions)"),
        (slack.APP_TOKEN, "App token, xapp-… (Basic Information)"),
    ),
}
READERS: dict[str, Callable[[Env], Bot | None]] = {
    "telegram": telegram.read_telegram,
    "discord": discord.read_discord,
    "slack": slack.read_slack,
}
CHOICES: tuple[Setting[object], ...] = (*MODELS.values(), *PROVIDERS.values(), LITE_PROVIDER)
"""Settings that say which provider or model answers."""
SERVES = PROVIDERS[TIERS[0]]
"""The one that the tiers follow that are not set."""


def ask_terminal(what: str, hidden: bool) -> str:
    """A line that a person types. Raises EOFError."""
    with allow_interrupt():
        if hidden and sys.stdin.isatty():
            try:
                return getpass.getpass(f"{what}: ")
            except UnicodeDecodeError:
                return UNREADABLE
        print(f"{what}: ", end="", flush=True)
        line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


@contextmanager
def allow_interrupt() -> Iterator[None]:
    """Ctrl-C ends what waits for a line: the loop's own handler only asks the loop, which waits
    for that line too. It does so also where a parent has it ignored, as shells do behind a "&"."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def set_up(read: Callable[[], Settings], say: Say, ask: Ask = ask_terminal) -> int:
    """Ask, and write `.env` in the working folder; the exit code. `read` gives the settings as
    they are then; it raises SettingsError."""
    folder = Path.cwd()
    try:
        chosen = asyncio.run(prepare(folder, read().env, ask, say))
    except (EOFError, KeyboardInterrupt):
        print("\nNothing was written.", file=sys.stderr)
        return FAILED
    if chosen:
        now = read().env
        for name in (name for name, value in chosen.items() if now.get(name, "") != value):
            say(f"note     {name} is set {ELSEWHERE[not chosen[name]]}.")
    return OK


async def prepare(folder: Path, env: Env, ask: Ask, say: Say) -> dict[str, str]:
    """Ask, check, and write the choices to `folder`/.env, where other lines stay. Raises
    EOFError, and OSError before any question if the file cannot be written."""
    path = folder / ".env"
    await asyncio.to_thread(check_writable, path)
    chosen: dict[str, str] = {}
    say("1. A model")
    chosen |= await _choose(_ask_model, env, ask, say)
    say("2. Platforms. The page on this machine is always there.")
    chosen |= await _ask_platforms(env, ask, say)
    chosen = dict(one for one in chosen.items() if one not in env.items())
    if not chosen:
        demo = "" if _has_model(env) else " Without a model a demo answers."
        say(f"Nothing is changed, so nothing is written.{demo}")
        return {}
    await asyncio.to_thread(write_settings, path, chosen)
    say(f"Written: {path} ({', '.join(chosen)}). Start in this folder with: turnkeeper run")
    return chosen


async def _choose(ask_part: AskPart, env: Env, ask: Ask, say: Say) -> dict[str, str]:
    """Return the choices that work, asking again for those that do not. {} for none."""
    for _ in range(TRIES):
        try:
            chosen, found = await ask_part(env, ask, say)
        except SettingsError as error:
            say(f"wrong    {error}")
            continue
        for one in found:
            say(str(one))
        if not has_fault(found):
            return chosen
    say("That did not work out; it is left out.")
    return {}


# ---- a model -----------------------------------------------------------------------------


async def _ask_model(env: Env, ask: Ask, say: Say) -> Asked:
    local = await discover() if DISCOVERY.read(env) else None
    near = (local.name,) if local is not None else ()
    last = KEEP if _has_model(env) else NONE
    kinds = (*near, *KEYS, OTHER, last)
    kind = _pick(ask, say, "Provider", kinds, last if last == KEEP else kinds[0])
    if kind == NONE:
        return {}, []
    if kind == KEEP:
        for one in await _probe(env, {}, say):
            say(str(one))
        return {}, []
    if local is not None and kind == local.name:
        known = await _list_models(local.base_url, NONE) or (local.tier_models.pro or "",)
        model = _pick_model(local.base_url, known, ask, say)
        chosen = _name_models(env, local.base_url, NONE, model)
    elif kind == OTHER:
        chosen = await _ask_address(env, ask, say)
    else:
        chosen = _name_provider(env, kind, _ask_key(env, kind, ask), _ask_url(env, kind, ask))
    return chosen, await _probe(env, chosen, say)


def _has_model(env: Env) -> bool:
    known = (*CHOICES, *KEYS.values(), COMPATIBLE, CUSTOM)
    return any(setting.text(env) for setting in known)


def _ask_key(env: Env, kind: str, ask: Ask) -> str:
    """Raises SettingsError."""
    return _ask_secret(env, KEYS[kind], f"API key of {kind}", ask)


def _ask_secret(env: Env, setting: Setting[object], what: str, ask: Ask) -> str:
    """Ask for a secret; an empty answer keeps the current one. Raises SettingsError."""
    known = setting.text(env)
    said = ask(f"{what} (empty: as it is set)" if known else what, True).strip() or known
    if not said:
        raise setting.error("", "it is needed.")
    return said


def _ask_url(env: Env, kind: str, ask: Ask) -> str:
    """Ask for the provider's address, only if another than its own is set. "" for its own."""
    known = URLS[kind].text(env)
    if not known or known == BASE_URLS[kind]:
        return known
    said = ask(f"Address of {kind} [{known}]; - for {BASE_URLS[kind]}", False).strip()
    return "" if said == "-" else said or known


def _name_provider(env: Env, kind: str, key: str, url: str) -> dict[str, str]:
    """Return the settings by which `kind` serves all tiers."""
    chosen = {KEYS[kind].name: key}
    if url != URLS[kind].text(env):
        chosen[URLS[kind].name] = url  # the listed models are those of the other address
    elif _serves(dict(env) | chosen, kind):
        return chosen
    chosen |= _clear_choices(env)
    return chosen if _serves(dict(env) | chosen, kind) else chosen | {SERVES.name: kind}


def _serves(env: Env, kind: str) -> bool:
    """Return True if every tier's model is one of `kind`."""
    settings = ModelSettings.read(env)
    try:
        chosen = [settings.choice(tier) for tier in TIERS]
    except SettingsError:
        return False
    return all(one is not None and one[0] == kind for one in chosen)


def _clear_choices(env: Env) -> dict[str, str]:
    return {setting.name: "" for setting in CHOICES if setting.text(env)}


async def _ask_address(env: Env, ask: Ask, say: Say) -> dict[str, str]:
    """An address that speaks OpenAI's protocol, and which of its models to take."""
    url = ask("Address, such as http://127.0.0.1:8000/v1", False).strip().rstrip("/")
    url = url if "://" in url else f"http://{url}"
    URLS[SERVED_BY].parse(url, URLS[SERVED_BY].kind)
    key = ask("API key (empty: none)", True).strip() or NONE
    known = await _list_models(url, key)
    if not known and not url.endswith("/v1"):
        known = await _list_models(f"{url}/v1", key)
        url = f"{url}/v1" if known else url
    if not known:
        say(f"note     {url}/models names no models; most addresses end in /v1.")
        return _name_models(env, url, key, ask("Model", False).strip())
    return _name_models(env, url, key, _pick_model(url, known, ask, say))


def _pick_model(url: str, known: Sequence[str], ask: Ask, say: Say) -> str:
    """Ask which of several models to take; the first is the default."""
    say(f"ok       {url} has: {', '.join(known[:20])}")
    said = ask(f"Model [{known[0]}]", False).strip() if len(known) > 1 else ""
    return said or known[0]


async def _list_models(url: str, key: str) -> tuple[str, ...]:
    """Return the models at an address that can hold a conversation; () if it lists none."""
    given = {URLS[SERVED_BY].name: url, KEYS[SERVED_BY].name: key}
    return choose_talking(await ask_models(ModelSettings.read(given).endpoint(SERVED_BY)))


def _name_models(env: Env, url: str, key: str, model: str) -> dict[str, str]:
    """Return the settings by which one model at an address serves all tiers."""
    if not model:
        raise MODELS[TIERS[0]].error("", "name a model.")
    tiers = {setting.name: f"{SERVED_BY}/{model}" for setting in MODELS.values()}
    return {URLS[SERVED_BY].name: url, KEYS[SERVED_BY].name: key} | _clear_choices(env) | tiers


async def _probe(env: Env, chosen: dict[str, str], say: Say) -> list[ProbeResult]:
    """Check that the chosen model answers itself, without its fallbacks."""
    say("Asking the model for a word …")
    settings = ModelSettings.read(dict(env) | chosen | {FALLBACKS.name: ""})
    return await probe_models(settings)


def _pick(ask: Ask, say: Say, what: str, kinds: tuple[str, ...], default: str) -> str:
    """Ask for one of `kinds`. Raises EOFError after too many attempts."""
    for _ in range(TRIES):
        said = ask(f"{what}: {', '.join(kinds)} [{default}]", False).strip().lower() or default
        if said in kinds:
            return said
        say(f"There is no {said!r} here.")
    raise EOFError


# ---- platforms and their people ----------------------------------------------------------


async def _ask_platforms(env: Env, ask: Ask, say: Say) -> dict[str, str]:
    """Ask for one platform after the other; those already set are checked and kept."""
    chosen: dict[str, str] = {}
    for platform in PLATFORMS:
        if (bot := _find_bot(platform, env, say)) is not None:
            found = await _probe_bot(bot)
            for one in found:
                say(str(one))
            how = "and does not work" if has_fault(found) else "and kept as it is"
            say(f"note     {platform} is set already {how}; name it to change that.")
    left = [*PLATFORMS]
    platform = _pick(ask, say, "Platform", (*left, NONE), NONE)
    while platform != NONE:
        left.remove(platform)
        chosen |= await _choose(_make_platform(platform), dict(env) | chosen, ask, say)
        if _find_bot(platform, dict(env) | chosen, say) is not None:
            say(PEOPLE.format(platform=platform.title()))
            chosen |= await _choose(_make_people(platform), dict(env) | chosen, ask, say)
        try:
            platform = _pick(ask, say, "Another platform", (*left, NONE), NONE) if left else NONE
        except EOFError:
            platform = NONE
    return chosen


def _find_bot(platform: str, env: Env, say: Say) -> Bot | None:
    """Return the platform's bot as set, and say what is wrong with it."""
    try:
        return READERS[platform](env)
    except SettingsError as error:
        say(f"wrong    {error}")
        return None


async def _probe_bot(bot: Bot) -> list[ProbeResult]:
    async with aiohttp.ClientSession(trust_env=True) as session:
        return await Platforms(session).probe_bot(bot)


def _make_platform(platform: str) -> AskPart:
    """Return a function that asks for the tokens of `platform` and checks them."""

    async def ask_tokens(env: Env, ask: Ask, say: Say) -> Asked:
        chosen = {
            setting.name: _ask_secret(env, setting, what, ask)
            for setting, what in PLATFORMS[platform]
        }
        bot = READERS[platform](dict(env) | chosen)
        async with aiohttp.ClientSession(trust_env=True) as session:
            platforms = Platforms(session)
            found = await platforms.probe_bot(bot) if bot is not None else []
            return chosen, [*found, *platforms.check_clock()]

    return ask_tokens


def _make_people(platform: str) -> AskPart:
    """Return a function that asks for the ids of allowed people and looks them up; unknown ones may
    be listed too."""

    async def ask_people(env: Env, ask: Ask, say: Say) -> Asked:
        chosen, hint = {}, PERSON_IDS[platform].hint
        lists = LISTS[platform]
        for setting, what in ((lists.admins, "Your own id"), (lists.allowed, "Ids of others")):
            empty = f"empty: {setting.text(env) or 'none'}"
            said = ask(f"{what} ({hint}; {empty})", False)
            if known := [one for one in re.split(r"[,\s]+", said) if one]:
                chosen[setting.name] = ",".join(known)
        people = ",".join(chosen.values()).split(",") if chosen else []
        bot = READERS[platform](env)
        if bot is None or not people:
            return chosen, []
        async with aiohttp.ClientSession(trust_env=True) as session:
            return chosen, await Platforms(session).probe_people(bot, people)

    return ask_people
