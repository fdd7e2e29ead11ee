"""The permission mode in force for a person: whether calls are asked about."""

from gateway.feature import Context
from gateway.roles import Role
from gateway.texts import say


def find_mode(context: Context, role: Role) -> str:
    """The mode for a person of this role."""
    state = context.state
    return context.services.agent.permission(state.conversation, state.row.settings, role)


def describe_mode(context: Context, role: Role, language: str) -> str:
    """When a person of this role is asked for permission, in words."""
    return say("mode_ask" if find_mode(context, role) == "ask" else "mode_auto", language)
