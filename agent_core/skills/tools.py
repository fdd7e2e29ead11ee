"""The tools invoke_skill and list_skills.

invoke_skill is a turn tool (`TurnTool.run_in_turn`): a skill's calls of models and tools are
records of their own in its scope. It asks for no permission itself, since each call that it makes
is judged alone.
"""

import asyncio

import msgspec
from pydantic import BaseModel, Field, JsonValue

from agent_core.orchestration.brief import Brief, Hands
from agent_core.scope import Scope
from agent_core.skills.context import SkillDeps, SkillRun
from agent_core.skills.contract import Skill, Values
from agent_core.skills.registry import Skills
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.turn.tool import TurnTool

INVOKE, LIST = "invoke_skill", "list_skills"


class InvokeSkillArguments(BaseModel):
    """Arguments of invoke_skill."""

    skill_id: str = Field(min_length=1, max_length=64)
    params: dict[str, JsonValue] = {}


class NoSkillArguments(BaseModel):
    """list_skills has no arguments."""


def skill_tools(skills: Skills) -> tuple[Tool, ...]:
    """invoke_skill and list_skills over `skills`."""

    async def invoke(wanted: InvokeSkillArguments, scope: Scope, brief: Brief, hands: Hands) -> str:
        context = SkillRun(scope, SkillDeps(brief=brief, hands=hands, find=skills.look_up))
        params: Values = dict(wanted.params)
        output = await context.invoke_skill(wanted.skill_id, params)
        return msgspec.json.encode(output).decode()

    async def list_skills(arguments: BaseModel, context: ToolContext) -> str:
        return "\n\n".join(map(_line, await asyncio.to_thread(skills.list_all)))

    return (
        TurnTool(
            name=INVOKE,
            description="Carry out a skill: pictures, slides, an app, code, data analysis, web "
            "research, a plan, and what operators added. list_skills says which there are and "
            "what params they take. Files that it makes for the person are given to them.",
            summary="carry out a skill",
            arguments=InvokeSkillArguments,
            repetition="idempotent",
            access="read",
            run_in_turn=invoke,
        ),
        Tool(
            name=LIST,
            description="The skills that invoke_skill can carry out, with their params.",
            summary="the skills, with params",
            arguments=NoSkillArguments,
            repetition="pure",
            access="read",
            call=list_skills,
        ),
    )


def _line(skill: Skill) -> str:
    about = skill.metadata
    if why := skill.why_unusable():
        return f"{about.id}: cannot be used here. {why}"
    params = msgspec.json.encode(about.parameters).decode()
    return f"{about.id} ({about.category}, {about.version}): {about.description}\nparams: {params}"
