"""Refusals as no provider should write them: each ends in a short error that people understand."""

import gzip
import json

import pytest

from agent_core.errors import ModelFailed
from agent_core.models.answers.refusals import MAX_WAIT
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.google.client import Gemini
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.settings import Endpoint
from tests.agent_core.asking import ask, failure
from tests.fakes.odd_json import DEEP
from tests.fakes.raw_server import head, serving

WIRES = (OpenAIChat, OpenAIResponses, AnthropicMessages, Gemini)
PAUSES = [
    *("inf", "-inf", "nan", "1e400", "1e23", "-5", "abc", "0.5, 3", "9" * 30),
    *("Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 99999 00:00:00 GMT", "Fri, 99 Nov 2026"),
    *("Thu, 01 Jan 1970 00:00:00 -9999999999", "Thu, 01 Jan 0000 00:00:00 GMT", "\u00d9\u00a1"),
]
LIMITED = b'{"error": {"message": "slow down"}}'
REFUSED = json.dumps({"error": {"message": "no such thing"}}).encode()


async def refuse(wire: type, answer: bytes, retries: int = 0) -> ModelFailed:
    """How a call ends that is answered like this, as often as it is made."""
    async with serving(lambda n: answer) as (base, _):
        model = wire(Endpoint(provider="p", api_key="k", base_url=base, retries=retries))
        failed = await failure(model, ask())
        await model.close()
    assert len(str(failed)) < 400
    return failed


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("said", PAUSES)
async def test_an_odd_pause_is_none(wire: type, said: str) -> None:
    answer = head("application/json", "429 Slow", f"Retry-After: {said}") + LIMITED
    failed = await refuse(wire, answer)
    assert failed.fault == "rate_limited"
    assert (failed.retry_after or 0) < MAX_WAIT


@pytest.mark.parametrize("said", ["Retry-After: inf", "Retry-After-Ms: 9e30", "X-Nothing: 1"])
@pytest.mark.parametrize("wire", WIRES)
async def test_after_an_odd_pause_it_is_tried_again(wire: type, said: str) -> None:
    answer = head("application/json", "429 Slow", said) + LIMITED
    assert (await refuse(wire, answer, retries=1)).fault == "rate_limited"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_pause_in_words_is_read(wire: type) -> None:
    words = b'{"error": {"message": "Limit reached. Please try again in 20m."}}'
    failed = await refuse(wire, head("application/json", "429 Slow") + words, retries=1)
    assert (failed.fault, failed.retry_after) == ("rate_limited", 1_200.0)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Go", "308 Go"])
async def test_a_redirect_is_not_followed_and_says_where_to(wire: type, status: str) -> None:
    where = "https://elsewhere.example/v1"
    failed = await refuse(wire, head("text/plain", status, f"Location: {where}"))
    assert failed.fault == "rejected" and where in str(failed)


FORBIDDEN = {
    "Country, region, or territory not supported": "missing",
    "Project `proj_1` does not have access to model `gpt-x`": "missing",
    "Your chosen model requires moderation and your input was flagged": "missing",
    "You are not authorized to use this model in your plan": "missing",
    "API key not valid. Please pass a valid API key.": "auth",
    "Method doesn't allow unregistered callers. Please use API Key": "auth",
    "Request had insufficient authentication scopes.": "auth",
    "The token has been revoked": "auth",
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("words", FORBIDDEN)
async def test_what_is_forbidden_to_a_key_that_holds_is_told(wire: type, words: str) -> None:
    """The key goes on for what it may do."""
    body = json.dumps({"error": {"message": words}}).encode()
    failed = await refuse(wire, head("application/json", "403 Forbidden") + body)
    assert failed.fault == FORBIDDEN[words]
    assert (words in str(failed)) == (failed.fault == "missing")


PAGES = {
    "cloudflare": "<!DOCTYPE html>\n<html lang='en'><head><title>Attention Required! | Cloudflare"
    "</title></head><body>Sorry, you have been blocked. Your API key and token are safe.</body>",
    "nginx": "<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>nginx</body>",
    "spaced": "\n\n <HTML><HEAD><META charset=x>\n<TITLE lang=en>\n Access \n Denied </TITLE>",
    "untitled": "<html><body>Request blocked: credential scan</body></html>",
    "odd": "<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
    "long": f"<html>{'<title>' * 2_000}",
    "empty": "",
    "blank": " \n",
    "words": "Access denied by policy 12",
}
KINDS = ("text/html", "text/plain", "application/json", "application/xml")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("status", ["403 Forbidden", "404 Not Found", "405 No", "400 No", "503 No"])
async def test_a_page_of_a_firewall_is_not_about_the_key(
    wire: type, page: str, status: str
) -> None:
    """Nor are its tags told to anybody."""
    for kind in KINDS:
        failed = await refuse(wire, head(kind, status) + PAGES[page].encode())
        wanted = {"403": "missing", "404": "missing", "503": "overloaded"}.get(
            status[:3], "rejected"
        )
        assert failed.fault == wanted
        assert "<" not in str(failed) and status[:3] in str(failed)
        if page in ("cloudflare", "spaced", "words") and wanted == "missing":
            told = {"cloudflare": "Attention Required!", "spaced": "Access Denied"}
            assert told.get(page, "policy 12") in str(failed)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "body", ["Invalid API key.", "<title>403: the token has expired</title>", "Unauthorized"]
)
async def test_words_about_the_key_are_found_in_any_body(wire: type, body: str) -> None:
    answer = head("text/html", "403 Forbidden") + body.encode()
    assert (await refuse(wire, answer)).fault == "auth"


