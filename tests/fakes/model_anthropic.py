"""Anthropic's messages as the model server speaks them."""

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

ANTHROPIC_FIELDS = frozenset(
    [
        "model",
        "messages",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "cache_control",
        "thinking",
        "metadata",
        "stop_sequences",
        "output_config",
        "service_tier",
        "temperature",
        "top_p",
        "top_k",
    ]
)


class Anthropic(Dialect):
    fields = ANTHROPIC_FIELDS

    def check(self, body: Json) -> None:
        super().check(body)
        require(isinstance(body["max_tokens"], int), "max_tokens is required")
        if "tool_choice" in body:
            require(body["tool_choice"]["type"] in ("auto", "any", "none", "tool"), "tool_choice")
        for tool in body.get("tools", ()):
            require(tool["name"] and tool["input_schema"]["type"] == "object", "bad tool")
        waiting: list[str] = []
        used: set[str] = set()
        for index, message in enumerate(body["messages"]):
            expected = "assistant" if index % 2 else "user"
            require(message["role"] == expected, f"messages[{index}] must be {expected}")
            waiting = self._check_blocks(index, message, waiting)
            require(not used & set(waiting), "tool_use ids must be unique")
            used |= set(waiting)
        require(body["messages"][-1]["role"] == "user", "no prefill: must end with user")

    def _check_blocks(self, index: int, message: Json, waiting: list[str]) -> list[str]:
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        require(blocks, f"messages[{index}] is empty")
        results = [block for block in blocks if block["type"] == "tool_result"]
        ids = [block["tool_use_id"] for block in results]
        require(sorted(ids) == sorted(waiting), f"messages[{index}]: {ids} != {waiting}")
        require(blocks[: len(results)] == results, "tool_result blocks must be first")
        kinds = {
            "user": {"text", "tool_result", "image"},
            "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
        }[message["role"]]
        for block in blocks:
            require(block["type"] in kinds, f"{block['type']} in {message['role']}")
            if block["type"] == "text":
                require(block["text"].strip(), "text blocks must not be blank")
            if block["type"] == "image":
                source = block["source"]
                require(source["type"] == "base64", "only base64 here")
                require(picture(f"data:{source['media_type']};base64,{source['data']}"), "empty")
            if block["type"] == "thinking":
                require(block["signature"], "thinking needs its signature")
            if block["type"] == "tool_result" and isinstance(block["content"], list):
                require(block["content"], "a result's content must not be empty")
                require(not block.get("is_error"), "a failure must be text")
                for part in block["content"]:
                    require(part["type"] in ("text", "image"), f"{part['type']} in a result")
                    require(part["type"] == "image" or part["text"].strip(), "a blank text")
            if block["type"] == "tool_use":
                require(isinstance(block["input"], dict), "input must be an object")
        return [block["id"] for block in blocks if block["type"] == "tool_use"]

    def error_body(self, message: str, param: str | None) -> Json:
        return {"type": "error", "error": {"type": "error", "message": message}}

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        if isinstance(step, Events):
            return [f"event: x\ndata: {line}" for line in step.lines]
        blocks, stop = self._blocks(step, number)
        start = self._message(body, [], None) | {"usage": self._usage(body) | {"output_tokens": 1}}
        events: list[Json] = [{"type": "message_start", "message": start}, {"type": "ping"}]
        for index, (block, deltas) in enumerate(blocks):
            place = {"index": index}
            events.append({"type": "content_block_start", "content_block": block} | place)
            events += [{"type": "content_block_delta", "delta": d} | place for d in deltas]
            if stop:
                events.append({"type": "content_block_stop"} | place)
        if stop:
            usage = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 3}}
            delta = {"stop_reason": stop, "stop_sequence": None}
            events.append({"type": "message_delta", "delta": delta, "usage": usage})
            events.append({"type": "message_stop"})
        return [f"event: {event['type']}\ndata: {json.dumps(event)}" for event in events]

    def whole(self, body: Json, step: Step, number: int) -> Json:
        blocks, stop = self._blocks(step, number)
        content = []
        for block, deltas in blocks:
            block = dict(block)
            joined = "".join(delta.get("partial_json", "") for delta in deltas)
            for delta in deltas:
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        block[name] = block.get(name, "") + delta[name]
            if block["type"] == "tool_use":
                block["input"] = json.loads(joined or "{}")
            content.append(block)
        return self._message(body, content, stop) | {"usage": self._usage(body)}

    def _blocks(self, step: Step, number: int) -> tuple[list[tuple[Json, list[Json]]], str]:
        match step:
            case Say(text=text, words=words):
                return [_text_block(pieces(text, words))], "end_turn"
            case Slow(text=text):
                return [_text_block(pieces(text, 1))], "end_turn"
            case Cut(after_chars=count, text=text):
                return [_text_block(pieces(text[:count], 1))], ""
            case Stop(text=text):
                return [_text_block([text])], ""
            case Think(text=text, then=then, signature=signature, redacted=redacted):
                deltas: list[Json] = [
                    {"type": "thinking_delta", "thinking": p} for p in pieces(text, 1)
                ]
                deltas.append({"type": "signature_delta", "signature": signature})
                blocks, stop = self._blocks(then, number)
                start = {"type": "thinking", "thinking": "", "signature": ""}
                hidden: list[tuple[Json, list[Json]]] = []
                if redacted:
                    hidden = [({"type": "redacted_thinking", "data": redacted}, [])]
                return [(start, deltas), *hidden, *blocks], stop
            case Call():
                return self._blocks(Calls([step]), number)
            case Calls(calls=calls):
                out: list[tuple[Json, list[Json]]] = []
                for index, call in enumerate(calls):
                    if call.text:
                        out.append(_text_block([call.text]))
                    out.append(_use_block(call, f"toolu_{number}_{index}"))
                return out, "tool_use"
            case Empty():
                return [], "end_turn"
            case Ends(then=then, how=how):
                stop = "max_tokens" if how == "length" else "refusal"
                return self._blocks(then, number)[0], stop
        raise AssertionError(step)

    def _message(self, body: Json, content: list[Json], stop: str | None) -> Json:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
        }

    def _usage(self, body: Json) -> Json:
        return {
            "input_tokens": 10,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 9,
        }


def _text_block(words: list[str]) -> tuple[Json, list[Json]]:
    deltas: list[Json] = [{"type": "text_delta", "text": word} for word in words]
    return {"type": "text", "text": ""}, deltas


def _use_block(call: Call, made: str) -> tuple[Json, list[Json]]:
    middle = len(call.arguments) // 2
    halves = (call.arguments[:middle], call.arguments[middle:])
    name = call.id if call.id is not None else made
    start = {"type": "tool_use", "id": name, "name": call.name, "input": {}}
    return start, [{"type": "input_json_delta", "partial_json": half} for half in halves]
