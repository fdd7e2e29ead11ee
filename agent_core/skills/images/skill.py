"""The skill image_generation: one picture from words."""

from agent_core.skills.contract import SkillContext, SkillMetadata, ToolSkill, Values, fields, text
from agent_core.skills.images.painter import Painter
from agent_core.skills.images.tool import NAME

SHAPE = {"type": "string", "enum": ["square", "wide", "tall"]}


def image_skill(painter: Painter) -> ToolSkill:
    """image_generation by `painter`."""
    return ToolSkill(
        metadata=SkillMetadata(
            id="image_generation",
            description="Make a picture from words and give it to the person.",
            category="creative",
            parameters=fields(
                {"prompt": text("What is to be seen, and how.")},
                {"shape": SHAPE, "name": text("Of the file, without its end.", 60)},
            ),
            output_schema=fields({"made": text("What was made, and where it is.")}),
        ),
        run=_run,
        tools=(NAME,),
        why_not=painter.why_unusable,
    )


async def _run(context: SkillContext, params: Values) -> Values:
    return {"made": await context.tool(NAME, params)}
