"""Which tools there are for whom: named sets of patterns, which may name each other.

Reach is what is left where several sets hold at once: a tool must be in each of them.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeAlias, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict

from agent_core.models.providers import SettingsError

Patterns: TypeAlias = tuple[str, ...]
Reach: TypeAlias = tuple[Patterns, ...]
"""Sets that hold at once; () holds everything."""

T = TypeVar("T")

BUILT_IN: dict[str, Patterns] = {
    "files": ("read_file", "write_file", "list_files", "str_replace_editor", "rollback"),
    "shell": ("run_command", "check_command"),
    "code": ("execute_code", "python_execute", "normal_python_execute", "bash", "sandbox_file"),
    "charts": ("visualization_preparation", "data_visualization"),
    "web": ("web_search", "read_page", "delegate_to_research"),
    "talk": ("ask_user", "send_file", "task_planning", "todo", "memory", "terminate"),
    "find": ("find_tools", "call_tool"),
    "servers": ("*__*",),
}
PLACES = "TOOLSETS_FOR"


def within(name: str, reach: Reach) -> bool:
    """`name` is in each of the sets."""
    return all(any(fnmatchcase(name, one) for one in patterns) for patterns in reach)


class Toolsets(BaseModel):
    """`sets` by name; `places`: the set that holds for a place: a platform, `role:` and a role,
    `profile:` and a profile, or a conversation's address."""

    model_config = ConfigDict(frozen=True)

    sets: dict[str, Patterns] = {}
    places: dict[str, str] = {}

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "Toolsets":
        """The settings in `env`; raises SettingsError."""
        sets = _parse(env, "TOOLSETS", dict[str, list[str]], '{"safe": ["read_file", "@web"]}')
        places = _parse(env, PLACES, dict[str, str], '{"telegram": "safe", "role:viewer": "safe"}')
        made = cls(sets={name: tuple(listed) for name, listed in sets.items()}, places=places)
        for name in sets:
            made.patterns(name)
        for place, name in places.items():
            if name not in made.sets and name not in BUILT_IN:
                raise SettingsError(PLACES, f"{place}={name}", f"{_describe_sets(made.sets)}.")
        return made

    def patterns(self, name: str, above: Patterns = ()) -> Patterns:
        """The patterns of the set `name`, with those of the sets that it names by @. Raises
        SettingsError where one is not there, or holds itself."""
        listed = self.sets.get(name, BUILT_IN.get(name))
        if listed is None:
            raise SettingsError("TOOLSETS", f"@{name}", f"{_describe_sets(self.sets)}.")
        if name in above:
            raise SettingsError("TOOLSETS", f"@{name}", "it holds itself.")
        return self.flat(listed, (*above, name))

    def flat(self, listed: Patterns, above: Patterns = ()) -> Patterns:
        """The patterns of a set's entries."""
        found: list[str] = []
        for entry in listed:
            inner = self.patterns(entry[1:], above) if entry.startswith("@") else (entry,)
            found += (one for one in inner if one not in found)
        return tuple(found)

    def reach(self, places: Iterable[str]) -> Reach:
        """What may be used where all of `places` come together."""
        names = dict.fromkeys(self.places[one] for one in places if one in self.places)
        return tuple(self.patterns(name) for name in names)


def _describe_sets(sets: Mapping[str, Patterns]) -> str:
    return f"there is no such set; there are {', '.join((*sets, *BUILT_IN))}"


def _parse(env: Mapping[str, str], setting: str, kind: type[T], example: str) -> T:
    text = env.get(setting, "").strip() or "{}"
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise SettingsError(setting, "", f"write JSON such as {example} ({error}).") from None
