"""Chat streams and agent sessions: begun where one person reads, ended in time, found again."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.slack.adapter import SlackAdapter
from adapters.slack.live import streams
from adapters.slack.live.chunks import controls, difference, make_text_chunk, make_title_chunk, step
from gateway.errors import Ambiguous, RateLimited
from gateway.messages import MessageReceived, StopPressed
from gateway.views import Activity, Button, Notice, PlanStep, PlanView, ReplyView, ToolLine, View
from tests.adapters.slack_rig import running, where
from tests.adapters.telegram_rig import Store
from tests.fakes.slack_server import SlackServer, labels, shown, streamed
from tests.fakes.waiting import PATIENCE

Json = dict[str, Any]
THREAD = "1700000000.000001"
HERE = where("D0ANN", THREAD)


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as made:
        yield made
        assert made.violations == []


@pytest.fixture
async def adapter(server: SlackServer) -> AsyncIterator[SlackAdapter]:
    async with running(server, Store()) as made:
        yield made


def growing(text: str) -> ReplyView:
    return ReplyView(text=text, state="streaming")


def working(*states: str, output: str = "") -> Activity:
    return Activity(
        lines=tuple(
            ToolLine(call_id=f"c{n}", tool="shell", summary=f"ls {n}", state=state, output=output)  # type: ignore[arg-type]
            for n, state in enumerate(states)
        )
    )


async def send(adapter: SlackAdapter, view: View) -> str:
    (payload,) = adapter.render(view, HERE)
    return await adapter.send(HERE, payload)


async def edit(adapter: SlackAdapter, native: str, view: View) -> None:
    await adapter.edit(HERE, native, adapter.render(view, HERE)[0])


def methods(server: SlackServer) -> list[str]:
    return [c.method for c in server.calls if c.method.startswith("chat.")]


async def test_an_answer_streams_and_its_last_words_end_the_stream(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    native = await send(adapter, growing("Once"))
    (message,) = server.channels["D0ANN"]
    assert server.sessions["D0ANN", THREAD] == "processing" and labels(message) == []
    await edit(adapter, native, growing("Once upon"))
    await edit(adapter, native, growing("Once upon"))
    await edit(adapter, native, ReplyView(text="Once upon a time.", note="Stopped here."))
    assert shown(message) == "Once upon a time.\nStopped here."
    assert message["streaming_state"] == "completed"
    assert server.sessions["D0ANN", THREAD] == "active"
    assert methods(server) == ["chat.startStream", "chat.appendStream", "chat.stopStream"]


async def test_what_cannot_be_added_is_an_edit(server: SlackServer, adapter: SlackAdapter) -> None:
    native = await send(adapter, growing("Once upon"))
    await edit(adapter, native, growing("Twice"))
    (message,) = server.channels["D0ANN"]
    assert shown(message).startswith("Twice") and labels(message) == ["Stop"]
    await edit(adapter, native, ReplyView(text="Twice upon a time."))
    assert shown(message) == "Twice upon a time." and labels(message) == []
    await server.wait(lambda: server.sessions["D0ANN", THREAD] == "active")


async def test_tools_are_tasks_whose_output_comes_once(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    native = await send(adapter, working("running"))
    await edit(adapter, native, working("done", output="three"))
    await edit(adapter, native, working("done", "running", output="three"))
    (message,) = server.channels["D0ANN"]
    assert [one["status"] for one in message["blocks"]] == ["complete", "in_progress"]
    assert shown(message).count("three") == 2
    await send(adapter, ReplyView(text="There."))
    assert message["streaming_state"] == "completed", "the answer ends what still streams"


def going(*states: str, over: str = "", retry: bool = False) -> PlanView:
    """A plan of steps in these states; `over`: how it ended."""
    steps = tuple(
        PlanStep(
            id=f"s{n}", text=f"Find what it costs at host {n}", state=state,  # type: ignore[arg-type]
            note="found" if state == "done" else "",
            skip="" if over or state == "done" else f"p:t:skip:s{n}",
        )
        for n, state in enumerate(states, 1)
    )  # fmt: skip
    stop = Button(label="Stop", token="p:t:stop:")
    again = Button(label="Retry 1", token="p:t:retry:s1")
    buttons = ((again,) if retry else ()) + (() if over else (stop,))
    return PlanView(title="Find hosts", steps=steps, state=over or "running", buttons=buttons)  # type: ignore[arg-type]


def statuses(message: Json) -> list[str]:
    (plan,) = (one for one in message["blocks"] if one["type"] == "plan")
    return [one["status"] for one in plan["tasks"]]


async def test_a_plan_ticks_in_a_stream_and_ends_as_a_message_without_buttons(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    native = await send(adapter, going("running", "pending"))
    (message,) = server.channels["D0ANN"]
    assert server.made("chat.startStream")[0].arguments["task_display_mode"] == "plan"
    assert statuses(message) == ["in_progress", "pending"] and labels(message) == ["Stop"]
    assert [o["text"]["text"] for o in message["blocks"][1]["elements"][0]["options"]] == [
        "Skip 1: Find what it costs at host 1", "Skip 2: Find what it costs at host 2",
    ]  # fmt: skip
    await edit(adapter, native, going("done", "running"))
    assert statuses(message) == ["complete", "in_progress"] and "1/2" in shown(message)
    assert methods(server) == ["chat.startStream", "chat.appendStream"]
    assert len(server.made("chat.appendStream")[0].arguments["chunks"]) == 3, "title and two tasks"
    await edit(adapter, native, going("done", "done", over="done"))
    assert statuses(message) == ["complete", "complete"] and labels(message) == []
    assert methods(server)[2:] == ["chat.stopStream", "chat.update"]


async def test_what_can_be_tried_again_takes_an_edit_of_the_plan(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    native = await send(adapter, going("running", "pending"))
    await edit(adapter, native, going("failed", "running", retry=True))
    (message,) = server.channels["D0ANN"]
    assert statuses(message) == ["error", "in_progress"]
    assert labels(message) == ["Retry 1", "Stop"]
    assert methods(server) == ["chat.startStream", "chat.stopStream", "chat.update"]


async def test_a_plan_that_streamed_when_the_gateway_died_is_found_and_goes_on(
    server: SlackServer,
) -> None:
    async with running(server, Store()) as first:
        native = await send(first, going("running", "pending"))
    doubtful = replace(going("done", "running"), doubt="Possibly sent twice (restart).")
    async with running(server, Store()) as second:
        assert await send(second, doubtful) == native
        await edit(second, native, going("done", "done", over="done"))
    (message,) = server.channels["D0ANN"]
    assert statuses(message) == ["complete", "complete"] and "Possibly" not in shown(message)


@pytest.mark.parametrize("here", [where("D0ANN"), where("C0DEV", "1.5")])
async def test_where_others_read_too_or_there_is_no_thread_a_message_is_edited(
    server: SlackServer, adapter: SlackAdapter, here: Any
) -> None:
    (payload,) = adapter.render(growing("Once"), here)
    native = await adapter.send(here, payload)
    (message,) = server.channels[here.channel]
    assert labels(message) == ["Stop"] and "streaming_state" not in message
    await adapter.edit(here, native, adapter.render(ReplyView(text="Once."), here)[0])
    assert labels(message) == [] and shown(message) == "Once."


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "unknown_method"},
        {"error": "missing_scope"},
        {"error": "channel_type_not_supported"},
        {"status": 429, "error": "ratelimited", "retry_after": 60},
    ],
)
async def test_refused_streams_are_messages_that_are_edited(
    server: SlackServer, adapter: SlackAdapter, fault: Json
) -> None:
    server.fail("chat.startStream", **fault)
    native = await send(adapter, growing("Once"))
    await edit(adapter, native, growing("Once upon"))
    await send(adapter, growing("Another"))
    assert [shown(m).split("\n")[0] for m in server.channels["D0ANN"]] == ["Once upon", "Another"]
    assert len(server.made("chat.startStream")) == 1, "it is not asked for again at once"


async def test_a_second_stream_that_is_refused_does_not_end_all_streams(
    server: SlackServer, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "AGAIN", 0.0)
    await send(adapter, going("running", "pending"))
    server.fail("chat.startStream", error="streaming_state_conflict")
    native = await send(adapter, growing("Once"))
    await edit(adapter, native, growing("Once upon"))
    plan, answer = server.channels["D0ANN"]
    assert "streaming_state" not in answer and shown(answer).startswith("Once upon")
    await send(adapter, growing("Another"))
    assert len(server.made("chat.startStream")) == 3, "the next one is tried again"


async def test_a_refused_session_is_not_asked_for_again(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.fail("agents.sessions.setStatus", error="missing_scope")
    await send(adapter, working("done"))
    await send(adapter, Notice(text="Idle."))
    await server.wait(lambda: server.made("agents.sessions.setStatus"))
    adapter._sessions.want(HERE, "processing")
    await send(adapter, Notice(text="Still."))
    assert len(server.made("agents.sessions.setStatus")) == 1


@pytest.mark.parametrize("error", ["message_not_in_streaming_state", "msg_too_long"])
async def test_a_stream_that_slack_has_ended_goes_on_as_an_edit(
    server: SlackServer, adapter: SlackAdapter, error: str
) -> None:
    native = await send(adapter, growing("Once"))
    server.channels["D0ANN"][0]["streaming_state"] = "errored"
    server.fail("chat.appendStream", error=error)
    await edit(adapter, native, growing("Once upon"))
    await edit(adapter, native, ReplyView(text="Once upon a time."))
    assert [shown(one) for one in server.channels["D0ANN"]] == ["Once upon a time."]


async def test_a_stream_is_ended_before_slack_ends_it(
    server: SlackServer, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_STREAM_SECONDS", 0.0)
    native = await send(adapter, growing("Once"))
    (message,) = server.channels["D0ANN"]
    await server.wait(lambda: message["streaming_state"] == "completed")
    await edit(adapter, native, growing("Once upon"))
    assert labels(message) == ["Stop"] and shown(message).startswith("Once upon")
    await server.wait(lambda: server.sessions["D0ANN", THREAD] == "processing")
    assert len(server.channels["D0ANN"]) == 1


async def test_a_stream_whose_end_was_limited_is_ended_soon(
    server: SlackServer, adapter: SlackAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "AGAIN", 0.05)
    await send(adapter, growing("Once"))
    (message,) = server.channels["D0ANN"]
    server.fail("chat.stopStream", 429, "ratelimited", retry_after=1)
    await adapter._streams.settle(HERE)
    await server.wait(lambda: message["streaming_state"] == "completed")
    assert len(server.made("chat.stopStream")) == 2


async def test_an_append_whose_answer_was_lost_shows_nothing_twice(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    native = await send(adapter, growing("Once"))
    server.fail("chat.appendStream", 0, after_effect=True)
    await edit(adapter, native, growing("Once upon"))
    assert shown(server.channels["D0ANN"][0]).startswith("Once upon\n")
    server.fail("chat.update", 429, "ratelimited", retry_after=7)
    with pytest.raises(RateLimited):
        await edit(adapter, native, growing("Once upon a"))


async def test_a_stream_whose_answer_was_lost_is_found(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.fail("chat.startStream", 0, after_effect=True)
    native = await send(adapter, growing("Once"))
    (message,) = server.channels["D0ANN"]
    assert native == message["ts"] and shown(message).startswith("Once")
    server.fail("chat.startStream", 0, after_effect=True)
    server.fail("conversations.replies", error="missing_scope")
    with pytest.raises(Ambiguous):
        await send(adapter, growing("Another"))


async def test_a_stream_of_ours_is_not_taken_for_one_that_was_lost(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    """Tool lines that begin with the words of an answer; a call that brought no second stream."""
    lines = await send(adapter, replace(working("running"), words=WORDS))
    assert await send(adapter, growing(WORDS)) != lines
    server.fail("chat.startStream", 0)
    with pytest.raises(Ambiguous):
        await send(adapter, growing("Another"))
    assert len(server.channels["D0ANN"]) == 2


async def test_a_message_that_streams_is_taken_out_once(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    native = await send(adapter, growing("Once"))
    for _ in range(2):  # as after an answer that was lost
        await adapter.remove(HERE, native)
    assert not server.channels["D0ANN"]
    assert methods(server)[1:] == ["chat.stopStream", "chat.delete", "chat.delete"]


WORDS = "Once upon a time there was a king."


async def test_after_a_kill_a_stream_goes_on_in_its_message(server: SlackServer) -> None:
    """Whether the gateway had noted it down or not; another one is left alone."""
    async with running(server, Store()) as first:
        native = await send(first, growing(WORDS))
        other = await send(first, growing("Something quite different, of another turn."))
    async with running(server, Store()) as second:
        assert await send(second, growing(f"{WORDS} And")) == native, "it was not noted down"
        await edit(second, other, growing("Something quite different, of another turn: done."))
        await edit(second, native, ReplyView(text=f"{WORDS} And a queen."))
    told = [shown(one).split("\n")[0] for one in server.channels["D0ANN"]]
    assert told == [f"{WORDS} And a queen.", "Something quite different, of another turn: done."]
    assert all(one["streaming_state"] == "completed" for one in server.channels["D0ANN"])


async def test_a_message_in_doubt_that_is_there_is_not_sent_again(server: SlackServer) -> None:
    """Below the last word of a person; above it the same may have been said before."""
    plain, doubtful = ReplyView(text="Good day."), ReplyView(
        text="Good day.", doubt="Possibly sent twice (restart)."
    )  # fmt: skip
    async with running(server, Store()) as first:
        native = await send(first, plain)
    async with running(server, Store()) as second:
        assert await send(second, doubtful) == native
        await edit(second, native, ReplyView(text="Good day, Ann.", doubt=doubtful.doubt))
        assert [shown(one) for one in server.channels["D0ANN"]] == ["Good day, Ann."]
    server.say("D0ANN", "hello", thread=THREAD)
    async with running(server, Store()) as third:
        assert await send(third, doubtful) != native
    assert "Possibly sent twice" in shown(server.channels["D0ANN"][-1])


async def test_a_message_in_doubt_is_known_by_its_name(server: SlackServer) -> None:
    """Also above what people have said since, and among others that say the same."""
    said, here = ReplyView(text="Good day."), where("C0DEV", "1.5")
    doubtful = ReplyView(text="Good day.", doubt="Possibly sent twice (restart).")
    async with running(server, Store()) as first:
        (payload,) = first.render(said, here)
        natives = [await first.send_as(name, here, payload) for name in ("one", "two")]
        server.say("C0DEV", "thanks", thread="1.5")
    async with running(server, Store()) as second:
        (payload,) = second.render(doubtful, here)
        assert [await second.send_as(name, here, payload) for name in ("one", "two")] == natives
        await second.edit(here, natives[0], payload)
        assert await second.send_as("three", here, payload) not in natives
    assert [shown(one).count("Possibly") for one in server.channels["C0DEV"]] == [0, 0, 1]


@pytest.mark.parametrize("transport", ["socket", "http"])
async def test_a_message_begins_a_session_and_slacks_stop_button_ends_the_turn(
    server: SlackServer, transport: str
) -> None:
    store = Store()
    async with running(server, store, transport):
        server.say("D0ANN", "hello", thread=THREAD)
        await server.wait(lambda: server.sessions.get(("D0ANN", THREAD)) == "processing")
        server.stop("D0ANN", THREAD)
        async with asyncio.timeout(PATIENCE):
            while len(store.kept) < 2:
                await asyncio.sleep(0)
    said, stopped = store.kept
    assert isinstance(said, MessageReceived) and isinstance(stopped, StopPressed)
    assert stopped.conversation == said.conversation and stopped.sender.id == "U0ANN"


async def test_our_own_stop_button_ends_the_turn(server: SlackServer) -> None:
    store = Store()
    async with running(server, store) as adapter:
        here = where("C0DEV", "1.5")
        await adapter.send(here, adapter.render(working("running"), here)[0])
        server.press(server.channels["C0DEV"][0], "Stop")
        await server.wait(lambda: not server.unacknowledged)
    (stopped,) = store.kept
    assert isinstance(stopped, StopPressed)
    assert stopped.conversation == here and stopped.press == "C0DEV|1.5|U0ANN"


TASKS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["pending", "complete"]), st.text("xy")),
    max_size=3, unique_by=lambda one: one[0],
)  # fmt: skip
STATES = st.tuples(
    st.text("ab", max_size=4), TASKS, st.text("pq", max_size=2), st.sets(st.sampled_from("vw"))
)


@given(STATES, STATES)
def test_what_is_appended_makes_the_stream_show_what_is_wanted(before: Any, after: Any) -> None:
    def chunks(state: Any) -> list[Json]:
        text, tasks, title, tokens = state
        made = [make_title_chunk(title)] if title else []
        made += [make_text_chunk(text)] if text else []
        made += [step(name, f"t {name}", status, out) for name, status, out in tasks]
        buttons = [{"type": "button", "value": token} for token in sorted(tokens)]
        return made + ([controls([{"type": "actions", "elements": buttons}])] if buttons else [])

    more = difference(chunks(before), chunks(after))
    if more is None:
        return
    planned = bool(before[2])
    assert planned == bool(after[2]) and after[3] <= before[3], "what was offered goes on to hold"
    message, wanted = ({"blocks": [PLAN | {"tasks": []}] if planned else []} for _ in "12")
    streamed(message, chunks(before))
    streamed(message, more)
    streamed(wanted, chunks(after))
    assert words_of(message) == words_of(wanted)
    assert tasks_of(message) == tasks_of(wanted)


PLAN: Json = {"type": "plan", "title": ""}


def words_of(message: Json) -> str:
    return "".join(one["text"] for one in message["blocks"] if one["type"] == "markdown")


def tasks_of(message: Json) -> list[Json]:
    return [one for one in message["blocks"] if one["type"] in ("task_card", "plan")]
