"""All settings of the gateway: read once, checked, each error with its mend.

Owns the sources and their precedence (environment, `.env`, `turnkeeper.toml` in the working folder,
then in the data folder). With `agent_core.settings` the only reader of the environment. Imports
little: the first poll waits for it.
"""

import difflib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from agent_core.config import tables as agent
from agent_core.config.env_lines import read_env_line, split_lines
from agent_core.config.plain_files import read_piped
from agent_core.sandboxes.e2b import settings as e2b
from agent_core.sandboxes.e2b.settings import E2BAccess, read_e2b
from gateway.access import people, policy
from gateway.access.people import AllowLists, read_people
from gateway.access.policy import APPROVERS, Policy, read_policy
from gateway.accounts import discord, slack, telegram
from gateway.accounts.discord import Discord, read_discord
from gateway.accounts.slack import Slack, read_slack
from gateway.accounts.telegram import Telegram, read_telegram
from gateway.approvers import find_undecided
from gateway.declaration import (
    NO_WORDS,
    ChatUrl,
    Choice,
    Env,
    Matching,
    Number,
    OrNever,
    Setting,
    SettingsError,
    SharedSecret,
    WholeNumber,
    merge_tables,
    parse_switch,
    split_words,
)
from gateway.features.instructions import settings as instructions
from gateway.features.instructions.settings import INSTRUCTIONS
from gateway.features.jobs import settings as jobs
from gateway.features.jobs.settings import read_jobs
from gateway.features.quick import settings as quick
from gateway.features.quick.settings import QUICK
from gateway.jobs_port import JobSettings
from gateway.store.removal import periods
from gateway.store.removal.periods import RetentionSettings, read_retention

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
Sandbox = Literal[
    "auto", "bwrap", "docker", "boxlite", "landlock", "monty", "e2b", "unsafe-subprocess"
]
DeclaredBy: TypeAlias = Callable[[tuple[str, ...]], tuple[Setting[object], ...]]
"""The settings that installed features declare, by the names of the features."""

VERSION = "0.2.0"
FILE = "turnkeeper.toml"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OURS = "TURNKEEPER_"
"""Begins names that are no other program's."""
LIKE_OURS = 0.83
"""Similarity, from 0 to 1, above which a name is taken for a misspelt setting."""
PIPE_PATIENCE = 30.0
"""Seconds for a password manager, which may ask its owner first."""
SHORTEST_SECRET = 6
"""Minimum characters of a secret to redact; shorter values occur in logs by chance."""


def parse_redis(text: str) -> str:
    """The address of a single Redis."""
    if text.startswith(("redis://", "rediss://", "unix://")):
        return text
    if "sentinel" in text.partition("://")[0]:
        mend = "sentinels are not asked; give an address that follows the master, redis://…"
        raise ValueError(mend)
    raise ValueError("must begin with redis://, rediss:// or unix://.")


