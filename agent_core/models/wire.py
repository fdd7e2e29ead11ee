"""Shared by all HTTP providers: retries, server-sent events, and failures in plain words.

The SDKs retry failures before the first byte (429, 5xx, connection); `Line` retries an answer that
broke later. Both draw on the same allowance of attempts.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import (
    Awaitable,
    Callable,
)
from typing import TypeAlias, TypeVar

import httpx2
import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import ModelFailed, ModelFault
from agent_core.messages import (
    TOOL_NAME,
    Message,
    Part,
    ToolCall,
    ToolResult,
)
from agent_core.models.answers.broken import PAUSE, Broken
from agent_core.models.answers.limits import (
    LONGEST,
    MAX_CALLS,
    MAX_TEXT,
    AnswerTooLong,
    make_endless,
)
from agent_core.models.answers.refusals import (
    read_body,
    read_detail,
    read_pause,
    write_time,
)
from agent_core.models.answers.streamed_answers import PacedDeltas, Response, StreamFold, feed
from agent_core.models.answers.written_tools import ToolsRefused, refuses_tools, write_tools
from agent_core.models.credit import says_unpaid
from agent_core.models.overflow import read_overflow
from agent_core.models.port import (
    Delta,
    ModelReply,
    ModelRequest,
    OnDelta,
    Restarted,
    ToolSpec,
)
from agent_core.models.streamed_http import StreamedResponse
from agent_core.phrases import Phrase, phrase
from agent_core.settings import Endpoint

log = logging.getLogger("turnkeeper.models")

Send: TypeAlias = Callable[[ModelRequest, int], Awaitable[Response]]
"""Starts the call; the number is how many tries the SDK may add."""

AskWhy: TypeAlias = Callable[[ModelRequest], Awaitable[None]]
"""Raises ModelFailed with the reason why a request is not answered, if there is one."""

Attempt: TypeAlias = Callable[[int, OnDelta], Awaitable[ModelReply]]
"""One attempt; the number is how many may follow it."""

T = TypeVar("T")

Make: TypeAlias = "Callable[[ModelRequest, str, OnDelta], StreamFold]"
"""Makes the reader of an answer for a request to a provider."""

UNANSWERED = "No result: this call was not run."
"""Stands for a result that the transcript lacks: every provider wants one for each call."""

MAX_UNSEEN = 1_000
HEAVY = 2_000_000
"""Characters of pictures above which a request may be too large because of them."""
CONTINUED, GO_ON = "(the conversation goes on)", "(go on)"
"""Stand for the user message that has to be first, or last."""
UNSIGNED = "skip_thought_signature_validator"
"""Stands for the signature of calls that another provider's model made: Gemini 3 and later refuse a
call of the running turn that has none."""

DETAIL = 200
TRIED = "x-stainless-retry-count"
"""The header by which the SDKs tell the number of earlier attempts."""
HOPELESS: tuple[ModelFault, ...] = ("auth", "unpaid", "missing", "rejected", "overflow", "endless")
"""Failures that a retry cannot help."""
MAX_PAUSE = 120.0
"""Seconds that a provider may ask to wait; for more it is not asked again."""
_MISTRAL = re.compile(r"[sx]tral")  # also Codestral, Mixtral
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
REASONING = 4_096
"""Tokens of reasoning added to an answer of limited length: providers count them as part of it, and
one that is to say a word would say none."""
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
STALE = 1.0
"""Seconds within which a connection closed by the provider is noticed: the only failure that is
retried where no other retry is allowed."""
_OF_KEY = re.compile(r"\bkey\b|api.?key|token|credential|authenti|unauthori[sz]ed", re.IGNORECASE)
"""Words of a 403 that is about the key."""
_SECRET = re.compile(
    r"\b(?:(?:sk|pk|key|xai|gsk)[-_]|AIza)[-_A-Za-z0-9]{8,}|Bearer\s+\S+", re.IGNORECASE
)


class Line:
    """The connection to one provider."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._unseen: dict[tuple[str, str], None] = {}
        """Models, and pictures that they refused: not every one can see, not every picture is
        whole."""
        self._toolless: set[str] = set()
        """Models whose server takes no tools."""
        host = f".{httpx2.URL(endpoint.base_url).host}"
        self._own = host.endswith((".api.openai.com", ".api.anthropic.com"))
        self.timeout = httpx2.Timeout(endpoint.timeout, connect=min(endpoint.timeout, 10.0))

    async def ask(
        self,
        request: ModelRequest,
        send: Send,
        make: Make,
        on_delta: OnDelta,
        ask_why: AskWhy | None = None,
    ) -> ModelReply:
        """The answer, after as many tries as are allowed; raises ModelFailed. `ask_why` finds out
        why an answer broke off before it said anything."""
        request = fit_calls(request, self._own)

        async def attempt(left: int, show: OnDelta) -> ModelReply:
            response = await self.begin_with_pictures(
                request, lambda seen: self._begin_with_tools(seen, send, left)
            )
            try:
                return await self._read(request, response, make, show)
            except Broken as broken:
                broken.tries = _count_tries(response)
                silent = isinstance(response, StreamedResponse) and not response.received
                if silent and ask_why is not None and broken.fault == "unreachable":
                    await ask_why(request)
                raise

        return await self.try_again(request, attempt, on_delta)

    async def try_again(
        self, request: ModelRequest, attempt: Attempt, on_delta: OnDelta
    ) -> ModelReply:
        """Return the answer of the first `attempt` that did not break; raises ModelFailed. One
        that its provider's filter took back makes no calls, whole as they may look."""
        left = self._endpoint.retries if request.retries is None else request.retries
        senseless = False
        while True:
            shown = False

            def show(delta: Delta) -> None:
                nonlocal shown
                shown = True
                on_delta(delta)

            try:
                return _drop_refused(_check_calls(await attempt(left, show)))
            except Broken as broken:
                left -= broken.tries
                hopeless = broken.fault in HOPELESS or broken.pause > MAX_PAUSE
                again = broken.fault == "malformed" and senseless
                if left <= 0 or hopeless or again:
                    raise broken.told or self._failure_of(broken) from None
                left, senseless = left - 1, broken.fault == "malformed"
                if shown:
                    on_delta(Restarted())
                await ambient.wait(broken.pause)

    async def begin_with_pictures(
        self, request: ModelRequest, begin: Callable[[ModelRequest], Awaitable[T]]
    ) -> T:
        """Return the answer of `begin`. A request refused with its pictures is sent once more
        without them."""
        if not request.pictures:
            return await begin(request)
        seen = {
            ref: data
            for ref, data in request.pictures.items()
            if (request.model, ref) not in self._unseen
        }
        try:
            return await begin(replace(request, pictures=seen))
        except ModelFailed as failed:
            heavy = failed.fault == "overflow" and sum(map(len, seen.values())) > HEAVY
            if not seen or (failed.fault not in ("rejected", "missing") and not heavy):
                raise
            log.warning("pictures_refused", extra={"model": request.model, "why": str(failed)})
        begun = await begin(replace(request, pictures={}))
        while len(self._unseen) + len(seen) > MAX_UNSEEN:
            del self._unseen[next(iter(self._unseen))]
        self._unseen.update(dict.fromkeys((request.model, ref) for ref in seen))
        return begun

    async def _begin_with_tools(self, request: ModelRequest, send: Send, retries: int) -> Response:
        """Begin a call, with its tools as text if the model's server takes none."""
        if request.tools and request.model not in self._toolless:
            try:
                return await self._begin(request, send, retries)
            except ToolsRefused as refused:
                log.warning("tools_refused", extra={"model": request.model, "why": str(refused)})
                self._toolless.add(request.model)
        return await self._begin(write_tools(request) if request.tools else request, send, retries)

    async def _begin(self, request: ModelRequest, send: Send, retries: int) -> Response:
        began = ambient.monotonic()
        try:
            try:
                return await send(request, retries)
            except ModelFailed as failed:
                late = ambient.monotonic() - began > STALE
                if retries or late or failed.fault != "unreachable":
                    raise
                return await send(request, 0)
        except (OSError, ValueError) as error:
            raise self.translate_uncallable(error) from None

    async def _read(
        self, request: ModelRequest, response: Response, make: Make, on_delta: OnDelta
    ) -> ModelReply:
        deltas = PacedDeltas(on_delta)
        fold = make(request, self._endpoint.provider, deltas.add)
        try:
            await feed(response, fold, deltas, self._endpoint.timeout * LONGEST)
            reply = fold.reply()
            await deltas.flush()
            return reply
        except Broken as broken:
            if broken.refusal is not None:
                raise self.break_off(broken.refusal) from None
            raise
        except AnswerTooLong:
            raise make_endless() from None
        except httpx2.ReadTimeout:
            raise Broken(phrase("fault_stopped"), "timeout") from None
        except httpx2.HTTPError:
            raise Broken(phrase("fault_cut")) from None
        finally:
            await response.aclose()

    def limit_answer(self, times: float = LONGEST) -> asyncio.Timeout:
        """Return the limit of time of an answer that an SDK reads; its end raises TimeoutError."""
        return ambient.limit(self._endpoint.timeout * times)

    def translate_endless(self) -> ModelFailed:
        """Translate an answer that was given up, of a call that is made once."""
        return self._failure_of(make_endless())

    def break_off(self, refusal: httpx2.Response) -> Broken:
        """Translate an error status that came after the answer had begun."""
        told = self.read_refusal(refusal)
        return Broken(str(told), told.fault, told.retry_after or PAUSE, told.window, told)

    def read_refusal(self, response: httpx2.Response) -> ModelFailed:
        """Translate an answer with an error status."""
        name, status = self._endpoint.provider, response.status_code
        body = read_body(response)
        if (window := read_overflow(body, status)) is not None:
            return ModelFailed(phrase("fault_overflow", name=name), "overflow", window=window)
        if says_unpaid(body, status):
            return ModelFailed(phrase("fault_credit", name=name), "unpaid")
        if not self._own and refuses_tools(response):
            return ToolsRefused(self._tell_refused(response), "rejected")
        match status:
            case 403 if not _OF_KEY.search(read_detail(response)):
                # a model, a region or a text that is not allowed, with a key that is; or a firewall
                return ModelFailed(self._tell_refused(response), "missing")
            case 401 | 403:
                setting = self._endpoint.key_setting
                told = phrase("fault_key", name=name, status=str(status), setting=setting)
                return ModelFailed(told, "auth")
            case 429:
                if pause := read_pause(response):
                    told = phrase("fault_rate_until", name=name, time=write_time(pause))
                else:
                    told = phrase("fault_rate", name=name)
                return ModelFailed(told, "rate_limited", pause)
            case 408:
                return ModelFailed(phrase("fault_late", name=name), "timeout")
            case _ if status >= 500:
                why = self.clean(read_detail(response)) if isinstance(body, dict) else ""
                down = {"name": name, "status": f"{status}: {why}" if why else str(status)}
                if pause := read_pause(response):
                    told = phrase("fault_down_until", **down, time=write_time(pause))
                else:
                    told = phrase("fault_down", **down)
                return ModelFailed(told, "overloaded", pause)
            case _:
                fault: ModelFault = "missing" if status == 404 else "rejected"
                return ModelFailed(self._tell_refused(response), fault)

    def _tell_refused(self, response: httpx2.Response) -> Phrase:
        detail, status = self.clean(read_detail(response)), str(response.status_code)
        return phrase("fault_refused", name=self._endpoint.provider, status=status, detail=detail)

    def translate_unreachable(self, cause: BaseException | None) -> ModelFailed:
        """Translate a failed connection: the cause of an SDK's error."""
        name = self._endpoint.provider
        late = isinstance(cause, httpx2.TimeoutException | TimeoutError)
        if late and not isinstance(cause, httpx2.ConnectTimeout):
            seconds = f"{self._endpoint.timeout:g} s"
            return ModelFailed(phrase("fault_silent", name=name, seconds=seconds), "timeout")
        host = httpx2.URL(self._endpoint.base_url).host
        return ModelFailed(phrase("fault_unreachable", name=name, host=host), "unreachable")

    def translate_uncallable(self, error: Exception) -> ModelFailed:
        """Translate an error from before anything was sent."""
        why = self.clean(str(error))
        said = phrase("fault_uncallable", name=self._endpoint.provider, detail=why)
        return ModelFailed(said, "rejected")

    def clean(self, text: str) -> str:
        """`text` on one line, short, without anything like a key."""
        key = self._endpoint.api_key
        text = text.replace(key, "[key]") if len(key) > 4 else text
        text = " ".join(_SECRET.sub("[key]", text).split())
        return text if len(text) <= DETAIL else text[: DETAIL - 1] + "…"

    def _failure_of(self, broken: Broken) -> ModelFailed:
        name, said = self._endpoint.provider, broken.said
        if isinstance(said, str):
            text = f"{name} {self.clean(said)}. Try again, or use another model."
            return ModelFailed(text, broken.fault)
        fields = {key: self.clean(str(value)) for key, value in said.fields.items()}
        named = Phrase(key=said.key, fields={"name": name, **fields})
        return ModelFailed(named, broken.fault, window=broken.window)


