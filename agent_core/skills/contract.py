"""What a skill is: what it says of itself, and an async function that works through a context.

A skill is a way to do a kind of work, made of calls of the model and of tools. It has no effects
of its own: whatever it does to the world is a call of a tool, judged and journaled like the
model's own.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from agent_core.skills.context import SkillContext

Category = Literal["creative", "code", "research", "data", "automation", "instructions"]
Schema: TypeAlias = dict[str, object]
"""A JSON schema of an object."""
Values: TypeAlias = dict[str, object]
"""A JSON object: what a skill is given, and what it gives."""


CALLS = "skill-"
"""How the ids of calls begin that skills make."""


class SkillMetadata(Struct, frozen=True, kw_only=True):
    """What a skill says of itself. What it is given has to fit `parameters`, what it gives
    `output_schema`."""

    id: str
    version: str = "1.0.0"
    description: str
    category: Category
    parameters: Schema
    output_schema: Schema


class Skill(Protocol):
    """Something that `invoke_skill` can carry out."""

    @property
    def metadata(self) -> SkillMetadata:
        """What it says of itself."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Tools that it cannot do without."""

    def missing(self) -> str:
        """Why it cannot be used here and what to do, "" if it can. Cheap."""

    async def execute(self, context: "SkillContext", params: Values) -> Values:
        """Do the work. Raises AgentError where it cannot be done; params fit the schema."""


class ToolSkill(Struct, frozen=True, kw_only=True):
    """A skill that is one async function."""

    metadata: SkillMetadata
    run: "SkillCallable"
    tools: tuple[str, ...] = ()
    why_not: Callable[[], str] | None = None

    def missing(self) -> str:
        """Why it cannot be used here, "" if it can."""
        return self.why_not() if self.why_not is not None else ""

    async def execute(self, context: "SkillContext", params: Values) -> Values:
        """Do the work."""
        return await self.run(context, params)


SkillCallable: TypeAlias = "Callable[[SkillContext, Values], Awaitable[Values]]"


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
