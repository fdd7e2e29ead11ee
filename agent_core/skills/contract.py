"""What a skill is: what it says of itself, and an async function that works through a context.

A skill is a way to do a kind of work, made of calls of the model and of tools. It has no effects
of its own: whatever it does to the world is a call of a tool, judged and journaled like the
model's own.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from agent_core.messages import ToolResult
from agent_core.orchestration.brief import Brief, Hands
from agent_core.scope import Scope
from agent_core.settings import Tier

Category = Literal["creative", "code", "research", "data", "automation", "instructions"]
Schema: TypeAlias = dict[str, object]
"""A JSON schema of an object."""
Values: TypeAlias = dict[str, object]
"""A JSON object: what a skill is given, and what it gives."""
Wanted: TypeAlias = tuple[str, Values]
"""A tool's name and its arguments."""


class SkillMetadata(Struct, frozen=True, kw_only=True):
    """What a skill says of itself. What it is given has to fit `parameters`, what it gives
    `output_schema`."""

    id: str
    version: str = "1.0.0"
    description: str
    category: Category
    parameters: Schema
    output_schema: Schema


class SkillContext(Protocol):
    """What a skill works through: models, tools and other skills, all within the turn's scope."""

    brief: Brief
    """What the turn began with."""
    hands: Hands
    """What the turn works with."""

    def step(self, name: str) -> Scope:
        """A scope for the next thing that the skill does."""

    async def invoke_skill(self, skill_id: str, params: Values) -> Values:
        """What another skill gives. Raises ToolFailed where it cannot be used or nothing fits."""

    async def think(self, tier_name: Tier, prompt: str) -> str:
        """What a model of the tier answers, after all that it was asked here before."""

    async def think_as(self, tier_name: Tier, prompt: str, schema: Schema) -> Values:
        """An answer that fits `schema`; one that does not is asked for once more."""

    async def tool(self, name: str, arguments: Values) -> str:
        """What the tool gave; raises ToolFailed where it failed or was denied."""

    async def tools(self, wanted: tuple[Wanted, ...]) -> tuple[ToolResult, ...]:
        """What the calls gave, also those that failed. Those that need a person stand on one
        card."""

    async def read(self, look: Callable[[], str]) -> str:
        """A text from the world that only reads, the same again at a replay. `look` blocks, and
        may raise ToolFailed."""


class Skill(Protocol):
    """Something that `invoke_skill` can carry out."""

    @property
    def metadata(self) -> SkillMetadata:
        """What it says of itself."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that it cannot do without."""

    def why_unusable(self) -> str:
        """Why it cannot be used here and what to do, "" if it can. Cheap."""

    async def execute(self, context: SkillContext, params: Values) -> Values:
        """Do the work. Raises AgentError where it cannot be done; params fit the schema."""


SkillCallable: TypeAlias = Callable[[SkillContext, Values], Awaitable[Values]]


class ToolSkill(Struct, frozen=True, kw_only=True):
    """A skill that is one async function."""

    metadata: SkillMetadata
    run: SkillCallable
    tools: tuple[str, ...] = ()
    why_not: Callable[[], str] | None = None

    def why_unusable(self) -> str:
        """Why it cannot be used here, "" if it can."""
        return self.why_not() if self.why_not is not None else ""

    async def execute(self, context: SkillContext, params: Values) -> Values:
        """Do the work."""
        return await self.run(context, params)


def fields(required: Schema, optional: Schema | None = None) -> Schema:
    """A schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def text(about: str, most: int = 8_000) -> Schema:
    """A schema of a text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": most, "description": about}
