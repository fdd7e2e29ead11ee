"""A turn tool works by the turn's own means: its model and its other tools."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias

from pydantic import BaseModel

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.orchestration.brief import Brief, Hands
from agent_core.scope import Scope
from agent_core.tools.contract import Args, Tool, ToolCallable, ToolContext

MadeCall: TypeAlias = tuple[str, dict[str, object]]
"""The name and the arguments of a tool that a turn tool calls."""
TurnCallable: TypeAlias = Callable[[Args, Scope, Brief, Hands], Awaitable[str | ToolOutput]]


async def _refuse_alone(arguments: BaseModel, context: ToolContext) -> str:
    raise ToolFailed("This tool belongs to a turn; it does not run alone.")


def _say_yes(arguments: BaseModel) -> bool:
    return True


def _say_no(arguments: BaseModel) -> bool:
    return False


def _make_none(arguments: BaseModel) -> tuple[MadeCall, ...]:
    return ()


class TurnTool(Tool[Args], Generic[Args], frozen=True, kw_only=True):
    """`run_in_turn` gets the call's scope in place of `call`: it is journaled by the records that
    it makes there, not as one effect, and after a crash it continues where it was."""

    run_in_turn: TurnCallable[Args]
    call: ToolCallable[Args] = _refuse_alone
    works_by_turn: Callable[[Args], bool] = _say_yes
    """False for arguments with which it is a plain tool: then `call` is made."""
    makes: Callable[[Args], tuple[MadeCall, ...]] = _make_none
    """The calls by which it acts, as far as its arguments tell: they are judged where the call
    itself is only judged, not made. ToolFailed if it makes none with these arguments."""
    asks: Callable[[Args], bool] = _say_no
    """True for arguments with which it asks a person before it changes anything."""
