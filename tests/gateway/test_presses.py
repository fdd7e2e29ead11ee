"""A button's token, read once into a closed union."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages import (
    JobPress,
    PlanPress,
    PluginPress,
    Press,
    QuestionPress,
    RulePress,
    TurnPress,
    UnknownPress,
    button_token,
    job_token,
    plan_token,
    plugin_token,
    read_press,
    rule_token,
    turn_token,
)


@pytest.mark.parametrize(
    ("token", "press"),
    [
        (button_token("q1", "once"), QuestionPress(question="q1", option="once")),
        (plan_token("t1", "stop"), PlanPress(turn="t1", action="stop")),
        (plan_token("t1", "skip", "s:2"), PlanPress(turn="t1", action="skip", step="s:2")),
        (turn_token("t1", "retry"), TurnPress(turn="t1", action="retry")),
        (rule_token("abc"), RulePress(rule="abc")),
        (
            plugin_token("ping", "again", "4-1"),
            PluginPress(feature="ping", action="again", argument="4-1"),
        ),
        (plugin_token("ping", "again"), PluginPress(feature="ping", action="again")),
        (job_token("j1", "retry", "c4-1"), JobPress(job="j1", action="retry", slot="c4-1")),
    ],
)
def test_what_is_given_to_a_button_is_read_back(token: str, press: Press) -> None:
    assert read_press(token) == press


@pytest.mark.parametrize(
    "token",
    [
        "",
        "q",
        "q:",
        "q:1",
        "q:1:",
        "q::once",
        "p:t:stop",
        "p::stop:",
        "t:t1",
        "t::retry",
        "r:",
        "j:1:run",
        "x:1:2",
        "x::2:",
        "y:1:2:3",
    ],
)
def test_what_was_never_given_to_a_button_is_unknown(token: str) -> None:
    assert read_press(token) == UnknownPress()


@given(st.text(alphabet="qptrjx:ab", max_size=40))
def test_any_token_is_read(token: str) -> None:
    match read_press(token):
        case QuestionPress(question=question, option=option):
            assert button_token(question, option) == token
        case PlanPress(turn=turn, action=action, step=step):
            assert plan_token(turn, action, step) == token
        case TurnPress(turn=turn, action=action):
            assert turn_token(turn, action) == token
        case RulePress(rule=rule):
            assert rule_token(rule) == token
        case JobPress(job=job, action=action, slot=slot):
            assert job_token(job, action, slot) == token
        case PluginPress(feature=feature, action=action, argument=argument):
            assert plugin_token(feature, action, argument) == token
        case UnknownPress():
            read = ("q:a:a", "p:a:a:", "t:a:a", "r:a", "j:a:a:", "x:a:a:")
            assert not any(map(token.startswith, read))


@pytest.mark.parametrize(
    ("feature", "action", "argument", "why"),
    [
        ("", "again", "", "without a colon"),
        ("pi:ng", "again", "", "without a colon"),
        ("ping", "", "", "without a colon"),
        ("ping", "again", "ä" * 30, "carries 64 bytes"),
    ],
)
def test_a_feature_is_told_what_no_button_carries(
    feature: str, action: str, argument: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        plugin_token(feature, action, argument)
