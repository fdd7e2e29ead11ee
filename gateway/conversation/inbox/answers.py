"""Recognizes the messages that answer an open question.

A person answers a question by replying to its card. Where a thread is one task (Slack, Discord), a
message of the asked person in the card's thread is a reply too, with or without a mention; in a
private chat, in the thread below the card. An option of a choice is also chosen by its words.
"""

from msgspec.structs import replace

from agent_core.questions import Approval, Choice, Decision, Input, PlanReview
from gateway.access.access import refusal
from gateway.conversation.inbox.parts import render_answer, render_words
from gateway.conversation.question_rows import list_open_questions
from gateway.conversation.services import Services
from gateway.conversation.state import ConversationState
from gateway.messages import Inbound, MessageReceived, Quote, is_forwarded
from gateway.roles import at_least
from gateway.store.rows import OutboxRow, QuestionRow
from gateway.views import FormCard

MAX_UNSEEN = 30.0
"""Seconds that a stored message may wait until its conversation looks at it: another replica's
clock that is further off, or one that was set, tells nothing."""


async def mark_answer(services: Services, inbound: Inbound) -> Inbound:
    """Return `inbound` as a reply to the question that it answers; itself if it answers none.
    StoreFailed."""
    if not isinstance(inbound, MessageReceived) or not _may_answer(services, inbound):
        return inbound
    thread, sender = inbound.conversation.thread, inbound.sender
    below = inbound.conversation.private
    where = replace(inbound.conversation, thread="") if below else inbound.conversation
    if await services.store.summary(where.id) is None:  # most threads of people return here
        return inbound
    if not at_least(await services.access.learn(sender), "user"):
        return inbound
    for card, question in await list_open_questions(services.store, where.id):
        named = find_option(question, inbound.text)
        wants = isinstance(card, FormCard) or question.writes or named
        mine = sender.key in (*question.entitled, *question.writers)
        if wants and mine and question.status == "open":
            native = await _find_native(services, where.id, question)
            if native == thread or (native and not below):
                quote = Quote(message=native, mine=True)
                text = render_words(inbound) if is_forwarded(inbound) else inbound.text
                return replace(
                    inbound, conversation=where, addressed=True, reply_to=quote, text=text
                )
    return inbound


def _may_answer(services: Services, message: MessageReceived) -> bool:
    where, adapter = message.conversation, services.adapters.get(message.conversation.platform)
    replies = message.reply_to is not None and not is_forwarded(message)
    threads = bool(where.thread) and not replies
    if not threads or adapter is None:
        return False
    return adapter.abilities.task_threads or not adapter.abilities.replies


async def _find_native(services: Services, conversation: str, question: QuestionRow) -> str:
    """The message that bears the question's card, "" if it is not there yet."""
    rows = await services.store.outbox(conversation, question.turn)
    card = next((row for row in rows if row.name == f"ask:{question.key}"), None)
    return card.natives[-1].id if card is not None and card.natives else ""


async def find_answered(
    services: Services, state: ConversationState, seq: int, message: MessageReceived
) -> QuestionRow | None:
    """The open question that the message of row `seq` answers. Who was not asked must still have
    the right to."""
    if message.reply_to is not None or message.conversation.private:
        for turn in {one.turn for one in state.open_questions()}:
            await state.load_views(turn)  # the cards that it may reply to, or stand below
    question, where = find_open_input(state, seq, message), state.conversation
    if question is None:
        return None
    if message.sender.key in question.entitled and not isinstance(question.question, Approval):
        return question
    person = await services.access.person(message.sender)
    return None if refusal(question, where.id, where, person) else question


def read_answer(question: QuestionRow, words: str) -> tuple[Choice, str]:
    """Return the choice made by `words`, and the option they count as. Words never allow a call."""
    match question.question:
        case PlanReview():
            return "edit", words
        case Approval():
            return "deny", words
        case Decision() | Input():
            return "once", find_option(question, words) or words


