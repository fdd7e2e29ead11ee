"""Named sets of tools by patterns, which may name each other.

Reach is the intersection of several sets: a tool must be in each of them.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias

from msgspec import Struct

from agent_core.config.declaration import Env
from agent_core.tools.tool_settings import PLACES, SETS

Patterns: TypeAlias = tuple[str, ...]
Reach: TypeAlias = tuple[Patterns, ...]
"""Sets that hold at once; () holds everything."""

BUILT_IN: dict[str, Patterns] = {
    "files": ("read_file", "write_file", "list_files", "str_replace_editor", "rollback"),
    "shell": ("run_command", "check_command"),
    "code": ("execute_code", "python_execute", "normal_python_execute", "execute_script")
    + ("bash", "sandbox_file"),
    "charts": ("visualization_preparation", "data_visualization"),
    "web": ("web_search", "read_page", "delegate_to_research"),
    "talk": ("ask_user", "send_file", "task_planning", "todo", "memory", "terminate"),
    "find": ("find_tools", "call_tool"),
    "servers": ("*__*",),
}


def is_in_all(name: str, reach: Reach) -> bool:
    """`name` is in each of the sets."""
    return all(any(fnmatchcase(name, one) for one in patterns) for patterns in reach)


def could_be_within(beginning: str, reach: Reach) -> bool:
    """Return True if some name with this beginning may be in each of the sets."""
    return all(
        any(one.startswith(beginning) or fnmatchcase(f"{beginning}x", one) for one in patterns)
        for patterns in reach
    )


class Toolsets(Struct, frozen=True, kw_only=True):
    """`sets` by name; `places`: the set that holds for a place: a platform, `role:` and a role,
    `profile:` and a profile, or a conversation's address."""

    sets: dict[str, Patterns] = {}
    places: dict[str, str] = {}

    @classmethod
    def read(cls, env: Env) -> "Toolsets":
        """The settings in `env`; raises SettingsError."""
        made = cls(sets=SETS.read(env), places=PLACES.read(env))
        for name in made.sets:
            made.patterns(name)
        for place, name in made.places.items():
            if name not in made.sets and name not in BUILT_IN:
                raise PLACES.error(f"{place}={name}", f"{_describe_sets(made.sets)}.")
        return made

    def patterns(self, name: str, above: Patterns = ()) -> Patterns:
        """Return the patterns of the set `name`, with those of the sets that it names by @. Raises
        SettingsError if one does not exist, or contains itself."""
        listed = self.sets.get(name, BUILT_IN.get(name))
        if listed is None:
            raise SETS.error(f"@{name}", f"{_describe_sets(self.sets)}.")
        if name in above:
            raise SETS.error(f"@{name}", "it holds itself.")
        return self.flatten(listed, (*above, name))

    def flatten(self, listed: Patterns, above: Patterns = ()) -> Patterns:
        """The patterns of a set's entries."""
        found: list[str] = []
        for entry in listed:
            inner = self.patterns(entry[1:], above) if entry.startswith("@") else (entry,)
            found += (one for one in inner if one not in found)
        return tuple(found)

    def reach(self, places: Iterable[str]) -> Reach:
        """Return what may be used where all of `places` apply."""
        names = dict.fromkeys(self.places[one] for one in places if one in self.places)
        return tuple(self.patterns(name) for name in names)


def _describe_sets(sets: Mapping[str, Patterns]) -> str:
    return f"there is no such set; there are {', '.join((*sets, *BUILT_IN))}"
