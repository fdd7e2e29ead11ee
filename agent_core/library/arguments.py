"""Detects misspelt arguments of an agent where they are written."""

import difflib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

from agent_core.errors import Misuse
from agent_core.mcp.settings import Given, McpServer
from agent_core.models.providers import API_MODES
from agent_core.policy import Mode
from agent_core.profiles.built_in import PROFILES
from agent_core.text import clean
from agent_core.tools.contract import Tool


def check_names(odd: Sequence[object], given: Iterable[str], known: Sequence[str]) -> None:
    """Raise Misuse for an argument without a name (`odd`), or with one that is not `known`."""
    if odd:
        raise Misuse("every argument is given by its name, as in Agent(model='pro')")
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.4)
            more = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise Misuse(f"no argument {name!r}; {more}")


def check_arguments(mode: str, api_mode: str | None, profile: str, zone: str) -> None:
    """Raise Misuse for an unknown value."""
    _check("mode", mode, get_args(Mode))
    if api_mode is not None:
        _check("api_mode", api_mode, API_MODES)
    if profile:
        _check("profile", profile, PROFILES)
    if zone:
        try:
            ZoneInfo(zone)
        except (OSError, ValueError, KeyError):
            raise Misuse(f"no time zone {zone!r}; write one like Europe/Berlin") from None


def _is_text(given: object) -> bool:
    return isinstance(given, str | None)


def _is_model(given: object) -> bool:
    named = isinstance(given, str)
    return bool(given) if named else callable(getattr(given, "complete", None))


def _is_function(given: object) -> bool:
    return given is None or callable(given)


def _is_time(given: object) -> bool:
    return given is None or (isinstance(given, int | float) and 0 < given < math.inf)


def _is_table(given: object) -> bool:
    return isinstance(given, Mapping)


def _is_memory(given: object) -> bool:
    return given is None or hasattr(given, "off")


KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "model": (_is_model, "a tier, provider/model, or an object with complete and close"),
    "system": (_is_text, "text"),
    "on_question": (_is_function, "a function"),
    "pre_tool_call": (_is_function, "a function"),
    "post_tool_call": (_is_function, "a function"),
    "verify_step": (_is_function, "a function"),
    "approval_seconds": (_is_time, "seconds above 0, or None for ever"),
    "answer_seconds": (_is_time, "seconds above 0, or None for ever"),
    "memory": (_is_memory, "a Memory"),
    "callbacks": (_is_table, "a dict of functions by their names"),
}
"""Arguments of an agent that would fail only later, or be taken for something else."""


def check_kinds(read: Callable[[str], object]) -> None:
    """Raise Misuse for an argument of another kind; `read` returns them by their names."""
    for name, (fits, kind) in KINDS.items():
        if not fits(given := read(name)):
            raise Misuse(f"{name} is {kind}, not {given!r:.200}")


def read_folder(name: str, given: object) -> Path:
    """Return a folder that is given as a path or as text. Raises Misuse."""
    if isinstance(given, str | os.PathLike) and given:
        return Path(given)
    raise Misuse(f"{name} is a folder, not {given!r:.200}")


def check_text(name: str, given: object) -> None:
    """Raise Misuse for what is neither text nor None."""
    if not isinstance(given, str | None):
        raise Misuse(f"{name} is text, not {given!r:.200}")


def list_servers(given: object) -> tuple[Given, ...]:
    """Return the servers. Raises Misuse for what is no list of them."""
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    found = tuple(one for one in listed if isinstance(one, Mapping | McpServer))
    if len(found) < len(listed) or isinstance(given, Mapping):
        mend = 'mcp is a list of servers, as in mcp=[{"name": "notes", "command": "notes-server"}]'
        raise Misuse(f"{mend}, not {given!r:.200}")
    return found


def check_limits(rounds: int | None, turns: int | None, budget: float | None, window: int) -> None:
    """Raise Misuse for a limit with which no turn can be made, or that would not be one."""
    for name, count in (("max_rounds", rounds), ("max_turns", turns)):
        if count is not None and (not isinstance(count, int) or count < 1):
            raise Misuse(
                f"{name} is a whole number from 1, or None for the settings', not {count!r}"
            )
    if budget is not None and not (isinstance(budget, int | float) and 0 < budget < math.inf):
        raise Misuse(f"budget is dollars above 0, or None for the settings', not {budget!r}")
    if not isinstance(window, int) or window < 0:
        raise Misuse(f"window is a number of tokens, or 0 if it is not known, not {window!r}")


def check_tools(given: object) -> tuple[Tool, ...]:
    """Return the tools. Raises Misuse for anything else."""
    tools = tuple(given) if isinstance(given, Iterable) else (given,)
    for one in tools:
        if not isinstance(one, Tool):
            name = getattr(one, "__name__", repr(one))
            raise Misuse(f"{name} is no tool; write @tool above its function")
    if not isinstance(given, Iterable):
        raise Misuse("tools are given in a list, as in tools=[my_tool]")
    return tools


def clean_message(given: object) -> str:
    """Return a message as it can be written and sent. Raises Misuse for one that is no text."""
    if not isinstance(given, str):
        raise Misuse(f"a message is text, not {type(given).__name__}")
    return clean(given)


def check_answer(given: object) -> str:
    """Return what a person wrote. Raises Misuse for anything else that `on_question` gave."""
    if not isinstance(given, str):
        kind = type(given).__name__
        raise Misuse(f"on_question gives a text or an Answer, not {kind}; does it return one?")
    return clean(given)


def _check(name: str, given: str, known: Iterable[str]) -> None:
    there = tuple(known)
    if given not in there:
        raise Misuse(f"no {name} {given!r}; there are {', '.join(there)}")
