"""The agent as a library, through the real OpenAI SDK against a local model server."""

import asyncio
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest

import agent_core
from agent_core import Agent, tool
from agent_core.errors import Misuse, ModelFailed
from agent_core.events import Completed, TokenAdded, ToolAnswered
from agent_core.messages import calls_of
from agent_core.questions import Answer, Approval
from agent_core.settings import Endpoint
from agent_core.tools.ask import ask_tool
from tests.agent_core.library_rig import Named, provider
from tests.fakes.model_server import Call, Fail, ModelServer, Say

RAN: list[str] = []


@tool
async def weather(city: str, days: int = 1) -> str:
    """What the weather will be."""
    RAN.append(city)
    return f"sun in {city} for {days}"


@tool(access="network", repetition="effect")
def publish(text: str) -> str:
    """Publish a text."""
    RAN.append(text)
    return "published"


@pytest.fixture
async def server():
    server = ModelServer()
    server.url = await server.start()
    RAN.clear()
    yield server
    await server.close()


def test_every_name_of_the_library_can_be_imported() -> None:
    for name in agent_core.__all__:
        assert getattr(agent_core, name).__name__ in (name, "tool")


async def test_a_chat_with_a_tool_remembers_what_was_said(server: ModelServer) -> None:
    server.script(Call("weather", '{"city": "Rome"}'), Say("Sunny."), Say("Rome, as I said."))
    async with Agent(model=provider(server), tools=[weather]) as agent:
        assert await agent.achat("Weather in Rome?") == "Sunny."
        assert await agent.achat("Where?") == "Rome, as I said."
    assert RAN == ["Rome"]
    assert [m["role"] for m in server.requests[-1].body["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip


async def test_chat_inside_a_loop_names_achat(server: ModelServer) -> None:
    agent = Agent(model=provider(server))
    with pytest.raises(Misuse, match="achat"):
        agent.chat("hello")
    await agent.close()


async def test_the_result_has_the_answer_the_messages_and_the_usage(server: ModelServer) -> None:
    server.script(Say("Four."))
    async with Agent(model=provider(server)) as agent:
        result = await agent.run_conversation("2+2?", system_message="Be short.", task_id="t1")
    told = result.to_dict()
    assert told["final_response"] == "Four." and told["task_id"] == "t1"
    assert told["finish_reason"] == "stop" and result.usage.output_tokens > 0
    assert server.requests[0].body["messages"][0]["content"] == "Be short."


ASKED = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
SAID = (
    {"role": "user", "content": [{"type": "text", "text": "Is it warm?"}]},
    {"role": "assistant", "content": None, "tool_calls": [ASKED]},
    {"role": "tool", "tool_call_id": "c1", "content": "21 degrees"},
    {"role": "assistant", "content": "Yes."},
)


async def test_a_history_may_be_dicts_as_openai_has_them(server: ModelServer) -> None:
    async with Agent(model=provider(server)) as agent:
        result = await agent.run_conversation("And now?", conversation_history=SAID)
        sent = server.requests[-1].body["messages"]
        kept = cast("list[dict[str, object]]", result.to_dict()["messages"])
        again = await agent.run_conversation("And then?", conversation_history=kept)
    assert [one["role"] for one in sent[1:]] == ["user", "assistant", "tool", "assistant", "user"]
    assert (sent[1]["content"], sent[3]["content"]) == ("Is it warm?", "21 degrees")
    assert again.messages[: len(result.messages)] == result.messages


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ("hello", "message 2 of the history is none"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "only text can be given"),
        ({"role": "system", "content": "x"}, "instructions go into system_message"),
        ({"role": "bot", "content": "x"}, "no role 'bot'"),
        ({"role": "tool", "content": "x"}, "give Message, or a dict such as"),
        ({"role": "user", "parts": 7}, "message 2"),
    ],
)
async def test_a_history_that_is_none_is_told(
    server: ModelServer, odd: dict[str, object], why: str
) -> None:
    async with Agent(model=provider(server)) as agent:
        with pytest.raises(Misuse, match=re.escape(why)):
            await agent.run_conversation("x", conversation_history=(SAID[0], odd))


