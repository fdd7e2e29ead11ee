"""Words in a thread that answer a question there, where a thread is how people reply.

On platforms with replies a person answers a question by replying to its card. Where there are none
(Slack), what the one who is asked writes in the thread of the card is the reply, without a mention.
"""

from msgspec.structs import replace

from gateway.conversation.question_rows import list_open_questions
from gateway.conversation.services import Services
from gateway.messages import Inbound, MessageReceived, Quote
from gateway.roles import at_least
from gateway.store.rows import QuestionRow
from gateway.views import FormCard


async def mark_answer(services: Services, inbound: Inbound) -> Inbound:
    """`inbound`, in its line of talk, as a reply to the question that it answers; itself if it
    answers none. StoreFailed."""
    if not isinstance(inbound, MessageReceived) or not _may_answer(services, inbound):
        return inbound
    where, sender = inbound.conversation, inbound.sender
    if await services.store.summary(where.id) is None:  # most threads of people end here
        return inbound
    if not at_least(await services.access.learn(sender), "user"):
        return inbound
    for card, question in await list_open_questions(services.store, where.id):
        wants = isinstance(card, FormCard) or question.writes
        if wants and question.status == "open" and sender.key in question.entitled:
            native = await _find_native(services, where.id, question)
            if native:
                quote = Quote(message=native, mine=True)
                return replace(inbound, addressed=True, reply_to=quote)
    return inbound


def _may_answer(services: Services, message: MessageReceived) -> bool:
    where, adapter = message.conversation, services.adapters.get(message.conversation.platform)
    plain = not message.addressed and message.reply_to is None
    threads = bool(where.thread) and not where.private
    return plain and threads and adapter is not None and not adapter.abilities.replies


async def _find_native(services: Services, conversation: str, question: QuestionRow) -> str:
    """The message that bears the question's card, "" if it is not there yet."""
    rows = await services.store.outbox(conversation, question.turn)
    card = next((row for row in rows if row.name == f"ask:{question.key}"), None)
    return card.natives[-1].id if card is not None and card.natives else ""
