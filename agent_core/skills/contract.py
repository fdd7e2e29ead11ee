"""The contract of a skill: its metadata, and an async function that works through a context.

A skill is a way to do a kind of work, made of calls of the model and of tools. It has no effects of
its own: every effect is a call of a tool, judged and journaled like the model's own.
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
"""A JSON object: a skill's input or result."""
Wanted: TypeAlias = tuple[str, Values]
"""A tool's name and its arguments."""


class SkillMetadata(Struct, frozen=True, kw_only=True):
    """A skill's description. Its input must fit `parameters`, its result `output_schema`."""

    id: str
    version: str = "1.0.0"
    description: str
    category: Category
    parameters: Schema
    output_schema: Schema


class SkillContext(Protocol):
    """The means of a skill: models, tools and other skills, all within the turn's scope."""

    brief: Brief
    """The turn's input."""
    hands: Hands
    """The turn's equipment."""

    def step(self, name: str) -> Scope:
        """A scope for the next thing that the skill does."""

    async def invoke_skill(self, skill_id: str, params: Values) -> Values:
        """Run another skill and return its result. Raises ToolFailed if it cannot be used or
        something does not fit."""

    async def think(self, tier_name: Tier, prompt: str) -> str:
        """Return the answer of a model of the tier, which sees all earlier questions to it here."""

    async def think_as(self, tier_name: Tier, prompt: str, schema: Schema) -> Values:
        """Return an answer that fits `schema`; one that does not is requested once more."""

    async def tool(self, name: str, arguments: Values) -> str:
        """Return the tool's output; raises ToolFailed if it failed or was denied."""

    async def tools(self, wanted: tuple[Wanted, ...]) -> tuple[ToolResult, ...]:
        """Return the results of the calls, also of failed ones. Calls that need approval share one
        card."""

    async def read(self, look: Callable[[], str]) -> str:
        """A text from the world that only reads, the same again at a replay. `look` blocks, and
        may raise ToolFailed."""


class Skill(Protocol):
    """Runs by `invoke_skill`."""

    @property
    def metadata(self) -> SkillMetadata:
        """Its description."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that it cannot do without."""

    def why_unusable(self) -> str:
        """Return the reason why it cannot be used here and what to do, "" if it can. Cheap."""

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
        """Return the reason why it cannot be used here, "" if it can."""
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
    """Return the schema of a text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": most, "description": about}
