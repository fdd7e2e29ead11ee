"""The approvers' chat: shows questions of other conversations as cards, and takes decisions on
them.

Its rows and commits are its own; a decision becomes a row of the conversation that asked.
"""

from msgspec.structs import replace

from agent_core.journal import Answered, QuestionAsked, Record, Stopped
from agent_core.questions import Answer
from gateway.access.access import refusal
from gateway.access.mentions import name_people
from gateway.approvers import DEFAULT, Person
from gateway.conversation.decisions import why_not
from gateway.delivery.fold import ViewFold
from gateway.feature import Context
from gateway.messages import (
    ButtonPressed,
    CommandGiven,
    QuestionBrought,
    button_token,
    read_conversation,
)
from gateway.store.rows import Changes, InboxRow, QuestionRow, TurnRow, name_brought
from gateway.texts import say
from gateway.views import ApprovalCard, View

CARD = "card"


async def show_brought(context: Context, row: InboxRow, brought: QuestionBrought) -> None:
    """Show a question of another conversation as it is now, in the message that shows it."""
    store, name = context.services.store, brought.question
    found = await store.find(name)
    turn = await store.turn(found[1].turn) if found is not None else None
    if found is None or turn is None:
        context.state.submit(Changes(done=(row.seq,)))
        return
    question = found[1]
    private = read_conversation(found[0]).private
    fold = ViewFold(asker=turn.sender_name, language=turn.language, private=private)
    for record in await store.records(turn.id):
        if _concerns(record, question):
            fold.add(record)
    shape, place = fold.shapes.get(f"ask:{question.key}"), name_brought(name)
    await context.state.load_views(place)
    known = context.state.outbox.rows.get((place, CARD))
    open_ones = tuple(one for one in context.state.row.brought if one != name)
    if question.status == "open":
        open_ones = (*open_ones, name)
    context.state.row = replace(context.state.row, brought=open_ones)
    changes = Changes(done=(row.seq,))
    if shape is not None and (known is None or known.version < shape.version):
        final = question.status != "open"
        card = _mention_deciders(context, shape.view, question, turn)
        view = context.state.want(place, CARD, card, shape.version, final=final)
        changes = replace(changes, views=(view,))
    context.state.show(replace(changes, row=context.state.row))


def _mention_deciders(context: Context, view: View, question: QuestionRow, turn: TurnRow) -> View:
    where = context.state.conversation
    if not isinstance(view, ApprovalCard) or question.status != "open" or where.private:
        return view
    rule = question.deciders or DEFAULT
    people = name_people(context.services.access, rule.who, where.platform, (turn.sender,))
    return replace(view, mentions=people)


def _concerns(record: Record, question: QuestionRow) -> bool:
    match record:
        case QuestionAsked():
            return record.key == question.key
        case Answered():
            return record.asked == question.key
        case _:
            return isinstance(record, Stopped)


async def list_relayed(context: Context) -> list[tuple[str, QuestionRow]]:
    """Return (conversation, question) for each question that waits here for other conversations,
    oldest first."""
    found = [await context.services.store.find(name) for name in context.state.row.brought]
    return [one for one in found if one is not None and one[1].status == "open"]


async def decide_there(
    context: Context,
    asked: tuple[str, QuestionRow],
    answer: Answer,
    person: Person,
    given: tuple[CommandGiven, int],
) -> str:
    """Forward a decision by command to the conversation that asked; return the reply. Idempotent: a
    repeated command becomes the same row."""
    (address, question), (command, seq) = asked, given
    language, deliver = command.sender.language, context.services.deliver
    no = refusal(question, address, read_conversation(address), person)
    if no is not None or deliver is None:
        return why_not(no or "not_open", question, language, person)
    press = ButtonPressed(
        conversation=read_conversation(address),
        sender=command.sender,
        event=f"{context.state.conversation.id} row {seq}",
        message="",
        token=button_token(question.id, answer.choice),
        text=answer.text,
    )
    await deliver([press])
    return say("passed_on", language)
