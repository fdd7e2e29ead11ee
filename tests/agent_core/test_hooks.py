"""Hooks: what they may say, what happens when they fail, and that a replay does not ask again."""

import asyncio
import inspect
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path

import msgspec
import pytest

from agent_core import Agent, tool
from agent_core.context.data_marks import strip_marks
from agent_core.errors import ToolFailed
from agent_core.journal import Noted, ToolFinished
from agent_core.journal_file import FileJournal
from agent_core.models.openai_chat import OpenAIChat
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.settings import Endpoint, SettingsError
from agent_core.tools import hooks
from agent_core.tools.ask import ask_tool
from agent_core.tools.contract import Tool
from agent_core.tools.hooks import FAILED, DoneStep, HookedCall, PostHook, PreHook, ToolHooks
from tests.fakes.model_server import Call, Calls, ModelServer, Say
from tests.fakes.waiting import PATIENCE


class Named(OpenAIChat):
    """A provider with a fixed model."""

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        return await super().complete(msgspec.structs.replace(request, model="m"), on_delta)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    yield server
    await server.close()


class HookRig:
    """An agent with a tool that says what it was called with."""

    def __init__(self, server: ModelServer, folder: Path) -> None:
        self.server, self.folder, self.url = server, folder, ""
        self.ran: list[str] = []

    async def run(
        self, pre: PreHook | None = None, post: PostHook | None = None, more: tuple[Tool, ...] = ()
    ) -> list[str]:
        """What the model was told by the tools."""

        @tool
        def note(text: str) -> str:
            """Note."""
            self.ran.append(text)
            if text == "bad":
                raise ToolFailed("the password is hunter2")
            return f"noted {text}"

        self.url = self.url or await self.server.start()
        endpoint = Endpoint(provider="openai", base_url=f"{self.url}/v1", api_key="k")
        async with Agent(
            model=Named(endpoint), tools=[note, *more], journal=self.folder / "journal",
            workspace=self.folder, pre_tool_call=pre, post_tool_call=post,
        ) as agent:  # fmt: skip
            await agent.run_conversation("note it", task_id="t")
        messages = self.server.requests[-1].body["messages"]
        return [strip_marks(str(m["content"])) for m in messages if m["role"] == "tool"]


@pytest.fixture
def rig(server: ModelServer, tmp_path: Path) -> HookRig:
    server.script(Call("note", '{"text": "x"}'), Say("done"))
    return HookRig(server, tmp_path)


async def test_a_text_before_the_call_refuses_it(rig: HookRig) -> None:
    seen: list[HookedCall] = []

    def pre(call: HookedCall) -> str | None:
        seen.append(call)
        return "not on Sundays"

    assert await rig.run(pre) == ["Denied: not on Sundays"]
    assert rig.ran == []
    assert (seen[0].name, seen[0].arguments) == ("note", {"text": "x"})
    assert seen[0].workspace == rig.folder


async def test_none_lets_it_be_and_a_text_takes_the_results_place(rig: HookRig) -> None:
    async def pre(call: HookedCall) -> None:
        await asyncio.sleep(0)

    async def post(call: HookedCall, result: str) -> str:
        return f"{result}, rewritten for {call.name}"

    assert await rig.run(pre, post) == ["noted x, rewritten for note"]
    records = FileJournal(rig.folder / "journal").load("t")
    (kept,) = [one for one in records if isinstance(one, ToolFinished)]
    assert kept.content == "noted x, rewritten for note", "the recorded result is the rewritten one"


async def test_a_failure_is_rewritten_too(server: ModelServer, tmp_path: Path) -> None:
    server.script(Call("note", '{"text": "bad"}'), Say("done"))
    rig = HookRig(server, tmp_path)
    assert await rig.run(post=lambda call, text: text.replace("hunter2", "[secret]")) == [
        "the password is [secret]"
    ]


def fails(*_: object) -> str:
    raise RuntimeError("mine")


async def cancels(*_: object) -> str:
    raise asyncio.CancelledError


def leaves(*_: object) -> str:
    sys.exit(3)


def says_a_number(*_: object) -> int:
    return 1


async def hangs(*_: object) -> str:
    await asyncio.Event().wait()
    return ""


def blocks(*_: object) -> str:
    threading.Event().wait()
    return ""


async def test_a_coroutine_that_comes_too_late_is_closed(
    rig: HookRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "SECONDS", 0.1)
    go, made = threading.Event(), list[Coroutine[None, None, str]]()

    def slow(*_: object) -> Coroutine[None, None, str]:
        go.wait(20)
        made.append(hangs())
        return made[0]

    assert await rig.run(pre=slow) == [f"Denied: {FAILED}"]
    go.set()
    async with asyncio.timeout(PATIENCE):
        while not made or inspect.getcoroutinestate(made[0]) != inspect.CORO_CLOSED:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("hook", [fails, cancels, leaves, says_a_number, hangs, blocks])
