"""Planned turns alone: a scope over a journal in memory, a scripted model, and a kill after every
record. What the planner and the judge make of what models write."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from agent_core.context.transcript import messages_of
from agent_core.errors import ModelFailed
from agent_core.events import PlanMade, Routed, StageEntered, StepBegan, StepEnded
from agent_core.journal import Broke, Journal, Replied
from agent_core.messages import CommandResult, Message, Text, ToolCall, ToolResult, text_of, user
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief, TurnResult
from agent_core.orchestration.drive import drive
from agent_core.orchestration.plan import Step
from agent_core.orchestration.planner import read_steps, read_title
from agent_core.orchestration.side_calls import Unusable, find_json, tier
from agent_core.orchestration.verify import StepVerdict, verify
from agent_core.sandboxes.commands.background import Background
from agent_core.scope import Scope, Turn
from agent_core.tools.shell import shell_tool
from agent_core.tools.toolbox import Toolbox
from tests.agent_core.orchestrator_rig import STEPS, TurnRig, events, plan, purpose
from tests.agent_core.scope_rig import Disk
from tests.fakes.sandboxes import unsafe_sandbox


async def test_only_the_last_words_stream(tmp_path: Path) -> None:
    world, disk = TurnRig(tmp_path), Disk()
    result = await world.run(disk)
    assert result.text == "final done" and world.streamed == "final done"
    assert world.asked[:3] == ["plan", "a", "check find"] and world.asked[-1] == "final"
    assert [event.route for event in events(disk, Routed)] == ["planned"]
    assert [event.id for event in events(disk, StepBegan)] == ["a", "b", "c"]
    assert sorted(event.id for event in events(disk, StepEnded)) == ["a", "b", "c"]
    assert [event.name for event in events(disk, StageEntered)] == ["finalizing"]


async def test_tiers_are_kept_apart_and_a_chosen_model_serves_all(tmp_path: Path) -> None:
    world = TurnRig(tmp_path)
    await world.run(Disk())
    assert {(purpose(r).partition(" ")[0], r.model) for r in world.requests} >= {
        ("plan", "pro"), ("check", "flash"), ("final", "pro"),
    }  # fmt: skip
    assert (tier("pro", "flash"), tier("acme/big", "flash")) == ("flash", "acme/big")


async def test_a_kill_after_each_record_repeats_no_answer(tmp_path: Path) -> None:
    whole = Disk()
    first = TurnRig(tmp_path)
    expected = await first.run(whole)
    assert len(whole.records) > 20
    for count in range(len(whole.records) + 1):
        own = tmp_path / str(count)
        own.mkdir()
        disk, world = Disk(whole.records[:count]), TurnRig(own)
        assert await world.run(disk) == expected
        known = [r for r in whole.records[:count] if isinstance(r, Replied)]
        assert len(world.asked) == len(first.asked) - len(known), count
        assert disk.keys() == list(dict.fromkeys(disk.keys())), "nothing is written twice"
        assert set(disk.keys()) == set(whole.keys()), count


async def test_what_a_step_found_stands_before_it_is_judged(tmp_path: Path) -> None:
    world, disk = TurnRig(tmp_path), Disk()
    missing: list[str] = []
    step_of = {step["description"]: step["id"] for step in STEPS}

    async def complete(name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        what, _, about = purpose(request).partition(" ")
        key = f"step-{step_of.get(about)}/round-1/model"
        if what == "check" and key not in disk.keys():
            missing.append(key)
        return await world.complete(name, request, on_delta)

    world.hands = msgspec.structs.replace(world.hands, complete=complete)
    await world.run(disk)
    assert not missing and world.asked.count("check find") == 1


async def test_a_turn_begun_before_there_were_plans_stays_as_it_was() -> None:
    old = b'{"text":"first x, then y","system":"s","model":"pro","tools":[],"workspace":"/w"}'
    assert msgspec.json.decode(old, type=Brief).route == "simple"


@pytest.mark.parametrize("answer", [plan([]), plan(STEPS[:1]), "no", ModelFailed("away")])
async def test_without_a_plan_the_request_is_answered_directly(
    tmp_path: Path, answer: str | Exception
) -> None:
    world, disk = TurnRig(tmp_path, plan=answer), Disk()
    result = await world.run(disk)
    assert result.text == "first this, then that done"
    assert [m.role for m in result.messages] == ["user", "assistant"]
    assert not events(disk, PlanMade)
    assert [event.route for event in events(disk, Routed)] == ["simple"]


async def test_a_circle_is_asked_about_once(tmp_path: Path) -> None:
    circle = [dict(STEPS[0], needs=["b"]), STEPS[1]]
    world = TurnRig(tmp_path, plan=plan(circle))
    world.answers["That"] = plan()
    result = await world.run(Disk())
    assert result.text == "final done"
    again = text_of(world.requests[1].messages[-1])
    assert "wait for each other: a, b" in again


async def test_a_step_whose_model_fails_ends_and_what_was_done_is_told(tmp_path: Path) -> None:
    world, disk = TurnRig(tmp_path, b=ModelFailed("The model is away.")), Disk()
    result = await world.run(disk)
    assert (result.text, result.finish) == ("final done", "stop")
    assert world.asked.count("plan") == 1, "no re-plan helps against that"
    assert {e.id: e.state for e in events(disk, StepEnded)} == {
        "a": "done", "b": "failed", "c": "done",
    }  # fmt: skip


async def test_a_provider_that_goes_away_ends_the_turn_with_its_word(tmp_path: Path) -> None:
    gone = ModelFailed("The model is away.")
    world, disk = TurnRig(tmp_path, a=gone, final=gone), Disk()
    result = await world.run(disk)
    assert (result.text, result.finish) == ("", "error")
    assert world.asked == ["plan", "a", "final"], "no re-plan helps against that"


async def test_a_judge_that_is_away_lets_go_on_and_says_so(tmp_path: Path) -> None:
    world, disk = TurnRig(tmp_path, check=ModelFailed("away")), Disk()
    assert (await world.run(disk)).text == "final done"
    assert {event.note for event in events(disk, StepEnded)} == {"not checked"}


async def test_a_request_that_cannot_be_met_ends_with_what_is_known(tmp_path: Path) -> None:
    no = '{"ok": false, "why": "there is none"}'
    world, disk = TurnRig(tmp_path, check=no, replan=plan([])), Disk()
    assert (await world.run(disk)).text == "final done"
    last = text_of(world.requests[-1].messages[-1])
    assert "[!] a: find (there is none)" in last and "[-] b: look" in last
    assert [event.name for event in events(disk, StageEntered)] == ["replanning", "giving_up"]


async def test_a_re_plan_that_repeats_the_plan_repeats_nothing_that_is_done(tmp_path: Path) -> None:
    no = '{"ok": false, "why": "not yet"}'
    world, disk = TurnRig(tmp_path, replan=plan(), **{"check look": no}), Disk()
    assert (await world.run(disk)).text == "final done"
    assert [one for one in world.asked if one.startswith("a")] == ["a"]
    assert world.asked.count("replan") == 3
    assert {"b", "b-2", "b-3", "b-4"} <= set(world.asked) and "b-5" not in world.asked
    assert [event.name for event in events(disk, StageEntered)][-1] == "giving_up"


async def test_what_is_stopped_leaves_messages_that_any_provider_takes(tmp_path: Path) -> None:
    whole = Disk()
    await TurnRig(tmp_path).run(whole)
    for count in range(len(whole.records)):
        roles = [m.role for m in messages_of(whole.records[:count])]
        assert all(one != other for one, other in zip(roles, roles[1:], strict=False)), roles
        assert "ok" not in "".join(map(text_of, messages_of(whole.records[:count])))


async def test_where_code_and_journal_part_it_goes_on_without_a_plan(tmp_path: Path) -> None:
    whole = Disk()
    await TurnRig(tmp_path).run(whole)
    at = [r.key for r in whole.records].index("step-a/round-1/model")
    broken = [*whole.records[: at + 1], Broke(key="broke-1", at="x", text="x")]
    world = TurnRig(tmp_path)
    result = await world.run(Disk(broken))
    assert result.finish == "stop" and world.asked == [
        "[Going on]\nThe turn was cut off here. Go on with the request from what is done already."
    ]
    assert text_of(world.requests[0].messages[1]) == "a done"


# ---- what models write -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"steps": [{"id": "1", "description": "x", "needs": []}]}',
        'Sure!\n```json\n{"plan": [{"id": 1, "task": "x"}]}\n```\nGood luck.',
        '[{"step": "x", "depends_on": [], "id": "1"}]',
    ],
)
def test_plans_are_read_in_the_forms_that_models_use(text: str) -> None:
    assert read_steps(text) == (Step(id="1", description="x"),)


def test_needs_and_ids_become_keys() -> None:
    text = '[{"id": "step one/x", "do": "x"}, {"id": 2, "do": "y", "dependencies": ["step one/x"]}]'
    one, two = read_steps(text)
    assert (one.id, two.needs) == ("step-one-x", ("step-one-x",))
    assert read_steps('["x", "y"]')[1] == Step(id="s2", description="y")
    text = '[{"id": 1, "do": "x"}, {"id": 2, "do": "y", "needs": 1}, {"do": "z", "needs": [{"id": 2}]}]'
    assert [step.needs for step in read_steps(text)] == [(), ("1",), ("2",)]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('{"title": "Cheapest\\nhosts", "steps": []}', "Cheapest hosts"),
        ('{"title": ["x"], "steps": []}', ""),
        ('{"steps": ["x"]}', ""),
        ('["x"]', ""),
        (f'{{"title": "{"word " * 40}", "steps": []}}', f"{'word ' * 11}word…"),
    ],
)
def test_a_plan_is_called_what_the_model_calls_it(text: str, title: str) -> None:
    assert read_title(text) == title


@pytest.mark.parametrize("text", ["", "no", "{}", '{"steps": "x"}', '{"steps": [1]}', "{]"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(Unusable):
        read_steps(text)


def test_json_is_found_in_the_middle() -> None:
    assert find_json("so [1, 2] it is") == [1, 2]
    assert find_json('a {"b": [1]} c') == {"b": [1]}


# ---- the check ---------------------------------------------------------------------------


ENDS = {
    "[exit code 0]": CommandResult(exit_code=0, written=1),
    "[exit code 2]": CommandResult(exit_code=2, written=1),
    "[stopped after 30 s]": CommandResult(stopped=30.0, written=1),
    "[stopped]": CommandResult(stopped=0.0, written=1),
}


def called(*contents: str, text: str = "All went well.", by: str = "run_command") -> TurnResult:
    parts = tuple(
        ToolResult(call_id=str(n), name=by, content=c, command=ENDS.get(c.partition("\n")[2]))
        for n, c in enumerate(contents)
    )
    calls = tuple(ToolCall(id=str(n), name=by, arguments="{}") for n in range(len(contents)))
    return TurnResult(
        text=text,
        messages=(
            user("do"),
            Message(role="assistant", parts=calls),
            Message(role="tool", parts=parts),
            Message(role="assistant", parts=(Text(text=text),)),
        ),
    )


async def found(world: TurnRig, step: Step, ended: TurnResult) -> StepVerdict:
    findings: list[StepVerdict] = []
    shell = shell_tool(unsafe_sandbox(), Background())
    world.hands = replace(world.hands, toolbox=Toolbox((shell,)))

    async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
        findings.append(await verify(scope, step, ended, world.brief, world.hands))
        return ended

    disk = Disk()
    await drive(Turn("t", Journal([], disk.write), world), code)
    return findings[0]


@pytest.mark.parametrize(
    ("step", "ended", "why"),
    [
        ({}, called("x", text=" "), "no result"),
        ({"files": ("none.txt",)}, called("written"), "none.txt"),
        ({"files": ("../outside.txt",)}, called("written"), "outside.txt"),
    ],
)
async def test_what_can_be_seen_is_seen_without_a_model(
    tmp_path: Path, step: dict[str, object], ended: TurnResult, why: str
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (tmp_path / "outside.txt").write_text("x")
    world = TurnRig(room)
    finding = await found(world, Step(id="a", description="d", outcome="o", **step), ended)  # type: ignore[arg-type]
    assert not finding.ok and why in finding.why
    assert world.asked == []


@pytest.mark.parametrize(
    ("ended", "remark"),
    [
        (called("x\n[exit code 0]", "y\n[exit code 2]"), "exit code 2"),
        (called("x\n[stopped after 30 s]"), "stopped after 30 s"),
        (called("a file"), "No command"),
        (called("x\n[exit code 0]", by="read_file"), "No command"),
    ],
)
async def test_the_judge_may_overrule_what_is_remarked_of_commands(
    tmp_path: Path, ended: TurnResult, remark: str
) -> None:
    step = Step(id="a", description="d", outcome="o", command=True)
    world = TurnRig(tmp_path)
    assert (await found(world, step, ended)).ok
    assert f"Remark: {remark}" in text_of(world.requests[0].messages[0]).replace(
        "Its last command ended with [", ""
    )
    away = TurnRig(tmp_path, check=ModelFailed("away"))
    finding = await found(away, step, ended)
    assert not finding.ok and remark in finding.why
    plain = await found(world, Step(id="a", description="d", command=True), ended)
    assert not plain.ok and remark in plain.why


@pytest.mark.parametrize("content", ["started\n[stopped]", "x\n[exit code 0]"])
async def test_nothing_is_remarked_where_all_went_as_it_should(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "__init__.py").touch()
    world = TurnRig(tmp_path)
    step = Step(id="a", description="d", outcome="o", command=True, files=("__init__.py",))
    assert (await found(world, step, called(content))).ok
    assert "Remark" not in text_of(world.requests[0].messages[0])


async def test_the_judge_sees_arguments_and_what_is_left_out(tmp_path: Path) -> None:
    world = TurnRig(tmp_path)
    await found(world, Step(id="a", description="d", outcome="o"), called("b" * 9_000))
    shown = text_of(world.requests[0].messages[0])
    assert "run_command {} gave: " + "b" * 2_000 in shown
    assert "[… 5000 characters left out for length …]" in shown


async def test_what_is_there_is_judged_by_its_evidence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    world = TurnRig(tmp_path, check='{"ok": false, "why": "the number is 7, not 8"}')
    step = Step(id="a", description="count", outcome="8 lines", files=("a.txt",), command=True)
    finding = await found(world, step, called("7 lines\n[exit code 0]"))
    assert finding == StepVerdict(ok=False, why="the number is 7, not 8")
    shown = text_of(world.requests[0].messages[0])
    assert "Expected outcome: 8 lines" in shown and "run_command {} gave: 7 lines" in shown
    assert "All went well." in shown


@pytest.mark.parametrize(("observed", "most"), [(4_096, 2_048), (2_000, 1_000), (10_000, None)])
async def test_a_small_model_that_goes_on_for_ever_is_stopped_in_plans_and_checks(
    tmp_path: Path, observed: int, most: int | None
) -> None:
    world = TurnRig(tmp_path)
    world.brief = replace(world.brief, most_observed=observed)
    await world.run(Disk())
    limits = {one.max_tokens for one, what in zip(world.requests, world.asked, strict=True)
              if what.startswith(("plan", "check"))}  # fmt: skip
    assert limits == {most}
