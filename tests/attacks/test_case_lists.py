"""Lists that were written without a look at the rules, hostile and harmless, as one who wants to get
by would write them; and programs of sed and awk that are run to see what they do."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from agent_core.settings import ModelSettings
from agent_core.tools.code.readonly import readonly_verbs
from agent_core.tools.shell_reading.mentions import names_secret
from agent_core.tools.shell_words import Understood, understand
from gateway.wiring.policy_check import CONTAINING, UNSAFE, PolicyChecker
from tests.attacks.case_lists import read_cases
from tests.sampling import SEED, examples, take

CHECKER = PolicyChecker(ModelSettings.read({}))
LISTS = (
    ("shell_hostile", "shell_everyday"),
    ("shell_hostile", "shell_reading"),
    ("urls_closed", "urls_open"),
    ("paths_closed", "paths_open"),
)


def judge(command: str, tier: str, tool: str = "run_command") -> str:
    call = {"tool": tool, "args": {"command": command}, "mode": "auto", "tier": tier}
    return CHECKER.judge_call(json.dumps(call).encode()).decision


def encode(text: str) -> bytes:
    return json.dumps(text).encode()


def test_the_lists_are_large_and_apart() -> None:
    for hostile, harmless in LISTS:
        bad, good = read_cases(hostile), read_cases(harmless)
        assert len(set(bad)) == len(bad) > 400 and len(set(good)) == len(good) > 200
        apart = not set(bad) & set(good)
        assert apart or harmless == "shell_everyday", "what a sandbox is for"


@pytest.mark.parametrize("tier", ["none", UNSAFE])
@pytest.mark.parametrize("tool", ["run_command", "bash", "sandbox_shell"])
def test_nothing_hostile_is_allowed_where_nothing_contains(tier: str, tool: str) -> None:
    count = examples(12_000) if (tier, tool) == ("none", "run_command") else 600
    cases = take(read_cases("shell_hostile"), count, tier, tool)
    assert [one for one in cases if judge(one, tier, tool) == "allow"] == []


def test_what_only_reads_is_no_alarm() -> None:
    cases = take(read_cases("shell_reading"), examples(8_000), "reading")
    assert [one for one in cases if judge(one, "none") != "allow"] == []


@pytest.mark.parametrize("tier", sorted(CONTAINING))
def test_what_people_do_each_day_is_no_alarm_where_it_is_contained(tier: str) -> None:
    everyday = take((*read_cases("shell_everyday"), *read_cases("shell_reading")), 800, tier)
    assert [one for one in everyday if judge(one, tier) != "allow"] == []


def test_urls() -> None:
    for name, meant in (("urls_closed", "deny"), ("urls_open", "allow")):
        wrong = [x for x in read_cases(name) if CHECKER.judge_url(encode(x)).decision != meant]
        assert wrong == [], name


def test_paths() -> None:
    for name, meant in (("paths_closed", "deny"), ("paths_open", "allow")):
        wrong = [x for x in read_cases(name) if CHECKER.judge_path(encode(x)).decision != meant]
        assert wrong == [], name


def test_what_programs_obey_is_asked_about_before_it_is_written() -> None:
    for path in read_cases("paths_settings"):
        args = {"path": path, "content": "x"}
        call = {"tool": "write_file", "args": args, "mode": "auto", "tier": "bwrap"}
        assert CHECKER.judge_call(json.dumps(call).encode()).decision != "allow", path


@pytest.mark.parametrize(
    "command",
    [
        *("cat .env", "cp .env.example .env", "echo A=1 > .env", "echo A=1 >> .env", "cat < .env"),
        *("echo $(cat .env)", "echo `cat .env`", "ls; cat .env", "ls | cat .env", "ls && cat .env"),
        *("grep -e x .env", "grep x .env", "grep -f .env x", "jq -f .env", "find . -exec cat .env +"),
        *("git add .env", "git commit -m x .env", "git show HEAD:.env", "git commit -F .env"),
        *("bash -c 'cat .env'", "python3 -c 'open(\".env\")'", "cat <<X > .env\nX", "sed r.env .env"),
        *("source .env", ". ./.env", "export $(cat .env)", "env $(grep -v x .env) ls", "rm .env"),
        *("echo x | tee .env", "docker run --env-file .env x", "openssl req -keyout server.key", "'"),
    ],
)  # fmt: skip
def test_a_file_for_secrets_that_is_used_is_asked_about(command: str) -> None:
    assert names_secret(command) or command == "'"
    if command != "'":
        assert judge(command, "bwrap") == "ask"


SED = ("s", "y", "/", "/", "/", ",", "[", "]", "^", "\\", "w x", "e", "e touch x", "a", "b", "g", ";",
       "p", "{", "}", "1", "$", "\n", "r in", "[:alpha:]", "!", "~", "d", "q", "I", "W x", " ", ":a", "ta", "ba;w x")  # fmt: skip
AWK = ("{", "}", "(", ")", "print", "printf", " 1 ", ">", ">", '"x"', "$1", "/", "/", "&&", "||", ";",
       "if", "for", "while", " a ", "=", "length", "[", "]", '"(', '"', "BEGIN", " ", ",", "|",
       '"touch x"', "system", "!", "in", "<", "getline", "-", "\n")  # fmt: skip
BEGUN = {
    "sed": st.tuples(
        st.sampled_from(("", "", "s/[/]/", "/[/s/]/", "s,a[,]b,", "/[[:alpha:]/]/", "s/[^]/]/", "1")),
        st.lists(st.sampled_from(SED), max_size=10).map("".join),
        st.sampled_from(("", "/", "w x/", "e/", "e touch x/", ";p")),
    ).map("".join),
    "awk": st.tuples(
        st.sampled_from(("", "{print ", "{if(", "BEGIN{print(", "{for(print", "{print \"(\" && ")),
        st.lists(st.sampled_from(AWK), min_size=1, max_size=10).map("".join),
        st.sampled_from(("", "}", ">\"x\"}", ")}", ">\"x\")}")),
    ).map("".join),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BEGUN))
def test_a_program_that_is_understood_writes_and_runs_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("touch x\nb a\n")
    seen = {"understood": 0}

    @seed(SEED)
    @settings(max_examples=examples(2_000), deadline=None, suppress_health_check=list(HealthCheck))
    @given(BEGUN[name])
    def check(program: str) -> None:
        quoted = program.replace("'", "")
        if not isinstance(understand(f"{name} '{quoted}' in"), Understood):
            return
        seen["understood"] += 1
        with_limits = ["timeout", "2", "sh", "-c", f"{name} '{quoted}' in"]
        subprocess.run(
            with_limits, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert [one.name for one in tmp_path.iterdir()] == ["in"], program

    check()
    assert seen["understood"] > 1


LINE = ("cat a", "echo", "printf", "touch x", " ", " ", " ", "\n", ";", "&&", "||", "|", "!", "(", ")",
        "{ ", "; }", "if ", "; then ", "; else ", "; fi", "for f in ", "a b", "; do ", "; done", "$f",
        '"$f"', "while read f", "$(", "<(", "<<X\n", "\nX\n", "<<'X'\n", "<<<", "< a", "x=touch", "$x",
        "y=1", "$((y+1))", "'", '"', "\\\n", "#", "`", "[ -f a ]", "[[", "]]", "-v", "time ", ">x", "*",
        "[a-b]", "read f", "$", "export LANG=C", "2>/dev/null", "& ", "a[$(touch x)]", "eval ", "{a,b}",
        "{touch,x}", "a{,b}", "{1..2}", "`echo a`", "`", "{", ",", "}")  # fmt: skip
FRAMES = ("{0}", "for f in {1}; do {0}; done", "if {0}; then {1}; fi", "({0}) | {1}", "{{ {0}; }}; {1}",
          "echo \"$({0})\"; {1}", "cat <({0}); {1}", "cat <<X\n{0}\nX\n{1}", "y=$({0}); {1}", "x={0}; {1}",
          "{1} | while read f; do {0}; done", "cat <<< {0}; {1}", "echo `{0}`; {1}",
          "cat {{a,{1}}}; {0}", "for f in {{a,b}}; do {0}; done; {1}", "echo \"`{0}`\" {1}")  # fmt: skip
ACTS = ("cat a", 'echo "$f"', "echo $x", "wc -l a", "a b", "touch x", "$x x", "$f x", "> x", "`touch x`",
        "$(touch x)", "a; touch x", "touch", "printf -v 'a[$(touch x)]' b", "test -v 'a[$(touch x)]'",
        "[[ 'a[$(touch x)]' -eq 1 ]]", "$((x))", "'a[$(touch x)]'", "X\ntouch x", "cat a # touch x")  # fmt: skip
TOKENS = st.lists(st.sampled_from((*LINE, *ACTS)), min_size=1, max_size=7).map("".join)
LINES = st.one_of(
    TOKENS, st.builds(str.format, st.sampled_from(FRAMES), st.sampled_from(ACTS), TOKENS),
    st.builds(str.format, st.sampled_from(FRAMES), st.sampled_from(ACTS), st.sampled_from(ACTS)),
)  # fmt: skip


def test_a_line_that_is_understood_makes_nothing_whatever_its_grammar(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("touch x\na b a\n-v\n")
    seen = {"understood": 0}

    @seed(SEED)
    @settings(max_examples=examples(6_000), deadline=None, suppress_health_check=list(HealthCheck))
    @given(LINES)
    def check(line: str) -> None:
        if not isinstance(understand(line), Understood):
            return
        seen["understood"] += 1
        for shell in ("bash", "sh"):
            subprocess.run(
                ["timeout", "2", shell, "-c", line],
                cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            )  # fmt: skip
            assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"], line

    check()
    assert seen["understood"] > 8


def test_what_depends_on_what_a_shell_was_told_is_given_to_it() -> None:
    for command in (
        "echo $PATH",
        "type ls",
        "command -v ls",
        "python3.11 --version",
        "java -version",
    ):
        assert isinstance(understand(command), Understood) and readonly_verbs(command) == ()
    for command in (
        "x=a; ls $x",
        "export LANG=C; ls",
        "for f in a; do ls; done",
        "ls|while read f; do ls; done",
    ):
        assert isinstance(understand(command), Understood) and readonly_verbs(command) == ()
    assert readonly_verbs("awk '{print $1}' a; echo $WORKSPACE") == ("awk", "echo")


NAMES_THAT_ARE_OPTIONS = ("--files0-from=s.env", "-fs.env", "a -fs.env b.c", "-rf", "x -e . s.env")
PIPES = ("git ls-files | head -1 | xargs {}", "git ls-files | xargs -n 1 {}", "ls *.c | xargs {}",
         "find . -name '*.c' | xargs {}", "git ls-files | xargs {}",
         "ls | head -3 | xargs {}",
         "ls -t | xargs -n 1 {}", "find . | sort | xargs {}",
         "grep -rl hello . | xargs {}", "git ls-files '*.env' | xargs {}", "find . | grep env | xargs {}")  # fmt: skip
ON_NAMES = ("wc -l", "wc", "du -sh", "grep -l hello", "grep -c hello", "ls -l", "stat", "basename",
            "dirname", "md5sum", "cat", "head -2", "file", "grep hello", "tail", "sh")  # fmt: skip


def test_names_that_are_options_show_nothing_of_a_secret(tmp_path: Path) -> None:
    """Neither whole nor parted at their blanks; each of the files alone, and beside others."""
    understood = [
        line for pipe in PIPES for verb in ON_NAMES if is_understood(line := pipe.format(verb))
    ]
    assert len(understood) > 30
    drawn = random.Random(SEED)
    for count, odd in enumerate(NAMES_THAT_ARE_OPTIONS):
        for others in ((), ("b.c", "plain.env")):
            folder = tmp_path / f"{count}-{len(others)}"
            folder.mkdir()
            (folder / "s.env").write_text("SECRETLY=one\nhello\n")
            for name in (odd, *others):
                (folder / name).write_text("hello\n")
            run_quietly(folder, "git init -q; git add -f -- ./*; git rm -q --cached s.env")
            for line in drawn.sample(understood, min(len(understood), examples(20))):
                if not others and line.startswith("git ls-files | xargs"):
                    continue  # a repository of nothing else
                assert "SECRETLY" not in run_quietly(folder, line), (line, odd)


def is_understood(line: str) -> bool:
    return isinstance(understand(line), Understood)


def run_quietly(folder: Path, line: str) -> str:
    """What a line prints, of errors too."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CEILING_DIRECTORIES": "/"}
    done = subprocess.run(
        ["timeout", "5", "bash", "-c", line], cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, env=environment,
    )  # fmt: skip
    return (done.stdout + done.stderr).decode(errors="replace")


