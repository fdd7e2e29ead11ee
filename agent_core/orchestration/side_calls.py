"""Model calls beside the conversation, answered by JSON and not shown. An unusable answer is
requested once more, with the reason."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent_core.context.transcript import ASIDE
from agent_core.guardrails.answers import redact_reply
from agent_core.messages import Message, Text, Thinking, text_of, user
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Hands
from agent_core.scope import Scope

T = TypeVar("T")

TRIES = 2


EMPTY = "(nothing)"
"""Stands in the thread for an answer without words."""


class Unusable(ValueError):
    """The model's answer is unusable; the text tells it why, `again` what to do."""

    again = "Answer again, with the JSON alone."


class Unworded(Unusable):
    """The same of an answer in plain words."""

    again = "Write the whole answer again."


def words(text: str) -> str:
    """Return the words of an answer. Raises Unworded if there are none."""
    if text.strip() in ("", EMPTY):
        raise Unworded("It has no words.")
    return text.strip()


async def ask_json(
    scope: Scope, hands: Hands, request: ModelRequest, read: Callable[[str], T], limit: float
) -> tuple[T | None, tuple[Message, ...]]:
    """Return `read` of the answer, None if it raised Unusable each time, and the messages after the
    request's. Raises what `scope.model` raises."""
    said: tuple[Message, ...] = ()
    for n in range(1, TRIES + 1):
        asked = replace(request, messages=(*request.messages, *said))
        call = partial(ask_aside, hands, asked)
        reply = await scope.model(call, f"{ASIDE}{n}", limit)
        answer = strip_calls(reply)
        said = (*said, answer)
        try:
            return read(text_of(answer)), said
        except Unusable as error:
            if n < TRIES:
                said = (*said, user(f"That cannot be used. {error} {error.again}"))
    return None, said


async def ask_aside(hands: Hands, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
    """Ask a side question: the answer is not streamed to people, and is redacted, as they may read
    it in the end."""
    reply = await hands.complete(request.model, request, lambda delta: None)
    if hands.hides is not None:
        reply = redact_reply(reply, hands.hides().with_shapes())
    guard = hands.answer_guard
    return reply if guard is None else await guard.check_reply(reply)


def hush(hands: Hands) -> Hands:
    """Return `hands` whose model's words are not streamed."""

    async def complete(name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        return await hands.complete(name, request, lambda delta: None)

    return replace(hands, complete=complete)


def strip_calls(reply: ModelReply) -> Message:
    """Return the reply's words and reasoning without calls, which are not allowed here."""
    parts = tuple(part for part in reply.parts if isinstance(part, Text | Thinking))
    return Message(role="assistant", parts=parts or (Text(text=EMPTY),))


def tier(model: str, wanted: str) -> str:
    """The model for a call of the tier `wanted`, in a conversation that uses `model`: one that
    was chosen by name serves all calls."""
    return model if "/" in model else wanted


def find_json(text: str) -> object:
    """Return the JSON value in `text`, whatever surrounds it. Raises Unusable."""
    for start, end in (("", ""), ("{", "}"), ("[", "]")):
        first, last = (text.find(start), text.rfind(end)) if start else (0, len(text) - 1)
        if 0 <= first < last:
            try:
                return msgspec.json.decode(text[first : last + 1])
            except (msgspec.DecodeError, RecursionError):
                continue
    raise Unusable("It is not JSON.")