SECONDS = OrNever(
    kind=Number(least=1, most=1e9, mend="write seconds, at least 1, or 'never'."), never=0.0
)
HOME = Setting(
    "TURNKEEPER_HOME",
    Path("~/.turnkeeper"),
    Path,
    "the data folder: store, workspaces, uploads, control socket. Used by one process at a time",
)
HOST = Setting(
    "TURNKEEPER_HOST",
    "127.0.0.1",
    str,
    "listen address of the page and the API; any address but loopback requires `TURNKEEPER_TOKEN`",
)
PORT = Setting(
    "TURNKEEPER_PORT",
    8787,
    WholeNumber(most=65_535, mend="write a number from 0 (any free) to 65535."),
    "`0`: any free port",
)
TOKEN = Setting(
    "TURNKEEPER_TOKEN",
    "",
    SharedSecret(),
    "the owner's token for the API, at least 16 characters",
    secret="all",
)
CONNECTIONS = Setting(
    "CONNECTIONS_PER_ADDRESS",
    0,
    WholeNumber(least=1, most=100_000, mend="write a whole number from 1 on."),
    "maximum number of HTTP connections per address; the oldest idle one is closed for a new "
    "one. An open page uses one or two",
    default_text="half of the total; unlimited from this machine",
)
WEB_NAMES = Setting(
    "WEB_NAMES",
    NO_WORDS,
    split_words,
    "host names under which a reverse proxy serves the page; other names are refused",
)
PUBLIC_URL = Setting(
    "TURNKEEPER_PUBLIC_URL",
    "",
    ChatUrl(example="https://turnkeeper.example.org"),
    "public URL of the page behind your reverse proxy, which is then served under that name: the "
    "base of the links of `/link page` and `turnkeeper link`, and of sign-ins at MCP servers. "
    "Not set: links work only on the gateway's machine",
    secret="password",
)
REDIS_URL = Setting(
    "REDIS_URL",
    "",
    parse_redis,
    "`redis://`, `rediss://` or `unix://`: store everything in Redis, which replicas may share; "
    "otherwise SQLite. A single Redis 7 with `appendonly yes`; after a failover the address must "
    "lead to the new master; no Cluster, no Sentinel addresses",
    secret="password",
)
REDIS_WITHOUT_LOG = Setting(
    "REDIS_WITHOUT_LOG",
    False,
    parse_switch,
    "`on`: accept a Redis without `appendonly`; its restart loses everything that was acknowledged",
)
REPLICA_ID = Setting(
    "REPLICA_ID",
    "",
    Matching(pattern="[A-Za-z0-9._-]{1,64}", mend="use 1 to 64 letters, digits and ._-."),
    "stable name of this replica, with which it takes over its own conversations immediately "
    "after a restart. Must be unique: a second running process with the same name is refused",
    default_text="generated once",
)
AUDIT_KEY = Setting(
    "AUDIT_KEY",
    "",
    SharedSecret(),
    "key that signs the audit log, at least 16 characters; replicas on several machines need the "
    "same. Entries signed with older keys are verified with the keys in `audit.key` in the data "
    "folder, one per line",
    secret="all",
    default_text="generated once, in `audit.key`",
)
TURNS_AT_ONCE = Setting(
    "TURNS_AT_ONCE",
    100,
    WholeNumber(least=1, most=999_999, mend="write a whole number from 1 on."),
    "maximum number of concurrent turns in this process; the next one is that of the person with "
    "the fewest, and one person has nine tenths at most. A turn that waits for a person does not "
    "count",
)
PLUGINS = Setting(
    "PLUGINS",
    NO_WORDS,
    split_words,
    "names of features installed beside the gateway, separated by commas; one that is not "
    "installed is an error",
)
LOG_LEVEL: Setting[LogLevel] = Setting(
    "LOG_LEVEL", "info", Choice(words=get_args(LogLevel)), "`debug`, `info`, `warning`, `error`"
)
LOG_FORMAT: Setting[LogFormat] = Setting(
    "LOG_FORMAT",
    "text",
    Choice(words=get_args(LogFormat)),
    "`text` or `json`, to standard error; secrets are redacted",
)
SANDBOX: Setting[Sandbox] = Setting(
    "SANDBOX_PROVIDER",
    "auto",
    Choice(words=get_args(Sandbox)),
    "`auto`: the first that is available of bubblewrap, Docker (if the sandbox image is "
    "present), Landlock, and Monty (Python only; with the extra `monty`); otherwise commands "
    "cannot run. `bwrap`, `docker` (or `boxlite`), `landlock`, `monty`, `e2b`: require that one. "
    "`unsafe-subprocess`: no isolation",
)
DOCKER_HOST = Setting(
    "DOCKER_HOST",
    "unix:///var/run/docker.sock",
    str,
    "the Unix socket of a Docker engine on this machine, for Docker sandboxes. Access to it is "
    "equivalent to root: never give it to a container",
)
ASK_ALL = Setting(
    "PERMISSION_ASK_ALL",
    False,
    parse_switch,
    "`on`: every call needs an approval, regardless of grants and policy",
)
QUESTION_EXPIRES = Setting(
    "QUESTION_EXPIRES",
    7 * 86_400.0,
    SECONDS,
    "seconds until an open question is denied (7 days), or `never`",
)
QUESTION_REMINDER = Setting(
    "QUESTION_REMINDER",
    4 * 3_600.0,
    SECONDS,
    "seconds until an open question is repeated once (4 hours), or `never`",
)
MESSAGE_BURST = Setting(
    "MESSAGE_BURST",
    2.0,
    SECONDS,
    "seconds within which a message is joined to the previous unfinished one (`hey`, `can you`), "
    "as long as no part of an answer is visible; or `never`. On the page each is a request",
)
DISCOVERY = Setting(
    "LOCAL_MODEL_DISCOVERY",
    True,
    parse_switch,
    "look for a model server on this machine's usual ports if no model and no bot is set; ask "
    "servers for the context windows of their models if neither `MODEL_WINDOWS` nor the "
    "catalogue has them",
)
TABLES = merge_tables(
    {
        "gateway": (
            *(
                HOME,
                HOST,
                PORT,
                TOKEN,
                CONNECTIONS,
                WEB_NAMES,
                PUBLIC_URL,
                REDIS_URL,
                REDIS_WITHOUT_LOG,
                REPLICA_ID,
                AUDIT_KEY,
            ),
            *(TURNS_AT_ONCE, PLUGINS, LOG_LEVEL, LOG_FORMAT),
        )
    },
    periods.TABLES,
    jobs.TABLES,
    {
        "running": (
            SANDBOX,
            DOCKER_HOST,
            *e2b.TABLE,
            ASK_ALL,
            QUESTION_EXPIRES,
            QUESTION_REMINDER,
            MESSAGE_BURST,
        )
    },
    agent.TABLES,
    instructions.TABLES,
    quick.TABLES,
    people.TABLES,
    policy.TABLES,
    telegram.TABLES,
    discord.TABLES,
    slack.TABLES,
    {"models": (DISCOVERY,)},
)
"""All settings, by the tables of docs/settings.md."""


