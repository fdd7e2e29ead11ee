"""The tool ask_user: the model's way to put a question to the person."""

import logging
from typing import Literal

import msgspec
from pydantic import AliasChoices, BaseModel, Field

from agent_core.errors import ToolFailed
from agent_core.questions import Decision, Input, Question
from agent_core.text import clean_values
from agent_core.tools.contract import Tool, ToolContext

log = logging.getLogger("turnkeeper.tools")

NAME = "ask_user"
ALSO = {"ask_human": NAME, "clarify": NAME}
"""Names that models were taught elsewhere: a call of them is one of ask_user."""

_question = msgspec.json.Decoder(Question).decode
NOT_PUT = (
    "The tool's question could not be put to the person ({why}). Nobody was asked and nothing was "
    "done."
)


class AskArguments(BaseModel):
    """Arguments of ask_user; `inquire` and `choices` are its names elsewhere."""

    question: str = Field(min_length=1, validation_alias=AliasChoices("question", "inquire"))
    options: list[str] = Field(
        default=[], max_length=10, validation_alias=AliasChoices("options", "choices")
    )
    kind: Literal["decision", "input"] | None = None


def ask_tool() -> Tool:
    """ask_user, answered by a person through the scope's question."""
    return Tool(
        name=NAME,
        description="Ask the person; with options they choose one, without they write.",
        arguments=AskArguments,
        repetition="pure",
        access="person",
        call=_call,
        interactive=True,
        question=question,
    )


def question(asked: AskArguments) -> Question:
    """A decision where there are options, else an input."""
    if asked.options and asked.kind != "input":
        options = tuple(dict.fromkeys(asked.options))
        return Decision(text=asked.question, options=options, free=True)
    return Input(text="\n- ".join((asked.question, *asked.options)))


def make_question(tool: Tool, arguments: BaseModel) -> Question:
    """Return the question of a call of `tool`. Raises ToolFailed if its code, which may be
    anybody's, makes none that can be stored and asked."""
    assert tool.question is not None
    try:
        asked = clean_values(tool.question(arguments))
        kept: Question = _question(msgspec.json.encode(asked))
    except (msgspec.MsgspecError, ValueError) as error:
        log.warning("question_unfit", extra={"tool": tool.name, "why": str(error)})
        raise ToolFailed(NOT_PUT.format(why=error)) from error
    except Exception as error:
        log.exception("question_failed", extra={"tool": tool.name})
        raise ToolFailed(NOT_PUT.format(why=f"{type(error).__name__}: {error}")) from error
    if kept.expires < 0:
        raise ToolFailed(NOT_PUT.format(why="it expires before it is put"))
    return kept


async def _call(arguments: BaseModel, context: ToolContext) -> str:
    raise ToolFailed("A question is put to the person and never run.")
