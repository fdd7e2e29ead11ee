"""The built-in skills, and the tools they use."""

from pathlib import Path

from agent_core.settings import ModelSettings
from agent_core.skills.apps.skill import app_skill
from agent_core.skills.apps.tools import Preview, app_tools
from agent_core.skills.built_in.code_generation import code_skill
from agent_core.skills.built_in.data_analysis import data_skill
from agent_core.skills.built_in.task_planning import planning_skill
from agent_core.skills.built_in.web_research import research_skill
from agent_core.skills.images.painter import Painter
from agent_core.skills.images.skill import image_skill
from agent_core.skills.images.tool import image_tool
from agent_core.skills.loading import load_skills
from agent_core.skills.registry import Skills
from agent_core.skills.slides.skill import slide_skill
from agent_core.skills.slides.tool import slides_tool
from agent_core.skills.tools import skill_tools
from agent_core.tools.contract import Tool
from agent_core.tools.send import FileStore


def built_in(settings: ModelSettings, folder: Path | None = None) -> Skills:
    """Return all skills; `folder` holds skills without code that an operator added.
    SettingsError."""
    own = (
        image_skill(Painter(settings)),
        slide_skill(),
        app_skill(),
        code_skill(),
        data_skill(),
        research_skill(),
        planning_skill(),
    )
    more, tools = load_skills(settings.tools.skills, (one.metadata.id for one in own))
    return Skills((*own, *more), folder, tools)


def tools_of(
    skills: Skills, settings: ModelSettings, file_store: FileStore, preview: Preview
) -> tuple[Tool, ...]:
    """Return the tools over `skills`, and those that the built-in skills call."""
    made = (image_tool(Painter(settings), file_store), slides_tool(file_store), *app_tools(preview))
    return (*skill_tools(skills), *made, *skills.tools)
