"""Google's generateContent, as the model server speaks it."""

import base64
import json
from typing import Any

from aiohttp import web

from tests.fakes.model_dialect import Dialect, pieces, require
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
    ["contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"]
)
PARTS = {"text", "functionCall", "functionResponse", "inlineData", "thoughtSignature"}
OPAQUE = {"parametersJsonSchema", "args", "response"}
SIGNED = "c2lnLTE="
"""What stands at the first call of an answer; calls of the running turn must have one."""


class Gemini(Dialect):
    fields = FIELDS
    turns = "contents"
    streams = True

    def __init__(self, extra_fields: set[str], model: str) -> None:
        super().__init__(extra_fields)
        self.model = model

    def check(self, body: Json) -> None:
        body.update(camel(body))  # as proto's JSON has it: both spellings are taken
        unknown = set(body) - self.fields - self._extra_fields
        require(not unknown, f"unknown name {sorted(unknown)}")
        require(self.model and body["contents"], "contents is not specified")
        for tool in body.get("tools", ()):
            for one in tool["functionDeclarations"]:
                require(one["parametersJsonSchema"]["type"] == "object", "bad parameters")
        contents = body["contents"]
        require(contents[0]["role"] == "user", "must begin with a user turn")
        require(contents[-1]["role"] == "user", "must end with a user turn")
        for before, after in zip(contents, contents[1:], strict=False):
            require(before["role"] != after["role"], "roles must take turns here")
        spoken = [n for n, one in enumerate(contents) if _texts(one) and one["role"] == "user"]
        for index, content in enumerate(contents):
            behind = contents[index + 1] if index + 1 < len(contents) else {"parts": []}
            self._check_parts(content, behind, running=index > max(spoken, default=0))

    def _check_parts(self, content: Json, behind: Json, running: bool) -> None:
        require(content["parts"], "parts must not be empty")
        for part in content["parts"]:
            require(set(part) <= PARTS, f"unknown part {set(part)}")
            require(len(set(part) - {"thoughtSignature"}) == 1, "one kind of data in a part")
            if "inlineData" in part:
                data = part["inlineData"]
                require(data["mimeType"].startswith("image/"), "bad image")
                require(base64.urlsafe_b64decode(data["data"]), "an empty image")
        calls = [part for part in content["parts"] if "functionCall" in part]
        if not calls:
            return
        require(content["role"] == "model", "a call of a user")
        results = [part for part in behind["parts"] if "functionResponse" in part]
        wanted = [part["functionCall"]["id"] for part in calls]
        got = [part["functionResponse"]["id"] for part in results]
        require(wanted == got, f"function calls {wanted} need as many responses, got {got}")
        if running and not self.model.startswith("gemini-2"):
            signed = calls[0].get("thoughtSignature")
            require(signed, "Function call is missing a thought_signature in functionCall parts")

    def last_user(self, body: Json) -> str:
        for content in reversed(body["contents"]):
            if content["role"] == "user" and (texts := _texts(content)):
                return texts[-1]
        return ""

    def error(
        self, status: int, message: str, retry_after: float | None = None, param: str | None = None
    ) -> web.Response:
        body = {"error": {"code": status, "message": message, "status": "FAILED"}}
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        return web.json_response(body, status=status, headers=headers)

    def lines(self, body: Json, step: Step, number: int) -> list[str]:
        if isinstance(step, Events):
            return [f"data: {line}" for line in step.lines]
        parts, finish = self._parts(step, number)
        chunks = [self._chunk([part]) for part in parts]
        if finish:
            last = self._chunk([{"text": ""}])
            last["candidates"][0]["finishReason"] = finish
            chunks.append(last | {"usageMetadata": self._usage(body)})
        return [f"data: {json.dumps(chunk)}" for chunk in chunks]

    def _parts(self, step: Step, number: int) -> tuple[list[Json], str]:
        match step:
            case Say(text=text, words=words):
                return [{"text": piece} for piece in pieces(text, words)], "STOP"
            case Slow(text=text):
                return [{"text": piece} for piece in pieces(text, 1)], "STOP"
            case Cut(after_chars=count, text=text):
                return [{"text": piece} for piece in pieces(text[:count], 1)], ""
            case Stop(text=text):
                return [{"text": text}], ""
            case Think(text=text, then=then):
                parts, finish = self._parts(then, number)
                return [{"text": text, "thought": True}, *parts], finish
            case Call():
                return self._parts(Calls([step]), number)
            case Calls(calls=calls):
                said: list[Json] = [{"text": call.text} for call in calls if call.text]
                return [*said, *_calls(calls, number)], "STOP"
            case Empty():
                return [], "STOP"
            case Ends(then=Call(arguments=cut)) if not cut.endswith("}"):
                return [], "MALFORMED_FUNCTION_CALL"  # it sends no piece of one
            case Ends(then=then, how=how):
                return self._parts(then, number)[0], "MAX_TOKENS" if how == "length" else "SAFETY"
        raise AssertionError(step)

    def _chunk(self, parts: list[Json]) -> Json:
        content = {"role": "model", "parts": parts}
        return {"candidates": [{"index": 0, "content": content}], "modelVersion": self.model}

    def _usage(self, body: Json) -> Json:
        size = len(json.dumps(body["contents"])) // 4
        return {
            "promptTokenCount": size,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 3,
            "cachedContentTokenCount": size // 2,
            "totalTokenCount": size + 7,
        }


def camel(value: Any) -> Any:
    """`value` with names in camel case, besides those that people chose."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for name, one in value.items():
        head, *rest = name.split("_")
        name = head + "".join(word.title() for word in rest)
        made[name] = one if name in OPAQUE else camel(one)
    return made


def _texts(content: Json) -> list[str]:
    return [part["text"] for part in content["parts"] if "text" in part]


def _calls(calls: tuple[Call, ...], number: int) -> list[Json]:
    parts: list[Json] = []
    for index, call in enumerate(calls):
        name = call.id if call.id is not None else f"call_{number}_{index}"
        function = {"id": name, "name": call.name, "args": json.loads(call.arguments)}
        parts.append({"functionCall": function})
    parts[0]["thoughtSignature"] = SIGNED
    return parts