ODD_BODIES = {
    "charset": head("application/json; charset=none-such", "400 No") + REFUSED,
    "undefined": head("application/json; charset=undefined", "400 No") + REFUSED,
    "header": head("application/json", "400 No", "X-Said: \u00d0\u00be") + REFUSED,
    "utf-16": head("application/json", "400 No") + REFUSED.decode().encode("utf-16"),
    "list": head("application/json", "400 No") + b"[" + REFUSED + b"]",
    "beside": head("application/json", "400 No") + b'{"error": null, "message": "no such thing"}',
    "detail": head("application/json", "400 No") + b'{"detail": "no such thing"}',
    "nothing": head("application/json", "400 No"),
    "null": head("application/json", "400 No") + b'{"error": {"message": null}}',
    "deep": head("application/json", "400 No") + DEEP.encode(),
    "gzip": head("application/json", "500 No", "Content-Encoding: gzip") + REFUSED,
    "half": head("application/json", "500 No", "Content-Encoding: gzip")
    + gzip.compress(REFUSED)[:30],
    "cut": head("application/json", "500 No", "Content-Length: 500") + REFUSED,
    "page": head("text/html; charset=idna", "502 No") + b"<html>\xff</html>",
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", ODD_BODIES)
async def test_an_odd_body_is_told(wire: type, kind: str) -> None:
    if wire is AnthropicMessages and kind in ("undefined", "page"):
        return  # its SDK decodes the body before anybody else can
    failed = await refuse(wire, ODD_BODIES[kind])
    assert "None" not in str(failed) and "codec" not in str(failed)
    if kind in ("header", "utf-16", "list", "beside", "detail"):
        assert "no such thing" in str(failed)


NAMED = {
    "chat": [],
    "responses": [
        ("invalid_prompt", "rejected"), ("invalid_api_key", "auth"), ("model_not_found", "missing"),
        ("rate_limit_exceeded", "rate_limited"), ("server_error", "overloaded"),
        ("slow_down", "overloaded"), ("server_is_overloaded", "overloaded"),
    ],
    "anthropic": [
        ("invalid_request_error", "rejected"), ("authentication_error", "auth"),
        ("permission_error", "missing"), ("not_found_error", "missing"), ("timeout_error", "timeout"),
        ("rate_limit_error", "rate_limited"), ("api_error", "overloaded"),
        ("overloaded_error", "overloaded"), ("billing_error", "unpaid"),
    ],
}  # fmt: skip
STREAMED = {"chat": OpenAIChat, "responses": OpenAIResponses, "anthropic": AnthropicMessages}
AGAIN = ("rate_limited", "overloaded", "timeout")


def place(wire: str, error: object) -> list[bytes]:
    """An error in each place where a server may put it: in a stream, and as a whole answer."""
    if wire == "chat":
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        forms: list[object] = [{"error": error}, {"error": error, "choices": [choice]}]
    elif wire == "responses":
        failed = {"status": "failed", "error": error}
        forms = [
            {"type": "response.failed", "response": failed},
            {"type": "error", "error": error},
        ]
    else:
        forms = [{"type": "error", "error": error}]
    streamed = [head() + f"data: {json.dumps(one)}\n\n".encode() for one in forms]
    return [*streamed, head("application/json") + json.dumps({"error": error}).encode()]


@pytest.mark.parametrize("wire", STREAMED)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503])
async def test_a_status_within_an_answer_is_one(wire: str, status: int) -> None:
    """As OpenRouter and vLLM give it: the same failure and words, and tried again or not."""
    error = {"message": "It is so.", "type": None}
    answer = head("application/json", f"{status} So") + json.dumps({"error": error}).encode()
    wanted = await refuse(STREAMED[wire], answer)
    for code in (status, str(status)):
        for answer in place(wire, error | {"code": code}):
            failed = await refuse(STREAMED[wire], answer)
            assert (failed.fault, str(failed)) == (wanted.fault, str(wanted))


@pytest.mark.parametrize(
    ("wire", "name", "fault"),
    [(wire, *one) for wire, named in NAMED.items() for one in named],
)
async def test_an_error_has_one_meaning_wherever_it_comes(wire: str, name: str, fault: str) -> None:
    key = "code" if wire == "responses" else "type"
    for answer in place(wire, {key: name, "message": "It is so."}):
        async with serving(lambda n, answer=answer: answer) as (base, server):
            model = STREAMED[wire](Endpoint(provider="p", api_key="k", base_url=base, retries=1))
            failed = await failure(model, ask())
            await model.close()
        assert failed.fault == fault
        assert server.asked == (2 if fault in AGAIN else 1), "what cannot help is not paid again"


@pytest.mark.parametrize("wire", STREAMED)
async def test_a_pause_within_an_answer_is_kept(wire: str) -> None:
    error = {"code": 429, "message": "Limit reached. Please try again in 20m."}
    for answer in place(wire, error):
        failed = await refuse(STREAMED[wire], answer, retries=1)
        assert (failed.fault, failed.retry_after) == ("rate_limited", 1_200.0)
        assert "20 min" in str(failed)
