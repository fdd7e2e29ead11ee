"""The turn's budget of model calls in its loop: a warning before they are used up."""

from agent_core.events import BudgetWarned
from agent_core.models.port import ModelReply
from agent_core.scope import Scope

SHARE = 0.7
"""The used share of a turn's calls at which the model is warned."""
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
        """Return the warning to add after `reply`, once; otherwise ""."""
        if not self._most or self._warned or reply.nth < SHARE * self._most:
            return ""
        self._warned = True
        scope.emit(BudgetWarned(used=reply.nth, limit=self._most))
        return WARNING.format(used=reply.nth, most=self._most)
