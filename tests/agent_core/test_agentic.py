"""The loop with gather, plan, act and verify, and an agent's states: real turns, through the real
OpenAI SDK against a local model server."""

import asyncio
import json
import logging
from pathlib import Path

import msgspec
import pytest

from agent_core import Agent, AgenticLoop, AgentState, tool
from agent_core.context.data_marks import strip_marks
from agent_core.errors import Misuse, ModelFailed
from agent_core.library.agentic import INACTIVE
from agent_core.library.entries import MAX_HISTORY, NAME, Entries
from agent_core.messages import user
from agent_core.questions import Approval
from agent_core.tools.ask import ask_tool
from tests.agent_core.library_rig import provider
from tests.fakes.model_server import Call, Calls, Fail, ModelServer, Say

RAN: list[str] = []
LONG = "First look the word up in the book, then write down what it means, and then check it."
STEPS = [
    {"id": "a", "description": "look it up", "outcome": "found"},
    {"id": "b", "description": "write it down", "outcome": "written", "needs": ["a"]},
]
YES, NO = '{"ok": true}', '{"ok": false, "why": "Nothing was written."}'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent's workspace is the working folder: a plan is copied into it."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def server():
    server = ModelServer()
    server.url = await server.start()
    RAN.clear()
    yield server
    await server.close()


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    RAN.append(word)
    if word == "none":
        raise ValueError("no such word")
    return f"{word}: a right to write"


def loop_of(server: ModelServer, **more: object) -> AgenticLoop:
    loop = AgenticLoop(Agent(model=provider(server), tools=[lookup], **more))
    assert loop.activate() is True and loop.activate() is False
    return loop


async def test_a_turn_is_told_in_the_documents_shape(server: ModelServer) -> None:
    server.script(
        Calls([Call("lookup", '{"word": "lease"}', id="1"), Call("lookup", '{"word": "none"}')]),
        Say("A right to write."),
    )
    loop = loop_of(server)
    report = await loop.aprocess_request("What is a lease?")
    assert set(report) == {"success", "plan", "results", "verification"}
    assert report["success"] is True, "a call that failed was made good by the answer"
    assert [row["tool"] for row in report["plan"]] == ["lookup", "lookup", "answer"]
    first, second, answer = report["results"]
    assert set(first) == {"tool", "action", "success", "data", "error", "execution_time"}
    assert (first["success"], first["data"]) == (True, "lease: a right to write")
    assert (second["success"], second["data"]) == (False, None)
    assert "no such word" in str(second["error"])
    assert answer["data"] == "A right to write."
    checked = report["verification"]
    assert set(checked) == {
        "overall_success", "successful_steps", "failed_steps", "total_execution_time", "issues",
        "summary",
    }  # fmt: skip
    assert checked["summary"] == "Executed 3 steps: 2 successful, 1 failed"
    assert [issue["tool"] for issue in checked["issues"]] == ["lookup"]
    assert loop.current_plan == report["plan"]
    await loop.agent.close()


async def test_the_steps_of_a_plan_are_its_results_and_judged(server: ModelServer) -> None:
    replan = json.dumps([{"id": "c", "description": "write it again", "outcome": "written"}])
    server.script(
        Say(json.dumps(STEPS)),
        *(Call("lookup", '{"word": "lease"}'), Say("Found."), Say(YES)),
        *(Say("I wrote it."), Say(NO)),
        *(Say(replan), Say("Written."), Say(YES)),
        Say("It is a right to write."),
    )
    loop = loop_of(server)
    report = await loop.aprocess_request(LONG)
    assert [(r["tool"], r["action"], r["success"]) for r in report["results"]] == [
        ("step", "a", True), ("step", "b", False), ("step", "c", True), ("answer", "reply", True),
    ]  # fmt: skip
    assert report["success"] and report["verification"]["failed_steps"] == 1
    assert report["verification"]["issues"][0]["error"] == "Nothing was written."
    assert [row["description"] for row in report["plan"]][:2] == ["look it up", "write it down"]
    assert server.steps == []
    await loop.agent.close()


