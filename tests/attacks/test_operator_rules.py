"""An operator's rules against those who want to get by: a deny said in other words, and an allow
that is to carry more than its program's own work."""

import json
import time

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.policy_file import parse_rules
from agent_core.settings import ModelSettings
from agent_core.tools.shell_reading.possible_words import read_possible
from gateway.wiring.policy_check import PolicyAnswer, PolicyChecker
from tests.attacks.case_lists import read_cases
from tests.attacks.shell_grammar import disguise_word
from tests.sampling import SEED, examples, take

FORBIDDEN = ["git push", "npm publish"]
COVERED = [
    *("git", "git -c user.name=x commit", "timeout 60 npm test", "find", "tar", "env"),
    *("xargs", "sed", "awk", "sort", "rg", "ssh", "python3", "npm", "nice"),
    *("split", "fd", "fdfind", "go", "gcc", "g++", "pandoc", "tcpdump", "svn", "hg", "psql"),
    *("emacs", "vim", "nvim", "gdb", "nc", "ncat", "nmap", "ar", "cargo", "gpg", "cpio"),
    *("tmux", "screen", "start-stop-daemon", "capsh", "socat", "at"),
]


def make_checker(effect: str, **keys: list[str]) -> PolicyChecker:
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    text = f'[[rule]]\nname = "r"\neffect = "{effect}"\n{lines}\n'
    return PolicyChecker(ModelSettings.read({}), parse_rules(text, "policy.toml"))


def judge(checker: PolicyChecker, tool: str = "run_command", **args: str) -> PolicyAnswer:
    call = {"tool": tool, "args": args, "mode": "auto", "role": "admin", "tier": "bwrap"}
    return checker.judge_call(json.dumps(call).encode())


DENY = make_checker("deny", command=FORBIDDEN)


@pytest.mark.parametrize("tool", ["run_command", "bash"])
def test_a_deny_holds_however_it_is_said(tool: str) -> None:
    assert [
        one
        for one in read_cases("rule_denied")
        if judge(DENY, tool, command=one).decision != "deny"
    ] == []


def test_what_could_be_a_denied_command_is_asked() -> None:
    for one in read_cases("rule_unclear"):
        said = judge(DENY, command=one)
        assert said.decision != "allow" and said.rule == "operator:r", one


def test_code_is_no_way_around_a_deny() -> None:
    for language, code in (
        ("bash", "git push"),
        ("bash", "A=push; git $A"),
        ("python", "import os\nos.system('git push')"),
        ("python", 'subprocess.run(["git", "push", "origin"])'),
    ):
        assert judge(DENY, "execute_code", language=language, code=code).decision == "deny", code


def test_a_deny_is_no_alarm_about_other_commands() -> None:
    """Of what people do each day, little is so that nobody can tell what it runs."""
    each_day = [*read_cases("shell_everyday"), *read_cases("shell_reading")]
    others = [one for one in each_day if not one.startswith("git push")]
    others = take(others, examples(len(others)), "no alarm")
    asked = [one for one in others if judge(DENY, command=one).decision != "allow"]
    assert len(asked) <= len(others) // 200 + 5, asked


def test_a_denied_path_is_found_in_other_words() -> None:
    checker = make_checker("deny", path=["docs/**"])
    for command in (
        "cat docs/a",
        "D=docs; cat $D/a",
        "cat {docs,src}/a",
        "cat d'oc's/a",
        "cat $(echo docs)/a",
    ):
        assert judge(checker, command=command).decision == "deny", command
    for command in ("cat d*/a", 'cat "$1"', "cat $(cat f)"):
        assert judge(checker, command=command).decision == "ask", command
    for command in ("cat src/a", "ls src/*.py", "F=a; cat src/$F", "make"):
        assert judge(checker, command=command).decision == "allow", command


def test_an_allow_covers_a_programs_own_work_alone() -> None:
    def decide(command: str, *more: str) -> str:
        call = {"tool": "run_command", "args": {"command": command}, "mode": "ask", "tier": "none"}
        checker = make_checker("allow", command=[*COVERED, *more])
        return checker.judge_call(json.dumps(call).encode()).decision

    covered, pushes = read_cases("rule_covered"), ("git push", "npm publish")
    assert [one for one in covered if decide(one, *pushes) != "allow"] == []
    handed = read_cases("rule_handed_over")
    assert [one for one in handed if decide(one) == "allow"] == []
    elsewhere = [one for one in handed if one.startswith("git push ") or "push --" in one]
    assert len(elsewhere) > 4
    assert [one for one in elsewhere if decide(one, *pushes) == "allow"] == []


@st.composite
def pushes(draw: st.DrawFn) -> str:
    """`git push` in other dress, in a place of a line."""
    first, second = (
        draw(disguise_word(word).filter(lambda spelled: "," not in spelled))
        for word in ("git", "push")
    )
    shape = draw(st.sampled_from((
        "{} {}", "A={}; B={}; $A $B", "A={}; ${{A}} {}", "$(echo {}) {}", "{} `echo {}`",
        "sh -c \"{} {}\"", "eval {} {}", "env A=b {} {}", "for v in {}; do $v {}; done", "f() {{ {} {}; }}; f",
        "timeout 5 {} {}", "{} -C d {}", "find . -exec {} {} \\;", "xargs {} {}", "cat <({} {})",
    )))  # fmt: skip
    around = draw(
        st.sampled_from(("{}", "ls; {}", "({})", "if true; then {}; fi", "{} &", "ls | {}"))
    )
    return around.format(shape.format(first, second))


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(pushes())
def test_no_dress_of_a_denied_command_is_allowed(command: str) -> None:
    assert judge(DENY, command=command).decision != "allow"


