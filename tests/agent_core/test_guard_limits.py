"""A scan that takes too long: a message is marked, a call asks a person, and of an answer the rules
alone have judged. One that fails changes nothing."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from pydantic import BaseModel

from agent_core.guardrails import guard as guard_module
from agent_core.guardrails.guard import LONG, Guard
from agent_core.guardrails.models import GuardModels
from agent_core.guardrails.settings import GuardrailSettings
from agent_core.messages import Text, ToolCall
from agent_core.models.port import ModelReply
from agent_core.policy import Verdict
from agent_core.tools.contract import Tool
from agent_core.tools.toolbox import Prepared

SOON = GuardrailSettings(limit=0.02, personal="redact")
AMPLE = GuardrailSettings(limit=30.0, personal="redact")
ALLOW = Verdict(ruling="allow", rule="granted", reason="", risk="low")


class _Arguments(BaseModel):
    command: str


@pytest.fixture
def hang() -> Iterator[Callable[..., bool]]:
    """A scanner that comes to no end before the test does."""
    over = threading.Event()

    def scan(*given: object) -> bool:
        over.wait(30)
        return True

    yield scan
    over.set()


def fail(text: str) -> bool:
    raise RuntimeError("of the package")


def reply(text: str) -> ModelReply:
    return ModelReply(parts=(Text(text=text),), model="m", provider="p")


async def run_nothing(arguments: BaseModel, context: object) -> str:
    return ""


def call(command: str) -> Prepared:
    tool = Tool(
        name="run_command",
        description="",
        arguments=_Arguments,
        repetition="effect",
        access="shell",
        call=run_nothing,
    )
    asked = ToolCall(id="c", name="run_command", arguments="{}")
    return Prepared(call=asked, tool=tool, arguments=_Arguments(command=command))


async def test_a_message_that_is_scanned_too_long_is_marked(hang: Callable[..., bool]) -> None:
    late = await Guard(SOON, GuardModels(is_injection=hang)).check_message("hello")
    assert late is not None and (late.scanner, late.action) == ("injection", "warn")
    broken = Guard(AMPLE, GuardModels(is_injection=fail))
    assert await broken.check_message("hello") is None


async def test_a_call_that_is_scanned_too_long_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(SOON)
    assert await guard.check_call(call("ls"), ALLOW) == ALLOW
    over = threading.Event()

    def spin(text: str) -> bool:
        while not over.is_set():
            pass
        return True

    monkeypatch.setattr(guard_module, "find_dangerous_code", spin)
    verdict = await guard.check_call(call("ls " * LONG), ALLOW)
    over.set()
    assert verdict.ruling == "ask"


async def test_rules_are_not_late_because_the_machine_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard_module, "find_injection", lambda text: time.sleep(0.1))
    assert await Guard(SOON).check_message("ls " * LONG) is None


async def test_of_an_answer_the_rules_alone_have_judged(hang: Callable[..., bool]) -> None:
    said = reply("Write to ada@example.org, please.")
    kept = await Guard(SOON, GuardModels(is_toxic=hang)).check_reply(said)
    (part,) = kept.parts
    assert isinstance(part, Text) and "ada@example.org" not in part.text and not kept.flagged
    again = await Guard(AMPLE, GuardModels(is_toxic=fail)).check_reply(said)
    assert again == kept
    toxic = await Guard(AMPLE, GuardModels(is_toxic=lambda text: True)).check_reply(said)
    assert toxic.finish == "refused"
