"""The skill data_analysis: a look at the data, a plan, a program run where commands run, and a
summary of its output. Numbers come from the program, never from the model."""

from agent_core.errors import ToolFailed
from agent_core.skills.built_in.fences import code_in
from agent_core.skills.calling import require_good
from agent_core.skills.contract import (
    SkillContext,
    SkillMetadata,
    ToolSkill,
    Values,
    Wanted,
    fields,
    text,
)
from agent_core.skills.files import slug

MAX_TRIES = 3
HEAD = 15
"""Lines of each file that the model sees before it plans."""
OUTPUT = 6_000

PLAN = """\
Question about data:
{question}

The beginning of each file:
{heads}

Plan the analysis: the steps, from reading the files to the answer."""
PROGRAM = """\
Write one Python program that carries the plan out. It runs in the folder of the files and reads \
them by the paths above. Use the standard library; use pandas or matplotlib only inside a try \
that goes on without. It prints every figure that the answer needs, each with its name, and \
nothing else. Answer with the program in one block of code."""
MEND = """\
It ended like this:
{output}

Write the whole program again, mended, in one block of code."""
SUM_UP = """\
The program gave this:
{output}

Sum up for the person: the question, what was done, the findings with their figures, what is \
uncertain. Use no figure that does not stand there."""
_PLAN = fields({"steps": {"type": "array", "minItems": 1, "items": {"type": "string"}}})


def data_skill() -> ToolSkill:
    """data_analysis."""
    return ToolSkill(
        metadata=SkillMetadata(
            id="data_analysis",
            description="Answer a question about files of data: plan, run a program over them, sum "
            "up what it gave.",
            category="data",
            parameters=fields(
                {
                    "question": text("What is to be found out."),
                    "files": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 10,
                        "items": {"type": "string", "minLength": 1},
                    },
                }
            ),
            output_schema=fields(
                {
                    "summary": text("", 50_000),
                    "plan": {"type": "array", "items": {"type": "string"}},
                    "program": text("Its file."),
                    "output": {"type": "string"},
                }
            ),
        ),
        run=_run,
        tools=("read_file", "write_file", "run_command"),
    )


async def _run(context: SkillContext, params: Values) -> Values:
    question, files = str(params["question"]), params["files"]
    assert isinstance(files, list)
    heads = await _heads(context, tuple(map(str, files)))
    plan = await context.think_as("pro", PLAN.format(question=question, heads=heads), _PLAN)
    path = f"analysis/{slug(question, 'analysis')}.py"
    output = (await _run_program(context, path))[-OUTPUT:]
    summary = await context.think("pro", SUM_UP.format(output=output))
    return {"summary": summary, "plan": plan["steps"], "program": path, "output": output}


async def _heads(context: SkillContext, files: tuple[str, ...]) -> str:
    looks: tuple[Wanted, ...] = tuple(
        ("read_file", {"path": path, "limit": HEAD}) for path in files
    )
    seen = await context.tools(looks)
    pairs = zip(files, seen, strict=True)
    return "\n\n".join(f"{path}:\n{require_good(result)}" for path, result in pairs)


async def _run_program(context: SkillContext, path: str) -> str:
    """Return the program's output, after retries; ToolFailed if all attempts fail."""
    ask, output = PROGRAM, ""
    for _ in range(MAX_TRIES):
        code = code_in(await context.think("pro", ask))
        await context.tool("write_file", {"path": path, "content": code})
        run: Wanted = ("run_command", {"command": f"python3 {path}", "timeout": 30})
        (result,) = await context.tools((run,))
        output = require_good(result)
        if result.command is not None and result.command.exit_code == 0:
            return output
        ask = MEND.format(output=output[-OUTPUT:])
    raise ToolFailed(f"The program {path} failed {MAX_TRIES} times. At last:\n{output[-OUTPUT:]}")
