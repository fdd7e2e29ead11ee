"""Cards that something else came in place of: they say what, and offer nothing any more."""

from collections.abc import Callable

from msgspec.structs import replace

from gateway.texts import Key, say
from gateway.views import PlanView, View


def retire_plan(key: Key, **values: object) -> Callable[[View], View]:
    """Make a plan's card one that is over: a word on what came instead, no buttons."""

    def retire(view: View) -> View:
        if not isinstance(view, PlanView) or not view.buttons:
            return view
        return replace(view, buttons=(), outcome=say(key, view.language, **values))

    return retire