def _check_calls(reply: ModelReply) -> ModelReply:
    """Return `reply`; raises Broken if its calls are more than anybody means."""
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    if len(calls) > MAX_CALLS or sum(len(one.arguments) for one in calls) > MAX_TEXT:
        raise make_endless()
    return reply


def _drop_refused(reply: ModelReply) -> ModelReply:
    if reply.finish != "refused":
        return reply
    return replace(reply, parts=tuple(p for p in reply.parts if not isinstance(p, ToolCall)))


def _count_tries(response: Response) -> int:
    if isinstance(response, StreamedResponse):
        return response.tries
    return int(response.request.headers.get(TRIED, 0))


def take_raw(response: object) -> httpx2.Response:
    """Return what the SDKs return when `cast_to` is a response, whatever their annotations say."""
    assert isinstance(response, httpx2.Response)
    return response


def fit_arguments(arguments: str) -> str:
    """Return arguments as the JSON of an object, byte for byte if they are that: templates of local
    servers read them, and refuse the whole conversation otherwise."""
    try:
        _decode_object(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        words = arguments.encode(errors="replace").decode()
        return msgspec.json.encode({"invalid_arguments": words} if words.strip() else {}).decode()
    return arguments


def fit_calls(request: ModelRequest, own: bool) -> ModelRequest:
    """Return `request` with calls that its model takes, whichever model made them: some refuse the
    whole conversation for an id or a name in another form. `own`: at OpenAI or Anthropic."""
    model = request.model.lower()
    if _MISTRAL.search(model):
        ids = _SHORT_ID
    elif own or "claude" in model:
        ids = _PLAIN_ID
    else:
        return request  # some, such as Kimi's, want their own ids back
    messages = tuple(_fit_message(message, ids) for message in request.messages)
    return replace(request, messages=messages)


def _fit_message(message: Message, ids: re.Pattern[str]) -> Message:
    if message.role == "user":
        return message
    parts = tuple(_fit_part(part, ids) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _fit_part(part: Part, ids: re.Pattern[str]) -> Part:
    match part:
        case ToolCall(id=given, name=name):
            fit = name if TOOL_NAME.fullmatch(name) else (_ODD.sub("_", name)[:64] or "unnamed")
            same = fit == name and ids.fullmatch(given)
            return part if same else replace(part, id=_fit_id(given, ids), name=fit)
        case ToolResult(call_id=given) if not ids.fullmatch(given):
            return replace(part, call_id=_fit_id(given, ids))
        case _:
            return part


def _fit_id(given: str, ids: re.Pattern[str]) -> str:
    """Return an id in the form of `ids`, the same one for the same one."""
    if ids.fullmatch(given):
        return given
    return hashlib.sha256(given.encode(errors="replace")).hexdigest()[:9]


class ToolSheet:
    """The tools as a provider wants them, rendered once for each offer and not for each call."""

    def __init__(self, form: Callable[[ToolSpec], dict[str, object]]) -> None:
        self._form = form
        self._offer: tuple[ToolSpec, ...] | None = None
        self._rendered = msgspec.Raw()

    def render(self, offer: tuple[ToolSpec, ...]) -> msgspec.Raw:
        """`offer` as a JSON list."""
        if offer is not self._offer:
            self._rendered = msgspec.Raw(msgspec.json.encode([self._form(tool) for tool in offer]))
            self._offer = offer
        return self._rendered
