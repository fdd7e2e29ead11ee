"""Cards that something else came in place of: they say what, and offer nothing any more."""

from collections.abc import Callable

from msgspec.structs import replace

from gateway.texts import Key, say
from gateway.views import Activity, Fate, Notice, PlanView, SaidView, View


def retire_plan(key: Key, **values: object) -> Callable[[View], View]:
    """Make a plan's card one that is over: a word on what came instead, no buttons."""

    def retire(view: View) -> View:
        if not isinstance(view, PlanView) or not view.buttons:
            return view
        return replace(view, buttons=(), outcome=say(key, view.language, **values))

    return retire


def drop_buttons(view: View) -> View:
    """Make a notice, or what was done, one that offers nothing any more."""
    return replace(view, buttons=()) if isinstance(view, Notice | Activity) else view


def fold_said(fate: Fate) -> Callable[[View], View]:
    """Let what was said tell that all of its turn holds no longer."""

    def retire(view: View) -> View:
        return replace(view, fate=fate) if isinstance(view, SaidView) else view

    return retire