async def test_the_stream_ends_with_complete_and_callbacks_hear_of_it(server: ModelServer) -> None:
    server.script(Call("weather", '{"city": "Oslo"}'), Say("It will rain all day.", 2))
    heard: list[str] = []

    def broken(event: object) -> None:
        raise RuntimeError("mine")

    async def hear(words: str) -> None:
        heard.append(words)

    callbacks = {"stream_delta_callback": hear, "tool_progress_callback": broken}
    async with Agent(model=provider(server), tools=[weather], callbacks=callbacks) as agent:
        events = [event async for event in agent.stream("Oslo?")]
    assert isinstance(events[-1], Completed) and events[-1].text == "It will rain all day."
    assert any(isinstance(event, ToolAnswered) for event in events)
    assert "".join(e.text for e in events if isinstance(e, TokenAdded)) == "".join(heard)
    assert "".join(heard) == "It will rain all day."


async def test_a_risky_call_is_asked_and_denied_where_nobody_can_be(server: ModelServer) -> None:
    server.script(Call("publish", '{"text": "x"}'), Say("Not done."))
    async with Agent(model=provider(server), tools=[publish]) as agent:
        await agent.run_conversation("publish x")
    assert RAN == []
    assert "Denied" in server.requests[-1].body["messages"][-1]["content"]


async def test_on_question_decides(server: ModelServer) -> None:
    asked: list[object] = []

    async def decide(question: object) -> Answer | str:
        asked.append(question)
        return Answer(choice="once") if isinstance(question, Approval) else "blue"

    server.script(
        Call("publish", '{"text": "x"}'),
        Call("ask_user", '{"question": "Colour?", "options": ["red", "blue"]}'),
        Say("Done."),
    )
    async with Agent(
        model=provider(server), tools=[publish, ask_tool()], on_question=decide
    ) as agent:
        result = await agent.run_conversation("publish x")
    assert RAN == ["x"] and len(asked) == 2 and result.final_response == "Done."
    assert server.requests[-1].body["messages"][-1]["content"] == "blue"


async def test_a_question_that_nobody_answers_expires(server: ModelServer) -> None:
    async def never(question: object) -> str:
        await asyncio.Event().wait()
        return ""

    server.script(
        Call("publish", '{"text": "x"}'), Call("ask_user", '{"question": "Colour?"}'), Say("Done.")
    )
    async with Agent(
        model=provider(server), tools=[publish, ask_tool()], on_question=never,
        approval_seconds=0.01, answer_seconds=0.01,
    ) as agent:  # fmt: skip
        result = await agent.run_conversation("publish x")
    assert result.final_response == "Done." and RAN == []
    told = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
    assert "nobody answered in time" in told[0] and told[1] == "Nobody answered in time."
    assert (Agent().approval_seconds, Agent().answer_seconds) == (120, 300)


@pytest.mark.parametrize("last", ["says", "fails", "calls", "writes"])
async def test_at_the_last_round_it_sums_up_over_the_same_prefix(
    server: ModelServer, last: str
) -> None:
    one, two = Call("weather", '{"city": "Rome"}', id="1"), Call("weather", '{"city": "Bern"}')
    written = 'So far.\n<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'
    ends = {
        "says": Say("So far."),
        "fails": Fail(400),
        "calls": Call("weather", text="So far."),
        "writes": Say(written),
    }
    server.script(one, two, ends[last])
    async with Agent(model=provider(server), tools=[weather], max_rounds=2) as agent:
        with pytest.raises(ModelFailed) if last == "fails" else nullcontext():
            await agent.run_conversation("Weather?")
        result = agent.result
        assert result is not None
        events = [event async for event in agent.stream("And now?")]
    before, summary = server.requests[1].body, server.requests[2].body
    assert summary["tool_choice"] == "none" and summary["tools"] == before["tools"]
    assert summary["messages"][: len(before["messages"])] == before["messages"]
    assert RAN == ["Rome", "Bern"]
    if last == "fails":
        assert (result.finish_reason, result.final_response) == ("error", "")
        assert result.messages[-1].role == "tool", "what was done is not lost"
    else:
        assert (result.finish_reason, result.final_response) == ("limit", "So far.")
        assert not calls_of(result.messages[-1]), "a call that nobody answers would break the next"
    assert isinstance(events[-1], Completed)


async def test_a_failing_provider_raises_nothing_of_an_sdk(server: ModelServer) -> None:
    server.script(Fail(401))
    async with Agent(model=provider(server)) as agent:
        with pytest.raises(ModelFailed, match="rejected the API key") as caught:
            await agent.achat("hello")
    assert caught.value.fault == "auth"
    assert agent.result is not None and agent.result.finish_reason == "error"
    assert agent.history == agent.result.messages, "what was asked is not lost"


