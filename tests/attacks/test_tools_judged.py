"""Each tool's call is judged by `turnkeeper policy check` as the gateway would: whichever field a
path stands in, and where a tool acts by other tools or asks by itself."""

import json
from functools import partial

import pytest

from agent_core.settings import ModelSettings
from gateway.wiring.closed_tools import make_closed_tools
from gateway.wiring.policy_check import CONTAINING, TIERS, PolicyAnswer, PolicyChecker
from tests.attacks.case_lists import read_cases
from tests.sampling import take

CHECKER = PolicyChecker(ModelSettings.read({}))
ROLES, MODES = ("admin", "user", "viewer"), ("ask", "auto")
FIELDS = {"path": False, "paths": True, "cwd": False}
"""Fields of arguments in which a path of the workspace stands, and whether they take several."""
TOOLS = {one.name: one for one in make_closed_tools(ModelSettings.read({}), isolated=True)}
PLACES = [
    (name, field) for name, tool in TOOLS.items() for field in tool.arguments.model_fields
    if field in FIELDS
]  # fmt: skip
NEEDED: dict[str, object] = {
    "content": "x", "action": "write", "title": "a", "question": "b", "project": "a",
    "slides": [{"title": "a", "points": ["b"]}],
}  # fmt: skip
ACTING: dict[str, dict[str, object]] = {
    "app_write_file": {"project": "apps/a", "path": "b.js", "content": ""},
    "app_install_packages": {"project": "apps/a", "packages": ["left-pad"]},
    "app_start_server": {"project": "apps/a"},
    "create_app_project": {"name": "../a", "framework": "Flask"},
}
"""Tools that act by other tools' calls."""


def judge(tool: str, args: dict[str, object], **how: str) -> PolicyAnswer:
    return CHECKER.judge_call(json.dumps({"tool": tool, "args": args, **how}).encode())


def fill(tool: str, field: str, path: str) -> dict[str, object]:
    """Arguments of the tool with the path in that field."""
    fields = TOOLS[tool].arguments.model_fields
    known = {name: value for name, value in NEEDED.items() if name in fields}
    if "command" in fields:
        known["command"] = "view" if tool == "str_replace_editor" else "ls"
    return {**known, field: [path] if FIELDS[field] else path}


@pytest.mark.parametrize(("tool", "field"), PLACES)
def test_a_path_is_judged_whichever_field_it_stands_in(tool: str, field: str) -> None:
    check = partial(judge, tool, mode="auto", role="admin", tier="bwrap")
    assert check(fill(tool, field, "a/b")).decision != "deny"
    for path in take([one for one in read_cases("paths_closed") if len(one) < 90], 40, tool, field):
        answer = check(fill(tool, field, path))
        # a command may be allowed by a person to use a file with secrets
        may = answer == PolicyAnswer(decision="ask", rule="secret-file") and field == "cwd"
        inner = tool == "app_write_file" and "secret" not in path and answer.decision == "allow"
        assert answer.decision == "deny" or may or inner, (path, answer)
    for path in ("../a", "a/../../b", "..\\a", "%2e%2e/a", "../../../a/.."):
        assert check(fill(tool, field, path)).decision == "deny"


@pytest.mark.parametrize("tool", ACTING)
def test_a_tool_that_acts_by_others_is_judged_by_what_they_do(tool: str) -> None:
    check = partial(judge, tool, ACTING[tool])
    for tier in TIERS:
        assert {check(role="viewer", mode=mode, tier=tier).decision for mode in MODES} == {"deny"}
        assert {check(role=role, tier=tier).decision for role in ("admin", "user")} == {"ask"}
    installs = tool == "app_install_packages"
    for tier in CONTAINING:
        answer = check(mode="auto", role="admin", tier=tier)
        assert answer.decision == ("ask" if installs else "allow"), answer
    assert installs == (check(mode="auto", tier="bwrap").rule == "hosts")


def test_the_tool_that_calls_others_is_judged_as_the_one_it_calls() -> None:
    for args in ({"command": "rm a"}, {"command": "ls"}, {"command": "cat .env"}, {"path": "a"}):
        for how in ({}, {"mode": "auto"}, {"mode": "auto", "tier": "bwrap"}, {"role": "viewer"}):
            for tool in ("run_command", "a__b", "no_such", "write_file"):
                through = judge("call_tool", {"name": tool, "arguments": args}, **how)
                assert through == judge(tool, dict(args), **how)


def test_what_asks_by_itself_is_no_free_call() -> None:
    for action in ("create", "change", "pause", "resume", "run", "delete"):
        for mode in MODES:
            said = [
                judge("schedule_job", {"action": action}, mode=mode, role=role) for role in ROLES
            ]
            assert [one.decision for one in said] == ["ask", "ask", "deny"]
    assert judge("schedule_job", {"action": "list"}, role="viewer").decision == "allow"
