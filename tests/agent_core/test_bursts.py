"""Answers that arrive all at once: while one is read, redacted and scanned, others are served."""

import asyncio
import time
from collections.abc import Callable

import pytest

from agent_core.ambient import MAX_HELD, LoopShare
from agent_core.guardrails.answers import ReplyRedactor
from agent_core.guardrails.guard import Guard
from agent_core.guardrails.redaction import Redactions
from agent_core.guardrails.sentences import MOST
from agent_core.guardrails.settings import GuardrailSettings
from agent_core.messages import text_of
from agent_core.models.anthropic_messages import AnthropicMessages
from agent_core.models.google.client import Gemini
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.openai_responses import OpenAIResponses
from agent_core.models.port import Delta, Model, TextDelta
from agent_core.settings import Endpoint
from tests.agent_core.asking import ask, assistant
from tests.fakes.model_anthropic import Anthropic
from tests.fakes.model_dialect import Dialect
from tests.fakes.model_gemini import Gemini as SpokenGemini
from tests.fakes.model_openai import OpenAI
from tests.fakes.model_responses import Responses
from tests.fakes.model_steps import Json, Say
from tests.fakes.raw_server import head, serving

LONG = 60_000
HELD = 0.15
"""Seconds of work on the loop at a time, on a slow machine."""
TEXTS = {
    "sentences": "Lorem ipsum dolor sit amet, consectetur. ",
    "lines": "one line of code\n",
    "run": "x1Y",
    "beginnings": "api_key= ",
}
WIRES: dict[str, tuple[Callable[[Endpoint], Model], Callable[[set[str]], Dialect]]] = {
    "openai": (OpenAIChat, OpenAI),
    "responses": (OpenAIResponses, Responses),
    "anthropic": (AnthropicMessages, Anthropic),
    "gemini": (Gemini, lambda fields: SpokenGemini(fields, "m")),
}


def speak(dialect: Dialect, text: str, words: int) -> bytes:
    """A stream that says `text`, with so many words in each event."""
    body: Json = {"model": "m", "messages": [], "input": [], "contents": [], "stream": True}
    lines = dialect.lines(body, Say(text, words), 1)
    return head() + "".join(f"{line}\n\n" for line in lines).encode()


async def watch_loop(over: asyncio.Event) -> float:
    """The longest that the loop worked between two of its rounds, in CPU time of its thread."""
    longest, before = 0.0, time.thread_time()
    while not over.is_set():
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("words", [1, 20, LONG])
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.pick
async def test_a_burst_does_not_hold_the_loop(wire: str, words: int, kind: str) -> None:
    connect, spoken = WIRES[wire]
    text = (TEXTS[kind] * (LONG // len(TEXTS[kind]))).strip()
    answer = speak(spoken(set()), text, words)
    shown: list[str] = []
    over = asyncio.Event()

    def show(delta: Delta) -> None:
        assert isinstance(delta, TextDelta)
        shown.append(delta.text)

    async with serving(lambda n: answer) as (base, _), asyncio.TaskGroup() as group:
        model = connect(Endpoint(provider="p", api_key="k", base_url=base))
        held = group.create_task(watch_loop(over))
        redactions = Redactions({"secret-word": "[secret]"}).with_shapes()
        redactor = ReplyRedactor(redactions, show, Guard(GuardrailSettings()))
        reply = await redactor.finish(await model.complete(ask(), redactor.add))
        over.set()
        await model.close()
    assert text_of(assistant(*reply.parts)) == text == "".join(shown)
    assert held.result() < HELD


async def test_only_work_that_holds_the_loop_waits_for_others() -> None:
    share, turns = LoopShare(), 0

    def count() -> None:
        nonlocal turns
        turns += 1

    await asyncio.sleep(3 * MAX_HELD)
    asyncio.get_running_loop().call_soon(count)
    await share.offer()
    assert not turns, "it waited itself, and held nothing"
    while time.perf_counter() - share._began < MAX_HELD:
        pass
    await share.offer()
    assert turns == 1


@pytest.mark.slow
def test_a_long_text_is_gated_in_linear_time() -> None:
    """As one piece, and with the same result as in small ones."""
    text, whole, cut = "ok\n" * 200_000, list[str](), list[str]()
    began = time.thread_time()
    gate = Guard(GuardrailSettings()).make_gate(whole.append)
    gate.add(text)
    gate.end()
    taken = time.thread_time() - began
    gate = Guard(GuardrailSettings()).make_gate(cut.append)
    for at in range(0, len(text), MOST // 3):
        gate.add(text[at : at + MOST // 3])
    gate.end()
    assert "".join(whole) == "".join(cut) == text
    assert taken < 3 * (time.thread_time() - began - taken)
