"""The permission mode in force for a person: whether calls are asked about."""

from gateway.feature import Call
from gateway.texts import say


def find_mode(call: Call) -> str:
    """The mode for the turns of who gave the command."""
    state, asker = call.context.state, (call.command.sender.key, call.role)
    return call.context.services.agent.permission(state.conversation, state.row.settings, asker)


def describe_mode(call: Call) -> str:
    """Describe the mode for the person who gave the command: when they are asked for permission."""
    return say("mode_ask" if find_mode(call) == "ask" else "mode_auto", call.language)
