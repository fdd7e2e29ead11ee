"""Redacts a model's words while they are streamed, its answer, and its calls; releases an answer by
scanned sentences."""

import json
from functools import partial

from msgspec.structs import replace

from agent_core.guardrails.guard import Guard, count_characters, work_on_text
from agent_core.guardrails.redaction import Redactions, StreamRedactor
from agent_core.messages import Part, Text
from agent_core.models.port import (
    Delta,
    ModelReply,
    OnDelta,
    Restarted,
    TextDelta,
    ThinkingDelta,
)
from agent_core.questions import Offer, Proposal


class ReplyRedactor:
    """One answer on its way to people. `guard` scans it, None: it is not scanned."""

    def __init__(self, words: Redactions, on_delta: OnDelta, guard: Guard | None = None) -> None:
        self._words, self._on_delta, self._guard = words, on_delta, guard
        self._gate = guard.make_gate(self._show) if guard is not None else None
        show = self._show if self._gate is None else self._gate.add
        self._text = StreamRedactor(words, show)
        self._thinking = StreamRedactor(words, lambda text: on_delta(ThinkingDelta(text=text)))

    def add(self, delta: Delta) -> None:
        """Add a piece as the provider streams it."""
        match delta:
            case TextDelta():
                self._thinking.end()
                self._text.add(delta.text)
            case ThinkingDelta():
                self._end_text()
                self._thinking.add(delta.text)
            case _:
                self._text.drop()
                if self._gate is not None:
                    self._gate.drop()
                self._thinking.drop()
                self._on_delta(delta)

    async def finish(self, reply: ModelReply) -> ModelReply:
        """Complete the answer. Its thinking stays as it is, since the provider checks that. A
        blocked answer is removed whole, also what was shown."""
        self._thinking.end()
        self._end_text()
        redact = partial(redact_reply, reply, self._words)
        reply = await work_on_text(count_characters(reply), redact)
        if self._guard is None:
            return reply
        reply = await self._guard.check_reply(reply)
        if reply.flagged and reply.finish == "refused":
            self._on_delta(Restarted())
        return reply

    def _show(self, text: str) -> None:
        self._on_delta(TextDelta(text=text))

    def _end_text(self) -> None:
        self._text.end()
        if self._gate is not None:
            self._gate.end()


def redact_reply(reply: ModelReply, words: Redactions) -> ModelReply:
    """`reply` with names in place of the words in its text."""
    parts = tuple(_redact_part(part, words) for part in reply.parts)
    return reply if parts == reply.parts else replace(reply, parts=parts)


def redact_proposal(proposal: Proposal, words: Redactions) -> Proposal:
    """`proposal` as cards and the audit may show it. A rule that holds a secret is not offered."""
    rule = proposal.rule if words.hide(proposal.rule) == proposal.rule else ""
    offers = tuple(one for one in proposal.offers if not _holds_secret(one, words))
    preview = proposal.preview
    return replace(
        proposal,
        arguments=redact_arguments(proposal.arguments, words),
        detail=words.hide(proposal.detail),
        preview=words.hide(preview) if isinstance(preview, str) else preview,
        offers=offers,
        rule=rule,
        covers=proposal.covers if rule else None,
    )


def redact_arguments(arguments: str, words: Redactions, most: int | None = None) -> str:
    """Redact a call's arguments, also where JSON escapes a secret's characters, such as
    backslashes. `most`: characters needed of each value; longer ones may be cut behind them."""
    try:
        given = json.loads(arguments, object_pairs_hook=_make_object)
    except (ValueError, RecursionError):
        return words.hide(arguments)
    redacted = _redact_value(given, words, most)
    return words.hide(arguments if redacted == given else json.dumps(redacted, ensure_ascii=False))


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands there twice")
    return made


def _redact_value(value: object, words: Redactions, most: int | None) -> object:
    if isinstance(value, str):
        return words.hide(value) if most is None else words.hide_start(value, most)
    if isinstance(value, list):
        return [_redact_value(one, words, most) for one in value]
    if isinstance(value, dict):
        return {name: _redact_value(one, words, most) for name, one in value.items()}
    return value


def _holds_secret(offer: Offer, words: Redactions) -> bool:
    """Return True if its pattern or its description contains a secret: both are stored and
    shown."""
    covers = offer.covers
    said = () if covers is None else (covers.words, str(covers.phrase or ""), *covers.files)
    return any(words.hide(text) != text for text in (offer.pattern, *said))


def _redact_part(part: Part, words: Redactions) -> Part:
    if not isinstance(part, Text):
        return part
    text = words.hide(part.text)
    return part if text == part.text else Text(text=text)
