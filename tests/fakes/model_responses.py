"""OpenAI's Responses API as the model server speaks it, without storing anything."""

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

RESPONSES_FIELDS = frozenset(
    [
        "model",
        "input",
        "instructions",
        "stream",
        "store",
        "include",
        "tools",
        "tool_choice",
        "max_output_tokens",
        "prompt_cache_key",
        "reasoning",
        "parallel_tool_calls",
        "text",
        "temperature",
        "top_p",
        "metadata",
    ]
)


class Responses(Dialect):
    fields = RESPONSES_FIELDS
    turns = "input"

    def check(self, body: Json) -> None:
        super().check(body)
        require(body.get("store") is False, "this server stores nothing")
        for tool in body.get("tools", ()):
            require(tool["type"] == "function" and tool["name"], "bad tool")
            require(tool["parameters"]["type"] == "object", "bad parameters")
            require(tool["strict"] is False, "a strict tool needs a strict schema")
        if "tool_choice" in body:
            require(body.get("tools"), "tool_choice needs tools")
        most = body.get("max_output_tokens", 16)
        require(most >= 16, "max_output_tokens: integer below minimum value, expected 16 or more")
        waiting: list[str] = []
        items = body["input"]
        for index, item in enumerate(items):
            kind = item.get("type", "message")
            if kind == "function_call_output":
                require(item["call_id"] in waiting, f"input[{index}]: no call {item['call_id']}")
                waiting.remove(item["call_id"])
                for part in item["output"] if isinstance(item["output"], list) else ():
                    require(part["type"] in ("input_text", "input_image"), "bad part of a result")
                    if part["type"] == "input_image":
                        require(picture(part["image_url"]), "an empty image")
                continue
            if kind == "function_call":
                require(isinstance(item["arguments"], str), "arguments must be text")
                waiting.append(item["call_id"])
            elif kind == "reasoning":
                require(item["encrypted_content"], f"Item with id '{item['id']}' not found.")
                after = items[index + 1] if index + 1 < len(items) else {}
                led = after.get("type") in ("function_call", "reasoning")
                told = after.get("role") == "assistant"
                require(led or told, f"{item['id']} without its required following item")
            else:
                require(item["role"] in ("user", "assistant"), "bad role")
                for part in item["content"] if isinstance(item["content"], list) else ():
                    require(part["type"] in ("input_text", "input_image"), "bad part")
                    if part["type"] == "input_image":
                        require(picture(part["image_url"]), "an empty image")
                if item["role"] == "user":
                    require(not waiting, f"No tool output found for function call {waiting}.")
        require(not waiting, f"No tool output found for function call {waiting}.")

    def error_body(self, message: str, param: str | None) -> Json:
        return {"error": {"message": message, "type": "error", "param": param, "code": None}}

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        if isinstance(step, Events):
            return [f"data: {line}" for line in step.lines]
        how = step.how if isinstance(step, Ends) else ""
        step = step.then if isinstance(step, Ends) else step
        items, deltas, whole = self._items(body, step, number)
        shell = self._response(body, [], "in_progress")
        events: list[Json] = [{"type": "response.created", "response": shell}]
        for index, item in enumerate(items):
            place = {"output_index": index}
            events.append(
                {"type": "response.output_item.added", "item": item | {"status": "in_progress"}}
                | place
            )
            events += [delta | place for delta in deltas[index]]
            if whole and not (how and index == len(items) - 1):
                events.append({"type": "response.output_item.done", "item": item} | place)
        if how:
            end = self._response(body, items, "incomplete")
            reason = "max_output_tokens" if how == "length" else "content_filter"
            end["incomplete_details"] = {"reason": reason}
            events.append({"type": "response.incomplete", "response": end})
        elif whole:
            end = self._response(body, items, "completed")
            events.append({"type": "response.completed", "response": end})
        return [
            f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': n})}"
            for n, event in enumerate(events)
        ]

    def whole(self, body: Json, step: Step, number: int) -> Json:
        items, _, _ = self._items(body, step, number)
        return self._response(body, items, "completed")

    def _items(
        self, body: Json, step: Step, number: int
    ) -> tuple[list[Json], list[list[Json]], bool]:
        """The items, the deltas of each, and whether the answer ends as it should."""
        match step:
            case Say(text=text, words=words):
                return [_message(text)], [_text_deltas(pieces(text, words))], True
            case Slow(text=text):
                return [_message(text)], [_text_deltas(pieces(text, 1))], True
            case Cut(after_chars=count, text=text):
                return [_message(text)], [_text_deltas(pieces(text[:count], 1))], False
            case Stop(text=text):
                return [_message(text)], [_text_deltas([text])], False
            case Think(text=text, then=then, signature=signature):
                items, deltas, whole = self._items(body, then, number)
                kind = "response.reasoning_summary_text.delta"
                shown: list[Json] = [{"type": kind, "delta": p} for p in pieces(text, 1)]
                summary = [{"type": "summary_text", "text": text}]
                item: Json = {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
                if "reasoning.encrypted_content" in body.get("include", ()):
                    item["encrypted_content"] = signature
                return [item, *items], [shown, *deltas], whole
            case Call():
                return self._items(body, Calls([step]), number)
            case Calls(calls=calls):
                found: list[Json] = []
                told: list[list[Json]] = []
                for index, call in enumerate(calls):
                    if call.text:
                        found.append(_message(call.text))
                        told.append(_text_deltas([call.text]))
                    name = call.id if call.id is not None else f"call_{number}_{index}"
                    found.append(
                        {
                            "type": "function_call",
                            "id": f"fc_{number}_{index}",
                            "call_id": name,
                            "name": call.name,
                            "arguments": call.arguments,
                            "status": "completed",
                        }
                    )
                    kind = "response.function_call_arguments.delta"
                    told.append([{"type": kind, "delta": call.arguments}])
                return found, told, True
            case Empty():
                return [], [], True
        raise AssertionError(step)

    def _response(self, body: Json, items: list[Json], status: str) -> Json:
        size = len(json.dumps(body["input"])) // 4
        usage = {
            "input_tokens": size,
            "input_tokens_details": {"cached_tokens": size // 2, "cache_write_tokens": 5},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": size + 7,
        }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": status,
            "error": None,
            "incomplete_details": None,
            "output": items,
            "usage": usage if status != "in_progress" else None,
        }


def _message(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _text_deltas(words: list[str]) -> list[Json]:
    kind = "response.output_text.delta"
    return [{"type": kind, "item_id": "msg_1", "content_index": 0, "delta": w} for w in words]