@seed(SEED)
@settings(max_examples=examples(300), deadline=None)
@given(st.text("ab =;$(){}[]'\"`\\|&<>\n,.*#!-@\ue000", max_size=200))
def test_any_text_is_read(text: str) -> None:
    read_possible(text)


@pytest.mark.pick("the worst lines", 5)
@pytest.mark.parametrize(
    "unit",
    ["(", "{a,b}", "$(", "`", '"$(', "A=$(", "eval ", "sh -c ", "alias a='a a';", "xargs ", "find -exec "]
    + ["A=x ", "$A ", "<<X\n", "'", "\\", "${A:-", "env -S 'env -S x' ", "{1..200} ", "a=$a$a;", "{"],
)  # fmt: skip
def test_the_worst_lines_take_little_time(unit: str) -> None:
    began = time.process_time()
    read_possible((unit * 20_000)[:20_000])
    assert time.process_time() - began < 2


DENIED = (
    ("read_file", {"path": "/etc/passwd"}, "admin"),
    ("read_file", {"path": ".env"}, "admin"),
    ("write_file", {"path": "../x", "content": "x"}, "admin"),
    ("web_extract", {"urls": ["http://169.254.169.254/"]}, "admin"),
    ("web_extract", {"urls": ["http://localhost/"]}, "user"),
    ("run_command", {"command": "ls"}, "viewer"),
    ("write_file", {"path": "a.txt", "content": "x"}, "viewer"),
    ("run_command", {"command": "ls", "timeout": 10**9}, "admin"),
    ("run_command", {"command": "ls", "timeout": -1}, "admin"),
    ("no_such_tool", {}, "admin"),
)
ASKED = (
    "cat .env",
    "cat < .env",
    "grep -f.env a",
    "nm @.env",
    "head -c9 id_rsa",
    "git show HEAD:.env",
)
ANY_TOOL = ("*", "run_command", "read_file", "write_file", "web_*", "no_such_tool")


@st.composite
def rule_sets(draw: st.DrawFn, effects: tuple[str, ...]) -> PolicyChecker:
    """Rules as wide as they can be written, of these effects."""
    keys = {
        "tool": st.lists(st.sampled_from(ANY_TOOL), min_size=1, max_size=3),
        "command": st.lists(
            st.sampled_from(("*", "cat", "ls", "grep", "nm", "cat *", "ls *")), min_size=1
        ),
        "host": st.lists(st.sampled_from(("*", "localhost", "169.254.169.254")), min_size=1),
        "path": st.lists(st.sampled_from(("**", "*", ".env", "a.txt")), min_size=1),
        "role": st.lists(st.sampled_from(("admin", "user", "viewer")), min_size=1, max_size=3),
        "conversation": st.just(["*"]),
    }
    lines = []
    for n in range(draw(st.integers(1, 5))):
        chosen = draw(st.sets(st.sampled_from(sorted(keys)), max_size=2))
        chosen |= {draw(st.sampled_from(("tool", "command", "host", "path")))}
        lines += ["[[rule]]", f'name = "r{n}"', f'effect = "{draw(st.sampled_from(effects))}"']
        lines += [f"{key} = {json.dumps(draw(keys[key]))}" for key in sorted(chosen)]
    return PolicyChecker(ModelSettings.read({}), parse_rules("\n".join(lines), "policy.toml"))


def judge_each(checker: PolicyChecker, tier: str, mode: str) -> list[str]:
    calls = [
        *({"tool": tool, "args": args, "role": role} for tool, args, role in DENIED),
        *({"tool": "run_command", "args": {"command": one}, "role": "admin"} for one in ASKED),
    ]
    given = {"tier": tier, "mode": mode}
    return [checker.judge_call(json.dumps(call | given).encode()).decision for call in calls]


@seed(SEED)
@settings(max_examples=examples(100), deadline=None)
@given(
    rule_sets(("allow", "ask")),
    st.sampled_from(("none", "bwrap")),
    st.sampled_from(("ask", "auto")),
)
def test_no_rules_widen_a_deny_or_open_files_for_secrets(
    checker: PolicyChecker, tier: str, mode: str
) -> None:
    said = judge_each(checker, tier, mode)
    assert said[: len(DENIED)] == ["deny"] * len(DENIED)
    plain = judge_each(PolicyChecker(ModelSettings.read({})), tier, mode)
    widened = [pair for pair in zip(plain, said, strict=True) if pair[1] == "allow" != pair[0]]
    assert widened == []


@seed(SEED)
@settings(max_examples=examples(100), deadline=None)
@given(
    rule_sets(("ask", "deny")), st.sampled_from(("none", "bwrap")), st.sampled_from(("ask", "auto"))
)
def test_rules_that_allow_nothing_only_narrow(checker: PolicyChecker, tier: str, mode: str) -> None:
    rank = ("allow", "ask", "deny").index
    plain = judge_each(PolicyChecker(ModelSettings.read({})), tier, mode)
    said = judge_each(checker, tier, mode)
    assert all(rank(a) <= rank(b) for a, b in zip(plain, said, strict=True))
