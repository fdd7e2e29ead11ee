"""`turnkeeper init`: asks for a model, a platform and who may talk, checks each by a real call, and
writes `.env`."""

import asyncio
import getpass
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import aiohttp

from agent_core.models.discovery import discover
from agent_core.models.provider_settings import KEYS, MODELS, URLS
from agent_core.settings import ModelSettings
from gateway.access.people import LISTS
from gateway.accounts import discord, slack, telegram
from gateway.cli.probes import Bot, Platforms, ProbeResult, has_fault, probe_models
from gateway.declaration import Env, SettingsError

Ask: TypeAlias = Callable[[str, bool], str]
"""Asks for a line; True: it is not shown while it is typed. Raises EOFError where nobody
answers."""
Say: TypeAlias = Callable[[str], None]
Asked: TypeAlias = tuple[dict[str, str], list[ProbeResult]]
"""What was chosen, and what its check found."""
AskPart: TypeAlias = Callable[[Env, Ask, Say], Awaitable[Asked]]
OK, FAILED = 0, 1
TRIES = 5
NONE = "none"
PROVIDERS = tuple(KEYS)
COMPATIBLE = "openai"
"""The provider that stands for other addresses that speak its protocol."""
PLATFORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "telegram": ((telegram.TOKEN.name, "Token (from @BotFather, /newbot)"),),
    "discord": ((discord.TOKEN.name, "Token (Developer Portal, Bot, Reset Token)"),),
    "slack": (
        (slack.TOKEN.name, "Bot token, xoxb-… (OAuth & Permissions)"),
        (slack.APP_TOKEN.name, "App token, xapp-… (Basic Information)"),
    ),
}
READERS: dict[str, Callable[[Env], Bot | None]] = {
    "telegram": telegram.read_telegram,
    "discord": discord.read_discord,
    "slack": slack.read_slack,
}
IDS = {
    "telegram": "numbers; @userinfobot tells yours",
    "discord": "numbers; Developer Mode, then right click: Copy User ID",
    "slack": "like U0123ABCD; profile, More, Copy member ID",
}


def set_up(env: Env, say: Say) -> int:
    """Ask at the terminal, and write `.env` in the working folder; the exit code."""
    try:
        return asyncio.run(prepare(Path.cwd(), env, _ask_terminal, say))
    except EOFError:
        print("\nNothing was written.", file=sys.stderr)
        return FAILED


async def prepare(folder: Path, env: Mapping[str, str], ask: Ask, say: Say) -> int:
    """Ask, check, and write `folder`/.env, in which other lines stay. Raises EOFError."""
    path = folder / ".env"
    chosen: dict[str, str] = {}
    say("1. A model")
    chosen |= await _choose(_ask_model, env, ask, say)
    say("2. A platform. The page on this machine is always there.")
    platform = _pick(ask, say, "Platform", (*PLATFORMS, NONE), NONE)
    if platform != NONE:
        chosen |= await _choose(_make_platform(platform), env, ask, say)
        say("3. Who may talk to it. Nobody listed: strangers are shown a code to be let in by.")
        chosen |= await _ask_people(platform, dict(env) | chosen, ask, say)
    if not chosen:
        say("Nothing was chosen, so nothing is written: the demo model and the page need nothing.")
        return OK
    await asyncio.to_thread(_write, path, chosen)
    say(f"Written: {path} ({', '.join(chosen)}). Start with: turnkeeper run")
    return OK


async def _choose(ask_part: AskPart, env: Env, ask: Ask, say: Say) -> dict[str, str]:
    """What was chosen and works; what does not is asked for again. {}: nothing."""
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


async def _ask_model(env: Env, ask: Ask, say: Say) -> Asked:
    local = await discover()
    near = (local.name,) if local is not None else ()
    kinds = (*near, *PROVIDERS, "other", NONE)
    kind = _pick(ask, say, "Provider", kinds, kinds[0])
    if kind == NONE:
        return {}, []
    if local is not None and kind == local.name:
        return await _probe(env, _name_models(local.base_url, NONE, local.tier_models.pro or ""))
    if kind == "other":
        url = ask("Address, such as http://127.0.0.1:8000/v1", False).strip()
        key = ask("API key (empty: none)", True).strip() or NONE
        return await _probe(env, _name_models(url, key, ask("Model", False).strip()))
    key = ask(f"API key of {kind}", True).strip()
    return await _probe(env, {KEYS[kind].name: key})


def _pick(ask: Ask, say: Say, what: str, kinds: tuple[str, ...], default: str) -> str:
    """One of `kinds`. Raises EOFError after too many tries."""
    for _ in range(TRIES):
        said = ask(f"{what}: {', '.join(kinds)} [{default}]", False).strip().lower() or default
        if said in kinds:
            return said
        say(f"There is no {said!r} here.")
    raise EOFError


def _name_models(url: str, key: str, model: str) -> dict[str, str]:
    tiers = {setting.name: f"{COMPATIBLE}/{model}" for setting in MODELS.values()}
    return {URLS[COMPATIBLE].name: url, KEYS[COMPATIBLE].name: key} | tiers


async def _probe(env: Env, chosen: dict[str, str]) -> Asked:
    settings = ModelSettings.read(dict(env) | chosen)
    return chosen, await probe_models(settings)


def _make_platform(platform: str) -> AskPart:
    """Make what asks for the tokens of `platform`, and tries them out."""

    async def ask_tokens(env: Env, ask: Ask, say: Say) -> Asked:
        chosen = {name: ask(what, True).strip() for name, what in PLATFORMS[platform]}
        async with aiohttp.ClientSession(trust_env=True) as session:
            found = await _probe_platform(Platforms(session), dict(env) | chosen, platform)
        return chosen, found

    return ask_tokens


async def _probe_platform(platforms: Platforms, env: Env, platform: str) -> list[ProbeResult]:
    bot, found = READERS[platform](env), [ProbeResult("wrong", platform, "a token is needed")]
    if bot is not None:
        found = await platforms.probe_bot(bot)
    return [*found, *platforms.check_clock()]


async def _ask_people(platform: str, env: Env, ask: Ask, say: Say) -> dict[str, str]:
    """The ids of who may talk, looked up; whoever is not known may be listed all the same."""
    chosen = {}
    lists = LISTS[platform]
    for setting, what in ((lists.admins, "Your own id"), (lists.allowed, "Ids of others")):
        ids = re.split(r"[,\s]+", ask(f"{what} ({IDS[platform]}; empty: none)", False).strip())
        if known := list(filter(None, ids)):
            chosen[setting.name] = ",".join(known)
    people = ",".join(chosen.values()).split(",") if chosen else []
    bot = READERS[platform](env)
    if bot is not None and people:
        async with aiohttp.ClientSession(trust_env=True) as session:
            for one in await Platforms(session).probe_people(bot, people):
                say(str(one))
    return chosen


def _write(path: Path, chosen: Mapping[str, str]) -> None:
    """Set the names in the file, in their places; its other lines stay. Only its owner reads it."""
    left, lines = dict(chosen), []
    text = path.read_text() if path.exists() else ""
    for line in text.splitlines():
        name = line.strip().removeprefix("export ").partition("=")[0].strip()
        lines.append(f"{name}={left.pop(name)}" if name in left else line)
    lines += [f"{name}={value}" for name, value in left.items()]
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(new, path)


def _ask_terminal(what: str, hidden: bool) -> str:
    if hidden and sys.stdin.isatty():
        return getpass.getpass(f"{what}: ")
    print(f"{what}: ", end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