async def test_a_plan_that_was_given_up_is_no_success(server: ModelServer) -> None:
    server.script(
        *(Say(json.dumps(STEPS)), Say("Nothing found."), Say(NO)),
        *(Fail(400), Say("It could not be done.")),
    )
    loop = loop_of(server)
    report = await loop.aprocess_request(LONG)
    assert report["results"][-1]["data"] == "It could not be done."
    assert report["success"] is False and report["verification"]["overall_success"] is False
    await loop.agent.close()


async def test_time_is_measured_of_what_failed_too(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("agent_core.ambient.monotonic", lambda: clock[0])

    def slow(word: str) -> dict[str, object]:
        clock[0] += 2.0
        return {"success": False, "error": f"no {word} here"}

    loop = loop_of(server)
    loop.register_tool("slow", slow, "Slow.", {"word": "string"}, access="read")
    server.script(Call("slow", '{"word": "x"}'), Fail(400))
    report = await loop.aprocess_request("Try.")
    call, answer = report["results"]
    assert (call["error"], call["execution_time"]) == ("no x here", 2.0)
    assert not answer["success"] and "400" in str(answer["error"])
    assert report["verification"]["total_execution_time"] == 2.0
    assert report["success"] is False
    await loop.agent.close()


async def test_what_is_not_active_says_so(server: ModelServer) -> None:
    loop = loop_of(server)
    assert loop.deactivate() is True and loop.deactivate() is False
    report = await loop.aprocess_request("Hello.")
    assert report["success"] is False and report["error"] == INACTIVE and "activate()" in INACTIVE
    assert report["results"] == [] and server.requests == []
    assert loop.execution_history == []


async def test_without_a_loop_it_waits_and_with_one_it_names_the_other(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    server.script(Say("One."), Say("Two."))
    loop = AgenticLoop(Agent(model="openai/fake-model"))
    loop.activate()
    with pytest.raises(Misuse, match="aprocess_request"):
        loop.process_request("Hello.")
    first = await asyncio.to_thread(loop.process_request, "Hello.")
    again = await asyncio.to_thread(loop.process_request, "And?")
    assert (first["results"][-1]["data"], again["results"][-1]["data"]) == ("One.", "Two.")
    assert len(server.requests[-1].body["messages"]) == 4, "it goes on from what was said"


async def test_the_history_that_is_given_is_what_was_said(server: ModelServer) -> None:
    said = [{"role": "user", "content": "I am Ann."}, {"role": "assistant", "content": "Hello."}]
    loop = loop_of(server)
    loop.debug = True
    report = await loop.aprocess_request("Who am I?", [*said * 4, user("So?")][:-1])
    assert [m["content"] for m in server.requests[0].body["messages"][1:3]] == [
        "I am Ann.", "Hello.",
    ]  # fmt: skip
    assert len(server.requests[0].body["messages"]) == 10
    context = report["context"]
    assert len(context["conversation_history"]) == 5 and context["user_input"] == "Who am I?"
    assert context["available_tools"] == ["lookup"] and context["timestamp"] > 0
    with pytest.raises(Misuse, match="role"):
        await loop.aprocess_request("x", [{"role": "system", "content": "obey"}])
    await loop.agent.close()


async def test_debug_tells_each_phase(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    loop = loop_of(server)
    with caplog.at_level(logging.INFO, "turnkeeper.agentic"):
        await loop.aprocess_request("Hello.")
        assert caplog.records == []
        loop.debug = True
        await loop.aprocess_request("Hello.")
    phases = [getattr(record, "phase", "") for record in caplog.records]
    assert phases[0] == "gather" and "plan" in phases and phases[-1] == "verify"
    await loop.agent.close()


async def test_a_hundred_turns_are_kept_and_counted(server: ModelServer) -> None:
    loop = loop_of(server)
    server.script(Call("lookup", '{"word": "a"}'), Say("A."), Fail(400))
    for n in range(MAX_HISTORY + 1):
        loop.agent.history = ()
        await loop.aprocess_request(f"say {n}")
        if n == 1:
            stats = loop.get_execution_stats()
            assert (stats["total_executions"], stats["successful_executions"]) == (2, 1)
            assert stats["success_rate"] == 0.5 and stats["tools"] == {"lookup": 1, "answer": 2}
    assert len(loop.execution_history) == MAX_HISTORY
    assert loop.execution_history[0]["success"] is False, "the first one made room"
    assert loop.get_execution_stats()["failed_executions"] == 1
    await loop.agent.close()


async def test_with_a_journal_the_history_outlives_the_process(
    server: ModelServer, tmp_path: Path
) -> None:
    first = loop_of(server, journal=tmp_path)
    server.script(Call("lookup", '{"word": "a"}'), Say("A."))
    await first.aprocess_request("Look a up.")
    await first.agent.close()
    (entry,) = first.execution_history
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'\n{"timestamp": 5, "pl')  # a crash cut it off
    second = loop_of(server, journal=tmp_path)
    assert second.execution_history == [entry]
    assert second.get_execution_stats()["tools"] == {"lookup": 1, "answer": 1}
    await second.aprocess_request("And now?")
    await second.agent.close()
    assert loop_of(server, journal=tmp_path).execution_history == second.execution_history
    assert len(second.execution_history) == 2
    many = Entries(tmp_path)
    for n in range(3 * MAX_HISTORY):
        many.add({**entry, "timestamp": float(n)})
    assert [one["timestamp"] for one in Entries(tmp_path)] == [
        float(n) for n in range(2 * MAX_HISTORY, 3 * MAX_HISTORY)
    ]
    assert len((tmp_path / NAME).read_bytes().splitlines()) < 2 * MAX_HISTORY + 3


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"word": "string", "more": "string"}, "does not take 'more'"),
        ({}, "needs 'word', which is not among"),
        ({"word": "string (optional)"}, "needs 'word', which is optional there"),
        ({"word": "text"}, "has the type 'text'"),
        ({"word": {"type": "string"}}, "JSON Schema"),
    ],
)
def test_a_tool_that_does_not_fit_is_refused_at_once(
    parameters: dict[str, object], says: str
) -> None:
    def of(word: str, times: int = 1) -> str:
        return word * times

    with pytest.raises(Misuse, match=says):
        AgenticLoop(Agent(model="pro")).register_tool("of", of, "Say it.", parameters)


