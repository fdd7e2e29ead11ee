"""The durable turn alone: a scope over a journal in memory or in a file, a scripted model, and a
kill after every record."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from agent_core.errors import (
    BudgetExceeded,
    Cancelled,
    Diverged,
    Misuse,
    ModelFailed,
    Parked,
    TimedOut,
    ToolFailed,
)
from agent_core.events import ErrorMet
from agent_core.journal import (
    Answered,
    Broke,
    Emitted,
    Failed,
    Journal,
    QuestionAsked,
    Record,
    Replied,
    Steered,
    ToolFinished,
    ToolStarted,
    decode,
    encode,
)
from agent_core.messages import Message, ToolCall
from agent_core.models.port import ModelReply
from agent_core.orchestration.brief import TurnResult
from agent_core.orchestration.drive import drive
from agent_core.questions import Answer
from agent_core.scope import UNKNOWN, Scope, Turn
from tests.agent_core.scope_rig import ASK, Crew, Disk, make, raises, tool, until

YES = Answer(choice="once", text="yes", by="test:ann")


def answer(turn: Turn, key: str = "ask") -> None:
    """As the session does: the record and its commit in one step, then the branch."""
    turn.journal.put(Answered(key=f"{key}#answer", asked=key, answer=YES))
    turn.deliver_answer(key, YES)


async def in_task(turn: Turn, work: Awaitable[object]) -> object:
    turn.tasks.add(asyncio.current_task())
    return await work


def says(text: str) -> Callable[[object], Awaitable[str]]:
    async def run(token: object) -> str:
        return text

    return run


# ---- killed after every record -------------------------------------------------------------


async def story(scope: Scope, crew: Crew) -> str:
    """Everything that a turn may do, once."""

    def roll() -> tuple[int, int]:
        crew.did["once dice"] += 1
        return (3, 4)

    dice = await scope.once("dice", roll)
    scope.emit(ErrorMet(text="begun"), "begun")
    plan = await crew.think(scope, "plan", "two steps")

    async def left(branch: Scope) -> str:
        return await crew.use(branch, "note", "effect") + await crew.use(branch, "look", "pure")

    async def right(branch: Scope) -> str:
        return await crew.use(branch, "add", "idempotent")

    parts = await scope.child("step-1").parallel({"left": left, "right": right})
    said = await scope.steer()
    got = (await scope.ask(ASK)).text
    scope.emit(ErrorMet(text="asked"), "asked")
    end = await crew.use(scope, "deploy", "effect")
    more = await scope.steer("steer-2")
    final = await crew.think(scope, "final", "bye")
    return repr((dice, plan, parts, said, got, end, more, final))


async def run_story(disk: Disk, crew: Crew) -> str:
    """Lives until the end: parks, is answered, is run again."""
    for _ in range(3):
        turn, scope = make(disk, crew)
        if "ask" in disk.keys() and "ask#answer" not in disk.keys():
            answer(turn)
        try:
            result = await story(scope, crew)
        except Parked:
            continue
        turn.journal.put()
        return result
    raise AssertionError("it never ended")


async def test_every_prefix_of_the_records_leads_to_the_same_end() -> None:
    whole, crew = Disk(), Crew()
    result = await run_story(whole, crew)
    assert all(n == 1 for n in crew.did.values()), crew.did
    assert len(whole.records) > 14, whole.keys()
    for n in range(len(whole.records) + 1):
        disk, again = Disk(whole.records[:n]), Crew()
        known = set(disk.keys())
        cut_off = {
            name
            for name, path in (("note", "step-1/left/"), ("deploy", ""))
            if f"{path}call-{name}#start" in known and f"{path}call-{name}" not in known
        }
        got = await run_story(disk, again)
        assert ("Outcome unknown" in got) if cut_off else (got == result), n
        assert sorted(disk.keys()) == sorted(whole.keys()), n
        for record in whole.records[:n]:
            if isinstance(record, ToolFinished):
                assert again.did[record.name] == 0, (n, record)
            if isinstance(record, Replied):
                assert again.did[f"model {record.key}"] == 0, (n, record)
        assert all(again.did[name] == 0 for name in cut_off), n
        assert again.did["once dice"] == (0 if "dice" in known else 1), n
        if "step-1/right/call-add" not in known:
            assert again.tokens["add"] == "t1/step-1/right/call-add", n


def test_a_killed_process_goes_on_from_its_file(tmp_path: Path) -> None:
    """The same with a journal in a file and SIGKILL around each commit and in each tool."""
    points, died = 0, True
    while died:
        points += 1
        for file in tmp_path.iterdir():
            file.unlink()
        died = _killed(tmp_path, points)
        if died:
            assert not _killed(tmp_path, 0), points
        ran = Counter((tmp_path / "ran").read_text().split())
        end = (tmp_path / "end").read_text()
        assert "bye" in end, (points, end)
        for name in ("note", "deploy"):
            assert ran[name] == 1 or (ran[name] == 0 and "unknown" in end), (points, ran)
        keys = [decode(line).key for line in (tmp_path / "journal").read_bytes().splitlines()]
        assert len(set(keys)) == len(keys) and "final" in keys, points
    assert points > 15


def _killed(folder: Path, at: int) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            _life(folder, at)
        finally:
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the life failed"
    return os.WIFSIGNALED(status)


def _life(folder: Path, at: int) -> None:
    path, count = folder / "journal", 0

    def point() -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    class File(Disk):
        def write(self, batch: tuple[Record, ...]) -> Awaitable[None]:
            point()
            with path.open("ab") as file:
                file.write(b"".join(encode(record) + b"\n" for record in batch))
                file.flush()
                os.fsync(file.fileno())
            point()
            return super().write(batch)

    class Loud(Crew):
        async def use(
            self, scope: Scope, name: str, repetition: str, wait: asyncio.Event | None = None
        ) -> str:
            async def run(token: str) -> str:
                with (folder / "ran").open("a") as file:
                    file.write(f"{name}\n")
                point()
                return f"{name} ok"

            return (await scope.tool(tool(name), repetition, run)).content

    async def main() -> None:
        lines = path.read_bytes().splitlines() if path.exists() else []
        (folder / "end").write_text(await run_story(File(map(decode, lines)), Loud()))

    asyncio.run(main())
    os._exit(0)


# ---- branches, questions and parking -------------------------------------------------------


async def test_an_answer_during_the_siblings_work_continues_at_once() -> None:
    disk, crew, gate = Disk(), Crew(), asyncio.Event()
    turn, scope = make(disk, crew)

    async def asks(branch: Scope) -> str:
        await branch.ask(ASK)
        return await crew.use(branch, "deploy", "effect")

    async def works(branch: Scope) -> str:
        return await crew.use(branch, "note", "effect", gate)

    async def person() -> None:
        await until(lambda: crew.did["note"] and turn.waiting)
        assert turn.branches == 1 and turn.dead is None
        answer(turn, "asks/ask")
        await until(lambda: "asks/call-deploy" in disk.keys())
        assert not gate.is_set() and crew.did["note"] == 1
        gate.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(person())
        got = await scope.parallel({"asks": asks, "works": works})
    assert got == {"asks": "deploy ok", "works": "note ok"}
    assert turn.branches == 1 and turn.dead is None


async def test_a_park_waits_for_the_working_branch_and_no_tool_is_in_flight() -> None:
    disk, crew, gate = Disk(), Crew(), asyncio.Event()
    turn, scope = make(disk, crew)

    async def asks(branch: Scope) -> str:
        return (await branch.ask(ASK)).text

    async def works(branch: Scope) -> str:
        return await crew.use(branch, "note", "effect", gate)

    async def later() -> None:
        await until(lambda: crew.did["note"] and turn.waiting)
        for _ in range(20):
            await asyncio.sleep(0)
        assert turn.dead is None
        gate.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(later())
        with pytest.raises(Parked):
            await scope.parallel({"asks": asks, "works": works})
    assert isinstance(turn.dead, Parked) and turn.waiting == ("asks/ask",)
    assert "works/call-note" in disk.keys()
    turn, scope = make(disk, crew)
    answer(turn, "asks/ask")
    got = await scope.parallel({"asks": asks, "works": works})
    assert got == {"asks": "yes", "works": "note ok"}
    assert crew.did["note"] == 1


async def test_a_branch_begins_when_those_it_comes_after_have_ended() -> None:
    """One that waits for another keeps no turn from parking; after the answer all go on."""
    disk, crew, order = Disk(), Crew(), list[str]()

    async def note(branch: Scope, name: str) -> str:
        order.append(name)
        return await crew.use(branch, name, "effect")

    async def asks(branch: Scope) -> str:
        return (await branch.ask(ASK)).text

    branches = {
        "last": partial(note, name="last"), "b": partial(note, name="b"),
        "asks": asks, "a": partial(note, name="a"),
    }  # fmt: skip
    after = {"last": ("b", "asks"), "b": ("a",)}
    turn, scope = make(disk, crew)
    with pytest.raises(Parked):
        await scope.parallel(branches, after)
    assert order == ["a", "b"] and turn.waiting == ("asks/ask",)
    turn, scope = make(disk, crew)
    answer(turn, "asks/ask")
    got = await scope.parallel(branches, after)
    assert list(got.items()) == [
        ("last", "last ok"), ("b", "b ok"), ("asks", "yes"), ("a", "a ok"),
    ]  # fmt: skip
    assert order == ["a", "b", "a", "b", "last"] and turn.branches == 1
    assert [crew.did[name] for name in ("a", "b", "last")] == [1, 1, 1]


async def test_what_comes_after_a_failure_does_not_begin() -> None:
    _, scope = make(Disk(), Crew())
    begun: list[str] = []

    async def fails(branch: Scope) -> str:
        raise ToolFailed("no")

    async def later(branch: Scope) -> str:
        begun.append("later")
        return ""

    with pytest.raises(ToolFailed):
        await scope.parallel({"c": later, "b": later, "a": fails}, {"b": ("a",), "c": ("b",)})
    assert not begun


async def test_two_questions_park_once_and_are_answered_in_any_order() -> None:
    disk, crew = Disk(), Crew()

    async def ask(branch: Scope) -> str:
        return (await branch.ask(ASK)).text

    turn, scope = make(disk, crew)
    with pytest.raises(Parked):
        await scope.parallel({"a": ask, "b": ask})
    assert turn.waiting == ("a/ask", "b/ask")
    turn, scope = make(disk, crew)
    answer(turn, "b/ask")
    with pytest.raises(Parked):
        await scope.parallel({"a": ask, "b": ask})
    assert turn.waiting == ("a/ask",)
    turn, scope = make(disk, crew)
    answer(turn, "a/ask")
    assert await scope.parallel({"a": ask, "b": ask}) == {"a": "yes", "b": "yes"}
    assert sum(isinstance(record, QuestionAsked) for record in disk.records) == 2


async def test_an_answer_while_the_question_is_written_is_taken() -> None:
    disk = Disk()
    disk.hold = asyncio.Event()
    turn, scope = make(disk, Crew())

    async def person() -> None:
        await until(lambda: "ask" in disk.keys())
        answer(turn)
        disk.hold.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(person())
        assert (await scope.ask(ASK)).text == "yes"
    assert turn.branches == 1


async def test_an_effect_in_finally_does_not_run_at_a_park() -> None:
    disk, crew = Disk(), Crew()
    _, scope = make(disk, crew)
    with pytest.raises(Parked):
        try:
            await scope.ask(ASK)
        finally:
            await crew.use(scope, "note", "effect")
    assert crew.did["note"] == 0 and disk.keys() == ["ask"]


async def test_a_park_is_no_failure_that_code_could_swallow() -> None:
    _, scope = make(Disk(), Crew())
    with pytest.raises(Parked):
        try:
            await scope.ask(ASK)
        except Exception:
            pytest.fail("turn code caught a park")


async def test_the_first_suspend_reason_wins() -> None:
    turn, scope = make(Disk(), Crew())
    turn.suspend(Parked())
    turn.suspend(Cancelled())
    assert isinstance(turn.dead, Parked)
    for call in (scope.steer, lambda: scope.once("x", int), lambda: scope.ask(ASK)):
        with pytest.raises(Parked):
            await call()
    with pytest.raises(Parked):
        scope.emit(ErrorMet(text="late"))
    with pytest.raises(Parked):
        scope.settle(tool("x"), "late")


async def test_parallel_waits_for_all_and_raises_the_first_failure_in_declared_order() -> None:
    disk, crew, gate = Disk(), Crew(), asyncio.Event()
    _, scope = make(disk, crew)

    async def slow(branch: Scope) -> str:
        await crew.use(branch, "note", "effect", gate)
        raise ValueError("slow")

    async def fast(branch: Scope) -> str:
        gate.set()
        raise KeyError("fast")

    async def good(branch: Scope) -> str:
        return await crew.use(branch, "look", "pure")

    with pytest.raises(ValueError, match="slow"):
        await scope.parallel({"slow": slow, "fast": fast, "good": good})
    assert {"slow/call-note", "good/call-look"} <= set(disk.keys())


async def test_branches_may_fork_again() -> None:
    disk, crew = Disk(), Crew()

    async def leaf(branch: Scope) -> str:
        return (await branch.ask(ASK)).text

    async def fork(branch: Scope) -> dict[str, str]:
        return await branch.parallel({"x": leaf, "y": leaf})

    turn, scope = make(disk, crew)
    with pytest.raises(Parked):
        await scope.parallel({"a": fork, "b": fork})
    assert len(turn.waiting) == 4
    turn, scope = make(disk, crew)
    for key in ("a/x/ask", "a/y/ask", "b/x/ask", "b/y/ask"):
        answer(turn, key)
    got = await scope.parallel({"a": fork, "b": fork})
    assert got == {"a": {"x": "yes", "y": "yes"}, "b": {"x": "yes", "y": "yes"}}
    assert turn.branches == 1


async def test_a_call_from_a_foreign_task_is_refused() -> None:
    _, scope = make(Disk(), Crew())
    with pytest.raises(Misuse):
        await asyncio.ensure_future(scope.steer())
    await scope.steer()


async def test_a_branch_whose_own_work_was_cancelled_does_not_end_in_silence() -> None:
    """A library that cancels its own task inside a tool raises CancelledError into the branch."""
    _, scope = make(Disk(), Crew())

    async def odd(branch: Scope) -> str:
        return (await branch.tool(tool("odd"), "effect", raises(asyncio.CancelledError()))).content

    async def good(branch: Scope) -> str:
        return "ok"

    try:
        got = await scope.parallel({"odd": odd, "good": good})
    except (KeyError, asyncio.CancelledError) as error:
        pytest.fail(f"ended as {error!r}")
    assert "odd" in got


# ---- replay --------------------------------------------------------------------------------


async def test_once_is_computed_once_and_has_the_same_types_both_times() -> None:
    disk = Disk()
    turn, scope = make(disk, Crew())
    first = await scope.once("x", lambda: {1: (2, 3)})
    assert disk.commits == []
    turn.journal.put()
    _, scope = make(disk, Crew())
    again = await scope.once("x", lambda: pytest.fail("computed twice"))
    assert first == again == {"1": [2, 3]}


async def test_deferred_records_ride_in_order_on_the_next_barrier() -> None:
    disk, crew = Disk(), Crew()
    _, scope = make(disk, crew)
    await scope.once("now", lambda: 1)
    scope.emit(ErrorMet(text="a"), "a")
    await scope.steer()
    assert disk.commits == []
    await crew.think(scope, "model", "hi")
    assert disk.commits == [("now", "event:a", "steer", "model")]


async def test_events_are_there_once_after_a_replay() -> None:
    disk, crew = Disk(), Crew()
    for _ in range(3):
        turn, scope = make(disk, crew)
        scope.emit(ErrorMet(text="a"), "a")
        scope.child("step").emit(ErrorMet(text="b"), "a")
        turn.journal.put()
    assert [r.key for r in disk.records if isinstance(r, Emitted)] == ["event:a", "step/event:a"]


async def test_nothing_to_steer_is_recorded_and_a_message_is_handed_over_once() -> None:
    disk, crew = Disk(), Crew()
    _, scope = make(disk, crew)
    assert await scope.steer("a") == ()
    crew.said = [(7, "hurry")]
    assert await scope.steer("b") == ("hurry",)
    assert disk.commits == [("a", "b")], "a taken row is recorded before anything depends on it"
    late = Crew()
    late.said = [(9, "late")]
    _, scope = make(disk, late)
    assert await scope.steer("a") == () and await scope.steer("b") == ("hurry",)
    assert await scope.steer("c") == ("late",)
    assert [r.rows for r in disk.records if isinstance(r, Steered)] == [(), (7,), (9,)]


async def test_live_text_is_not_recorded_and_not_shown_again() -> None:
    disk, crew = Disk(), Crew()
    for _ in range(2):
        _, scope = make(disk, crew)
        await crew.think(scope, "model", "hi")
        assert len(crew.seen) == 1 and disk.keys() == ["model"]


@pytest.mark.parametrize(
    "use",
    [
        lambda scope: scope.once("k", lambda: 1),
        lambda scope: scope.steer("k"),
        lambda scope: scope.ask(ASK, "k"),
        lambda scope: Crew().think(scope, "k", "x"),
    ],
)
async def test_a_key_used_twice_is_a_bug(use: Callable[[Scope], Awaitable[object]]) -> None:
    _, scope = make(Disk(), Crew())
    await scope.once("k", lambda: 1)
    with pytest.raises(Diverged, match="twice"):
        await use(scope)


async def test_a_key_used_twice_by_tools_and_events_is_a_bug() -> None:
    _, scope = make(Disk(), Crew())
    scope.emit(ErrorMet(text="x"))
    with pytest.raises(Diverged, match="twice"):
        scope.emit(ErrorMet(text="y"))
    scope.settle(tool("x"), "no")
    with pytest.raises(Diverged, match="twice"):
        await Crew().use(scope, "x", "effect")


# ---- tools after a crash -------------------------------------------------------------------


@pytest.mark.parametrize("repetition", ["pure", "idempotent", "effect"])
async def test_a_tool_cut_off_runs_again_as_its_class_allows(repetition: str) -> None:
    disk, crew = Disk(), Crew()
    turn, scope = make(disk, crew)
    running = asyncio.ensure_future(
        in_task(turn, crew.use(scope, "t", repetition, asyncio.Event()))
    )
    await until(lambda: crew.did["t"])
    started = [r for r in disk.records if isinstance(r, ToolStarted)]
    assert len(started) == (0 if repetition == "pure" else 1)
    before, again = Disk(disk.records), Crew()
    running.cancel()
    await asyncio.wait([running])
    _, scope = make(before, again)
    result = await again.use(scope, "t", repetition)
    if repetition == "effect":
        assert result == UNKNOWN and again.did["t"] == 0
        end = before.records[-1]
        assert isinstance(end, ToolFinished) and end.outcome == "unknown"
    else:
        assert result == "t ok" and again.did["t"] == 1
        assert again.tokens["t"] == crew.tokens["t"] == "t1/call-t"


async def test_an_idempotent_tool_gets_the_key_of_its_start_record() -> None:
    call, disk = tool("add"), Disk()
    _, scope = make(disk, Crew())
    await scope.tool(call, "idempotent", says("x"))
    start = disk.records[0]
    assert isinstance(start, ToolStarted)
    old = ToolStarted(key=start.key, call=call, digest=start.digest, token="of old")
    crew = Crew()
    _, scope = make(Disk([old]), crew)
    await crew.use(scope, "add", "idempotent")
    assert crew.tokens["add"] == "of old"


# ---- failures and limits -------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ModelFailed("no", "overloaded"), BudgetExceeded("spent")], ids=["model", "budget"]
)
async def test_a_model_failure_is_recorded_and_raised_the_same(error: Exception) -> None:
    disk = Disk()
    _, scope = make(disk, Crew())
    with pytest.raises(type(error)) as live:
        await scope.model(raises(error))
    _, scope = make(disk, Crew())
    with pytest.raises(type(error)) as again:
        await scope.model(raises(AssertionError("called again")))
    assert str(live.value) == str(again.value) == str(error)
    assert getattr(live.value, "fault", "") == getattr(again.value, "fault", "")
    assert disk.keys() == ["model"]


async def test_a_limit_of_a_model_call_is_its_record() -> None:
    async def slow(on_delta: object) -> ModelReply:
        return await asyncio.get_running_loop().create_future()

    disk = Disk()
    texts = []
    for _ in range(2):
        _, scope = make(disk, Crew())
        with pytest.raises(TimedOut) as error:
            await scope.model(slow, limit=0.01)
        texts.append(str(error.value))
    assert texts[0] == texts[1]
    assert [r.error for r in disk.records if isinstance(r, Failed)] == ["timeout"]


@pytest.mark.parametrize(
    ("run", "outcome", "text"),
    [
        (raises(ToolFailed("broken")), "failed", "broken"),
        (lambda token: asyncio.Event().wait(), "timed_out", "Timed out after 0.01 s."),
    ],
)
async def test_a_tools_failure_is_its_result(run: object, outcome: str, text: str) -> None:
    disk = Disk()
    for _ in range(2):
        _, scope = make(disk, Crew())
        result = await scope.tool(tool("t"), "effect", run, 0.01)
        assert (result.content, result.error) == (text, True)
    end = disk.records[-1]
    assert isinstance(end, ToolFinished) and end.outcome == outcome and len(disk.records) == 2


async def test_a_bug_in_a_tool_is_not_recorded() -> None:
    disk = Disk()
    _, scope = make(disk, Crew())
    with pytest.raises(ZeroDivisionError):
        await scope.tool(tool("t"), "pure", raises(ZeroDivisionError()))
    assert disk.records == []


# ---- cancellation --------------------------------------------------------------------------


async def test_a_cancelled_waiter_does_not_undo_its_commit() -> None:
    disk, crew = Disk(), Crew()
    disk.hold = asyncio.Event()
    turn, scope = make(disk, crew)
    task = asyncio.ensure_future(in_task(turn, crew.use(scope, "note", "effect")))
    await until(lambda: disk.commits)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() and crew.did["note"] == 0
    assert [r.key for r in turn.journal.records] == disk.keys() == ["call-note#start"]
    disk.hold.set()
    await asyncio.sleep(0)


async def test_after_a_stop_nothing_is_written_any_more() -> None:
    disk, crew, gate = Disk(), Crew(), asyncio.Event()
    turn, scope = make(disk, crew)
    task = asyncio.ensure_future(in_task(turn, crew.use(scope, "note", "effect", gate)))
    await until(lambda: crew.did["note"])
    turn.suspend(Cancelled())
    gate.set()
    with pytest.raises(Cancelled):
        await task
    assert disk.keys() == ["call-note#start"]


async def test_two_branches_that_write_at_once_write_each_record_once() -> None:
    disk, crew = Disk(), Crew()
    disk.hold = asyncio.Event()
    _, scope = make(disk, crew)

    async def branch(inner: Scope) -> str:
        inner.emit(ErrorMet(text="x"), "x")
        return await crew.think(inner, "model", "hi")

    async def release() -> None:
        await until(lambda: len(disk.commits) == 2)
        disk.hold.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(release())
        await scope.parallel({"a": branch, "b": branch})
    assert sorted(disk.keys()) == ["a/event:x", "a/model", "b/event:x", "b/model"]


# ---- old records, new code -----------------------------------------------------------------


async def old_code(scope: Scope, crew: Crew) -> TurnResult:
    text = await crew.think(scope, "plan", "old plan")
    await crew.use(scope.child("s1"), "note", "effect")
    got = (await scope.child("s2").ask(ASK)).text
    await crew.use(scope.child("s3"), "deploy", "effect")
    return TurnResult(text=f"{text} {got}", messages=())


async def parked_old() -> Disk:
    disk = Disk()
    _, scope = make(disk, Crew())
    with pytest.raises(Parked):
        await old_code(scope, Crew())
    return disk


async def go_on(
    disk: Disk, code: Callable[[Scope, tuple[Message, ...]], Awaitable[TurnResult]]
) -> TurnResult:
    turn = Turn("t1", Journal(disk.records, disk.write), Crew())
    answer(turn, "s2/ask")
    return await drive(turn, code)


async def test_an_inserted_step_runs_as_a_hole() -> None:
    disk, crew = await parked_old(), Crew()

    async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
        assert past == ()
        extra = await crew.think(scope, "check", "new step")
        result = await old_code(scope, crew)
        return TurnResult(text=f"{extra}: {result.text}", messages=())

    result = await go_on(disk, code)
    assert result.text == "new step: old plan yes"
    assert crew.did == {"model check": 1, "deploy": 1}
    assert not any(isinstance(record, Broke) for record in disk.records)


async def test_a_changed_prompt_changes_nothing_that_is_recorded() -> None:
    disk, crew = await parked_old(), Crew()

    async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
        text = await crew.think(scope, "plan", "a plan by another prompt")
        assert text == "old plan"
        await crew.use(scope.child("s1"), "note", "effect")
        return TurnResult(text=(await scope.child("s2").ask(ASK)).text, messages=())

    assert (await go_on(disk, code)).text == "yes"
    assert crew.did == {}


@pytest.mark.parametrize("change", ["renamed", "argument", "kind"])
async def test_where_code_and_records_part_the_turn_goes_on_from_its_records(change: str) -> None:
    disk, crew = await parked_old(), Crew()
    count, pasts = len(disk.records), []

    async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
        pasts.append(past)
        if past:
            return TurnResult(text=await crew.think(scope, "final", "told"), messages=())
        await crew.think(scope, "plan", "p")
        step = scope.child("s1")
        if change == "kind":
            await crew.think(step, "call-note", "no tool any more")
        name = "memo" if change == "renamed" else "note"
        call = ToolCall(id="call-note", name=name, arguments='{"text": "other"}')
        await step.tool(call, "effect", raises(AssertionError("it ran")))
        raise AssertionError("the difference was not seen")

    assert (await go_on(disk, code)).text == "told" and len(pasts) == 2
    assert crew.did == {"model final": 1}, "no recorded tool or model call is run again"
    assert [m.role for m in pasts[1]] == ["assistant"]
    assert disk.keys()[count:] == [
        "s2/ask#answer",
        "broke-1",
        "after-1/event:diverged",
        "after-1/final",
    ]
    turn = Turn("t1", Journal(disk.records, disk.write), Crew())
    assert (await drive(turn, code)).text == "told" and crew.did == {"model final": 1}


async def test_a_turn_that_parts_each_time_gives_up() -> None:
    disk = Disk()
    turn = Turn("t1", Journal((), disk.write), Crew())

    async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
        scope.settle(tool("x"), "a")
        scope.settle(tool("x"), "b")
        raise AssertionError("not reached")

    with pytest.raises(Diverged):
        await drive(turn, code)
    assert sum(isinstance(record, Broke) for record in disk.records) == 3