def find_nothing(_plugins: tuple[str, ...]) -> tuple[Setting[object], ...]:
    """Return no settings: the default where no plugin declares any."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings. `question_*` in seconds, 0 = never. `later`: settings of platforms that
    this version lacks. `secrets`: values that no log may show."""

    home: Path
    host: str
    port: int
    token: str = field(repr=False)
    connections: int
    web_names: tuple[str, ...]
    public_url: str
    telegram: Telegram | None
    discord: Discord | None
    slack: Slack | None
    people: dict[str, AllowLists]
    redis_url: str = field(repr=False)
    redis_without_log: bool
    sandbox: Sandbox
    docker_host: str
    e2b: E2BAccess = field(repr=False)
    replica: str
    audit_key: str = field(repr=False)
    turns_at_once: int
    plugins: tuple[str, ...]
    question_expires: float
    question_reminder: float
    message_burst: float
    policy: Policy
    jobs: JobSettings
    instructions: str
    quick: tuple[tuple[str, str], ...]
    retention: RetentionSettings
    ask_all: bool
    discovery: bool
    log_level: LogLevel
    log_format: LogFormat
    known: tuple[str, ...]
    """The names of all settings."""
    secrets: tuple[str, ...] = field(repr=False)
    env: Env = field(repr=False)

    @classmethod
    def read(
        cls, env: Env | None = None, folder: Path | None = None, declared: DeclaredBy = find_nothing
    ) -> "Settings":
        """Read the settings of this process; raises SettingsError. `folder`: the working folder;
        `declared`: finds the settings that features named in `PLUGINS` declare."""
        env, folder = os.environ if env is None else env, folder or Path.cwd()
        near = folder / ".env"
        dotenv, lines = _dotenv(near)
        found, files = _merge_env(env, folder, dotenv)
        plugins = PLUGINS.read(found)
        theirs = declared(plugins) if plugins else ()
        known = (*chain(*TABLES.values()), *theirs)
        known_names = tuple(setting.name for setting in known)
        for path, names in files:
            _check_names(path, names, known_names)
        for name, other in find_odd_names(dotenv, known_names).items():
            mend = "sets it, and there is no such setting; did you mean"
            raise SettingsError(name, "", f"{near}, line {lines[name]}, {mend} {other}?")
        for setting in theirs:
            setting.read(found)
        return _read(found, _find_secrets(known, found), known_names)

    @property
    def outputs(self) -> Path:
        """The folder with copies of files that were sent to people."""
        return self.home / "outputs"

    @property
    def bots(self) -> bool:
        """A platform is set up on which strangers may write."""
        return bool(self.chats)

    @property
    def chats(self) -> tuple[str, ...]:
        """The platforms that are set up besides the page."""
        bots = {"telegram": self.telegram, "discord": self.discord, "slack": self.slack}
        return tuple(name for name, bot in bots.items() if bot is not None)

    def find_undecided(self) -> dict[str, str]:
        """Return the platforms on which nobody could decide a question, each with the reason."""
        return find_undecided(self.policy.approvers, (*self.chats, "web"))

    @property
    def loopback(self) -> bool:
        """True if only this machine reaches the page."""
        return self.host in LOOPBACK

    @property
    def page_names(self) -> tuple[str, ...]:
        """The names by which the page is served besides its own address."""
        public = urlsplit(self.public_url).netloc.rpartition("@")[2]
        return (*self.web_names, public) if public else self.web_names

    def link_base(self, port: int) -> str:
        """Return the prefix of links to the page: the public address if one is set."""
        return f"{self.public_url}/" if self.public_url else self.url(port)

    def url(self, port: int) -> str:
        """The page's address, for people."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _read(env: Env, secrets: tuple[str, ...], known: tuple[str, ...]) -> Settings:
    settings = Settings(
        home=_home(env),
        host=HOST.read(env),
        port=PORT.read(env),
        token=TOKEN.read(env),
        connections=CONNECTIONS.read(env),
        web_names=WEB_NAMES.read(env),
        public_url=PUBLIC_URL.read(env),
        telegram=read_telegram(env),
        discord=read_discord(env),
        slack=read_slack(env),
        people=read_people(env),
        redis_url=REDIS_URL.read(env),
        redis_without_log=REDIS_WITHOUT_LOG.read(env),
        sandbox=SANDBOX.read(env),
        docker_host=DOCKER_HOST.read(env),
        e2b=read_e2b(env),
        replica=REPLICA_ID.read(env),
        audit_key=AUDIT_KEY.read(env),
        turns_at_once=TURNS_AT_ONCE.read(env),
        plugins=tuple(dict.fromkeys(PLUGINS.read(env))),
        question_expires=QUESTION_EXPIRES.read(env),
        question_reminder=QUESTION_REMINDER.read(env),
        message_burst=MESSAGE_BURST.read(env),
        policy=read_policy(env),
        jobs=read_jobs(env),
        instructions=INSTRUCTIONS.read(env),
        quick=tuple(QUICK.read(env).items()),
        retention=read_retention(env),
        ask_all=ASK_ALL.read(env),
        discovery=DISCOVERY.read(env),
        log_level=LOG_LEVEL.read(env),
        log_format=LOG_FORMAT.read(env),
        known=known,
        secrets=secrets,
        env=env,
    )
    if not settings.loopback and not settings.token:
        mend = f"others can reach this address; set {TOKEN.name}, or listen on 127.0.0.1."
        raise HOST.error(settings.host, mend)
    undecided = settings.find_undecided()
    asked_on = settings.chats or ("web",)
    if undecided.keys() >= set(asked_on):
        why = "; ".join(dict.fromkeys(undecided[one] for one in asked_on))
        raise APPROVERS.error(APPROVERS.text(env), f"nobody could approve what is asked: {why}.")
    if settings.sandbox == "e2b" and not settings.e2b.api_key:
        raise e2b.API_KEY.error("", f"{SANDBOX.name}=e2b needs a key of E2B's here.")
    return settings


def _home(env: Env) -> Path:
    home = HOME.read(env)
    try:
        home = home.expanduser()
        str(home).encode()  # HOME too may have bytes that are not UTF-8
        os.stat(home)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return home  # it is made, or its first use tells why not
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop, no such user, NUL
        why = getattr(error, "strerror", None) or error
        raise HOME.error(str(home), f"name a folder; this is none ({why}).") from None
    if not os.path.isdir(home):
        raise HOME.error(str(home), "it is a file; name a folder.")
    return home


def _find_secrets(known: tuple[Setting[object], ...], env: Env) -> tuple[str, ...]:
    """Values that no log may show, the longest first."""
    found = frozenset[str]().union(*(setting.find_secrets(env) for setting in known))
    long = (one for one in found if len(one) >= SHORTEST_SECRET)
    return tuple(sorted(long, key=len, reverse=True))


# ---- sources -----------------------------------------------------------------------------


def _merge_env(env: Env, folder: Path, dotenv: Env) -> tuple[Env, tuple[tuple[Path, Env], ...]]:
    """Merge the sources; also return the settings of each TOML file."""
    here = _toml(folder / FILE)
    near = _drop_empty(here) | dict(dotenv) | _drop_empty(env)
    home = _home(near)
    at_home = _toml(home / FILE) if home.resolve() != folder.resolve() else {}
    return _drop_empty(at_home) | near, ((folder / FILE, here), (home / FILE, at_home))


def _check_names(path: Path, names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known)}."
            mend = f"{path} sets it, and there is no such setting; {hint}"
            raise SettingsError(name, "", mend)


def find_odd_names(names: Iterable[str], known: Sequence[str]) -> dict[str, str]:
    """Return unknown names that resemble a known setting, each with the nearest one. Names of other
    programs are left out."""
    found = {}
    for name in names:
        like = 0.0 if name.startswith(OURS) else LIKE_OURS
        if name not in known and (near := difflib.get_close_matches(name, known, 1, like)):
            found[name] = near[0]
    return found


def _drop_empty(env: Env) -> dict[str, str]:
    """Drop empty variables, which count as unset."""
    return {name.upper(): value.strip() for name, value in env.items() if value.strip()}


def _dotenv(path: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Return the values of a `.env`, and the line of each name. Raises SettingsError for a line of
    another form."""
    found, lines = {}, {}
    for n, line in enumerate(split_lines(_text(path)), 1):
        if (read := read_env_line(line)) is None:
            continue
        if not read.name or read.value is None:
            lacks = "'='" if read.value is None else "name"
            mend = f"a line is NAME=value, or begins with #; this one has no {lacks}."
            raise SettingsError(f"{path}, line {n}", "", mend)
        found[read.name] = read.value
        lines[read.name] = n
    return _drop_empty(found), lines


