"""Shell commands, judged by `turnkeeper policy check` and by the policy itself.

Without a tier that contains, what is hostile is never allowed, and what only reads is; with one,
what is harmless runs unasked, whatever it is. Effects inside of tiers are tried out elsewhere
(`tests/agent_core/test_sandboxes.py`, `test_landlock.py`, `test_docker.py`).
"""

import json
from itertools import chain

import pytest
from hypothesis import given, seed, settings

from agent_core.settings import ModelSettings
from gateway.wiring.policy_check import CONTAINING, UNSAFE, PolicyChecker
from tests.attacks.shell_cases import CHANGING, HOSTILE, READING
from tests.attacks.shell_grammar import hostile_commands, reading_commands
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))
ALL_HOSTILE = tuple(chain.from_iterable(HOSTILE.values()))
TOOLS = ("run_command", "bash", "sandbox_shell")


def judge(command: str, tier: str, tool: str = "run_command", mode: str = "auto") -> str:
    call = {"tool": tool, "args": {"command": command}, "mode": mode, "role": "admin", "tier": tier}
    return CHECKER.judge_call(json.dumps(call).encode()).decision


def test_the_sets_are_large_and_as_many_are_harmless() -> None:
    assert len(set(ALL_HOSTILE)) == len(ALL_HOSTILE) > 300
    assert len(set(READING)) + len(set(CHANGING)) >= 250
    assert not set(ALL_HOSTILE) & set(READING)


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_hostile_is_never_allowed_where_nothing_contains(kind: str) -> None:
    for tier in ("none", UNSAFE):
        for tool in TOOLS:
            let_by = [one for one in HOSTILE[kind] if judge(one, tier, tool) == "allow"]
            assert not let_by, (tier, tool, let_by)


def test_what_only_reads_is_allowed_where_nothing_contains() -> None:
    alarms = [one for one in READING if judge(one, "none") != "allow"]
    assert not alarms, alarms


@pytest.mark.parametrize("tier", sorted(CONTAINING))
def test_what_is_harmless_is_allowed_where_it_is_contained(tier: str) -> None:
    alarms = [one for one in (*READING, *CHANGING) if judge(one, tier) != "allow"]
    assert not alarms, alarms


def test_in_mode_ask_a_person_is_asked_about_all() -> None:
    for command in (*ALL_HOSTILE, *READING, *CHANGING):
        assert judge(command, "bwrap", mode="ask") != "allow"


@seed(SEED)
@settings(max_examples=examples(400), deadline=None)
@given(hostile_commands())
def test_no_dress_lets_a_hostile_command_by(command: str) -> None:
    assert judge(command, "none") != "allow"
    assert judge(command, "none", "bash") != "allow"


@seed(SEED)
@settings(max_examples=examples(400), deadline=None)
@given(reading_commands())
def test_no_line_that_only_reads_is_an_alarm(command: str) -> None:
    assert judge(command, "none") == "allow"
