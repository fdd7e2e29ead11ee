"""All skills: those with code, and the folders that an operator added."""

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_core.errors import ToolFailed
from agent_core.scope import Scope
from agent_core.skills.contract import Skill
from agent_core.skills.folders import FolderSkill, find_skills
from agent_core.tools.contract import Tool


class FoundSkill(Struct, frozen=True, kw_only=True):
    """The result of a look-up: `code`, or a folder as it was then, or nothing."""

    code: bool = False
    folder: FolderSkill | None = None
    known: tuple[str, ...] = ()


class Skills:
    """All skills, by id. `folder`: of skills without code, read on each request, so that an added
    one works at once."""

    def __init__(
        self, skills: Iterable[Skill], folder: Path | None = None, tools: tuple[Tool, ...] = ()
    ) -> None:
        self.tools = tools
        """The tools of installed skills."""
        self._skills = {skill.metadata.id: skill for skill in skills}
        self._folder = folder

    def list_all(self) -> tuple[Skill, ...]:
        """Return all skills. Blocks."""
        return (*self._skills.values(), *self._folders())

    def why_unusable(self, skill_id: str) -> str:
        """Return the reason why the skill with code cannot be used here, "" if it can."""
        skill = self._skills.get(skill_id)
        return skill.why_unusable() if skill is not None else f"There is no skill {skill_id}."

    async def look_up(self, scope: Scope, skill_id: str) -> Skill:
        """Return the skill, a folder as of the turn's first look; ToolFailed if it does not
        exist."""
        look = partial(asyncio.to_thread, self._look, skill_id)
        kept = await scope.once("skill", look, kind=FoundSkill)
        skill = self._skills.get(skill_id) if kept.code else kept.folder
        if skill is None:
            known = ", ".join(kept.known) or "none"
            raise ToolFailed(f"There is no skill {skill_id!r}. Skills: {known}.")
        return skill

    def _look(self, skill_id: str) -> FoundSkill:
        if skill_id in self._skills:
            return FoundSkill(code=True)
        inner = sorted(self._folders(), key=lambda skill: not skill.why)
        folders = {skill.name: skill for skill in inner}  # a usable one before a broken one
        if (folder := folders.get(skill_id)) is not None:
            return FoundSkill(folder=folder)
        return FoundSkill(known=(*self._skills, *sorted(folders)))

    def _folders(self) -> tuple[FolderSkill, ...]:
        inner = find_skills(self._folder) if self._folder is not None else ()
        taken = set(self._skills)
        return tuple(_mark_name_taken(skill, taken) for skill in inner)


def _mark_name_taken(skill: FolderSkill, taken: set[str]) -> FolderSkill:
    """Mark a skill whose name another one has, and add its name to `taken`."""
    if skill.why:
        return skill
    if skill.name in taken:
        return replace(skill, why=f"The name {skill.name} is taken. An operator has to change it.")
    taken.add(skill.name)
    return skill
