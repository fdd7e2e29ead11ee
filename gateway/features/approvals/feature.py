"""Approvals: who decides, standing rules, and the approvers' chat."""

from gateway.feature import Feature, on_inbound, on_press, own_command
from gateway.features.approvals import grants
from gateway.features.approvals.approvals import approvals, approve, deny
from gateway.features.approvals.relays import show_brought
from gateway.messages import QuestionBrought, RulePress

FEATURE = Feature(
    name="approvals",
    commands=(
        own_command("approvals", approvals, "viewer", most_words=0),
        own_command("approve", approve, most_words=1),
        own_command("deny", deny),
        own_command("permissions", grants.permissions),
    ),
    presses=(on_press(RulePress, grants.press),),
    inbounds=(on_inbound(QuestionBrought, show_brought),),
)
