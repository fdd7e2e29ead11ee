"""What a person may change of a plan, as values."""

from hypothesis import given
from hypothesis import strategies as st

from agent_core.orchestration.edits import apply, apply_edit
from agent_core.orchestration.plan import MAX_STEPS, Plan, problem, revise_plan, set_step_state
from agent_core.plan_edit import PlanEdit
from tests.agent_core.plan_values import ids, plan, states


def after(one: Plan, **edit: str) -> Plan:
    made = apply_edit(one, PlanEdit(**edit))  # type: ignore[arg-type]
    assert isinstance(made, Plan), made
    return made


def needs(one: Plan) -> dict[str, str]:
    return {step.id: " ".join(step.needs) for step in one.steps}


def test_a_skipped_step_lets_the_next_ones_begin() -> None:
    one = after(plan("a", "b a"), action="skip", step="a")
    assert states(one)["a"] == "skipped" and ids(one.ready) == "b"
    assert (
        apply_edit(set_step_state(one, "a", "done"), PlanEdit(action="skip", step="a")) == "begun"
    )
    assert apply_edit(one, PlanEdit(action="skip", step="z")) == "no_step"


def test_what_a_person_did_is_done_whatever_became_of_it() -> None:
    for state in ("pending", "running", "skipped", "failed"):
        one = after(set_step_state(plan("a", "b a"), "a", state), action="done", step="a")  # type: ignore[arg-type]
        assert states(one)["a"] == "done" and ids(one.ready) == "b", state
    assert apply_edit(one, PlanEdit(action="done", step="a")) == "begun"


def test_what_failed_or_was_skipped_is_tried_again_in_a_branch_of_its_own() -> None:
    one = set_step_state(plan("a", "b a"), "a", "failed", "broken")
    again = after(one, action="retry", step="a")
    step = again.steps[0]
    assert (step.state, step.note, step.branch) == ("pending", "", "step-a.1")
    assert apply_edit(again, PlanEdit(action="retry", step="a")) == "not_over"


def test_who_needed_a_dropped_step_needs_what_it_needed() -> None:
    one = after(plan("a", "b a", "c b a"), action="drop", step="b")
    assert ids(one.steps) == "a c" and needs(one)["c"] == "a"
    assert (
        apply_edit(set_step_state(one, "a", "running"), PlanEdit(action="drop", step="a"))
        == "begun"
    )


def test_an_added_step_is_the_last_or_comes_before_another() -> None:
    one = set_step_state(plan("a", "b a"), "a", "done")
    last = after(one, action="add", text="tell Bob")
    assert ids(last.steps) == "a b own1" and needs(last)["own1"] == "b"
    both = after(last, action="add", text="look twice", before="b")
    assert ids(both.steps) == "a own2 b own1" and needs(both)["b"] == "a own2"
    assert apply_edit(one, PlanEdit(action="add", text="x", before="a")) == "begun"
    full = plan(*(f"s{n}" for n in range(MAX_STEPS)))
    assert apply_edit(full, PlanEdit(action="add", text="x")) == "too_many"


def test_a_moved_step_comes_first_or_cannot_be_moved() -> None:
    one = after(plan("a", "b", "c"), action="move", step="c", before="a")
    assert ids(one.steps) == "c a b" and needs(one)["a"] == "c" and ids(one.ready) == "c b"
    assert apply_edit(plan("a", "b a"), PlanEdit(action="move", step="b", before="a")) == "circle"
    last = after(plan("a", "b", "c"), action="move", step="a")
    assert ids(last.steps) == "b c a" and needs(last)["a"] == "b c"
    assert apply_edit(plan("a", "b a"), PlanEdit(action="move", step="a")) == "circle"


steps = st.sampled_from(["a", "b", "c", "d", "own1", "own2", "z"])
edits = st.builds(
    PlanEdit,
    action=st.sampled_from(["done", "skip", "retry", "drop", "add", "move"]),
    step=steps,
    text=st.just("more"),
    before=st.one_of(st.just(""), steps),
)


@given(st.lists(st.one_of(edits, st.sampled_from(["begin", "end", "fail"])), max_size=25))
def test_whatever_is_changed_the_plan_comes_to_an_end(moves: list[PlanEdit | str]) -> None:
    one = plan("a", "b a", "c a", "d b c")
    for move in moves:
        if isinstance(move, PlanEdit):
            one = apply(one, (move,))
        elif move == "begin" and one.ready:
            one = set_step_state(one, one.ready[0].id, "running")
        elif running := one.select("running"):
            one = set_step_state(one, running[0].id, "done" if move == "end" else "failed")
    names = [step.id for step in one.steps]
    assert len(set(names)) == len(names) <= MAX_STEPS
    for step in one.select("running", "failed"):
        one = set_step_state(one, step.id, "done")
    while one.ready:
        one = set_step_state(one, one.ready[0].id, "done")
    assert not one.select("pending"), f"these never begin: {needs(one)}"


def test_what_a_person_added_outlives_a_re_plan_and_can_begin() -> None:
    one = after(plan("a", "b a"), action="add", text="tell Bob")
    one = set_step_state(set_step_state(one, "a", "done"), "b", "failed", "broken")
    again = revise_plan(one, plan("c a").steps)
    assert ids(again.steps) == "a b c own1" and needs(again)["own1"] == "a c"
    assert problem(again) == "" and ids(again.ready) == "c"
    assert ids(set_step_state(again, "c", "done").ready) == "own1"
    waited_for = revise_plan(one, plan("c own1").steps)
    assert problem(waited_for) == "" and ids(waited_for.ready) == "own1", "before who waits for it"
    named = revise_plan(one, plan("own1 a").steps)
    assert ids(named.steps) == "a b own1", "the model may place it itself"
