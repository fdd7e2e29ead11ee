"""A change that a person makes to a plan: a value that journals hold."""

from typing import Literal

from msgspec import Struct

Action = Literal["done", "skip", "retry", "drop", "add", "move"]


class PlanEdit(Struct, frozen=True, kw_only=True):
    """One edit. `step` is an id, `text` the task of an added step; an added or a moved step comes
    before the step `before`, "" = at the end."""

    action: Action
    step: str = ""
    text: str = ""
    before: str = ""
