"""Cards that the approvers' chat did not take: whoever asked is told, and does not wait in vain."""

from gateway.conversation.services import Services
from gateway.messages import GatewaySaid, read_conversation
from gateway.texts import say


async def tell_unshown(services: Services, name: str, why: str) -> None:
    """Tell where the question was asked that the approvers' chat did not take its card."""
    found, deliver = await services.store.find(name), services.deliver
    if found is None or found[1].status != "open" or deliver is None:
        return
    turn = await services.store.turn(found[1].turn)
    hidden = services.find_redactions().hide(why)
    text = say("not_relayed", turn.language if turn is not None else "", why=hidden)
    where, event = read_conversation(found[0]), f"not_relayed:{name}"
    await deliver([GatewaySaid(conversation=where, event=event, text=text)])
