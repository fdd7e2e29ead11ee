"""The skill app_builder: planned on MAX, written file by file on PRO, installed and started where
commands run. The person gets a link to see it."""

from collections.abc import Mapping
from typing import cast

import msgspec
from msgspec import Struct

from agent_core.messages import ToolResult
from agent_core.skills.apps.frameworks import FRAMEWORKS, STACKS, Framework, starter_files
from agent_core.skills.apps.tools import INSTALL, START, folder_of, resolve_path
from agent_core.skills.built_in.fences import code_in
from agent_core.skills.calling import require_good
from agent_core.skills.contract import (
    Schema,
    SkillContext,
    SkillMetadata,
    ToolSkill,
    Values,
    Wanted,
    fields,
    text,
)
from agent_core.skills.files import slug

MAX_FILES = 15
MAX_TAIL = 1_500
"""Characters of a command's output that are passed on."""

PLAN = """\
Plan a small web app for this request:
{description}

{framework}
Name every file that is still to be written, at most {most}, with its path in the project and what \
is in it. These are there already and need no plan: {ready}."""
CHOOSE = "Choose the framework that fits best of: {known}. static needs no packages."
GIVEN = "The framework is {framework}."
BEGIN = """\
An app is made in these steps: {steps}
The request: {description}
{about}
The plan: {plan}

These files are there already:
{ready}

"""
WRITE = "Write the file {path} ({purpose}), whole and ready to run, in one block of code."

_PLAN: Schema = fields(
    {
        "name": text("Short, of small letters.", 40),
        "framework": {"type": "string", "enum": list(FRAMEWORKS)},
        "summary": text("What the app does, in two sentences.", 1_000),
        "files": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_FILES,
            "items": fields({"path": text("", 200), "purpose": text("", 1_000)}),
        },
    }
)


NOT_SHOWN = "It is not shown, because it was not started."
SHOWN = "The person has a link to see the app."


class _File(Struct, frozen=True):
    path: str
    purpose: str


class _Plan(Struct, frozen=True):
    """As MAX made it; it fits the schema."""

    name: str
    framework: Framework
    summary: str
    files: tuple[_File, ...]


def app_skill() -> ToolSkill:
    """app_builder."""
    return ToolSkill(
        metadata=SkillMetadata(
            id="app_builder",
            description="Build a small web app in the workspace: React, Next.js, Vue, Express, "
            "FastAPI, Flask, or plain HTML. The person gets a link to see it.",
            category="automation",
            parameters=fields(
                {"description": text("What the app is and does.")},
                {"framework": {"type": "string", "enum": list(FRAMEWORKS)}},
            ),
            output_schema=fields(
                {
                    "project": text("Its folder."),
                    "framework": text(""),
                    "summary": text(""),
                    "files": {"type": "array", "items": {"type": "string"}},
                    "installed": {"type": "string"},
                    "started": {"type": "string"},
                    "preview": text(""),
                }
            ),
        ),
        run=_run,
        tools=("write_file", INSTALL, START),
    )


async def _run(context: SkillContext, params: Values) -> Values:
    wish = str(params["description"])
    plan = await _plan_files(context, wish, cast(str, params.get("framework", "")))
    project, ready = folder_of(plan.name), starter_files(slug(plan.name, "app"), plan.framework)
    files = ready | await _write_files(context, wish, plan, ready)
    calls: tuple[Wanted, ...] = tuple(
        ("write_file", {"path": resolve_path(project, path), "content": content})
        for path, content in files.items()
    )
    for result in await context.tools(calls):
        require_good(result)
    installed, started, shown = await _install_and_start(context, project)
    return {
        "project": project,
        "framework": plan.framework,
        "summary": plan.summary,
        "files": list(files),
        "installed": installed,
        "started": started,
        "preview": shown,
    }


async def _plan_files(context: SkillContext, wish: str, framework: str) -> _Plan:
    """Plan the files, on MAX."""
    named = GIVEN.format(framework=framework)
    choose = named if framework else CHOOSE.format(known=", ".join(FRAMEWORKS))
    stack = STACKS.get(cast(Framework, framework))
    ready = ", ".join(stack.files("app")) if stack is not None else "the package's manifest"
    ask = PLAN.format(description=wish, framework=choose, most=MAX_FILES, ready=ready or "no files")
    made = await context.think_as("max", ask, _PLAN)
    plan = msgspec.convert(made, _Plan)
    return msgspec.structs.replace(plan, framework=framework) if framework else plan


async def _write_files(
    context: SkillContext, wish: str, plan: _Plan, ready: Mapping[str, str]
) -> dict[str, str]:
    """Write the content of each file, on PRO, each one after all those before it."""
    ask = BEGIN.format(
        steps="plan, write each file, install, start",
        description=wish,
        about=STACKS[plan.framework].about,
        plan=msgspec.json.encode(plan).decode(),
        ready="\n".join(f"{path}:\n{content}" for path, content in ready.items()) or "none",
    )
    made: dict[str, str] = {}
    for file in plan.files:
        if file.path not in ready and file.path not in made:
            ask += WRITE.format(path=file.path, purpose=file.purpose)
            made[file.path] = code_in(await context.think("pro", ask))
            ask = ""
    return made


async def _install_and_start(context: SkillContext, project: str) -> tuple[str, str, str]:
    """Return the results of installing, starting and showing it. A failure removes no files."""
    (installed,) = await context.tools(((INSTALL, {"project": project}),))
    if installed.error or _has_failed(installed):
        return _tail(installed), "Not started, because its packages are not installed.", NOT_SHOWN
    (started,) = await context.tools(((START, {"project": project}),))
    failed = started.error or _has_failed(started)
    return _tail(installed), _tail(started), NOT_SHOWN if failed else SHOWN


def _has_failed(result: ToolResult) -> bool:
    return result.command is not None and result.command.failed


def _tail(result: ToolResult) -> str:
    return result.content[-MAX_TAIL:]
