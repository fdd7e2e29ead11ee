"""One real call to each configured service, for `doctor` and `init`: models, bots, and their
people."""

import asyncio
import email.utils
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import aiohttp

from agent_core import ambient
from agent_core.context.limits import SMALL_WINDOW
from agent_core.errors import ModelFailed
from agent_core.messages import user
from agent_core.models.endpoint import Endpoint
from agent_core.models.port import ModelRequest
from agent_core.models.provider_settings import KEYS, MODELS, URLS
from agent_core.models.streamed_http import read_json
from agent_core.models.tiers import Models
from agent_core.models.windows import (
    ask_models,
    choose_talking,
    find_nearest,
    find_root,
    has_model,
    may_be_ollama,
    speaks_ollama,
)
from agent_core.settings import BASE_URLS, TIERS, ModelSettings
from gateway.accounts import discord, slack, telegram
from gateway.accounts.discord import Discord
from gateway.accounts.slack import Slack
from gateway.accounts.telegram import Telegram
from gateway.declaration import Setting, SettingsError, hide_passwords

Json: TypeAlias = dict[str, object]
Bot: TypeAlias = Telegram | Discord | Slack
LIMIT = 15.0
"""Seconds for one call to a platform."""
MODEL_LIMIT = 60.0
"""Seconds for one call to a model."""
MAX_PEOPLE = 20
"""Ids that are looked up on one platform."""
MAX_SKEW = 60.0
"""Seconds that this machine's clock may differ from a platform's."""
MAX_BYTES = 1_000_000
MAX_NAMED = 5
"""Models that are named where another one is missing."""


class PersonId(NamedTuple):
    """The shape of people's ids on a platform, and where a person finds their own."""

    form: re.Pattern[str]
    hint: str


PERSON_IDS = {
    "telegram": PersonId(re.compile(r"[0-9]+"), "numbers; @userinfobot tells yours"),
    "discord": PersonId(
        re.compile(r"@?[0-9]+"), "numbers; Developer Mode, then right click: Copy User ID"
    ),
    "slack": PersonId(
        re.compile(r"@?[A-Z][A-Z0-9]+"), "like U0123ABCD; profile, More, Copy member ID"
    ),
}

ADDRESSES: dict[str, Setting[str]] = {
    "telegram": telegram.API_BASE_URL,
    "discord": discord.API_BASE_URL,
    "slack": slack.API_BASE_URL,
}


class ProbeResult(NamedTuple):
    """The result of a check. `wrong`: it cannot work this way."""

    mark: Literal["ok", "note", "wrong"]
    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.mark:<8} {self.about}: {self.text}"


def has_fault(findings: Iterable[ProbeResult]) -> bool:
    """Return True if any check failed."""
    return any(one.mark == "wrong" for one in findings)


async def probe_models(settings: ModelSettings) -> list[ProbeResult]:
    """Ask each model of the tiers for a word, and its server for its window."""
    if settings.empty:
        return [ProbeResult("ok", "models", "the demo model (no key is set)")]
    models = Models(settings)
    try:
        models.check()
        await models.learn_windows()
        named: dict[str, list[str]] = {}
        for tier in TIERS:
            named.setdefault(models.describe(tier), []).append(tier)
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(_probe_model(settings, models, one)) for one in named.values()
            ]
        found = [one.result() for one in asked]
        return [*found, *_check_windows(models, settings, named)]
    except SettingsError as error:
        return [ProbeResult("wrong", "models", str(error))]
    finally:
        await models.close()


async def _explain_failure(
    settings: ModelSettings, name: str, tiers: Iterable[str], error: Exception
) -> str:
    """Explain a failure with its mend: a wrong address, or a model that does not exist."""
    if not isinstance(error, ModelFailed):
        return ""
    provider, _, model = name.partition("/")
    endpoint = settings.endpoint(provider)
    moved = endpoint.base_url != BASE_URLS.get(provider)
    if error.fault == "unreachable" or (error.fault == "overloaded" and moved):
        return f" It is asked at {_name_address(provider, endpoint.base_url)}."
    if error.fault not in ("rejected", "missing") or endpoint.api_mode == "generate_content":
        return ""
    listed = await ask_models(endpoint)
    if not listed:
        return await _explain_no_list(endpoint)
    if has_model(listed, model):
        return ""
    known = choose_talking(listed)
    near = find_nearest(name, [f"{provider}/{one}" for one in known])
    said = f" It lists no model {model}" + ("" if near or not known else f", but {_list(known)}")
    if unset := [
        MODELS[tier].name for tier in TIERS if tier in tiers and tier not in settings.tiers
    ]:
        return f"{said}. {' and '.join(unset)} is not set: name a model that is there in it."
    said += f"; did you mean {near}?" if near else "."
    fetch = await speaks_ollama(endpoint)
    return f"{said} To have Ollama fetch it: ollama pull {model}" if fetch else said


def _list(names: Sequence[str]) -> str:
    more = " …" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


