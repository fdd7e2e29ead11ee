"""/secret: which secrets commands may use here. Values are never written in a chat."""

from gateway.feature import Call
from gateway.features.secrets.texts import TEXTS
from gateway.roles import at_least, say_refused


async def secret(call: Call) -> str:
    """The names, or one forgotten."""
    context = call.context
    words = call.words
    vault, address = context.services.vault, context.state.conversation.id
    if vault is None:
        return TEXTS.say("secret_none", call.language, address=address)
    if call.option in ("remove", "forget") and len(words) == 2:
        mine = context.state.conversation.private or at_least(call.role, "admin")
        if not mine:
            return say_refused(call.role, "admin", call.language)
        gone = vault.drop(address, words[1])
        if gone:
            context.state.note_audit(call.command.sender.key, "secret_removed", words[1])
        return TEXTS.say(
            "secret_gone" if gone else "secret_unknown", call.language, name=words[1][:64]
        )
    if words:
        return TEXTS.say("secret_never", call.language, address=address)
    names = vault.names(address)
    if not names:
        return TEXTS.say("secret_none", call.language, address=address)
    return TEXTS.say("secret_list", call.language, names=", ".join(names), address=address)
