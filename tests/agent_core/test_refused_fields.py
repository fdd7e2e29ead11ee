"""A field that a server, proxy or model does not know is left out from then on, in whichever words
it is refused."""

import json

import pytest

from agent_core.errors import ModelFailed
from agent_core.models.answers.refused_fields import RefusedFields
from agent_core.models.anthropic_messages import OPTIONAL as ANTHROPICS
from agent_core.models.openai_chat import OPTIONAL
from agent_core.models.port import ModelRequest
from agent_core.settings import Endpoint
from tests.agent_core.asking import TOOL, ask, ignore
from tests.agent_core.streams_rig import WIRES, events, words, write
from tests.fakes.model_steps import Json
from tests.fakes.raw_server import RawServer, head, serving

SENT = {
    "chat": ("stream_options", "prompt_cache_key", "enable_thinking", "reasoning_effort",
             "tool_choice", "max_tokens"),
    "responses": ("prompt_cache_key", "max_output_tokens", "tool_choice", "instructions", "include",
                  "reasoning", "store", "strict"),
    "anthropic": ("cache_control", "output_config", "tool_choice", "thinking"),
}  # fmt: skip
TYPED = '{"error": {"type": "invalid_request_error", "message": "MESSAGE", "param": null}}'
MAKERS = {
    "OpenAI": ("Unknown parameter: 'FIELD'.", TYPED.replace("null", '"FIELD"')),
    "OpenAI, a model": ("Unsupported parameter: 'FIELD' is not supported with this model.", TYPED),
    "OpenAI, a value": ("Unsupported value: 'FIELD' does not support this with this model.", TYPED),
    "Azure": ("Unrecognized request argument supplied: FIELD", TYPED),
    "Anthropic": ("FIELD: Extra inputs are not permitted", TYPED),
    "Bedrock": ("Malformed input request: #: extraneous key [FIELD] is not permitted, please "
                "reformat your input and try again.", '{"message": "MESSAGE"}'),
    "pydantic": ("Extra inputs are not permitted",
                 '{"detail": [{"type": "extra_forbidden", "loc": ["body", "FIELD"], "msg": "MESSAGE"}]}'),
    "Mistral": ("Extra inputs are not permitted", '{"object": "error", "message": {"detail": [{"type": '
                '"extra_forbidden", "loc": ["body", "FIELD"], "msg": "MESSAGE"}]}}'),
    "vLLM": ("[{'type': 'extra_forbidden', 'loc': ('body', 'FIELD'), 'msg': 'Extra inputs are not "
             "permitted', 'input': 1}]", '{"object": "error", "message": "MESSAGE", "code": 400}'),
    "Groq": ("property 'FIELD' is unsupported", TYPED),
    "xAI": ("Argument not supported on this model: CAMEL", '{"code": "Client", "error": "MESSAGE"}'),
    "DeepSeek": ("Failed to deserialize the JSON body into the target type: unknown field `FIELD`, "
                 "expected one of `model`, `messages` at line 1 column 9", TYPED),
    "Fireworks": ("Extra inputs are not permitted, field: 'FIELD', value: 1", TYPED),
    "Cohere": ("unknown field: parameter 'FIELD' is not a valid field", '{"message": "MESSAGE"}'),
    "Google": ("Invalid JSON payload received. Unknown name \\\"FIELD\\\": Cannot find field.",
               '[{"error": {"code": 400, "message": "MESSAGE", "status": "INVALID_ARGUMENT"}}]'),
    "LiteLLM": ("litellm.UnsupportedParamsError: azure does not support parameters: ['FIELD'], for "
                "model=x. To drop these, set `litellm.drop_params=True`.", TYPED),
    "Go": ("json: unknown field \\\"FIELD\\\"", '{"error": "MESSAGE"}'),
    "Jackson": ("Unrecognized field \\\"FIELD\\\" (class com.x.Request), not marked as ignorable",
                '{"detail": "MESSAGE"}'),
    "ajv": ("body must NOT have additional properties", '{"error": {"message": "MESSAGE", "params": '
            '{"additionalProperty": "FIELD"}}}'),
    "JSON schema": ("Additional property FIELD is not allowed", '{"error": {"message": "MESSAGE"}}'),
    "OpenRouter": ("No endpoints found that support the provided 'FIELD' value.",
                   '{"error": {"message": "MESSAGE", "code": 404}}'),
    "TGI": ("Failed to deserialize: unknown field `FIELD`", '{"error": "MESSAGE"}'),
    "Perplexity": ("Unexpected parameter: FIELD", TYPED),
    "plain": ("FIELD is not implemented", "MESSAGE"),
    "old": ("The parameter \\\"FIELD\\\" is deprecated for this model", TYPED),
    "Zhipu": ("FIELD\u53c2\u6570\u4e0d\u652f\u6301", TYPED),
    "Alibaba": ("InternalError.Algo.InvalidParameter: FIELD is invalid.", TYPED),
}  # fmt: skip
REQUEST = ask(tools=(TOOL,), tool_choice="none", max_tokens=50, cache_key="c", effort="high")


