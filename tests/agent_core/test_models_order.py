"""Whatever a conversation went through, each provider gets it in the order that it demands, in the
form that its SDK publishes."""

import json
import ssl
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from anthropic.types import MessageParam as AnthropicMessage
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from agent_core.messages import Message, Text, Thinking, ToolCall, user
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.google.client import Gemini
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.transcription import Transcriber
from agent_core.models.trust import load_trust
from agent_core.models.wire import UNSIGNED
from agent_core.settings import Endpoint
from tests.agent_core.asking import ask, assistant
from tests.agent_core.models_rig import PICTURES, histories
from tests.fakes.model_anthropic import Anthropic
from tests.fakes.model_openai import OpenAI
from tests.fakes.model_responses import Responses

Json = dict[str, Any]


def endpoint(provider: str, url: str = "http://127.0.0.1:1/v1", **more: Any) -> Endpoint:
    return Endpoint(provider=provider, base_url=url, api_key="k", **more)


@cache
def openai(provider: str, url: str = "http://127.0.0.1:1/v1") -> OpenAIChat:
    return OpenAIChat(endpoint(provider, url))


@cache
def anthropic() -> AnthropicMessages:
    return AnthropicMessages(endpoint("anthropic"))


@cache
def responses() -> OpenAIResponses:
    return OpenAIResponses(endpoint("openai"))


@cache
def form(kind: object) -> TypeAdapter[Any]:
    """The SDK's published form, taken at its word: a list where it says iterable."""
    return TypeAdapter(kind)


def validated(kind: object, messages: list[Json]) -> None:
    adapter = form(kind)
    for message in messages:
        found = adapter.validate_python(message)
        assert set(message) >= {"role"} or found["type"]


def foreign(history: tuple[Message, ...], provider: str) -> set[str]:
    """Thinking that is not the provider's, as it would be seen in a request."""
    marked = (part for message in history for part in message.parts if isinstance(part, Thinking))
    return {part.provider for part in marked if part.provider != provider}


def marked(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """The history with the maker's name in each piece of thinking."""
    return tuple(
        Message(
            role=message.role,
            parts=tuple(
                Thinking(
                    text=f"by-{part.provider}" if part.text else "",
                    provider=part.provider,
                    signature=part.signature and f"{part.signature}-by-{part.provider}"
                    if part.signature not in ("reasoning", None)
                    else part.signature,
                )
                if isinstance(part, Thinking)
                else part
                for part in message.parts
            ),
        )
        for message in history
    )


def no_foreign(raw: bytes, history: tuple[Message, ...], provider: str) -> None:
    for maker in foreign(history, provider):
        assert f"by-{maker}".encode() not in raw


@pytest.mark.parametrize("provider", ["openai", "house"])
@given(history=histories())
def test_chat_completions(provider: str, history: tuple[Message, ...]) -> None:
    own = provider == "openai"
    model = openai(provider, "https://api.openai.com/v1" if own else "http://127.0.0.1:1/v1")
    history = marked(history)
    raw = model._body(ask(*history, pictures=PICTURES))
    body = json.loads(raw)
    OpenAI(set()).check(body)
    validated(ChatCompletionMessageParam, body["messages"])
    no_foreign(raw, history, provider)
    if own:
        return
    roles = [one["role"] for one in body["messages"] if one["role"] not in ("tool", "system")]
    calls = [bool(one.get("tool_calls")) for one in body["messages"] if one["role"] != "tool"]
    assert roles[0] == "user"
    for index, (before, after) in enumerate(zip(roles, roles[1:], strict=False)):
        assert before != after or calls[index + 1], "only calls may be followed by an assistant"


@given(history=histories())
def test_gemini(history: tuple[Message, ...]) -> None:
    history = marked(history)
    raw = openai("gemini")._body(ask(*history, model="gemini-3.8-flash", pictures=PICTURES))
    body = json.loads(raw)
    OpenAI(set()).check(body)
    no_foreign(raw, history, "gemini")
    for message in body["messages"]:
        if calls := message.get("tool_calls"):
            assert calls[0]["extra_content"]["google"]["thought_signature"]


@given(history=histories())
def test_anthropics_messages(history: tuple[Message, ...]) -> None:
    history = marked(history)
    raw = anthropic()._body(ask(*history, pictures=PICTURES), forget=False)
    body = json.loads(raw)
    Anthropic(set()).check(body)
    validated(AnthropicMessage, body["messages"])
    no_foreign(raw, history, "anthropic")
    assert b"by-" not in anthropic()._body(ask(*history, pictures=PICTURES), forget=True)


@given(history=histories())
def test_openais_responses(history: tuple[Message, ...]) -> None:
    history = marked(history)
    raw = responses()._body(ask(*history, pictures=PICTURES))
    body = json.loads(raw)
    Responses(set()).check(body)
    validated(ResponseInputItemParam, body["input"])
    no_foreign(raw, history, "openai")


def test_two_messages_of_a_person_are_one_where_templates_want_it() -> None:
    history = (user("first"), user("steered"), assistant(Text(text="a")), assistant())
    house = json.loads(openai("house")._body(ask(*history, pictures=PICTURES)))["messages"]
    assert house[1:] == [
        {"role": "user", "content": "first\n\nsteered"},
        {"role": "assistant", "content": "a"},
    ]
    own = openai("openai", "https://api.openai.com/v1")
    assert [
        one["role"] for one in json.loads(own._body(ask(*history, pictures=PICTURES)))["messages"]
    ] == [
        "system",
        "user",
        "user",
        "assistant",
        "assistant",
    ]


def test_gemini_takes_calls_that_another_model_made() -> None:
    """A fallback in the middle of a turn: without a signature it would refuse the request."""
    call = ToolCall(id="c", name="look", arguments="{}")
    history = (user("x"), assistant(call), Message(role="tool", parts=()))
    sent = json.loads(openai("gemini")._body(ask(*history, model="gemini-3.1-pro-preview")))
    extra = sent["messages"][2]["tool_calls"][0]["extra_content"]
    assert extra == {"google": {"thought_signature": UNSIGNED}}
    older = json.loads(openai("gemini")._body(ask(*history, model="gemini-2.5-flash")))
    assert "extra_content" not in older["messages"][2]["tool_calls"][0]
    other = json.loads(openai("house")._body(ask(*history, pictures=PICTURES)))
    assert "extra_content" not in other["messages"][2]["tool_calls"][0]


@pytest.mark.parametrize("make", [AnthropicMessages, Gemini, lambda e: Transcriber(e, "w")])
def test_the_authorities_are_read_once_for_all_clients(
    make: Callable[[Endpoint], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_trust()

    def read_again(*_: object) -> None:
        raise AssertionError("the authorities were read again")

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", read_again)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", read_again)
    assert make(endpoint("any"))
