"""Rows and turns that cannot be handled: they become dead letters, their people are told, and all
else goes on."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from agent_core.journal import Stopped
from gateway.conversation.state import ConversationState, encode_json
from gateway.conversation.turns import OpenTurn
from gateway.errors import Fenced, StoreFailed, Unreadable, Unstorable
from gateway.feature import Context
from gateway.messages import QuestionDue, QuestionExpired, sender_of
from gateway.store.rows import Changes, InboxRow, Letter, TurnRow
from gateway.texts import Key, say

log = logging.getLogger("turnkeeper.session")


def set_aside_damaged(state: ConversationState, damaged: Sequence[Letter]) -> None:
    """Make dead letters of rows that this version cannot read."""
    if not damaged:
        return
    state.services.count("rows_unreadable", len(damaged))
    for letter in damaged:
        text = say("unreadable", state.language, what=letter.kind, id=letter.id)
        state.announce(letter, text)


def give_up_message(
    state: ConversationState,
    row: InboxRow,
    rows: tuple[int, ...],
    told: Key,
    why: str,
    **fields: int,
) -> None:
    """Make a dead letter of a message, and tell its author. `rows`: its own row and those of its
    edits, which end too."""
    text = say(told, find_language(state, row), **fields)
    letter = state.give_up_row(row, why)
    along = Changes(done=rows[1:], letters=(letter,))
    state.notice(row.seq, text, "error", state="kept", along=along)


def find_language(state: ConversationState, row: InboxRow) -> str:
    """Return the language of who wrote the row, as far as it is known."""
    sender = sender_of(row.inbound)
    return (sender.language if sender is not None else "") or state.language


async def take_row(
    state: ConversationState, row: InboxRow, take: Callable[[InboxRow], Awaitable[None]]
) -> None:
    """Handle the row by `take`; set it aside if that fails. StoreFailed, Fenced."""
    try:
        await take(row)
    except (Unreadable, Unstorable) as error:
        fail_row(state, row, str(error))
    except (StoreFailed, Fenced):
        raise
    except Exception as error:  # boundary: the other rows go on
        if state.services.shortages.should_retry(f"row {row.seq}", error):
            raise
        log.exception("row_failed", extra={"seq": row.seq})
        fail_row(state, row, f"{type(error).__name__}: {error}")


def fail_row(state: ConversationState, row: InboxRow, why: str) -> None:
    """Make a dead letter of a row that failed, and tell its author."""
    state.services.count("rows_failed")
    letter = state.give_up_row(row, why)
    aside = [letter]
    if isinstance(row.inbound, QuestionExpired | QuestionDue):
        question = state.questions.pop(row.inbound.question, None)
        if question is not None:  # otherwise it would be due again and again
            payload = encode_json(question)
            aside.append(state.letter("question", question.id, why, payload, question.turn))
    if sender_of(row.inbound) is None:
        state.submit(Changes(letters=tuple(aside)))
        return
    text = say("row_failed", find_language(state, row), id=letter.id)
    along = Changes(letters=tuple(aside))
    state.notice(row.seq, text, "error", state="kept", along=along)


def end_as_dead_letter(
    context: Context, open_turn: OpenTurn, reason: Literal["dead", "error"], text: str, why: str
) -> None:
    """End a turn that cannot go on: its messages become dead letters, and the lane moves on."""
    row = open_turn.row
    context.services.count("turns_dead")
    log.error("turn_dead", extra={"turn": row.id, "resumes": row.resumes, "why": why})
    open_turn.letters = tuple(
        context.state.letter("message", str(one.seq), why, encode_json(one.inbound), row.id)
        for one in open_turn.read_first_rows()
    )
    context.turns.close(open_turn, Stopped(key="stopped", reason=reason, text=text))


def end_unread_turn(state: ConversationState, row: TurnRow, why: str) -> None:
    """End a turn whose journal cannot be read, as a dead letter made from its row alone."""
    state.services.count("turns_dead")
    log.error("turn_dead", extra={"turn": row.id, "why": why})
    state.turns.pop(row.id, None)
    state.loaded.pop(row.id, None)
    asked = [one for one in state.questions.values() if one.turn == row.id]
    for question in asked:
        del state.questions[question.id]
    letter = state.letter("turn", row.id, why, encode_json(row), row.id)
    text = say("unreadable", row.language or state.language, what="turn", id=letter.id)
    state.announce(letter, text)
    if asked:
        closed = (replace(question, status="cancelled") for question in asked)
        state.submit(Changes(questions=tuple(closed)))
