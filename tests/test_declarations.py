"""Each setting is declared once, used by somebody, and nobody reads what is not declared."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agent_core.mcp.settings import McpSettings
from agent_core.settings import ModelSettings, ToolSettings
from agent_core.tools.web.settings import WebSettings
from gateway.access.people import AllowLists
from gateway.access.policy import Policy
from gateway.settings import TABLES, Settings

ROOT = Path(__file__).parents[1]
DECLARED = {setting.name for table in TABLES.values() for setting in table}
READS_OTHERS = {
    "gateway/cli/browser.py": "DISPLAY and WAYLAND_DISPLAY are the desktop's own",
    "agent_core/mcp/settings.py": "${NAME} in MCP_SERVERS is a variable that the operator names",
}


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    return tuple(
        (str(path.relative_to(ROOT)), ast.parse(path.read_text()))
        for package in ("agent_core", "gateway", "adapters", "cron")
        for path in sorted((ROOT / package).rglob("*.py"))
    )


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
