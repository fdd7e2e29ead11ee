"""People as jobs know them: where they ask, in which role, with which accounts."""

from gateway.access.access import Access
from gateway.jobs_port import Asker
from gateway.messages import Conversation, Sender


async def identify_asker(access: Access, conversation: Conversation, sender: Sender) -> Asker:
    """Find out who asks in `conversation`, as the access lists have it now."""
    return Asker(
        conversation=conversation,
        sender=sender,
        role=await access.learn(sender) or "",
        accounts=await access.accounts(sender.key),
    )
