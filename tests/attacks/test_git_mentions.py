"""Git's commands that tell of a secret file when it changed are no alarm in a sandbox, where the
file is hidden; those that show or take its content are asked about."""

import json

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.settings import ModelSettings
from gateway.wiring.policy_check import PolicyChecker
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))
FILES = (".env", "config/.env.production", "secrets.json", "id_rsa", ".npmrc", "src/key.pem .env")
TOLD = {
    "log": ("--oneline", "--stat", "--follow", "--name-only", "-3", "-n 5", "--all", "--format=%h", "--since=1.week", "--diff-filter=A", "--no-merges"),
    "status": ("-s", "-sb", "--short", "--porcelain", "--branch", "--ignored", "-uno"),
    "diff --name-only": ("--cached", "--staged", "--name-status", "--stat", "--diff-filter=AM", "HEAD"),
    "diff --stat": ("--cached", "--numstat", "HEAD~1"),
    "ls-files": ("--error-unmatch", "-o", "--others", "--exclude-standard", "-s"),
    "check-ignore": ("-v", "-q"),
    "rm --cached": ("-r", "-q", "-f"),
}  # fmt: skip
SHOWN = {
    "log": ("-p", "--patch", "-U3", "-u", "-S key", "-G key", "-L1,3:.env", "-c", "--cc", "-m", "--word-diff", "--unified=1", "-W", "-sp", "--output=x", "-p -m commit"),
    "status": ("-v", "--verbose", "-vv", "-sv", "-vs"),
    "diff --name-only": ("-p", "--patch", "-U1", "--binary", "--word-diff", "--patch-with-stat", "--output=x", "--no-index"),
    "diff": ("", "--cached", "-w", "HEAD"),
    "diff --stat": ("-p", "-u", "--patch"),
    "show": ("", "--stat", "HEAD", "-m", "-m tag"),
    "-C . log": ("-p", "-p -m", "-m", "-p -m --grep=commit"),
    "-C tag log": ("-p -m", "-m commit"),
    "blame": ("",), "add": ("",), "commit": ("-m x",), "stash push": ("",), "checkout": ("--",), "grep": ("key",), "archive HEAD": ("",),
}  # fmt: skip


def judge(command: str) -> str:
    call = {"tool": "run_command", "args": {"command": command}, "mode": "auto", "tier": "bwrap"}
    return CHECKER.judge_call(json.dumps(call).encode()).decision


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_only_told_of_is_no_alarm(file: str) -> None:
    lines = [f"git {verb} {one} -- {file}" for verb, options in TOLD.items() for one in options]
    lines += [f"git {verb} {file}" for verb in TOLD]
    assert [line for line in lines if judge(line) != "allow"] == []


def test_a_message_is_no_file() -> None:
    for verb in (
        "commit -m",
        "commit -am",
        "-C src commit -m",
        "tag -a v1 -m",
        "stash push -m",
        "merge dev -m",
    ):
        assert judge(f"git {verb} 'Drop .env'") == "allow"


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_a_file_that_is_shown_is_asked_about_whatever_else_is_said(data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(sorted(SHOWN)))
    known = st.lists(st.sampled_from(TOLD.get(verb, ("",))), max_size=2)
    shown, file = data.draw(st.sampled_from(SHOWN[verb])), data.draw(st.sampled_from(FILES))
    words = ["git", verb, *data.draw(known), shown, *data.draw(known), file]
    assert judge(" ".join(words)) == "ask"
