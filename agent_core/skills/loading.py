"""Installed skills with code, named in the setting `SKILLS`."""

import importlib
from collections.abc import Iterable

from agent_core.skills.contract import Skill, ToolSkill
from agent_core.tools.contract import Tool
from agent_core.tools.tool_settings import SKILLS

MEND = "write package.module:function; the function gives a skill, or a skill and its tool."
Loaded = tuple[tuple[Skill, ...], tuple[Tool, ...]]


def load_skills(entries: Iterable[str], taken: Iterable[str] = ()) -> Loaded:
    """Return the skills of the functions `package.module:function`, and their tools. Raises
    SettingsError, also for an id that is `taken` or occurs twice."""
    skills: dict[str, Skill] = {}
    tools: list[Tool] = []
    known = set(taken)
    for entry in entries:
        made = _call(entry)
        skill, *more = made if isinstance(made, tuple) else (made,)
        if not isinstance(skill, ToolSkill) or not all(isinstance(one, Tool) for one in more):
            raise SKILLS.error(entry, MEND)
        name = skill.metadata.id
        if name in known:
            raise SKILLS.error(entry, f"there is a skill {name} already; give it another id.")
        known.add(name)
        skills[name] = skill
        tools += more
    return tuple(skills.values()), tuple(tools)


def _call(entry: str) -> object:
    module, colon, name = entry.partition(":")
    if not (module and colon and name):
        raise SKILLS.error(entry, MEND)
    try:
        return getattr(importlib.import_module(module), name)()
    except Exception as error:  # boundary: third-party code
        mend = f"it cannot be loaded ({type(error).__name__}: {error})."
        raise SKILLS.error(entry, mend) from error
