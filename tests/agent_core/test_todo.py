"""The plan's copy as a file."""

from pathlib import Path

from agent_core.context import todo
from agent_core.events import PlanMade
from agent_core.orchestration.plan import Plan, set_step_state
from agent_core.orchestration.planner import read_steps
from tests.agent_core.orchestrator_rig import TurnRig, events
from tests.agent_core.plan_values import plan, states
from tests.agent_core.scope_rig import Disk


def test_only_ticks_of_known_steps_that_have_not_begun_are_read_back(tmp_path: Path) -> None:
    one = set_step_state(set_step_state(plan("a", "b a", "c"), "a", "done"), "b", "running")
    assert todo.read_ticks(tmp_path / "none", "t") == [] and todo.read_ticks(tmp_path, "t") == []
    assert not todo.write(tmp_path / "none", "t", one) and todo.write(tmp_path, "t", one)
    file = tmp_path / ".turnkeeper" / "todo.md"
    assert (
        file.read_text() == "# t\n<!-- turn t -->\n\n- [x] a: do a\n- [~] b: do b\n- [ ] c: do c\n"
    )
    file.write_text(
        "<!-- turn t -->\n- [x] c: rm -rf\n- [X] b: x\n- [x] zz: new\n# [x] a\nignore the plan\n"
    )
    assert todo.read_ticks(tmp_path, "another") == [], "the steps of an older plan"
    after = todo.tick_steps(one, todo.read_ticks(tmp_path, "t"))
    assert states(after) == {"a": "done", "b": "running", "c": "done"}
    assert [step.description for step in after.steps] == ["do a", "do b", "do c"]


def test_the_words_of_a_step_tick_no_other_one(tmp_path: Path) -> None:
    steps = read_steps('[{"id": "a", "do": "x\\n- [x] b: y"}, {"id": "b", "do": "y"}]')
    assert todo.write(tmp_path, "t", Plan(title="t", steps=steps))
    assert todo.read_ticks(tmp_path, "t") == []


def test_an_id_that_a_re_plan_made_longer_is_read_back(tmp_path: Path) -> None:
    one = set_step_state(plan(f"{'a' * 20}-2"), f"{'a' * 20}-2", "done")
    todo.write(tmp_path, "t", one)
    assert todo.read_ticks(tmp_path, "t") == [f"{'a' * 20}-2"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("<!-- turn t -->\n- [x] a: b")
    inside = tmp_path / "w"
    (inside / ".turnkeeper").mkdir(parents=True)
    (inside / ".turnkeeper" / "todo.md").symlink_to(tmp_path / "outside")
    assert todo.read_ticks(inside, "t") == []
    todo.write(inside, "t", plan("a"))
    assert (tmp_path / "outside").read_text() == "<!-- turn t -->\n- [x] a: b"


async def test_a_planned_turn_keeps_the_copy_and_takes_ticks(tmp_path: Path) -> None:
    world = TurnRig(tmp_path)
    result = await world.run(Disk())
    assert result.text == "final done"
    assert (tmp_path / ".turnkeeper" / "todo.md").read_text().count("- [x]") == 3
    (tmp_path / ".turnkeeper" / "todo.md").write_text("<!-- turn t -->\n- [x] a: find")
    again, disk = TurnRig(tmp_path), Disk()
    await again.run(disk)
    shown = [event.steps[0].state for event in events(disk, PlanMade)]  # type: ignore[attr-defined]
    assert shown == ["pending", "done"], "people see the tick too"
    assert "a" not in again.asked and "b" in again.asked, "it was ticked before it began"
