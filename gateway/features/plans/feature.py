"""Plans: people edit the running one, and retry steps of a finished one."""

from gateway.feature import Feature, on_press, on_queued, own_command
from gateway.features.plans import again, amend
from gateway.features.plans.commands import plan, todo
from gateway.messages import ButtonPressed, FormSubmitted, PlanPress

FEATURE = Feature(
    name="plans",
    commands=(
        own_command("plan", plan, most_words=1),
        own_command("todo", todo, "viewer", of_talk=True),
    ),
    presses=(on_press(PlanPress, amend.press),),
    begins=(on_queued(ButtonPressed, again.begin), on_queued(FormSubmitted, again.begin)),
)