def _toml(path: Path) -> dict[str, str]:
    text = _text(path)
    if not text:
        return {}
    import tomllib

    from agent_core.config.toml_text import parse_toml

    try:
        return dict(_flatten(parse_toml(text)))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(path), "", f"is not valid TOML ({error}).") from None


def _flatten(table: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """`[telegram] bot_token` is TELEGRAM_BOT_TOKEN; a list is joined by commas."""
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        name = f"{prefix}{key}".upper()
        if isinstance(value, dict):
            found += _flatten(value, f"{name}_")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            found.append((name, json.dumps(value)))
        elif isinstance(value, list):
            found.append((name, ",".join(map(str, value))))
        else:
            found.append((name, str(value)))
    return found


def _text(path: Path) -> str:
    try:
        return read_piped(path, PIPE_PATIENCE).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        why = f"is not written in UTF-8 (byte {error.start + 1}); save it in that encoding."
        raise SettingsError(str(path), "", why) from None
    except OSError as error:
        raise SettingsError(str(path), "", f"cannot be read: {error.strerror}.") from None


def exempt_loopback() -> None:
    """Add this machine to the hosts that the environment's proxies are not used for, as browsers
    and Go's programs do: a proxy elsewhere does not reach it."""
    named = {k: v for k, v in os.environ.items() if v and k.lower().endswith("_proxy")}
    beyond = named.pop("NO_PROXY", "")
    beyond = named.pop("no_proxy", "") or beyond
    if named and beyond.strip() != "*":
        both = ",".join([*filter(None, [beyond]), *LOOPBACK])
        os.environ.update({"no_proxy": both, "NO_PROXY": both})
