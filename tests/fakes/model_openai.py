"""OpenAI's chat completions as the model server speaks them."""

import json

from tests.fakes.model_dialect import Dialect, picture, pieces, require
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

OPENAI_FIELDS = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "max_tokens",
        "max_completion_tokens",
        "prompt_cache_key",
        "reasoning_effort",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "user",
        "response_format",
        "parallel_tool_calls",
        "n",
        "metadata",
        "store",
    ]
)


class OpenAI(Dialect):
    fields = OPENAI_FIELDS

    def __init__(self, extra_fields: set[str], most: int = 0) -> None:
        super().__init__(extra_fields)
        self.most = most
        """Tokens of a request that it reads, 0: all. It says nothing of what it leaves out."""

    def check(self, body: Json) -> None:
        super().check(body)
        if "stream_options" in body:
            require(body.get("stream"), "stream_options needs stream")
        if "tool_choice" in body:
            require(body.get("tools"), "tool_choice needs tools")
        for tool in body.get("tools", ()):
            require(tool["type"] == "function" and tool["function"]["name"], "bad tool")
            require(tool["function"]["parameters"]["type"] == "object", "bad parameters")
        waiting: list[str] = []
        for index, message in enumerate(body["messages"]):
            waiting = self._check_message(index, message, waiting)
        require(not waiting, f"calls {waiting} have no tool message")

    def _check_message(self, index: int, message: Json, waiting: list[str]) -> list[str]:
        role = message["role"]
        if role == "tool":
            call_id = message["tool_call_id"]
            require(call_id in waiting, f"messages[{index}]: no call {call_id} right before")
            require(isinstance(message["content"], str), "tool content must be text")
            return [name for name in waiting if name != call_id]
        require(not waiting, f"messages[{index}]: calls {waiting} have no tool message")
        if role == "system":
            require(index == 0, "system must be first")
        if role == "user" and isinstance(message["content"], list):
            for part in message["content"]:
                require(part["type"] in ("text", "image_url"), f"bad part {part['type']}")
                if part["type"] == "image_url":
                    require(picture(part["image_url"]["url"]), "an empty image")
            return []
        if role in ("system", "user"):
            require(isinstance(message["content"], str), "content must be text")
            return []
        require(role == "assistant", f"bad role {role}")
        calls = message.get("tool_calls")
        known = {"role", "content", "tool_calls", "reasoning_content", "reasoning"}
        require(set(message) <= known, "unknown assistant fields")
        require(calls or isinstance(message["content"], str), "content or tool_calls required")
        require(calls is None or calls, "tool_calls must not be empty")
        for call in calls or ():
            require(call["type"] == "function" and call["function"]["name"], "bad call")
            require(isinstance(call["function"]["arguments"], str), "arguments must be text")
            require(set(call) <= {"id", "type", "function", "extra_content"}, "unknown in a call")
        return [call["id"] for call in calls or ()]

    def error_body(self, message: str, param: str | None) -> Json:
        return {"error": {"message": message, "type": "error", "param": param, "code": None}}

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        if isinstance(step, Events):
            return [f"data: {line}" for line in step.lines]
        deltas, finish = self._deltas(step, number)
        chunks: list[Json] = [
            self._chunk(body, [{"index": 0, "delta": delta, "finish_reason": None}])
            for delta in [{"role": "assistant", "content": ""}, *deltas]
        ]
        if finish:
            last = {"index": 0, "delta": {}, "finish_reason": finish}
            chunks.append(self._chunk(body, [last]))
            if (body.get("stream_options") or {}).get("include_usage"):
                chunks.append(self._chunk(body, []) | {"usage": self._usage(body, step)})
        lines = [f"data: {json.dumps(chunk)}" for chunk in chunks]
        return [*lines, "data: [DONE]"] if finish else lines

    def whole(self, body: Json, step: Step, number: int) -> Json:
        deltas, finish = self._deltas(step, number)
        message: Json = {"role": "assistant", "content": None}
        for delta in deltas:
            for name in ("content", "reasoning_content"):
                if name in delta:
                    message[name] = (message.get(name) or "") + delta[name]
            for piece in delta.get("tool_calls", ()):
                calls = message.setdefault("tool_calls", [])
                if piece["index"] == len(calls):
                    calls.append({"id": "", "type": "function", "function": {"arguments": ""}})
                call = calls[piece["index"]]
                call["id"] = piece.get("id") or call["id"]
                call["function"]["name"] = piece["function"].get("name") or call["function"]["name"]
                call["function"]["arguments"] += piece["function"].get("arguments", "")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return self._chunk(body, [choice]) | {"usage": self._usage(body, step)}

    def _deltas(self, step: Step, number: int) -> tuple[list[Json], str]:
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
                deltas, finish = self._deltas(then, number)
                return [*({"reasoning_content": p} for p in pieces(text, 1)), *deltas], finish
            case Call():
                return self._deltas(Calls([step]), number)
            case Calls(calls=calls):
                said: list[Json] = [{"content": call.text} for call in calls if call.text]
                return [*said, *_openai_calls(calls, number)], "tool_calls"
            case Empty():
                return [], "stop"
            case Ends(then=then, how=how):
                return self._deltas(then, number)[
                    0
                ], "length" if how == "length" else "content_filter"
        raise AssertionError(step)

    def _chunk(self, body: Json, choices: list[Json]) -> Json:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": body["model"],
            "choices": choices,
        }

    def _usage(self, body: Json, step: Step) -> Json:
        size = len(json.dumps(body["messages"])) // 4
        size = min(size, self.most) if self.most else size
        written = step.tokens if isinstance(step, Say | Call) else 7
        return {
            "prompt_tokens": size,
            "completion_tokens": written,
            "total_tokens": size + written,
            "prompt_tokens_details": {"cached_tokens": size // 2},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }


def _openai_calls(calls: tuple[Call, ...], number: int) -> list[Json]:
    """As OpenAI streams them: id and name first, arguments in two pieces, calls interleaved."""
    deltas: list[Json] = []
    for index, call in enumerate(calls):
        name = call.id if call.id is not None else f"call_{number}_{index}"
        function = {"name": call.name, "arguments": ""}
        start = {"index": index, "id": name, "type": "function", "function": function}
        deltas.append({"tool_calls": [start]})
    for half in (0, 1):
        for index, call in enumerate(calls):
            middle = len(call.arguments) // 2
            text = call.arguments[middle:] if half else call.arguments[:middle]
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    return deltas
