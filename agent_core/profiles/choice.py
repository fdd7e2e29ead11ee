"""Chooses a turn's equipment: the tools shown, those that may be found, instructions and limits."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_core.mcp.servers import Servers
from agent_core.models.port import ToolSpec
from agent_core.orchestration.brief import Brief
from agent_core.profiles.built_in import PLAIN, PROFILES
from agent_core.profiles.profile import Profile
from agent_core.tools.finding.short_specs import shorten_spec
from agent_core.tools.finding.tool_list import CALL, render_tool_list
from agent_core.tools.finding.toolsets import Reach, Toolsets, could_be_within, is_in_all

FIND_TOOLS = "find_tools"
Specs: TypeAlias = Callable[[tuple[str, ...]], tuple[ToolSpec, ...]]
"""Returns the specifications of the tools with these names."""


class Kit(Struct, frozen=True, kw_only=True):
    """Everything to choose from: our own tools with a line on each, servers, sets. `always`: tools
    that each request shows besides those of its profile."""

    lines: tuple[tuple[str, str], ...]
    servers: Servers
    sets: Toolsets
    always: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of our own tools."""
        return tuple(name for name, _ in self.lines)


def profile_of(name: str) -> Profile:
    """Return the profile, or the plain one if it does not exist any more."""
    return PROFILES.get(name, PLAIN)


def list_missing(kit: Kit, name: str) -> tuple[str, ...]:
    """Return the tools that the profile needs and that are missing here, or not for everybody."""
    there = [*kit.names, *(f"{server}__" for server in kit.servers.names)]
    return profile_of(name).list_missing(there)


def apply_choice(
    brief: Brief,
    kit: Kit,
    name: str,
    places: Iterable[str],
    specs: Specs | None = None,
    limit: str = "",
) -> Brief:
    """Return `brief` with what the profile, the sets of `places` and the set `limit` allow. `specs`
    returns short specifications, for a model with so small a window that it is shown few tools."""
    profile = profile_of(name)
    own = kit.sets.flatten(profile.tools)
    where = (*places, *((f"profile:{profile.name}",) if profile.name else ()))
    reach: Reach = (*(() if own == ("*",) else (own,)), *kit.sets.reach(where))
    reach = (*reach, kit.sets.patterns(limit)) if limit else reach
    small = specs is not None
    shown = _list_shown(kit.names, profile.name, reach, () if small else kit.always, small)
    more: tuple[ToolSpec, ...] = () if small else kit.servers.list_offered(reach)
    others = _list_others(kit.lines, shown, reach, small, kit.servers.shown_names)
    short = tuple(map(shorten_spec, specs(shown))) if specs is not None else ()
    return replace(
        brief,
        system="\n\n".join(filter(None, (brief.system, others, profile.prompt))),
        tools=(*shown, *(spec.name for spec in more)),
        more=(*more, *short),
        reach=reach,
        max_rounds=profile.max_steps or brief.max_rounds,
        most_messages=profile.max_messages,
    )


@lru_cache(maxsize=256)
def _list_others(
    lines: tuple[tuple[str, str], ...],
    shown: tuple[str, ...],
    reach: Reach,
    small: bool,
    servers: tuple[str, ...],
) -> str:
    """List the callable tools that are not shown, for the prompt."""
    servers = tuple(one for one in servers if could_be_within(f"{one}__", reach))
    others = {name: line for name, line in lines if name not in shown and is_in_all(name, reach)}
    return render_tool_list(others, found=CALL in shown, short=small, servers=servers)


@lru_cache(maxsize=256)
def _list_shown(
    names: tuple[str, ...], profile: str, reach: Reach, always: tuple[str, ...], small: bool
) -> tuple[str, ...]:
    """Asked for each turn, and nearly always the same."""
    own = profile_of(profile)
    if small:
        shown = (name for name in names if name in own.few or name == FIND_TOOLS)
    else:
        shown = (name for name in names if own.shows(name) or name in always)
    return tuple(name for name in shown if is_in_all(name, reach))
