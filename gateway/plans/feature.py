"""Plans: people change the running one, and ask anew for a step of one that is over."""

from gateway.feature import Feature, on_press, on_queued, own_command
from gateway.messages import ButtonPressed, FormSubmitted, PlanPress
from gateway.plans import again, amend
from gateway.plans.commands import plan, todo

FEATURE = Feature(
    name="plans",
    commands=(own_command("plan", plan), own_command("todo", todo, "viewer")),
    presses=(on_press(PlanPress, amend.press),),
    begins=(on_queued(ButtonPressed, again.begin), on_queued(FormSubmitted, again.begin)),
)
