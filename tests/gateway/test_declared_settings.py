"""Each setting is declared once, read by somebody, and nobody reads what is not declared."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from agent_core.config.declaration import Secrecy, Setting, SettingsError
from agent_core.config.kinds import Url
from agent_core.mcp.settings import McpSettings
from agent_core.settings import ModelSettings, ToolSettings
from agent_core.tools.web.settings import PROVIDERS, WebSettings
from gateway.access.people import AllowLists
from gateway.access.policy import Policy
from gateway.settings import TABLES, Settings
from tests.fakes.odd_json import DEEP, LONG_NUMBER
from tests.sampling import take

ROOT = Path(__file__).parents[2]
DECLARED = {setting.name: setting for table in TABLES.values() for setting in table}
BOTS = {
    "TELEGRAM_BOT_TOKEN": "1:abc",
    "DISCORD_BOT_TOKEN": "a.b.c",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
}
ODD = (
    *("nan", "inf", "-inf", "1e400", "-1", "1_000", "１２", "²", "0x10", LONG_NUMBER, DEEP, "[", "{}", "[1]"),
    *("null", "\0", "a\0b", "\ud800", "\u202e", "a\nb", "a" * 200_000, "http://", "http://[", "http://[::1"),
    *("http://a:99999", "http://user:pw@h/", "file:///etc/passwd", "//a", "=", ",,", "@", "telegram:", "*:*"),
    *("role:", "2 of a", "/", "~nobody-here/x", "/proc/self/fd/999", "Mars/X", "24:00", "%s", "{0}", "$HOME"),
    *("'", '"', "\\", "on", "openai/", "/gpt", "a/b/c"),
)  # fmt: skip
QUICK, ALL = 400, 100_000
SEARCH = {f"{name}_API_KEY": "key" for name in ("TAVILY", "BRAVE", "EXA")}
READS_OTHERS = {
    "gateway/cli/browser.py": "DISPLAY and WAYLAND_DISPLAY are the desktop's own",
    "agent_core/mcp/settings.py": "${NAME} in MCP_SERVERS is a variable that the operator names",
}


@pytest.mark.parametrize("count", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)])
def test_an_odd_value_is_taken_or_refused_by_name(tmp_path: Path, count: int) -> None:
    pairs = [(name, value) for name in DECLARED for value in ODD]
    for name, value in take(pairs, count, "odd values"):
        try:
            ModelSettings.read(
                Settings.read({"TURNKEEPER_HOME": str(tmp_path), name: value}, tmp_path).env
            )
        except SettingsError as error:
            assert name in str(error) and len(str(error)) < 3_000


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (str(path.relative_to(ROOT)), ast.parse(path.read_text()))
        for package in ("agent_core", "gateway", "adapters", "cron")
        for path in sorted((ROOT / package).rglob("*.py"))
    )


def test_each_setting_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: set[str] = set()
    text = Setting.text

    def note(setting: Setting[object], env: dict[str, str]) -> str:
        read.add(setting.name)
        return text(setting, env)

    monkeypatch.setattr(Setting, "text", note)
    monkeypatch.setattr(Setting, "find_secrets", lambda _setting, _env: frozenset[str]())
    for provider in PROVIDERS:
        chosen = {"SEARCH_PROVIDER": provider, "SEARXNG_URL": "http://127.0.0.1:1"}
        env = {"TURNKEEPER_HOME": str(tmp_path)} | BOTS | SEARCH | chosen
        ModelSettings.read(Settings.read(env, tmp_path).env)
    assert read == DECLARED.keys()


def test_what_is_read_is_used() -> None:
    used = Counter(
        node.attr
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )
    made = (Settings, ModelSettings, ToolSettings, WebSettings, McpSettings, AllowLists, Policy)
    ignored = [
        f"{one.__name__}.{field}"
        for one in made
        for field in one.__annotations__
        if field != "model_config" and not used[field]
    ]
    assert not ignored, f"nobody asks for these: {ignored}"


def test_a_name_stands_in_its_declaration_only() -> None:
    """Elsewhere it is `SETTING.name`, and its errors are `SETTING.error`."""
    elsewhere = [
        f"{path}:{node.lineno} {node.value}"
        for path, tree in modules()
        for node in _strings(tree)
        if node.value in DECLARED
    ]
    assert not elsewhere, f"use the declaration: {elsewhere}"


def _strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Texts that are not the name in a declaration."""
    names = {id(call.args[0]) for call in _declarations(tree) if call.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in names:
            yield node


def _declarations(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Setting":
            yield node


def test_each_declaration_is_in_the_tables() -> None:
    """By its name, or by the pattern of it where several are declared at once."""
    lost = [
        f"{path}:{call.lineno}"
        for path, tree in modules()
        for call in _declarations(tree)
        if not any(re.fullmatch(_pattern(call.args[0]), name) for name in DECLARED)
    ]
    assert not lost, f"add these to TABLES: {lost}"


def _pattern(name: ast.expr) -> str:
    if isinstance(name, ast.JoinedStr):
        return "".join(
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[A-Z_]+"
            for part in name.values
        )
    assert isinstance(name, ast.Constant), "write the name where it is declared"
    return re.escape(str(name.value))


def test_nobody_reads_what_is_not_declared() -> None:
    """Only a declaration takes values out of what is set (`env`)."""
    readers = {
        path
        for path, tree in modules()
        for node in ast.walk(tree)
        if _takes_from_settings(node) and path != "agent_core/config/declaration.py"
    }
    assert readers == READS_OTHERS.keys()


def _takes_from_settings(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        whose = node.func.value if node.func.attr == "get" else None
    else:
        read = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        whose = node.value if read and isinstance(node, ast.Subscript) else None
    return whose is not None and ast.unparse(whose) in ("env", "settings.env", "os.environ")


def test_what_is_secret_says_so() -> None:
    """Names that end like this promise a secret; an address may hold a password."""
    assert set(get_args(Secrecy)) == {setting.secret for setting in DECLARED.values()}
    for name, setting in DECLARED.items():
        if name.endswith(("TOKEN", "SECRET", "_API_KEY")):
            assert setting.secret == "all", name
        if isinstance(setting.kind, Url):
            assert setting.secret == "password", name
