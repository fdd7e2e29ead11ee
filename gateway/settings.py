"""Every setting of the gateway: read once, checked, with a mend for what cannot work.

Owns the sources and their strength (environment, `.env`, `turnkeeper.toml` in the working folder,
then in the data folder). With `agent_core.settings` the only reader of the environment. Imports
little: the first poll waits for it.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, cast, get_args
from urllib.parse import urlsplit

from agent_core.config.switch import read_switch
from gateway.access.policy import Policy, read_policy
from gateway.accounts.discord import Discord, read_discord
from gateway.accounts.slack import Slack, read_slack
from gateway.known import PLATFORMS, SETTING_NAMES
from gateway.ports import SettingReader
from gateway.services.jobs.settings import JobSettings, read_jobs
from gateway.store.removal.periods import RetentionSettings, read_retention

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
Sandbox = Literal["auto", "bwrap", "unsafe-subprocess"]
Env: TypeAlias = Mapping[str, str]
T = TypeVar("T")

VERSION = "0.2.0"
FILE = "turnkeeper.toml"
QUESTION_EXPIRES = 7 * 86_400.0
QUESTION_REMINDER = 4 * 3_600.0
TURNS_AT_ONCE = 100
LOOPBACK = ("127.0.0.1", "localhost", "::1")
WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
REPLICA = re.compile(r"[A-Za-z0-9._-]{1,64}")
TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]+")
SECRET = re.compile(r"TOKEN$|SECRET$|_API_KEY$|PROVIDERS$")


class ConfigurationError(Exception):
    """A setting cannot work; the text names it, its value (never a secret's) and the mend."""

    def __init__(self, setting: str, value: str, mend: str) -> None:
        super().__init__(f"{setting}={value}: {mend}" if value else f"{setting}: {mend}")
        self.setting = setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Telegram:
    """One bot. With `webhook_url` it receives by webhook, else by long poll."""

    token: str = field(repr=False)
    api_base_url: str = "https://api.telegram.org"
    webhook_url: str = ""
    webhook_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformPeople:
    """A platform's people: ids, `*` for everybody; its groups: none means all."""

    allowed: frozenset[str]
    admins: frozenset[str]
    viewers: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set, checked. `question_*` in seconds, 0 = never. `later`: settings of
    platforms that this version lacks. `secrets`: values that no log may show."""

    home: Path
    host: str
    port: int
    token: str = field(repr=False)
    web_names: tuple[str, ...]
    telegram: Telegram | None
    discord: Discord | None
    slack: Slack | None
    people: dict[str, PlatformPeople]
    redis_url: str = field(repr=False)
    redis_without_log: bool
    sandbox: Sandbox
    replica: str
    turns_at_once: int
    plugins: tuple[str, ...]
    question_expires: float
    question_reminder: float
    policy: Policy
    jobs: JobSettings
    retention: RetentionSettings
    ask_all: bool
    discovery: bool
    log_level: LogLevel
    log_format: LogFormat
    secrets: tuple[str, ...] = field(repr=False)
    env: Env = field(repr=False)

    @classmethod
    def read(cls, env: Env | None = None, folder: Path | None = None) -> "Settings":
        """The settings of this process; raises SettingsError. `folder`: the working folder."""
        return _read(_merge_env(os.environ if env is None else env, folder or Path.cwd()))

    @property
    def outputs(self) -> Path:
        """The folder of copies of the files that were given to people."""
        return self.home / "outputs"

    @property
    def bots(self) -> bool:
        """A platform is set up on which strangers may write."""
        return any(bot is not None for bot in (self.telegram, self.discord, self.slack))

    @property
    def loopback(self) -> bool:
        """Only this machine reaches the page."""
        return self.host in LOOPBACK

    def url(self, port: int) -> str:
        """The page's address, for people."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _read(env: Env) -> Settings:
    settings = Settings(
        home=_home(env),
        host=env.get("TURNKEEPER_HOST") or "127.0.0.1",
        port=_port(env),
        token=env.get("TURNKEEPER_TOKEN", ""),
        web_names=_list(env, "WEB_NAMES"),
        telegram=_telegram(env),
        discord=read_discord(_reader(env)),
        slack=read_slack(_reader(env)),
        people=read_people(env),
        redis_url=_redis(env),
        redis_without_log=read_switch(env, "REDIS_WITHOUT_LOG", False, ConfigurationError),
        sandbox=cast(Sandbox, _choice(env, "SANDBOX_PROVIDER", get_args(Sandbox), "auto")),
        replica=_replica(env),
        turns_at_once=_positive(env, "TURNS_AT_ONCE", TURNS_AT_ONCE),
        plugins=tuple(dict.fromkeys(_list(env, "PLUGINS"))),
        question_expires=_seconds(env, "QUESTION_EXPIRES", QUESTION_EXPIRES),
        question_reminder=_seconds(env, "QUESTION_REMINDER", QUESTION_REMINDER),
        policy=_policy(env),
        jobs=read_jobs(_reader(env)),
        retention=read_retention(_reader(env)),
        ask_all=read_switch(env, "PERMISSION_ASK_ALL", False, ConfigurationError),
        discovery=read_switch(env, "LOCAL_MODEL_DISCOVERY", True, ConfigurationError),
        log_level=cast(LogLevel, _choice(env, "LOG_LEVEL", get_args(LogLevel), "info")),
        log_format=cast(LogFormat, _choice(env, "LOG_FORMAT", get_args(LogFormat), "text")),
        secrets=_secrets(env),
        env=env,
    )
    if not settings.loopback and not settings.token:
        mend = "others can reach this address; set TURNKEEPER_TOKEN, or listen on 127.0.0.1."
        raise ConfigurationError("TURNKEEPER_HOST", settings.host, mend)
    return settings


# ---- sources -----------------------------------------------------------------------------


def _merge_env(env: Env, folder: Path) -> Env:
    near = _toml(folder / FILE) | _dotenv(folder / ".env") | _drop_empty(env)
    home = _home(near)
    return (_toml(home / FILE) if home.resolve() != folder.resolve() else {}) | near


def _drop_empty(env: Env) -> dict[str, str]:
    """What is set to something: an empty variable is not set."""
    return {name.upper(): value.strip() for name, value in env.items() if value.strip()}


def _dotenv(path: Path) -> dict[str, str]:
    """`NAME=value` a line; quotes, `export` and comments as shells have them."""
    found = {}
    for line in _text(path).splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if not equals or name.lstrip().startswith("#"):
            continue
        value = value.strip()
        if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
            value = value[1:end]
        else:
            value = re.sub(r"(^|\s+)#.*", "", value)
        found[name.strip()] = value
    return _drop_empty(found)


def _toml(path: Path) -> dict[str, str]:
    text = _text(path)
    if not text:
        return {}
    import tomllib

    try:
        flat = dict(_flat(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(str(path), "", f"is not valid TOML ({error}).") from None
    for name in flat:
        if name not in SETTING_NAMES:
            near = difflib.get_close_matches(name, SETTING_NAMES, 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(SETTING_NAMES)}."
            raise ConfigurationError(
                name, "", f"{path} sets it, and there is no such setting; {hint}"
            )
    return _drop_empty(flat)


def _flat(table: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """`[telegram] bot_token` is TELEGRAM_BOT_TOKEN; a list is joined by commas."""
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        name = f"{prefix}{key}".upper()
        if isinstance(value, dict):
            found += _flat(value, f"{name}_")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            found.append((name, json.dumps(value)))
        elif isinstance(value, list):
            found.append((name, ",".join(map(str, value))))
        else:
            found.append((name, str(value)))
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), "", f"cannot be read ({error}).") from None


# ---- single settings ---------------------------------------------------------------------


def _home(env: Env) -> Path:
    return Path(env.get("TURNKEEPER_HOME") or "~/.turnkeeper").expanduser()


def _port(env: Env) -> int:
    text = env.get("TURNKEEPER_PORT", "8787")
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ConfigurationError(
            "TURNKEEPER_PORT", text, "write a number from 0 (any free) to 65535."
        )
    return int(text)


def _telegram(env: Env) -> Telegram | None:
    token = env.get("TELEGRAM_BOT_TOKEN", "")
    if not token:
        return None
    if not TOKEN.fullmatch(token):
        raise ConfigurationError(
            "TELEGRAM_BOT_TOKEN", "", "it looks like 123456:ABC; copy it again."
        )
    base, url = env.get("TELEGRAM_API_BASE_URL", ""), env.get("TELEGRAM_WEBHOOK_URL", "")
    secret = env.get("TELEGRAM_WEBHOOK_SECRET", "")
    for name, value in (("TELEGRAM_API_BASE_URL", base), ("TELEGRAM_WEBHOOK_URL", url)):
        if value:
            _http(name, value)
    if url and not secret:
        raise ConfigurationError("TELEGRAM_WEBHOOK_SECRET", "", "a webhook needs one; set it.")
    if secret and not WEBHOOK_SECRET.fullmatch(secret):
        mend = "use 1 to 256 letters, digits, _ and -."
        raise ConfigurationError("TELEGRAM_WEBHOOK_SECRET", "", mend)
    chosen = secret if url else ""
    if base:
        return Telegram(token=token, api_base_url=base, webhook_url=url, webhook_secret=chosen)
    return Telegram(token=token, webhook_url=url, webhook_secret=chosen)


def _http(name: str, value: str) -> None:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigurationError(name, value, "must be an http or https URL.")


def read_people(env: Env) -> dict[str, PlatformPeople]:
    """Allowed people and admins by platform. The page's owner is an admin."""
    found = {}
    for platform in PLATFORMS:
        own = {"owner"} if platform == "web" else set()
        found[platform] = PlatformPeople(
            allowed=frozenset(_list(env, f"{platform.upper()}_ALLOWED_USERS")),
            admins=frozenset(own | set(_list(env, f"{platform.upper()}_ADMIN_USERS"))),
            viewers=frozenset(_list(env, f"{platform.upper()}_VIEWER_USERS")),
            chats=frozenset(_list(env, f"{platform.upper()}_ALLOWED_CHATS")),
        )
    return found


def _policy(env: Env) -> Policy:
    bot = env.get("TELEGRAM_BOT_TOKEN", "").partition(":")[0]
    return read_policy(_reader(env), PLATFORMS, bot)


def _reader(env: Env) -> SettingReader:
    def read(name: str, parse: Callable[[str], T]) -> T:
        return _parse(env, name, parse)

    return read


def _parse(env: Env, name: str, read: Callable[[str], T]) -> T:
    try:
        return read(env.get(name, ""))
    except ValueError as error:
        shown = "" if SECRET.search(name) else env[name]
        raise ConfigurationError(name, shown, str(error)) from None


def _redis(env: Env) -> str:
    url = env.get("REDIS_URL", "")
    if url and not url.startswith(("redis://", "rediss://", "unix://")):
        mend = "must begin with redis://, rediss:// or unix://."
        if "sentinel" in url.partition("://")[0]:
            mend = "sentinels are not asked; give an address that follows the master, redis://…"
        raise ConfigurationError("REDIS_URL", url.split("@")[-1], mend)
    return url


def _replica(env: Env) -> str:
    name = env.get("REPLICA_ID", "")
    if name and not REPLICA.fullmatch(name):
        raise ConfigurationError("REPLICA_ID", name, "use 1 to 64 letters, digits and ._-.")
    return name


def _positive(env: Env, name: str, default: int) -> int:
    text = env.get(name, "") or str(default)
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 1_000_000):
        raise ConfigurationError(name, text, "write a whole number from 1 on.")
    return int(text)


def _seconds(env: Env, name: str, default: float) -> float:
    text = env.get(name, "")
    if text.lower() == "never":
        return 0.0
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= 1e9:
        raise ConfigurationError(name, text, "write seconds, at least 1, or 'never'.")
    return seconds


def _choice(env: Env, name: str, known: tuple[str, ...], default: str) -> str:
    text = env.get(name, default).lower()
    if text not in known:
        raise ConfigurationError(name, env[name], f"use one of: {', '.join(known)}.")
    return text


def _list(env: Env, name: str) -> tuple[str, ...]:
    return tuple(item for item in re.split(r"[,\s]+", env.get(name, "")) if item)


def _secrets(env: Env) -> tuple[str, ...]:
    """Values that no log may show, the longest first."""
    found = set()
    for name in SETTING_NAMES:
        value = env.get(name, "")
        if name.endswith("PROVIDERS") and value:
            for keys in re.findall(r'"api_key"\s*:\s*("[^"]*"|\[[^\]]*\])', value):
                found |= set(re.split(r'[\[\]",\s]+', keys))
        elif SECRET.search(name):
            found |= {value, *(piece.strip() for piece in value.split(","))}
    found.add(_password(env.get("REDIS_URL", "")))
    return tuple(sorted((one for one in found if len(one) >= 6), key=len, reverse=True))


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
