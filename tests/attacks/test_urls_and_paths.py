"""URLs and paths by their words, judged by `check-url`, `check-path` and the calls that use them."""

import json

import pytest
from hypothesis import given, seed, settings

from agent_core.settings import ModelSettings
from agent_core.tools import paths
from agent_core.tools.web.addresses import Unreachable, read_url
from gateway.wiring.policy_check import PolicyChecker
from tests.attacks.path_grammar import (
    INSIDE,
    OUTSIDE,
    OWN,
    SECRET,
    SETTINGS,
    inner_paths,
    leaving_paths,
)
from tests.attacks.url_grammar import CLOSED, OPEN, closed_urls, open_urls
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))


def judge_url(url: str) -> str:
    return CHECKER.judge_url(json.dumps(url).encode()).decision


def judge_path(path: str, *, write: bool = False) -> str:
    judge = CHECKER.judge_written_path if write else CHECKER.judge_path
    return judge(json.dumps(path).encode()).decision


def judge_call(tool: str, **args: str) -> str:
    call = {"tool": tool, "args": args, "mode": "auto", "role": "admin", "tier": "bwrap"}
    return CHECKER.judge_call(json.dumps(call).encode()).decision


def test_the_sets_are_large() -> None:
    for harmful, harmless in (((*CLOSED,), OPEN), ((*OUTSIDE, *SECRET, *OWN), INSIDE)):
        assert len(set(harmful)) == len(harmful) > 100 and len(set(harmless)) == len(harmless) >= 60


def test_no_url_leads_inside() -> None:
    assert [one for one in CLOSED if judge_url(one) != "deny"] == []
    for tool in ("read_page", "browser_navigate"):
        assert [one for one in CLOSED if one and judge_call(tool, url=one) != "deny"] == []


def test_no_public_url_is_an_alarm() -> None:
    assert [one for one in OPEN if judge_url(one) != "allow"] == []
    assert [one for one in OPEN if judge_call("read_page", url=one) != "ask"] == []


@pytest.mark.parametrize("scheme", ["file", "data", "zip", "jar", "php", "DATA"])
def test_a_scheme_is_no_alarm_before_the_plain_name_of_a_file(scheme: str) -> None:
    for name in ("2024.csv", "a b.txt", "x-1.tar.gz", "y.z.md"):
        assert judge_path(f"{scheme}:{name}") == "allow"
        for other in (f"//{name}", f"/{name}", f"a/{name}", f"../{name}", f",{name}", f"%2f{name}"):
            assert judge_path(f"{scheme}:{other}") == "deny", other
    for rest in ("", "x", "text/plain,x", "//", ".env", "id_rsa/../a.b"):
        assert judge_path(f"{scheme}:{rest}") == "deny", rest


def test_no_path_leaves_or_names_a_secret() -> None:
    assert [one for one in (*OUTSIDE, *SECRET) if judge_path(one) != "deny"] == []
    assert [one for one in OWN if judge_path(one, write=True) != "deny"] == []
    for one in (*OUTSIDE, *SECRET, *OWN):
        assert judge_call("write_file", path=one, content="") == "deny", one
    for one in (*OUTSIDE, *SECRET):
        assert judge_call("read_file", path=one) == "deny", one


def test_what_programs_obey_is_changed_by_no_tool_unasked() -> None:
    assert len(set(SETTINGS)) == len(SETTINGS) > 50
    assert [one for one in SETTINGS if judge_path(one) != "allow"] == []
    for tool, more in (
        ("write_file", {"content": "x"}),
        ("sandbox_file", {"action": "write", "content": "x"}),
        ("str_replace_editor", {"command": "create", "file_text": "x"}),
    ):
        assert [one for one in SETTINGS if judge_call(tool, path=one, **more) != "ask"] == []
    assert [one for one in SETTINGS if judge_call("read_file", path=one) != "allow"] == []


def test_no_path_of_the_workspace_is_an_alarm() -> None:
    assert [one for one in INSIDE if judge_path(one) != "allow"] == []
    assert [
        one for one in INSIDE if judge_call("write_file", path=one, content="") != "allow"
    ] == []


@seed(SEED)
@settings(max_examples=examples(500), deadline=None)
@given(closed_urls())
def test_no_spelling_of_an_address_leads_inside(url: str) -> None:
    assert judge_url(url) == "deny"


@seed(SEED)
@settings(max_examples=examples(300), deadline=None)
@given(open_urls())
def test_no_made_url_of_the_web_is_an_alarm(url: str) -> None:
    assert judge_url(url) == "allow"
    assert read_url(url).host in url


@seed(SEED)
@settings(max_examples=examples(500), deadline=None)
@given(leaving_paths())
def test_no_spelling_of_a_path_leaves(path: str) -> None:
    assert judge_path(path) == "deny"


@seed(SEED)
@settings(max_examples=examples(300), deadline=None)
@given(inner_paths())
def test_no_made_path_of_the_workspace_is_an_alarm(path: str) -> None:
    assert judge_path(path) == "allow"
    assert paths.why_refused(path) is None


@pytest.mark.parametrize("junk", [b"\xff", b'"\xff"', b'"a', b"x" * 2_000_000, b'"\\ud800"'])
def test_what_cannot_be_read_is_denied(junk: bytes) -> None:
    for judge in (CHECKER.judge_url, CHECKER.judge_path, CHECKER.judge_call):
        assert judge(junk).decision == "deny"


def test_a_url_is_read_or_refused() -> None:
    for one in (*CLOSED, *OPEN):
        try:
            assert read_url(one).port < 65_536
        except Unreachable as error:
            assert str(error)