def read_reply(question: QuestionRow, message: MessageReceived) -> tuple[Choice, str]:
    """As `read_answer`, of a message of words alone."""
    named = find_option(question, message.text)
    return read_answer(question, named or render_answer(message))


def find_open_input(
    state: ConversationState, seq: int, message: MessageReceived
) -> QuestionRow | None:
    """Return the open question that this plain message of row `seq` answers: the one it replies to.
    In private, unless it replies to earlier words of the agent, also one that took words before the
    message came: the one whose button was pressed last to write, otherwise the oldest.

    Only the asked person's words count, and those of a person who pressed a button to write. An
    approval is denied by the words of whoever pressed Deny, and by nobody else's.
    """
    found: list[QuestionRow] = []
    for question in state.open_questions():
        asked = question.question
        denies = isinstance(asked, Approval) and message.sender.key in question.writers
        wants = isinstance(asked, Input | PlanReview) or question.writes or denies
        takes = wants or (isinstance(asked, Decision) and asked.free)
        if not takes or message.sender.key not in (*question.entitled, *question.writers):
            continue
        named = find_option(question, message.text)
        private = (wants or named) and message.conversation.private and seq > question.since
        early = _is_about_earlier(state, message, question) or _precedes(state, message, question)
        if _replies_to(state, message, question):
            return question
        if private and not early:
            found.append(question)
    pressed = [one for one in found if one.writes or message.sender.key in one.writers]
    return max(pressed, key=lambda one: one.since) if pressed else next(iter(found), None)


def find_option(question: QuestionRow, words: str) -> str:
    """Return the option of an open choice that `words` name, ignoring case; "" if there is none.
    The gateway's own questions are decided by their buttons."""
    asked = question.question
    if not isinstance(asked, Decision) or not asked.free:
        return ""
    said = words.strip().casefold()
    return next((one for one in asked.options if one.strip().casefold() == said), "")


def _is_about_earlier(
    state: ConversationState, message: MessageReceived, question: QuestionRow
) -> bool:
    """Return True if it replies to something that the agent said before the question's turn. What
    stands below the card may be its reminder."""
    reply = message.reply_to
    if reply is None or not reply.mine or not reply.message:
        return False
    rows = [row for (turn, _), row in state.outbox.rows.items() if turn == question.turn]
    shown = [native.id for row in rows for native in row.natives]
    if not shown or not all(one.isdecimal() for one in (reply.message, *shown)):
        return False
    return int(reply.message) < min(map(int, shown))


def _precedes(state: ConversationState, message: MessageReceived, question: QuestionRow) -> bool:
    """Return True if it was certainly written before the question's card was there, by the numbers
    of messages, or by the clock where nothing is sent; a card that was sent again does not tell."""
    if state.adapter.abilities.reads_views:
        return 0 < question.asked - message.at < MAX_UNSEEN
    row = _find_card(state, question)
    if row is None or row.doubtful or row.anew or row.given:
        return False
    if not row.natives:
        return row.sent < row.version and not state.outbox.first.is_tried(row)
    said, shown = _read_order(message.message), _read_order(row.natives[0].id)
    return bool(said and shown) and said < shown


def _read_order(native: str) -> tuple[int, ...]:
    """Read the message's number, or its time as Slack has it; () if it has no order."""
    parts = native.split(".")
    return tuple(map(int, parts)) if all(one.isdecimal() for one in parts) else ()


def _find_card(state: ConversationState, question: QuestionRow) -> OutboxRow | None:
    name = "plan" if isinstance(question.question, PlanReview) else f"ask:{question.key}"
    return state.outbox.rows.get((question.turn, name))


def _replies_to(state: ConversationState, message: MessageReceived, question: QuestionRow) -> bool:
    if message.reply_to is None:
        return False
    row = _find_card(state, question)
    if row is None:
        return message.reply_to.mine and len(state.questions) == 1
    return any(native.id == message.reply_to.message for native in row.natives)
