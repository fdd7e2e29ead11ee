"""The skill code_generation: code for one task, as text or as a file of the workspace."""

from agent_core.skills.built_in.fences import code_in, strip_code_blocks
from agent_core.skills.contract import SkillContext, SkillMetadata, ToolSkill, Values, fields, text

WRITE = """\
Write code for this task{language}:
{task}

Answer with one block of code that is complete and runs as it is, then at most five sentences: \
what it needs and how it is used."""


def code_skill() -> ToolSkill:
    """code_generation."""
    return ToolSkill(
        metadata=SkillMetadata(
            id="code_generation",
            description="Write code for one task; with a path it is written into that file.",
            category="code",
            parameters=fields(
                {"task": text("What the code has to do.")},
                {"language": text("Such as Python.", 40), "path": text("A file.", 200)},
            ),
            output_schema=fields(
                {"code": {"type": "string"}, "explanation": {"type": "string"}},
                {"path": {"type": "string"}},
            ),
        ),
        run=_run,
    )


async def _run(context: SkillContext, params: Values) -> Values:
    language = f" in {params['language']}" if params.get("language") else ""
    said = await context.think("pro", WRITE.format(language=language, task=params["task"]))
    code = code_in(said)
    output: Values = {"code": code, "explanation": strip_code_blocks(said)}
    if path := params.get("path"):
        await context.tool("write_file", {"path": path, "content": code})
        output["path"] = path
    return output