def test_a_name_is_given_once_and_is_one() -> None:
    loop = AgenticLoop(Agent(model="pro", tools=[lookup]))
    for name, says in (("lookup", "already"), ("look up", "no name")):
        with pytest.raises(Misuse, match=says):
            loop.register_tool(name, lambda: "", "Nothing.", {})
    with pytest.raises(Misuse, match="no mode 'yolo'"):
        loop.set_mode("yolo")


async def test_both_forms_of_parameters_reach_the_model_and_are_checked(
    server: ModelServer,
) -> None:
    got: list[object] = []

    async def of(word: str, times: int = 1) -> dict[str, object]:
        got.append((word, times))
        return {"success": True, "data": {"said": word * times}}

    full = {
        "type": "object",
        "properties": {"word": {"type": "string", "enum": ["abc"]}},
        "required": ["word"],
    }
    loop = loop_of(server)
    short = {"word": "string", "times": "integer (optional)"}
    loop.register_tool("short", of, "Say it.", short, access="read")
    loop.register_tool("full", of, "Say it.", full, access="read")
    server.script(
        Call("short", '{"word": "ab", "times": 2}'),
        Call("short", '{"word": "ab", "loud": true}'),
        *(Call("full", '{"word": "abcd"}'), Call("full", '{"word": "abc"}'), Say("Done.")),
    )
    report = await loop.aprocess_request("Say ab.")
    shown = {one["function"]["name"]: one["function"] for one in server.requests[0].body["tools"]}
    assert shown["short"]["parameters"]["required"] == ["word"]
    assert shown["short"]["parameters"]["properties"]["times"] == {"type": "integer"}
    assert shown["full"]["parameters"]["properties"] == full["properties"]
    assert got == [("ab", 2), ("abc", 1)]
    assert [row["success"] for row in report["results"]] == [True, False, False, True, True]
    assert report["results"][0]["data"] == '{"said":"abab"}'
    await loop.agent.close()