async def _explain_no_list(endpoint: Endpoint) -> str:
    said = f" No models are listed at {_name_address(endpoint.provider, endpoint.base_url)}; "
    below = replace(endpoint, base_url=f"{find_root(endpoint)}/v1")
    if below.base_url != endpoint.base_url and await ask_models(below):
        return f"{said}they are at {hide_passwords(below.base_url)}."
    return f"{said}is that its address?"


def find_unused_addresses(settings: ModelSettings) -> list[ProbeResult]:
    """Addresses of models that are set, and not used for want of a key."""
    return [
        ProbeResult(
            "note",
            "models",
            f"{_name_address(name, url)} is not used, as {KEYS[name].name} is not set; for a "
            f"server that wants no key, write {KEYS[name].name}=none.",
        )
        for name, url in settings.base_urls.items()
        if url != BASE_URLS[name] and name not in settings.keys
    ]


def _name_address(provider: str, url: str) -> str:
    """The address, and the setting that holds it where it is one."""
    shown = hide_passwords(url)
    return f"{URLS[provider].name}={shown}" if provider in URLS else shown


async def _probe_model(settings: ModelSettings, models: Models, tiers: list[str]) -> ProbeResult:
    name, serves = models.describe(tiers[0]), ", ".join(tiers).upper()
    try:
        model, known_as = await asyncio.to_thread(models.pick, tiers[0])
        request = ModelRequest(
            model=known_as, system="", messages=(user("Answer: OK"),), max_tokens=256, retries=0
        )
        async with asyncio.timeout(MODEL_LIMIT):
            reply = await model.complete(request, lambda delta: None)
    except TimeoutError:
        return ProbeResult(
            "wrong", "models", f"{name} ({serves}) gave no answer in {MODEL_LIMIT:g} s"
        )
    except (ModelFailed, SettingsError) as error:
        more = await _explain_failure(settings, name, tiers, error)
        said = str(error) if not more or str(error).endswith((".", "!", "?")) else f"{error}."
        return ProbeResult("wrong", "models", f"{name} ({serves}): {said}{more}")
    if reply.instead_of:
        text = f"{name} ({serves}) gives no answer; {reply.provider}/{reply.model} stands in for it"
        return ProbeResult("note", "models", text)
    return ProbeResult("ok", "models", f"{name} ({serves}) answers")


def _check_windows(
    models: Models, settings: ModelSettings, named: Iterable[str]
) -> list[ProbeResult]:
    found = []
    for name in named:
        provider, _, model = name.partition("/")
        held = models.catalog.window(provider, model)
        if held > SMALL_WINDOW:
            continue
        mend = "requests are kept short for it, and conversations summarised early"
        if models.catalog.find_trained(provider, model) > held:
            asked = may_be_ollama(settings.endpoint(provider))
            more = "set OLLAMA_NUM_CTX" if asked else "start Ollama with OLLAMA_CONTEXT_LENGTH"
            mend += f"; {more}=16384 for more"
        found.append(ProbeResult("note", "models", f"{name} holds {held:,} tokens: {mend}"))
    return found


class _Answer(NamedTuple):
    """A platform's answer. `status` 0: none."""

    status: int
    body: Json


