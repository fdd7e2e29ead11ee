"""Reads answers of generateContent, chunk by chunk."""

import base64
from typing import TYPE_CHECKING

import msgspec

from agent_core import ambient
from agent_core.messages import Part, Text, Thinking, ToolCall
from agent_core.models.answers.broken import Broken
from agent_core.models.answers.details import GARBLED, clean_count, read_ending
from agent_core.models.answers.spoken import says_something
from agent_core.models.port import (
    Finish,
    ModelReply,
    ModelRequest,
    OnDelta,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from agent_core.phrases import phrase

if TYPE_CHECKING:
    from google.genai import types

FINISH: dict[str, Finish] = {"STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length"}


class GeminiReader:
    """The answer to one request, as far as it came."""

    def __init__(self, request: ModelRequest, provider: str, on_delta: OnDelta) -> None:
        self._model = request.model
        self._provider = provider
        self._on_delta = on_delta
        self._parts: list[Part] = []
        self._finish = ""
        self._refused = False
        self._usage = Usage()

    def add(self, chunk: "types.GenerateContentResponse") -> None:
        """Take in the next chunk."""
        self._model = chunk.model_version or self._model
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self._refused = True
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        for candidate in (chunk.candidates or ())[:1]:
            content = candidate.content
            for part in (content.parts if content is not None else None) or ():
                self._part(part)
            if candidate.finish_reason is not None:
                self._finish = candidate.finish_reason.value

    def _part(self, part: "types.Part") -> None:
        if part.thought:
            if part.text:
                self._think(part.text)
            return
        if part.thought_signature:
            signature = base64.b64encode(part.thought_signature).decode()
            self._parts.append(Thinking(text="", provider=self._provider, signature=signature))
        if part.text:
            self._say(part.text)
        if (call := part.function_call) is not None:
            taken = any(isinstance(one, ToolCall) and one.id == call.id for one in self._parts)
            name = call.id if call.id and not taken else f"call_{ambient.new_id()}"
            arguments = msgspec.json.encode(call.args or {}).decode()
            self._parts.append(ToolCall(id=name, name=call.name or "unnamed", arguments=arguments))

    def _say(self, text: str) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, Text):
            self._parts[-1] = Text(text=last.text + text)
        else:
            self._parts.append(Text(text=text))
        self._on_delta(TextDelta(text=text))

    def _think(self, text: str) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(last, Thinking) and not last.signature:
            self._parts[-1] = Thinking(text=last.text + text, provider=self._provider)
        else:
            self._parts.append(Thinking(text=text, provider=self._provider))
        self._on_delta(ThinkingDelta(text=text))

    def reply(self) -> ModelReply:
        """The whole answer; raises Broken."""
        calls = any(isinstance(part, ToolCall) for part in self._parts)
        if read_ending(self._finish) in GARBLED:
            raise Broken(phrase("fault_error", detail=self._finish), "malformed")
        if not self._finish and not self._refused:
            raise Broken(phrase("fault_cut"))
        if self._finish == "STOP" and not says_something(self._parts):
            raise Broken(phrase("fault_empty"), "malformed")
        finish = FINISH.get(self._finish, "refused")
        return ModelReply(
            parts=tuple(self._parts),
            model=self._model,
            provider=self._provider,
            finish="tool_calls" if calls and finish == "stop" else finish,
            usage=self._usage,
        )


def _usage(counted: "types.GenerateContentResponseUsageMetadata") -> Usage:
    thought = clean_count(counted.thoughts_token_count)
    return Usage(
        input_tokens=clean_count(counted.prompt_token_count),
        output_tokens=clean_count(counted.candidates_token_count) + thought,
        cached_tokens=clean_count(counted.cached_content_token_count),
        reasoning_tokens=thought,
    )
