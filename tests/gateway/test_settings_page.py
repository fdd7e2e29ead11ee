"""The documentation's tables of settings, which are written from the declarations.

`GOLDENS=write pytest tests/gateway/test_settings_page.py` writes them anew, for people to read.
"""

import os
import re
from collections.abc import Iterable, Sized
from pathlib import Path

from agent_core.config.kinds import OrNever
from gateway.declaration import Setting
from gateway.settings import TABLES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "settings.md"
MARKED = re.compile(r"(<!-- settings: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
NAMED = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
NO_SETTINGS = {
    *("AF_NETLINK", "AF_VSOCK", "CLIENT_ID", "CRM_TOKEN", "NOTES_KEY", "PING_WORD"),
    *("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
}
"""Names in the documentation that mean something else, or are of other programs too."""
NAMES = {setting.name for table in TABLES.values() for setting in table}


def show_default(setting: Setting[object]) -> str:
    """A default as the page tells it."""
    default = setting.default
    if setting.default_text:
        return setting.default_text
    if isinstance(setting.kind, OrNever) and default == setting.kind.never:
        return "`never`"
    if default is None or (isinstance(default, Sized) and not len(default)):
        return "not set"
    if isinstance(default, bool):
        return "`on`" if default else "`off`"
    return f"`{default:.15g}`" if isinstance(default, float) else f"`{default}`"


def write_table(settings: Iterable[Setting[object]]) -> str:
    """A table in Markdown; settings with the same help share a row."""
    rows: dict[str, list[Setting[object]]] = {}
    for setting in settings:
        rows.setdefault(setting.help, []).append(setting)
    lines = ["| setting | default | what |", "| --- | --- | --- |"]
    for about, row in rows.items():
        names = ", ".join(f"`{setting.name}`" for setting in row)
        defaults = ", ".join(dict.fromkeys(map(show_default, row)))
        lines.append(f"| {names} | {defaults} | {about} |")
    return "\n".join(lines) + "\n"


def test_the_tables_are_those_of_the_declarations() -> None:
    page = PAGE.read_text()
    found = [name for _, name, _ in MARKED.findall(page)]
    assert sorted(found) == sorted(TABLES), "each table has its place on the page"
    written = MARKED.sub(lambda at: f"{at[1]}\n{write_table(TABLES[at[2]])}\n{at[3]}", page)
    if os.environ.get("GOLDENS") == "write":
        PAGE.write_text(written)
    assert PAGE.read_text() == written, "GOLDENS=write writes the tables anew"


def test_each_help_and_default_fits_into_a_table() -> None:
    wrong = [
        setting.name
        for table in TABLES.values()
        for setting in table
        if not setting.help
        or any(mark in setting.help + show_default(setting) for mark in ("|", "\n", "  "))
    ]
    assert not wrong


def test_the_documentation_names_no_setting_that_there_is_not() -> None:
    pages = (ROOT / ".env.example", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    named = {
        name: page.relative_to(ROOT) for page in pages for name in NAMED.findall(page.read_text())
    }
    unknown = {name: page for name, page in named.items() if name not in NAMES | NO_SETTINGS}
    assert not unknown, f"no such setting: {unknown}"
    assert named.keys() >= NO_SETTINGS, "shrink the list"
