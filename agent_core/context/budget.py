"""What a turn may take, as its loop sees it: a warning before the model calls are used up."""

from agent_core.events import BudgetWarned
from agent_core.models.port import ModelReply
from agent_core.scope import Scope

SHARE = 0.7
"""Of the turn's calls that is used when the model is warned."""
WARNING = (
    "[Budget]\n{used} of {most} model calls of this turn are used. Come to an end: do only what "
    "the answer still needs."
)


class Budget:
    """The calls of one turn, `most` of them (0: any number)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._warned = False

    def warn(self, scope: Scope, reply: ModelReply) -> str:
        """What the model is told after `reply`, once; else ""."""
        if not self._most or self._warned or reply.nth < SHARE * self._most:
            return ""
        self._warned = True
        scope.emit(BudgetWarned(used=reply.nth, limit=self._most))
        return WARNING.format(used=reply.nth, most=self._most)