class Platforms:
    """Calls to the platforms' APIs. Notes how far this machine's clock is off."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._skews: list[float] = []

    def check_clock(self) -> list[ProbeResult]:
        """Compare the clock with the platforms' answers so far."""
        if not self._skews:
            return []
        off = min(self._skews, key=abs)
        if abs(off) <= MAX_SKEW:
            return [ProbeResult("ok", "clock", "as the platforms' clocks")]
        how = "behind" if off > 0 else "ahead"
        return [
            ProbeResult(
                "wrong",
                "clock",
                f"{abs(off):.0f} s {how}: jobs would run at wrong times; set it by the network "
                "(on most Linux: timedatectl set-ntp true)",
            )
        ]

    async def probe_bot(self, bot: Bot) -> list[ProbeResult]:
        """Check that the platform accepts a bot's tokens."""
        match bot:
            case Telegram():
                return await self.probe_telegram(bot)
            case Discord():
                return await self.probe_discord(bot)
            case Slack():
                return await self.probe_slack(bot)

    async def probe_telegram(self, bot: Telegram) -> list[ProbeResult]:
        """The token, and the webhook."""
        me = await self._ask("GET", f"{bot.api_base_url}/bot{bot.token}/getMe")
        if me.status != 200 or not me.body:
            return [_describe_refusal(bot, me, telegram.TOKEN.name, "@BotFather")]
        found = [
            ProbeResult("ok", "telegram", f"@{_as_object(me.body.get('result')).get('username')}")
        ]
        info = await self._ask("GET", f"{bot.api_base_url}/bot{bot.token}/getWebhookInfo")
        hook = _as_object(info.body.get("result"))
        url, failed = str(hook.get("url") or ""), hook.get("last_error_message")
        if url and url != bot.webhook_url:
            place = url.partition("?")[0]
            more = "Another program may use this bot; the next start takes it over."
            found.append(ProbeResult("note", "telegram", f"a webhook is set at {place}. {more}"))
        elif bot.webhook_url and failed:
            text = f"Telegram could not deliver to TELEGRAM_WEBHOOK_URL: {failed}"
            found.append(ProbeResult("wrong", "telegram", text))
        return found

    async def probe_discord(self, bot: Discord) -> list[ProbeResult]:
        """The token."""
        me = await self._ask("GET", f"{bot.api_base_url}/users/@me", _bot(bot))
        if me.status != 200 or not me.body:
            return [_describe_refusal(bot, me, discord.TOKEN.name, "the Developer Portal, Bot")]
        return [ProbeResult("ok", "discord", f"@{me.body.get('username')}")]

    async def probe_slack(self, app: Slack) -> list[ProbeResult]:
        """The bot's token, and the app's."""
        me = await self._ask("POST", f"{app.api_base_url}auth.test", _bearer(app.token))
        if not me.body.get("ok"):
            where = "api.slack.com/apps, OAuth & Permissions"
            return [_describe_refusal(app, me, slack.TOKEN.name, where)]
        found = [ProbeResult("ok", "slack", f"@{me.body.get('user')} in {me.body.get('team')}")]
        if app.app_token:
            url = f"{app.api_base_url}apps.connections.open"
            opened = await self._ask("POST", url, _bearer(app.app_token))
            if not opened.body.get("ok"):
                where = "api.slack.com/apps, Basic Information"
                found.append(_describe_refusal(app, opened, slack.APP_TOKEN.name, where))
        return found

    async def probe_people(self, bot: Bot, ids: Iterable[str]) -> list[ProbeResult]:
        """Look up the people whose ids may use a bot."""
        name = _name_platform(bot)
        form, hint = PERSON_IDS[name]
        people = sorted(one for one in ids if one != "*")
        odd = [one for one in people if not form.fullmatch(one)]
        known = [one for one in people if one not in odd and not one.startswith("@")]
        found = [await self._find_person(bot, one) for one in known[:MAX_PEOPLE]]
        return found + [ProbeResult("wrong", name, f"{one} is no id ({hint})") for one in odd]

    async def _find_person(self, bot: Telegram | Discord | Slack, person: str) -> ProbeResult:
        match bot:
            case Telegram():
                url = f"{bot.api_base_url}/bot{bot.token}/getChat"
                got = await self._ask("POST", url, form={"chat_id": person})
                about, names = _as_object(got.body.get("result")), ("first_name", "username")
                kind, missing = "telegram", "has not written to the bot yet, or is no id"
            case Discord():
                got = await self._ask("GET", f"{bot.api_base_url}/users/{person}", _bot(bot))
                about, names = got.body, ("global_name", "username")
                kind, missing = "discord", "is no id of a person"
            case Slack():
                url = f"{bot.api_base_url}users.info"
                got = await self._ask("POST", url, _bearer(bot.token), {"user": person})
                about, names = _as_object(got.body.get("user")), ("real_name", "name")
                kind, missing = "slack", "is no id of a person of this workspace"
        name = next((str(about[one]) for one in names if about.get(one)), "")
        if got.status == 200 and about:
            return ProbeResult("ok", kind, f"{person} is {name}" if name else f"{person} is known")
        return ProbeResult("note", kind, f"{person} {missing}")

    async def _ask(
        self,
        method: str,
        url: str,
        headers: dict[str, str] | None = None,
        form: dict[str, str] | None = None,
    ) -> _Answer:
        timeout = aiohttp.ClientTimeout(total=LIMIT)
        try:
            async with self._session.request(
                method, url, headers=headers, data=form, timeout=timeout, allow_redirects=False
            ) as answer:
                self._note_clock(answer.headers.get("Date", ""))
                return _Answer(answer.status, _as_object(await read_json(answer, MAX_BYTES)))
        except aiohttp.ClientPayloadError:
            return _Answer(answer.status, {})
        except (aiohttp.ClientError, TimeoutError, OSError):
            return _Answer(0, {})

    def _note_clock(self, date: str) -> None:
        try:
            there = email.utils.parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return
        self._skews.append(there - ambient.now())


def _describe_refusal(bot: Bot, answer: _Answer, setting: str, where: str) -> ProbeResult:
    platform = _name_platform(bot)
    place = f"{ADDRESSES[platform].name}={hide_passwords(bot.api_base_url)}"
    if not answer.status:
        text = f"cannot be reached at {place}: check it, the network, and the proxy if there is one"
    elif not answer.body and answer.status < 500:
        text = f"is not what answers at {place} ({answer.status}): check it, and the proxy"
    elif answer.status in (200, 401, 403, 404):
        why = str(answer.body.get("error") or answer.status)
        text = f"refuses {setting} ({why}): copy it again from {where}"
    else:
        text = f"answered {answer.status}: try again later"
    return ProbeResult("wrong", platform, text)


def _name_platform(bot: Bot) -> str:
    match bot:
        case Telegram():
            return "telegram"
        case Discord():
            return "discord"
        case Slack():
            return "slack"


def _bot(bot: Discord) -> dict[str, str]:
    return {"Authorization": f"Bot {bot.token}"}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _as_object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
