"""Retires cards that were replaced: they say by what, and offer nothing any more."""

from collections.abc import Callable

from msgspec.structs import replace

from gateway.texts import Key, say
from gateway.views import Activity, Fate, Notice, PlanView, SaidView, View


def retire_plan(key: Key, **values: object) -> Callable[[View], View]:
    """Return a change that closes a plan's card: a note on its replacement, no buttons."""

    def retire(view: View) -> View:
        if not isinstance(view, PlanView) or not view.buttons:
            return view
        return replace(view, buttons=(), outcome=say(key, view.language, **values))

    return retire


def drop_buttons(view: View) -> View:
    """Remove the buttons of a notice or an activity."""
    return replace(view, buttons=()) if isinstance(view, Notice | Activity) else view


def fold_said(fate: Fate) -> Callable[[View], View]:
    """Return a change that marks a message of a turn that no longer counts."""

    def retire(view: View) -> View:
        return replace(view, fate=fate) if isinstance(view, SaidView) else view

    return retire