def find(body: object, field: str) -> bool:
    """True if `field` stands anywhere in a request."""
    if isinstance(body, dict):
        return field in body or any(find(one, field) for one in body.values())
    return isinstance(body, list) and any(find(one, field) for one in body)


class PickyServer:
    """A server that refuses `fields` as a maker does."""

    def __init__(self, wire: str, maker: str, fields: tuple[str, ...], status: str) -> None:
        self.wire, self.fields, self.status = wire, fields, status
        message, form = MAKERS[maker]
        self.form = form.replace("MESSAGE", message)
        self.raw: RawServer | None = None

    def answer(self, n: int) -> bytes:
        assert self.raw is not None
        body: Json = json.loads(self.raw.bodies[-1])
        for field in self.fields:
            if find(body, field):
                first, *rest = field.split("_")
                camel = "".join((first, *(one.title() for one in rest)))
                told = self.form.replace("FIELD", field).replace("CAMEL", camel)
                return head("application/json", self.status) + told.encode()
        return head() + write(events(self.wire))


async def ask_twice(picky: PickyServer) -> list[int]:
    """The numbers of requests for each of two answers."""
    asked = []
    async with serving(picky.answer) as (base, picky.raw):
        made = WIRES[picky.wire](
            Endpoint(
                provider="p", api_key="k", base_url=base, retries=0, thinking=True, cache_key=True
            )
        )
        try:
            for _ in range(2):
                before = picky.raw.asked
                assert words(await made.complete(REQUEST, ignore)) == "hello"
                asked.append(picky.raw.asked - before)
        finally:
            await made.close()
    return asked


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(("wire", "field"), [(w, f) for w, all_ in SENT.items() for f in all_])
async def test_a_field_is_left_out_in_whichever_words_it_is_refused(
    wire: str, field: str, maker: str
) -> None:
    status = "404 Not Found" if maker == "OpenRouter" else "400 Bad Request"
    first, then = await ask_twice(PickyServer(wire, maker, (field,), status))
    assert 2 <= first <= 3 and then == 1, "it is learnt once"


@pytest.mark.parametrize("wire", SENT)
@pytest.mark.parametrize("maker", ["OpenAI", "pydantic", "LiteLLM"])
async def test_all_of_them_may_be_unknown(wire: str, maker: str) -> None:
    fields = SENT[wire] + (("max_completion_tokens",) if wire == "chat" else ())
    first, then = await ask_twice(PickyServer(wire, maker, fields, "422 No"))
    assert first <= len(fields) + 3 and then == 1


async def test_where_only_the_first_mark_of_a_cache_is_unknown_the_other_stays() -> None:
    class Older(PickyServer):
        def answer(self, n: int) -> bytes:
            assert self.raw is not None
            known = "cache_control" not in json.loads(self.raw.bodies[-1])
            return head() + write(events(self.wire)) if known else super().answer(n)

    picky = Older("anthropic", "Anthropic", ("cache_control",), "400 No")
    assert await ask_twice(picky) == [2, 1]
    assert picky.raw is not None and find(json.loads(picky.raw.bodies[-1]), "cache_control")


@pytest.mark.parametrize(
    "told",
    [
        "The model store is unavailable for this region.",
        "Our reasoning models do not support your plan.",
        "Invalid image: please include a valid one.",
        "strict mode is not supported",
        "Unexpected end of thinking",
        "this model's maximum context length is 4096 tokens, max_tokens is invalid",
    ],
)
@pytest.mark.parametrize("wire", SENT)
async def test_a_refusal_of_something_else_is_told_at_once(wire: str, told: str) -> None:
    await told_at_once(wire, told, REQUEST)


@pytest.mark.parametrize("field", ["tool_choice", "prompt_cache_key", "cache_control"])
@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_so_is_one_of_a_field_that_was_not_sent(wire: str, field: str) -> None:
    await told_at_once(wire, f"Unknown parameter: '{field}'.", ask(tools=(TOOL,)))


async def told_at_once(wire: str, told: str, request: ModelRequest) -> None:
    answer = head("application/json", "400 No") + json.dumps({"error": {"message": told}}).encode()
    async with serving(lambda n: answer) as (base, server):
        made = WIRES[wire](Endpoint(provider="p", api_key="k", base_url=base, retries=0))
        with pytest.raises(ModelFailed):
            await made.complete(request, ignore)
        await made.close()
    assert server.asked == 1


def test_openai_is_never_asked_to_store() -> None:
    assert "store" not in OPTIONAL + ANTHROPICS
    made = WIRES["responses"](
        Endpoint(provider="openai", api_key="k", base_url="https://api.openai.com/v1")
    )
    refused = made._refused
    assert isinstance(refused, RefusedFields) and "store" not in refused._optional
