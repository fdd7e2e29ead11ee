"""No regular expression of the product takes more than linear time for a text of others."""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator

import adapters
import agent_core
import cron
import gateway
from agent_core.text import LatePattern

UNITS = (
    *(
        "a",
        "1",
        " ",
        "\n",
        "\t",
        "-",
        "_",
        ".",
        "/",
        "`",
        "*",
        "[",
        "(",
        "<",
        '"',
        "\\",
        "|",
        "=",
        ":",
    ),
    *("#", "é", "。", ",", "@", "\n ", "a ", "[a](", "- a\n", "http://", "a=", '"a":'),
)
SMALL, LARGE = 700, 7_000
MAX_SECONDS = 0.15
"""For LARGE characters; what is quadratic takes longer."""
WHOLE_LINES_ONLY = {
    "agent_core.mcp.form_fields._EMAIL": "fullmatch of an answer",
    "agent_core.research.writing._FENCE": "fullmatch of a line",
    "agent_core.tools.code.charts.table._PLAIN": "fullmatch of a cell",
    "agent_core.tools.code.charts.table._COMMA": "fullmatch of a cell",
    "agent_core.tools.secret_files._SECRET": "fullmatch of a name",
    "agent_core.tools.web.settings._PLACE": "fullmatch of a setting",
    "agent_core.skills.folders._FIELD": "fullmatch of a line",
    "adapters.discord.markdown.FENCE": "match at a line's beginning",
    "gateway.accounts.discord.TOKEN": "fullmatch of a setting",
    "gateway.approvers._COUNT": "fullmatch of a setting",
    "gateway.approvers._TIME": "fullmatch of a setting",
    "agent_core.policy_file._HEADER": "fullmatch of a line",
    "gateway.settings.TOKEN": "fullmatch of a setting",
    "gateway.features.jobs.operator.jobfile._SYNTAX": "fullmatch of the parser's error",
}
"""Patterns that are never searched for: they are tried at one place of the text."""


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    seen: set[str] = set()
    for package in (agent_core, gateway, adapters, cron):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            loaded = importlib.import_module(module.name)
            for name, found in vars(loaded).items():
                value = found.expression if isinstance(found, LatePattern) else found
                mine = isinstance(value, re.Pattern) and isinstance(value.pattern, str)
                if mine and value.pattern not in seen:
                    seen.add(value.pattern)
                    yield f"{module.name}.{name}", value


def spend(pattern: re.Pattern[str], text: str, *, anywhere: bool) -> float:
    began = time.process_time()
    pattern.fullmatch(text)
    pattern.match(text)
    if anywhere:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began


def test_each_pattern_is_linear() -> None:
    slow = []
    for name, pattern in patterns():
        anywhere = name not in WHOLE_LINES_ONLY
        for unit in UNITS:
            small = spend(pattern, unit * (SMALL // len(unit)), anywhere=anywhere)
            if small > 0.002:
                took = spend(pattern, unit * (LARGE // len(unit)), anywhere=anywhere)
                if took > max(MAX_SECONDS, 15 * small):
                    slow.append(f"{name} over {unit!r}: {took:.2f} s")
                    break
    assert not slow, slow
