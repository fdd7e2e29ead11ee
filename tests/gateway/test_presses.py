"""A button's token, read once into a closed union."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages import (
    JobPress,
    PlanPress,
    Press,
    QuestionPress,
    RulePress,
    UnknownPress,
    button_token,
    job_token,
    plan_token,
    read_press,
    rule_token,
)


@pytest.mark.parametrize(
    ("token", "press"),
    [
        (button_token("q1", "once"), QuestionPress(question="q1", option="once")),
        (plan_token("t1", "stop"), PlanPress(turn="t1", action="stop")),
        (plan_token("t1", "skip", "s:2"), PlanPress(turn="t1", action="skip", step="s:2")),
        (rule_token("abc"), RulePress(rule="abc")),
        (job_token("j1", "retry", "c4-1"), JobPress(job="j1", action="retry", slot="c4-1")),
    ],
)
def test_what_is_given_to_a_button_is_read_back(token: str, press: Press) -> None:
    assert read_press(token) == press


@pytest.mark.parametrize(
    "token",
    ["", "q", "q:", "q:1", "q:1:", "q::once", "p:t:stop", "p::stop:", "r:", "j:1:run", "x:1:2"],
)
def test_what_was_never_given_to_a_button_is_unknown(token: str) -> None:
    assert read_press(token) == UnknownPress()


@given(st.text(alphabet="qprj:ab"))
def test_any_token_is_read(token: str) -> None:
    match read_press(token):
        case QuestionPress(question=question, option=option):
            assert button_token(question, option) == token
        case PlanPress(turn=turn, action=action, step=step):
            assert plan_token(turn, action, step) == token
        case RulePress(rule=rule):
            assert rule_token(rule) == token
        case JobPress(job=job, action=action, slot=slot):
            assert job_token(job, action, slot) == token
        case UnknownPress():
            assert not any(map(token.startswith, ("q:a:a", "p:a:a:", "r:a", "j:a:a:")))
