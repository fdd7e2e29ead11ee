"""Plans as values: what can begin, what cannot be worked off, what a re-plan leaves."""

from hypothesis import given
from hypothesis import strategies as st

from agent_core.orchestration.plan import (
    CONTEXT,
    MAX_STEPS,
    Plan,
    Step,
    active_context,
    checklist,
    find_parallel,
    problem,
    revise_plan,
    set_step_state,
    still_open,
)
from tests.agent_core.plan_values import ids, plan, states


def test_steps_are_ready_when_what_they_need_is_over() -> None:
    one = plan("a", "b", "c a b", "d c")
    assert ids(one.ready) == "a b"
    one = set_step_state(set_step_state(one, "a", "done"), "b", "running")
    assert ids(one.ready) == ""
    assert ids(set_step_state(one, "b", "skipped").ready) == "c", (
        "who skips a step lets the next ones begin"
    )
    assert ids(set_step_state(one, "b", "failed", "why").ready) == ""


def test_who_needs_only_some_of_what_runs_need_not_wait_for_the_rest() -> None:
    def behind(one: Plan) -> dict[str, str]:
        return {name: " ".join(sorted(waits)) for name, waits in find_parallel(one).items()}

    assert behind(plan("a", "b a", "c b")) == {"a": ""}, "one after the other"
    assert behind(plan("a", "b", "c a b")) == {"a": "", "b": ""}, "it needs all of them"
    one = plan("a", "c a", "b", "d c", "e d b", "f")
    assert behind(one) == {"a": "", "c": "a", "b": "", "d": "a c", "e": "a b c d", "f": ""}
    assert behind(set_step_state(one, "f", "done")) == {"a": "", "c": "a", "b": "", "d": "a c"}
    assert behind(set_step_state(one, "a", "failed")) == {"b": "", "f": ""}


def test_what_cannot_be_worked_off_is_said_in_words() -> None:
    assert problem(plan("a", "b a")) == ""
    assert "'x'" in problem(plan("a x"))
    assert problem(plan("a c", "b a", "c b", "d")) == "These steps wait for each other: a, b, c."
    assert "wait for each other: a" in problem(plan("a a"))
    assert "two steps" in problem(plan("a", "a"))
    assert "too many" in problem(plan(*(f"s{n}" for n in range(MAX_STEPS + 1))))
    assert "what to do" in problem(Plan(title="", steps=(Step(id="a", description=" "),)))
    assert "'a'" in problem(set_step_state(plan("a", "b a"), "a", "failed")), "b could never begin"


def test_a_re_plan_keeps_what_was_done_and_skips_what_is_dropped() -> None:
    one = set_step_state(
        set_step_state(plan("a", "b a", "c b", "d c"), "a", "done"), "b", "failed", "no"
    )
    new = revise_plan(one, plan("b a", "d b").steps)
    assert states(new) == {
        "a": "done", "b": "failed", "c": "skipped", "b-2": "pending", "d": "pending",
    }  # fmt: skip
    assert new.steps[-1].needs == ("b-2",), "the new one, not the failed one"
    assert new.revision == 1 and problem(new) == ""
    assert ids(new.ready) == "b-2"
    third = revise_plan(set_step_state(new, "b-2", "failed"), plan("b a", "d b").steps)
    assert ids(third.steps) == "a b c b-2 b-3 d"


def test_what_is_done_is_not_done_again_because_a_model_writes_it_down_again() -> None:
    one = set_step_state(set_step_state(plan("a", "b a", "c b"), "a", "done"), "b", "failed", "no")
    left = still_open(one, plan("a", "b a", "c b").steps)
    assert ids(left) == "b c"
    new = revise_plan(one, left)
    assert ids(new.ready) == "b-2" and new.select("pending")[0].needs == ("a",) and not problem(new)
    other = (Step(id="a", description="Do  A"), Step(id="a", description="do a another way"))
    assert ids(still_open(one, other)) == "a", "another thing under an old name is done"


@given(st.data())
def test_a_plan_without_a_problem_comes_to_its_end(data: st.DataObject) -> None:
    names = "abcdefg"
    steps = [
        f"{name} {' '.join(data.draw(st.lists(st.sampled_from(names), max_size=2)))}"
        for name in names
    ]
    one = plan(*steps)
    if problem(one):
        for _ in names:  # and one with a problem does not
            for step in one.ready:
                one = set_step_state(one, step.id, "done")
        assert one.select("pending")
        return
    for _ in names:
        for step in one.ready:
            failed = data.draw(st.booleans())
            one = set_step_state(one, step.id, "skipped" if failed else "done")
    assert not one.select("pending", "running")


@given(st.lists(st.sampled_from(["done", "failed", "pending"]), min_size=4, max_size=4), st.data())
def test_a_re_plan_loses_nothing_and_names_nothing_twice(marks: list[str], data: object) -> None:
    one = plan("a", "b", "c", "d")
    for name, mark in zip("abcd", marks, strict=True):
        one = set_step_state(one, name, mark)  # type: ignore[arg-type]
    ended = {step.id: step for step in one.select("done", "failed")}
    new = revise_plan(one, plan("a", "c a", "e c").steps)
    assert {step.id: step for step in new.steps if step.id in ended} == ended
    assert len({step.id for step in new.steps}) == len(new.steps)
    assert len(new.select("pending")) == 3


def test_the_checklist_says_how_far_it_is_and_stays_short() -> None:
    one = set_step_state(set_step_state(plan("a", "b a"), "a", "failed", "no host"), "b", "running")
    assert checklist(one) == "- [!] a: do a (no host)\n- [~] b: do b"
    long = Plan(title="", steps=(Step(id="a", description="x" * 5_000),))
    assert len(active_context(long)) == CONTEXT
    assert active_context(one).startswith("[Active Task Context]\n- [!] a")