PRINTERS = ("printf '../*'", "printf '../\\052'", "echo '../*'", "echo -e '../\\052'", "cat list", "head -1 list",
            "date '+../*'", "seq -s '../* ' 1 2", "ls -l --time-style='+../* '", "awk 'BEGIN{print \"../*\"}' list",
            "sed 's/x/y/' list", "grep . list", "grep -c . list", "grep -l . list", "stat -c '../*' list", "ls",
            "expr '../*'", "basename '../*'", "dirname '../*/x'", "ls | tr a /", "find .", "find . -printf '../*'",
            "wc -l list", "pwd", "echo a", "ls | head -2", "cat list | head -1", "tac list", "sort list", "jq -nr '\"../*\"'",
            "find . -name 'l*'", "echo $(cat list)", "git rev-parse '../*'", "cat <<< '../*'", "nl list")  # fmt: skip
PLACES = ("echo $({})", "x=$({}); echo $x", 'x="$({})"; echo $x', "for f in $({}); do echo \"$f\"; done",
          "{} | while read f; do echo $f; done", "printf '%s\\n' $({})", "basename $({})", "echo a$({})b",
          "echo \"$({})\"", 'x=$({}); echo "$x"', "{} | while read f; do echo \"$f\"; done",
          "for f in $({}); do x=$f; done", "echo $(echo $({}))", "while read f; do printf '%s' $f; done <<< \"$({})\"",
          "cat <(echo $({}))", "if true; then echo $({}); fi")  # fmt: skip


def test_no_line_that_is_understood_tells_what_lies_outside(tmp_path: Path) -> None:
    """A text that is put in place of words is looked through for wildcards, in place of which a
    shell puts names."""
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "OUTSIDE").write_text("")
    (folder / "list").write_text("../*\nab\n")
    understood = [
        line
        for place in PLACES
        for printer in PRINTERS
        if is_understood(line := place.replace("{}", printer))
    ]
    assert 60 < len(understood) < len(PLACES) * len(PRINTERS) - 60
    for line in random.Random(SEED).sample(understood, min(len(understood), examples(150))):
        assert "OUTSIDE" not in run_quietly(folder, line), line
