"""The skill web_research: a question to the research agent."""

from agent_core.research.depths import DEPTHS
from agent_core.research.tool import NAME
from agent_core.skills.contract import SkillContext, SkillMetadata, ToolSkill, Values, fields, text


def research_skill() -> ToolSkill:
    """web_research, by the tool delegate_to_research."""
    return ToolSkill(
        metadata=SkillMetadata(
            id="web_research",
            description="Look a question up on the web and sum up the sources, with citations.",
            category="research",
            parameters=fields(
                {"question": text("What is to be found out.", 4_000)},
                {"depth": {"type": "string", "enum": list(DEPTHS)}},
            ),
            output_schema=fields({"report": text("With numbered citations.", 50_000)}),
        ),
        run=_run,
        tools=(NAME,),
    )


async def _run(context: SkillContext, params: Values) -> Values:
    return {"report": await context.tool(NAME, {"depth": "quick", **params})}