async def test_one_that_fails_or_is_late(
    rig: HookRig,
    hook: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(hooks, "SECONDS", 0.1)
    caplog.set_level(logging.ERROR, "turnkeeper.hooks")
    assert await rig.run(pre=hook) == [f"Denied: {FAILED}"]
    assert rig.ran == []
    rig.server.script(Call("note", '{"text": "x"}'), Say("done"))
    rig.folder /= "2"
    assert await rig.run(post=hook) == ["noted x"], "it has run: its result stands"
    assert [record.msg for record in caplog.records] == ["hook_failed"] * 2


async def test_a_replay_does_not_ask_again(rig: HookRig) -> None:
    """Cut off after the hook's word: what it said then holds, whatever it would say now."""
    await rig.run(pre=lambda call: "not then")
    journal = FileJournal(rig.folder / "journal")
    before = journal.load("t")
    kept = [n for n, one in enumerate(before) if isinstance(one, Noted) and "policy" in one.key]
    again = FileJournal(rig.folder / "2/journal")
    await again.append("t", before[: kept[0] + 1])
    rig.folder /= "2"
    rig.server.script(Say("done"))
    asked: list[HookedCall] = []
    assert await rig.run(pre=asked.append) == ["Denied: not then"]
    assert asked == [] and rig.ran == []


async def test_a_question_may_be_refused(server: ModelServer, tmp_path: Path) -> None:
    ask, note = Call("ask_user", '{"question": "?"}', id="a"), Call("note", '{"text": "y"}', id="b")
    server.script(Calls([ask, note]), Say("done"))
    rig = HookRig(server, tmp_path)
    told = await rig.run(lambda call: "no" if call.name == "ask_user" else None, more=(ask_tool(),))
    assert told == ["Denied: no", "noted y"]


async def test_the_first_refusal_decides_and_rewriting_goes_in_order(tmp_path: Path) -> None:
    from agent_core.messages import ToolCall
    from agent_core.tools.files import file_tools
    from agent_core.tools.toolbox import Prepared, Toolbox

    box = Toolbox(file_tools())
    call = ToolCall(id="1", name="read_file", arguments='{"path": "a"}')
    item = box.prepare(call, box.names)
    assert isinstance(item, Prepared)
    both = ToolHooks(
        pre=(lambda c: None, lambda c: "two", fails), post=(fails, lambda c, t: t + "2")
    )
    assert await both.veto(item, tmp_path) == "two"
    assert await both.rewrite(item, tmp_path, "1") == "12"
    assert both.slack == 10.0 and ToolHooks().slack == 0.0


RULES = """
def pre_tool_call(call):
    return None
def pre_tool_call_of_ops(call):
    return "ops"
async def post_tool_call(call, result):
    return None
def post_tool_call_short(call):
    return None
pre_tool_call_text = "no"
other = pre_tool_call
"""


@pytest.mark.parametrize(
    ("entry", "mend"),
    [
        ("rules_of_test", "write package.module:pre_tool_call"),
        ("rules_of_test:other", "write package.module:pre_tool_call"),
        (":pre_tool_call", "write package.module"),
        ("no_such_module_of_ours:pre_tool_call", "cannot be imported (ModuleNotFoundError"),
        ("broken_of_test:pre_tool_call", "cannot be imported (SyntaxError"),
        ("rules_of_test:pre_tool_call_none", "has no function"),
        ("rules_of_test:pre_tool_call_text", "has no function"),
        ("rules_of_test:post_tool_call_short", "must take the call and its result"),
    ],
)
def test_what_cannot_be_loaded_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, mend: str
) -> None:
    (tmp_path / "rules_of_test.py").write_text(RULES)
    (tmp_path / "broken_of_test.py").write_text("def")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SettingsError) as caught:
        hooks.load((entry,))
    assert str(caught.value).startswith(f"HOOKS={entry}: ") and mend in str(caught.value)


def test_entries_are_told_apart_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules_of_test.py").write_text(RULES)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("pre_tool_call", "post_tool_call", "pre_tool_call_of_ops")
    loaded = hooks.load(f"rules_of_test:{name}" for name in names)
    assert [len(loaded.pre), len(loaded.post)] == [2, 1]


PLAN = """{"steps": [{"id": "a", "description": "count", "outcome": "a number"},
{"id": "b", "description": "tell", "outcome": "told", "needs": ["a"]}]}"""
LONG = "First count the words in the book, then tell me how many there are, and then stop."


@pytest.mark.parametrize("how", ["says", "silent", "fails"])
async def test_a_step_is_judged_by_the_hook_and_by_the_model_where_it_says_nothing(
    server: ModelServer, tmp_path: Path, how: str
) -> None:
    """A replay asks it no more; one that fails leaves the word to the model."""
    seen: list[tuple[str, str]] = []

    def verify_step(step: DoneStep) -> str | None:
        seen.append((step.id, step.report))
        if how == "fails":
            raise RuntimeError("mine")
        first = step.id == "a" and len(seen) == 1
        return None if how == "silent" else "no number in it" if first else ""

    good = Say('{"ok": true}')
    steps = [Say(PLAN), Say("many"), *([] if how == "says" else [good])]
    if how == "says":
        again = PLAN.replace('"a"', '"c"')
        steps += [Say(again), Say("five"), Say("told"), Say("There are five.")]
    else:
        steps += [Say("told"), good, Say("There are five.")]
    server.script(*steps)
    endpoint = Endpoint(provider="openai", base_url=f"{await server.start()}/v1", api_key="k")
    agent = Agent(
        model=Named(endpoint), journal=tmp_path / "journal", workspace=tmp_path,
        verify_step=verify_step,
    )  # fmt: skip
    async with agent:
        result = await agent.run_conversation(LONG, task_id="t")
        assert result.final_response == "There are five."
        count = len(seen)
        await agent.run_conversation(LONG, task_id="t")
    assert len(seen) == count, "a replay does not ask again"
    if how == "says":
        assert seen == [("a", "many"), ("c", "five"), ("b", "told")]
        told = "".join(str(m["content"]) for m in server.requests[2].body["messages"])
        assert "The step a failed: no number in it" in told
    else:
        assert [name for name, _ in seen] == ["a", "b"]
