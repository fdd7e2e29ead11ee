"""Answers that a model did not finish: it met its output limit, or its provider refused."""

import json
from typing import Literal

from msgspec.structs import replace

from agent_core.events import ErrorMet
from agent_core.messages import Message, Text, ToolCall, text_of, user
from agent_core.models.port import ModelReply
from agent_core.orchestration.brief import LoopResult
from agent_core.phrases import Phrase, name_scanner, phrase
from agent_core.scope import Scope

MAX_CONTINUED = 3
"""Times that one answer is continued."""
CONTINUE = (
    "[Cut off at the output limit]\n"
    "Go on exactly where you stopped. Repeat nothing, and do not say that you go on."
)
CALL_CUT = (
    "[The call of {name} was cut off at the output limit and was not run]\n"
    "Make it again with less in it: a long file in several parts, for example."
)
NO_WORDS = "(cut off)"
"""Stands in an answer that was nothing but a call."""


class GrowingAnswer:
    """An answer without calls, over as many replies as it takes."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._cut_calls = 0

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(self._pieces)

    def clear(self) -> None:
        """Forget the words before a call: they are no answer."""
        self._pieces.clear()
        self._cut_calls = 0

    def add(self, scope: Scope, reply: ModelReply, new: list[Message]) -> LoopResult | None:
        """Return the loop's result after `reply`, the last of `new`; None if the model is asked to
        continue, by one more message."""
        if reply.cut_call:
            self._cut_calls += 1
            if self._cut_calls > MAX_CONTINUED:
                return _give_up(scope, phrase("fault_long_call", name=reply.provider), new)
            new.append(user(CALL_CUT.format(name=reply.cut_call)))
            return None
        if reply.finish == "refused":
            return self._refuse(scope, reply, new)
        self._pieces.append(text_of(new[-1]))
        if reply.finish == "length" and len(self._pieces) > 1 and not self.text.strip():
            return _give_up(scope, phrase("fault_thought_out", name=reply.provider), new)
        again = self._pieces[-2:-1] == self._pieces[-1:]
        if reply.finish == "length" and not again and len(self._pieces) <= MAX_CONTINUED:
            new.append(user(CONTINUE))
            return None
        finish: Literal["stop", "limit"] = "limit" if reply.finish == "length" else "stop"
        return LoopResult(text=self.text, messages=tuple(new), finish=finish)

    def _refuse(self, scope: Scope, reply: ModelReply, new: list[Message]) -> LoopResult:
        """End with a refusal: of the provider, to answer or to continue, or of the guardrails. It
        is told beside the answer so far."""
        refused = phrase("fault_declined", name=reply.provider)
        if reply.flagged:
            refused = phrase("fault_guard_answer", what=name_scanner(reply.flagged))
        scope.emit(ErrorMet(text=str(refused), phrases=(refused,)))
        text = "".join((*self._pieces, text_of(new[-1])))
        if text.strip():
            return LoopResult(text=text, messages=tuple(new))
        return LoopResult(text="", messages=tuple(new[:-1]), finish="error", why=str(refused))


def _give_up(scope: Scope, why: Phrase, new: list[Message]) -> LoopResult:
    scope.emit(ErrorMet(text=str(why), phrases=(why,)))
    return LoopResult(text="", messages=tuple(new), finish="error", why=str(why))


def drop_cut_call(reply: ModelReply) -> ModelReply:
    """Drop a last call whose arguments are cut off: it is neither repaired nor run. Some servers
    report such an answer as cut, others as a normal call."""
    last = reply.parts[-1] if reply.parts else None
    if not isinstance(last, ToolCall) or not _ends_early(last.arguments):
        return reply
    parts = reply.parts[:-1] or (Text(text=NO_WORDS),)  # providers refuse empty messages
    more = any(isinstance(part, ToolCall) for part in parts)
    finish = "tool_calls" if more else "length"
    return replace(reply, parts=parts, finish=finish, cut_call=last.name)


def _ends_early(arguments: str) -> bool:
    try:
        json.loads(arguments or "{}")
    except json.JSONDecodeError as error:
        opened = error.pos < len(arguments) and error.msg.startswith("Unterminated string")
        return opened or error.pos >= len(arguments.rstrip())
    except (RecursionError, ValueError):  # too deep, a number too long: the call is refused
        return False
    return False


def is_whole(reply: ModelReply) -> bool:
    """True if the turn can end with it: no call, and nothing that has to follow."""
    return reply.finish not in ("length", "tool_calls") and not any(
        isinstance(part, ToolCall) for part in reply.parts
    )