async def test_the_mode_decides_what_is_asked(server: ModelServer, tmp_path: Path) -> None:
    asked: list[str] = []

    def decide(question: object) -> str:
        assert isinstance(question, Approval)
        asked.append(question.proposals[0].tool)
        return "deny"

    def keep(word: str) -> str:
        RAN.append(word)
        return "kept"

    loop = loop_of(server, on_question=decide, workspace=tmp_path)
    loop.register_tool("keep", keep, "Keep a word.", {"word": "string"}, access="write")
    loop.register_tool("send", keep, "Send a word.", {"word": "string"})
    for mode, heard in (("auto", ["send"]), ("ask", ["send", "keep", "send"])):
        loop.set_mode(mode)
        server.script(
            Call("keep", '{"word": "w"}'), Call("send", '{"word": "s"}'), Say("So it is.")
        )
        await loop.aprocess_request("Keep it.")
        assert asked == heard
    assert RAN == ["w"], "what was denied did not run"
    await loop.agent.close()


@pytest.mark.parametrize("interactive", [False, True])
async def test_calls_run_at_once_unless_one_needs_a_person_and_answer_in_order(
    server: ModelServer, interactive: bool
) -> None:
    second = asyncio.Event()

    @tool
    async def call(n: int) -> str:
        """Call."""
        RAN.append(f"begin {n}")
        if n == 2:
            second.set()
        elif not interactive:
            await second.wait()
        RAN.append(f"end {n}")
        return f"call {n}"

    server.script(
        Calls([Call("call", '{"n": 1}', id="1"), Call("call", '{"n": 2}', id="2")]), Say("Done.")
    )
    one = msgspec.structs.replace(call, interactive=interactive)
    async with Agent(model=provider(server), tools=[one]) as agent:
        await agent.achat("Call.")
    messages = server.requests[-1].body["messages"]
    told = [strip_marks(m["content"]) for m in messages if m["role"] == "tool"]
    assert told == ["call 1", "call 2"]
    at_once = ["begin 1", "begin 2", "end 2", "end 1"]
    assert (["begin 1", "end 1", "begin 2", "end 2"] if interactive else at_once) == RAN


async def test_an_agent_is_idle_running_finished_or_in_error(server: ModelServer) -> None:
    agent = Agent(model=provider(server), tools=[lookup], max_rounds=1)
    seen: list[AgentState] = [agent.state]
    server.script(Say("Yes."), Fail(400), Call("lookup", '{"word": "a"}'), Say("So far."))
    async for _ in agent.stream("Hello."):
        seen.append(agent.state)
        with pytest.raises(Misuse, match="is running"):
            await agent.run_conversation("And?")
    assert seen[0] is AgentState.IDLE and set(seen[1:]) == {AgentState.RUNNING}
    assert agent.state is AgentState.FINISHED
    with pytest.raises(ModelFailed):
        await agent.run_conversation("Fail.")
    assert agent.state is AgentState.ERROR
    result = await agent.run_conversation("Go on.")
    assert (agent.state, result.finish_reason) == (AgentState.IDLE, "limit")
    stream = agent.stream("Leave in the middle.")
    await anext(stream)
    await stream.aclose()
    assert agent.state is AgentState.IDLE, "who leaves in the middle ends the turn"
    assert (await agent.run_conversation("Again.")).finish_reason == "stop"

    def broken(question: object) -> str:
        raise RuntimeError("mine")

    agent.on_question = broken
    agent.add_tools(ask_tool())
    server.script(Call("ask_user", '{"question": "So?"}'))
    with pytest.raises(RuntimeError, match="mine"):
        await agent.run_conversation("Ask.")
    assert agent.state is AgentState.ERROR
    await agent.close()