async def test_the_same_task_goes_on_after_a_crash(server: ModelServer, tmp_path: Path) -> None:
    """The process is killed in the second model call; the tool is not run again."""
    server.script(Call("publish", '{"text": "x"}'), Say("Never seen."), Say("Done."))
    pid = os.fork()
    if pid == 0:
        try:
            asyncio._set_running_loop(None)
            asyncio.run(_killed(server.url, tmp_path))
        finally:
            os._exit(3)
    status = await asyncio.to_thread(os.waitpid, pid, 0)
    assert os.WIFSIGNALED(status[1]), status
    async with _agent(server.url, tmp_path) as agent:
        result = await agent.run_conversation("publish x", task_id="t")
        again = await agent.run_conversation("publish x", task_id="t")
    assert result.final_response == "Done." == again.final_response
    assert (tmp_path / "ran").read_text() == "x"


def _agent(url: str, folder: Path, kill: bool = False) -> Agent:
    import signal

    @tool(access="read", repetition="effect")
    def publish(text: str) -> str:
        """Publish."""
        with (folder / "ran").open("a") as file:
            file.write(text)
        return "published"

    model = Named(Endpoint(provider="openai", base_url=url + "/v1", api_key="k", key_setting="K"))

    def killed(event: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    callbacks = {"stream_delta_callback": killed} if kill else {}
    return Agent(model=model, tools=[publish], journal=folder / "journal", callbacks=callbacks)


async def _killed(url: str, folder: Path) -> None:
    async with _agent(url, folder, kill=True) as agent:
        await agent.run_conversation("publish x", task_id="t")


@pytest.mark.parametrize(
    "slip", [{"mode": "yolo"}, {"api_mode": "responses"}, {"profile": "swee"}, {"zone": "Mars/X"}]
)
def test_an_argument_that_is_a_slip_is_told_at_once(slip: dict[str, str]) -> None:
    (value,) = slip.values()
    with pytest.raises(Misuse, match=f"'{value}'; (?:there are|write one)"):
        Agent(model="demo", **slip)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slip", "nearest"),
    [
        ("stream_delta_calback", "stream_delta_callback"), ("on_questions", "on_question"),
        ("tool_progres_callback", "tool_progress_callback"), ("max_round", "max_rounds"),
        ("step_call_back", "step_callback"), ("Tools", "tools"), ("api_modus", "api_mode"),
    ],
)  # fmt: skip
async def test_a_name_that_is_a_slip_is_told_with_the_nearest(slip: str, nearest: str) -> None:
    given: dict[str, object] = {"model": "demo", slip: print}
    with pytest.raises(Misuse, match=f"no argument '{slip}'; did you mean {nearest}\\?"):
        Agent(**given)  # type: ignore[arg-type]
    with pytest.raises(Misuse, match=f"did you mean {nearest}"):
        await Agent.create(**given)


def test_an_argument_without_a_name_is_told() -> None:
    with pytest.raises(Misuse, match="by its name"):
        Agent("demo")  # type: ignore[misc]


def test_a_class_of_its_own_takes_what_it_likes(tmp_path: Path) -> None:
    class Named(Agent):
        """Has an argument of its own."""

        def __init__(self, folder: Path) -> None:
            super().__init__(model="demo", workspace=folder)

    assert Named(tmp_path).workspace == tmp_path


def test_a_callback_that_is_none_is_refused() -> None:
    with pytest.raises(Misuse, match="stream_delta_callback"):
        Agent(model="pro", callbacks={"on_token": print})


def test_a_tool_needs_types() -> None:
    with pytest.raises(Misuse, match="'city'"):

        @tool
        def forecast(city) -> str:  # type: ignore[no-untyped-def]
            return ""


def test_the_import_brings_the_standard_library_and_little_of_ours() -> None:
    """What a turn needs loads with the first turn."""
    code = (
        "import sys; before = set(sys.modules); from agent_core import Agent; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    foreign = {
        name for name in done.stdout.split() if name.split(".")[0] not in sys.stdlib_module_names
    }
    ours = {"agent", "ambient", "errors", "library", "library.state", "phrases"}
    assert foreign == {"agent_core", *(f"agent_core.{name}" for name in ours)}
