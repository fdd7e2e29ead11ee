"""What models do wrong, each once in a task and at a place that follows from the task: applied to any
model that answers by itself."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from agent_core.messages import Part, Text, Thinking, ToolCall, calls_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from benchmarks.agent.course import Mind, Scripted

Spoil = Callable[["Faulty", ModelRequest, ModelReply], ModelReply | None]
"""The reply as the fault has it; None where it does not fit this one."""


class Faulty:
    """A model that does one thing wrong, once, from its reply number `late` on."""

    def __init__(self, mind: Mind, spoil: Spoil | None, late: int) -> None:
        self.provider = "script"
        self._inner = Scripted(mind)
        self._spoil = spoil
        self._late = late
        self._replies = 0
        self.meant: ModelReply | None = None
        """The last reply as it would have been."""
        self.rest = ""
        """What of a cut answer is still to be said."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        reply = self.meant = await self._inner.complete(request, on_delta)
        if self.rest:
            text, self.rest = self.rest, ""
            return replace(reply, parts=(Text(text=text),), finish="stop")
        self._replies += 1
        if self._spoil is not None and self._replies > self._late:
            spoilt = self._spoil(self, request, reply)
            if spoilt is not None:
                self._spoil = None
                return spoilt
        return reply

    async def close(self) -> None: ...


def _call(reply: ModelReply) -> ToolCall | None:
    return next((part for part in reply.parts if isinstance(part, ToolCall)), None)


def _cut_answer(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    text = "".join(part.text for part in reply.parts if isinstance(part, Text))
    if _call(reply) is not None or len(text) < 10:
        return None
    half = len(text) // 2
    model.rest = text[half:]
    return replace(reply, parts=(Text(text=text[:half]),), finish="length")


def _cut_call(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    if call is None:
        return None
    broken = replace(call, arguments=call.arguments[: len(call.arguments) // 2])
    return replace(reply, parts=(broken,), finish="tool_calls")


def _prose(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    if call is None:
        return None
    wish = {"name": call.name, "arguments": msgspec.json.decode(call.arguments)}
    text = f"```json\n{msgspec.json.encode(wish).decode()}\n```"
    return replace(reply, parts=(Text(text=text),), finish="stop")


def _wrong_name(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    if call is None:
        return None
    return replace(reply, parts=(replace(call, name=f"{call.name}_tool"),))


def _dressed(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    if call is None:
        return None
    given = msgspec.json.encode(call.arguments).decode()
    return replace(reply, parts=(replace(call, name=f"functions.{call.name}", arguments=given),))


def _behind_words(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    if call is None:
        return None
    given = msgspec.json.decode(call.arguments, type=dict[str, object])
    rows = (f"<parameter={name}>\n{_write(value)}\n</parameter>" for name, value in given.items())
    body = "\n".join((f"<function={call.name}>", *rows, "</function>"))
    text = f"I go on.\n\n<tool_call>\n{body}\n</tool_call>"
    return replace(reply, parts=(Text(text=text),), finish="stop")


def _write(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _wrong_arguments(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    return None if call is None else replace(reply, parts=(replace(call, arguments="[1]"),))


def _repeated(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    before = [call for message in request.messages for call in calls_of(message)]
    if not before:
        return None
    return replace(reply, parts=(replace(before[-1], id=f"{before[-1].id}-again"),))


def _refused(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply:
    return replace(reply, parts=(), finish="refused")


def _thinking(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply:
    thought: Part = Thinking(text="Let me think about it.", provider="script", signature="s")
    return replace(reply, parts=(thought, *reply.parts))


def _parallel(model: Faulty, request: ModelRequest, reply: ModelReply) -> ModelReply | None:
    call = _call(reply)
    if call is None:
        return None
    shell = call.name == "bash"
    name, given = ("bash", '{"command": "ls"}') if shell else ("list_files", "{}")
    beside = ToolCall(id=f"{call.id}-beside", name=name, arguments=given)
    return replace(reply, parts=(call, beside))


FAULTS: dict[str, Spoil | None] = {
    "none": None,
    "cut answer": _cut_answer,
    "cut call": _cut_call,
    "call in prose": _prose,
    "call behind words": _behind_words,
    "wrong name": _wrong_name,
    "dressed call": _dressed,
    "wrong arguments": _wrong_arguments,
    "repeated call": _repeated,
    "refusal": _refused,
    "thinking": _thinking,
    "parallel calls": _parallel,
}
