"""Ollama's /api/chat as the model server speaks it (api/types.go and server/routes.go, 2026)."""

import base64
import json

from tests.fakes.model_dialect import BadRequest, Dialect, pieces, require
from tests.fakes.model_steps import (
    Call,
    Calls,
    Cut,
    Empty,
    Ends,
    Events,
    Json,
    Say,
    Slow,
    Step,
    Stop,
    Think,
)

FIELDS = frozenset(
    ["model", "messages", "stream", "format", "keep_alive", "tools", "options", "think"]
    + ["truncate", "shift"]
)
MESSAGE = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}
TOO_LONG = "the input length exceeds the context length"


class OllamaApi(Dialect):
    fields = FIELDS
    content_type = "application/x-ndjson"
    end = "\n"

    def __init__(self, extra_fields: set[str], given: int) -> None:
        super().__init__(extra_fields)
        self.given = given
        """Tokens that a model holds whose request does not say it."""

    def check(self, body: Json) -> None:
        super().check(body)
        require(set(body["options"]) <= {"num_ctx", "num_predict"}, "unknown options")
        require(body.get("think") in (None, True, False, "low", "medium", "high", "max"), "think")
        for tool in body.get("tools", ()):
            require(tool["type"] == "function" and tool["function"]["name"], "bad tool")
        called: list[str] = []
        for message in body["messages"]:
            require(set(message) <= MESSAGE, f"unknown fields {set(message) - MESSAGE}")
            require(isinstance(message["content"], str), "content must be text")
            require(message["role"] in ("system", "user", "assistant", "tool"), "bad role")
            for image in message.get("images", ()):
                base64.b64decode(image, validate=True)
            for call in message.get("tool_calls", ()):
                require(isinstance(call["function"]["arguments"], dict), "arguments: an object")
                called.append(call["function"]["name"])
            if message["role"] == "tool":
                require(message["tool_name"] in called, "a result of no call")
        held = body["options"].get("num_ctx", self.given)
        if body.get("truncate") is False and self.count(body) > held:
            raise BadRequest(TOO_LONG)

    def count(self, body: Json) -> int:
        return len(json.dumps(body["messages"])) // 4

    def error_body(self, message: str, param: str | None) -> Json:
        return {"error": message}

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        if isinstance(step, Events):
            return list(step.lines)
        messages, reason = self._messages(step, number)
        chunks = [self._chunk(body, message) for message in messages]
        if reason:
            held = body["options"].get("num_ctx", self.given)
            written = step.tokens if isinstance(step, Say | Call) else 7
            chunks.append(
                self._chunk(body, {"content": ""})
                | {"done": True, "done_reason": reason, "total_duration": 1}
                | {"prompt_eval_count": min(held, self.count(body)), "eval_count": written}
            )
        return [json.dumps(chunk) for chunk in chunks]

    def whole(self, body: Json, step: Step, number: int) -> Json:
        *_, last = map(json.loads, self.lines(body, step, number))
        messages, _ = self._messages(step, number)
        whole: Json = {"role": "assistant", "content": "".join(m["content"] for m in messages)}
        calls = [call for message in messages for call in message.get("tool_calls", ())]
        return {**last, "message": whole | ({"tool_calls": calls} if calls else {})}

    def _messages(self, step: Step, number: int) -> tuple[list[Json], str]:
        match step:
            case Say(text=text, words=words):
                return [{"content": piece} for piece in pieces(text, words)], "stop"
            case Slow(text=text):
                return [{"content": piece} for piece in pieces(text, 1)], "stop"
            case Cut(after_chars=count, text=text):
                return [{"content": piece} for piece in pieces(text[:count], 1)], ""
            case Stop(text=text):
                return [{"content": text}], ""
            case Think(text=text, then=then):
                thoughts: list[Json] = [{"content": "", "thinking": p} for p in pieces(text, 1)]
                said, reason = self._messages(then, number)
                return [*thoughts, *said], reason
            case Call():
                return self._messages(Calls([step]), number)
            case Calls(calls=calls):
                said = [{"content": call.text} for call in calls if call.text]
                made = [self._call(call, index, number) for index, call in enumerate(calls)]
                return [*said, *({"content": "", "tool_calls": [one]} for one in made)], "stop"
            case Empty():
                return [], "stop"
            case Ends(then=then):
                return self._messages(then, number)[0], "length"
        raise AssertionError(step)

    def _call(self, call: Call, index: int, number: int) -> Json:
        """As Ollama gives them: whole, with arguments as an object."""
        name = call.id if call.id is not None else f"call_{number}_{index}"
        arguments = json.loads(call.arguments)
        return {
            **({"id": name} if name else {}),
            "function": {"index": index, "name": call.name, "arguments": arguments},
        }

    def _chunk(self, body: Json, message: Json) -> Json:
        return {
            "model": body["model"],
            "created_at": "2026-11-24T00:00:00Z",
            "message": {"role": "assistant", **message},
            "done": False,
        }
