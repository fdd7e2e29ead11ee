"""`turnkeeper policy`: lines in, verdicts out, by the gateway's own tools and functions."""

import inspect
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_core import policy
from agent_core.orchestration import acting
from agent_core.policy_words import RULES
from agent_core.settings import ModelSettings
from gateway.declaration import SettingsError
from gateway.features.jobs import scripts
from gateway.services.operator_rules import FILE, read_rules
from gateway.wiring import policy_check
from gateway.wiring.closed_tools import list_tool_names, make_closed_tools
from gateway.wiring.policy_check import CONTAINING, PolicyChecker
from tests.stories.rig import Rig

ROOT = Path(__file__).parents[2]


def ask_policy(
    home: Path, *words: str, given: bytes = b""
) -> tuple[int, list[dict[str, str]], str]:
    """Exit code, answers and errors of the command itself, in a folder where nothing is."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TURNKEEPER_HOME": str(home / "no")}
    command = (sys.executable, "-m", "gateway.cli.main", "policy", *words)
    done = subprocess.run(
        command, cwd=home, env=env, input=given, capture_output=True, timeout=60, check=False
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()] if given else []
    return done.returncode, answers, (done.stdout + done.stderr).decode()


@pytest.mark.pick("policy in a process")
def test_a_line_gives_an_answer_in_its_place(tmp_path: Path) -> None:
    calls: list[object] = [
        {"tool": "read_file", "args": {"path": "a"}},
        {"tool": "write_file", "args": {"path": "a", "content": ""}},
        {"tool": "write_file", "args": {"path": "a", "content": ""}, "mode": "auto"},
        {"tool": "write_file", "args": {"path": "a", "content": ""}, "role": "viewer"},
        {"tool": "read_file", "args": {"path": ".env"}, "mode": "auto", "role": "admin"},
        {"tool": "run_command", "args": {"command": "ls"}},
        {"tool": "run_command", "args": {"command": "ls"}, "mode": "auto"},
        {"tool": "run_command", "args": {"command": "make"}, "mode": "auto"},
        {"tool": "run_command", "args": {"command": "make"}, "mode": "auto", "tier": "bwrap"},
        {
            "tool": "run_command",
            "args": {"command": "ls"},
            "mode": "auto",
            "tier": "unsafe-subprocess",
        },
        {"tool": "read_page", "args": {"url": "http://[::1]/"}},
        {"tool": "some__tool", "args": {"any": 1}, "mode": "auto", "tier": "docker"},
        {"tool": "no_such_tool", "args": {}},
        {"tool": "read_file", "args": {"pfad": "a"}},
        {"tool": "ask_human", "args": {"inquire": "?"}},
    ]
    lines = [json.dumps(call).encode() for call in calls]
    lines[3:3] = [b"{", b"", b"[]", b'{"tool": "read_file"}', b"\xff", b'"' + b"x" * 2_000_000]
    lines.append(b'{"tool": "read_file", "args": {"path": "a"}, "tier": "none of these"}')
    lines.append(b'{"tool": "x", "args": ' + b"[" * 100_000)
    code, answers, _ = ask_policy(tmp_path, "check", given=b"\n".join(lines))
    assert code == 0 and len(answers) == len(lines)
    said = [(one["decision"], one["rule"]) for one in answers]
    assert said[:3] == [("allow", "read"), ("ask", "write"), ("allow", "write")]
    assert said[3:9] == [("deny", "unreadable")] * 6
    assert all(answers[n]["error"] for n in (*range(3, 9), -1, -2))
    assert said[9:] == [
        *(("deny", "viewer"), ("deny", "outside"), ("ask", "shell"), ("allow", "shell")),
        *(("ask", "shell"), ("allow", "contained"), ("ask", "shell-unisolated")),
        *(("deny", "address"), ("ask", "network"), ("deny", "no-tool"), ("deny", "arguments")),
        *(("allow", "person"), ("deny", "unreadable"), ("deny", "unreadable")),
    ]
    assert not any("error" in one for one in answers if one["rule"] != "unreadable")
    assert not list(tmp_path.iterdir()), "nothing is made"


@pytest.mark.pick("policy in a process")
def test_urls_and_paths_a_line(tmp_path: Path) -> None:
    urls = b'https://example.com/\nhttp://2130706433/\n"http://a\\nb/"\nfile:///x\nhttp://localtest.me/'
    code, answers, _ = ask_policy(tmp_path, "check-url", given=urls)
    assert code == 0
    assert [one["decision"] for one in answers] == ["allow", *["deny"] * 4]
    given = b"src/a.py\r\n../x\n.env\n/workspace/a\n~/x\n.turnkeeper/x\n"
    for words, last in ((("check-path",), "allow"), (("check-path", "--write"), "deny")):
        code, answers, _ = ask_policy(tmp_path, *words, given=given)
        assert code == 0
        assert [one["decision"] for one in answers] == [
            "allow", "deny", "deny", "allow", "deny", last,
        ]  # fmt: skip


@pytest.mark.pick("policy in a process")
def test_a_rule_is_told_in_words(tmp_path: Path) -> None:
    code, _, said = ask_policy(tmp_path, "explain", "outside")
    assert code == 0 and said.startswith("outside: deny") and ".env" in said
    code, _, said = ask_policy(tmp_path, "explain", "nonsense")
    assert code == 1 and "no rule" in said
    code, _, said = ask_policy(tmp_path, "explain")
    assert code == 0 and said.count("\n") == len(RULES)


@pytest.mark.pick("policy in a process")
def test_the_operators_rules_count(tmp_path: Path) -> None:
    home = tmp_path / "no"
    home.mkdir()
    rule = (
        '[[rule]]\nname = "no-push"\neffect = "deny"\ncommand = "git push"\nreason = "Ask Ada."\n'
    )
    (home / "policy.toml").write_text(rule)
    call = {"tool": "run_command", "args": {"command": "git push"}, "mode": "auto", "tier": "bwrap"}
    code, answers, _ = ask_policy(tmp_path, "check", given=json.dumps(call).encode())
    assert (code, answers) == (0, [{"decision": "deny", "rule": "operator:no-push"}])
    code, _, said = ask_policy(tmp_path, "explain", "operator:no-push")
    assert code == 0 and "Ask Ada." in said
    (home / "policy.toml").write_text(rule + "x = 1")
    code, _, said = ask_policy(tmp_path, "check", given=b"{}")
    assert code == 2 and "line 6" in said


def test_every_rule_has_words() -> None:
    named = {
        policy.HOSTS,
        policy.SECRET_FILE,
        policy_check.NO_TOOL,
        policy_check.NO_FIT,
        policy_check.CONFIRMED,
        policy_check.UNREADABLE,
    }
    for module in (policy, acting, scripts, policy_check):
        named |= set(re.findall(r'\brule="([\w-]+)"', inspect.getsource(module)))
    assert named == set(RULES)


def test_thousands_of_lines_take_seconds() -> None:
    checker = PolicyChecker(ModelSettings.read({}))
    lines = [
        json.dumps({"tool": "run_command", "args": {"command": f"cat {n} | grep x"}}).encode()
        for n in range(2_000)
    ]
    began = time.process_time()
    assert {checker.judge_call(line).decision for line in lines} == {"ask"}
    assert time.process_time() - began < 2


@pytest.mark.parametrize("isolated", [True, False])
def test_the_tools_are_those_of_a_gateway(isolated: bool) -> None:
    """A tool that is not known here would be denied without a reason."""
    names = {tool.name for tool in make_closed_tools(ModelSettings.read({}), isolated=isolated)}
    assert {"run_command", "bash", "read_file", "write_file", "read_page", "schedule_job"} <= names
    assert {"browser_navigate", "execute_script", "send_file", "ask_user", "memory"} <= names


def test_the_tiers_are_those_that_can_be_set() -> None:
    from typing import get_args

    from gateway.settings import Sandbox

    assert set(get_args(Sandbox)) - {"auto"} <= CONTAINING | {policy_check.UNSAFE}


def test_rules_that_are_no_plain_file_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(SettingsError, match=name):
            read_rules(tmp_path / name, ())
    assert read_rules(tmp_path / "none", ()) == ()


@pytest.mark.parametrize(
    ("tool", "mend"),
    [
        ("run_comand", "did you mean run_command?"),
        ("Write-File", "did you mean write_file?"),
        ("ask_human", "did you mean ask_user?"),
        ("shell_xyzzy", "known are read_file, "),
    ],
)
def test_a_rule_for_a_tool_that_is_none_is_told(tmp_path: Path, tool: str, mend: str) -> None:
    file = tmp_path / FILE
    rule = '[[rule]]\nname = "a"\neffect = "deny"\ntool = ["bash", "{tool}"]\n'
    file.write_text(rule.replace("{tool}", tool))
    names = list_tool_names()
    with pytest.raises(SettingsError) as caught:
        read_rules(file, names)
    said = str(caught.value)
    assert f"{file}, line 4, tool" in said and tool in said and mend in said, said
    for known in ("*", "git*", "github__delete", "memory", "generate_image", *names):
        file.write_text(rule.replace("{tool}", known))
        assert len(read_rules(file, names)) == 1, known


async def test_a_gateway_with_a_rule_for_a_tool_that_is_none_does_not_start(rig: Rig) -> None:
    rig.home.mkdir()
    text = '[[rule]]\nname = "a"\neffect = "deny"\ntool = "run_comand"\n'
    (rig.home / FILE).write_text(text)
    refused = pytest.RaisesExc(SettingsError, match="did you mean run_command")
    with pytest.RaisesGroup(refused, flatten_subgroups=True, allow_unwrapped=True):
        await rig.start()
