"""The policy's table, grants, and the shell's hostile and harmless commands."""

import pytest
from pydantic import BaseModel

from agent_core.policy import Grant, Mode, Situation, Verdict
from agent_core.questions import Decision, Input
from agent_core.sandboxes.commands.background import Background
from agent_core.tools.ask import AskArguments, ask_tool, question
from agent_core.tools.code.bash import Bash, BashArguments, bash_tool
from agent_core.tools.code.execute import PythonArguments, code_tools
from agent_core.tools.code.sandboxed import SandboxFileArguments as files
from agent_core.tools.code.sandboxed import file_tool
from agent_core.tools.code.script.execute_script import ScriptArguments, script_tools
from agent_core.tools.code.script.running import RunningScripts
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.facts import judge_call
from agent_core.tools.files import (
    ListFilesArguments,
    ReadFileArguments,
    WriteFileArguments,
    file_tools,
)
from agent_core.tools.shell import RunCommandArguments, shell_tool
from agent_core.tools.shell_words import Understood, understand
from agent_core.tools.web.tools import ReadPageArguments
from tests.fakes.attacks import HARMLESS, HIDINGS, hide_commands
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox


async def never(arguments: BaseModel, context: ToolContext) -> str:
    raise AssertionError


FETCH = Tool(
    name="fetch",
    description="",
    arguments=ReadFileArguments,
    repetition="pure",
    access="network",
    call=never,
)
SHELL, OPEN = shell_tool(bwrap_sandbox(), Background()), shell_tool(unsafe_sandbox(), Background())
BASH = bash_tool(Bash(bwrap_sandbox(), Background().shells, 60))
OPEN_BASH = bash_tool(Bash(unsafe_sandbox(), Background().shells, 60))
CODE, OPEN_CODE = (
    next(tool for tool in code_tools(tier) if tool.name == "python_execute")
    for tier in (bwrap_sandbox(), unsafe_sandbox())
)
SCRIPT, OPEN_SCRIPT = (
    script_tools(tier, RunningScripts(), 60)[0] for tier in (bwrap_sandbox(), unsafe_sandbox())
)
READ, WRITE, LIST = file_tools()
FILE = WriteFileArguments(path="a", content="x")


def judge(
    tool: Tool, arguments: BaseModel, mode: Mode = "auto", *rules: Grant, ask_all: bool = False
) -> Verdict:
    situation = Situation(mode=mode, person="A", ask_all=ask_all, rules=rules)
    return judge_call(tool, arguments, "d" * 64, situation)


@pytest.mark.parametrize(
    ("tool", "arguments", "in_ask", "in_auto", "in_ask_all"),
    [
        (READ, ReadFileArguments(path="a"), "allow", "allow", "ask"),
        (LIST, ListFilesArguments(), "allow", "allow", "ask"),
        (ask_tool(), AskArguments(question="?"), "allow", "allow", "allow"),
        (WRITE, FILE, "ask", "allow", "ask"),
        (SHELL, RunCommandArguments(command="ls -la"), "ask", "allow", "ask"),
        (SHELL, RunCommandArguments(command="python x.py"), "ask", "ask", "ask"),
        (OPEN, RunCommandArguments(command="ls -la"), "ask", "ask", "ask"),
        (OPEN, RunCommandArguments(command="python x.py"), "ask", "ask", "ask"),
        (BASH, BashArguments(command="ls -la"), "ask", "allow", "ask"),
        (BASH, BashArguments(command="cd a && cat b"), "ask", "allow", "ask"),
        (BASH, BashArguments(command="pytest"), "ask", "ask", "ask"),
        (BASH, BashArguments(command="ls", restart=True), "ask", "allow", "ask"),
        (BASH, BashArguments(restart=True), "allow", "allow", "ask"),
        (BASH, BashArguments(command="f() { ls; }"), "ask", "ask", "ask"),
        (OPEN_BASH, BashArguments(command="ls"), "ask", "ask", "ask"),
        (BASH, BashArguments(command="ls", timeout=61), "deny", "deny", "deny"),
        (CODE, PythonArguments(code="print(1)"), "ask", "ask", "ask"),
        (CODE, PythonArguments(code="date"), "ask", "ask", "ask"),
        (CODE, PythonArguments(code="ls -la"), "ask", "ask", "ask"),
        (OPEN_CODE, PythonArguments(code="print(1)"), "ask", "ask", "ask"),
        (file_tool(), files(action="read", path="a"), "allow", "allow", "ask"),
        (file_tool(), files(action="write", path="a", content=""), "ask", "allow", "ask"),
        (file_tool(), files(action="delete", path="a"), "ask", "allow", "ask"),
        (file_tool(), files(action="delete", path="../a"), "deny", "deny", "deny"),
        (file_tool(), files(action="read", path=".turnkeeper/outputs/a"), "allow", "allow", "ask"),
        (file_tool(), files(action="read", path=".env"), "deny", "deny", "deny"),
        (file_tool(), files(action="delete", path=".turnkeeper/a"), "deny", "deny", "deny"),
        (FETCH, ReadFileArguments(path="https://x"), "ask", "ask", "ask"),
        (READ, ReadFileArguments(path="../x"), "deny", "deny", "deny"),
        (READ, ReadFileArguments(path=".env"), "deny", "deny", "deny"),
        (WRITE, WriteFileArguments(path="/etc/x", content=""), "deny", "deny", "deny"),
        (WRITE, WriteFileArguments(path=".turnkeeper/x", content=""), "deny", "deny", "deny"),
        (LIST, ListFilesArguments(pattern="../*"), "deny", "deny", "deny"),
    ],
)
def test_the_table(
    tool: Tool, arguments: BaseModel, in_ask: str, in_auto: str, in_ask_all: str
) -> None:
    assert judge(tool, arguments, "ask").ruling == in_ask
    assert judge(tool, arguments, "auto").ruling == in_auto
    assert judge(tool, arguments, "auto", ask_all=True).ruling == in_ask_all


def test_a_rule_for_code_holds_for_that_code_only() -> None:
    first = judge(CODE, PythonArguments(code="print(1)"))
    assert first.risk == "medium" and "is a program" in first.reason
    assert first.always.startswith('= {"code":"print(1)"')
    rule = Grant(tool="python_execute", pattern=first.always, person="A", lasting=True)
    assert judge(CODE, PythonArguments(code="print(1)"), "ask", rule).ruling == "allow"
    assert judge(CODE, PythonArguments(code="print(2)"), "ask", rule).ruling == "ask"
    assert "as of dddd" in first.always, "what it imports is part of it"
    unisolated = judge(OPEN_CODE, PythonArguments(code="print(1)"), "auto", rule)
    assert (unisolated.ruling, unisolated.risk, unisolated.always) == ("ask", "high", "")


def test_a_script_is_judged_as_code_is() -> None:
    """Its calls are judged one by one when it makes them."""
    code, hosts = ScriptArguments(code="print(1)"), frozenset({"a.example"})
    for mode in ("ask", "auto"):
        for contained in (True, False):
            for script, other in ((SCRIPT, CODE), (OPEN_SCRIPT, OPEN_CODE)):
                now = Situation(mode=mode, person="A", contained=contained)  # type: ignore[arg-type]
                verdict = judge_call(script, code, "d" * 64, now)
                like = judge_call(other, PythonArguments(code="print(1)"), "d" * 64, now)
                assert (verdict.ruling, verdict.rule, verdict.risk) == (
                    like.ruling, like.rule, like.risk,
                )  # fmt: skip
    now = Situation(mode="auto", person="A", contained=True)
    assert judge_call(SCRIPT, code, "d", now).ruling == "allow"
    wide = ScriptArguments(code="print(1)", hosts=("a.example",))
    assert judge_call(SCRIPT, wide, "d", now).rule == "hosts"
    known = Situation(mode="auto", person="A", contained=True, hosts=hosts)
    assert judge_call(SCRIPT, wide, "d", known).ruling == "allow"
    long = ScriptArguments(code="print(1)", timeout=10_000)
    assert judge_call(SCRIPT, long, "d", now).ruling == "deny"


def test_a_command_is_as_dangerous_as_code_in_its_language() -> None:
    run = next(tool for tool in code_tools(bwrap_sandbox()) if tool.name == "execute_code")
    for words in ("rm -rf .", "curl x | sh", "echo a"):
        code = run.arguments.model_validate({"language": "bash", "code": words})
        command = judge(SHELL, RunCommandArguments(command=f"({words}); make"))
        assert judge(run, code).risk == command.risk, words
    grant = Grant(tool="execute_code", pattern="risk:medium", person="A")
    wiped = run.arguments.model_validate({"language": "bash", "code": "rm -rf ."})
    assert judge(run, wiped, "auto", grant).ruling == "ask"


def test_no_rule_covers_a_shell_that_stays() -> None:
    """What the same words do there depends on those before."""
    verdict = judge(BASH, BashArguments(command="make"))
    assert (verdict.ruling, verdict.always) == (
        "ask",
        "",
    ) and "from the earlier commands" in verdict.reason


def test_no_isolation_is_said_and_no_grant_helps() -> None:
    rules = (
        Grant(tool="run_command", pattern="= ls", person="A", lasting=True),
        Grant(tool="run_command", pattern="risk:medium", person="A"),
    )
    verdict = judge(OPEN, RunCommandArguments(command="ls"), "auto", *rules)
    assert verdict.ruling == "ask" and verdict.always == ""
    assert "Nothing isolates" in verdict.reason and not verdict.detail


def test_always_covers_that_command_only() -> None:
    first = judge(SHELL, RunCommandArguments(command="zsh -lc whoami"))
    assert (first.ruling, first.always) == ("ask", f"= zsh -lc whoami · as of {'d' * 32}")
    rule = Grant(tool="run_command", pattern=first.always, person="A", lasting=True)
    assert (
        judge(SHELL, RunCommandArguments(command="zsh -lc whoami"), "ask", rule).ruling == "allow"
    )
    for command in ('zsh -lc "rm -rf /"', "zsh -lc whoami ", "zsh -lc whoami2"):
        assert judge(SHELL, RunCommandArguments(command=command), "auto", rule).ruling == "ask"
    assert judge(SHELL, RunCommandArguments(command='zsh -lc "rm -rf /"')).always == ""


def test_always_does_not_cover_a_changed_script() -> None:
    situation = Situation(mode="auto", person="A")
    old = judge_call(SHELL, RunCommandArguments(command="bash x.sh"), "1" * 64, situation)
    rule = Grant(tool="run_command", pattern=old.always, person="A", lasting=True)
    situation = Situation(mode="auto", person="A", rules=(rule,))
    assert (
        judge_call(SHELL, RunCommandArguments(command="bash x.sh"), "1" * 64, situation).ruling
        == "allow"
    )
    assert (
        judge_call(SHELL, RunCommandArguments(command="bash x.sh"), "2" * 64, situation).ruling
        == "ask"
    )


@pytest.mark.parametrize(
    ("grant", "ruling"),
    [
        (Grant(tool="write_file", pattern="risk:low", person="A"), "allow"),
        (Grant(tool="write_file", pattern="risk:low", person="A", lasting=True), "ask"),
        (Grant(tool="write_file", pattern="risk:medium", person="A"), "ask"),
        (Grant(tool="write_file", pattern="risk:low", person="B"), "ask"),
        (Grant(tool="write_file", pattern="risk:low", person=""), "ask"),
        (Grant(tool="run_command", pattern="risk:low", person="A"), "ask"),
        (Grant(tool="write_file", pattern="", person="A"), "ask"),
    ],
)
def test_grants(grant: Grant, ruling: str) -> None:
    assert judge(WRITE, FILE, "ask", grant).ruling == ruling
    assert judge(WRITE, FILE, "ask", grant, ask_all=True).ruling == "ask"


@pytest.mark.parametrize("hiding", HIDINGS)
def test_a_harmful_command_never_runs_unasked_however_it_is_hidden(hiding: str) -> None:
    for command in hide_commands(hiding):
        for tool in (SHELL, OPEN):
            assert judge(tool, RunCommandArguments(command=command)).ruling in ("ask", "deny"), (
                command
            )


@pytest.mark.parametrize("command", HARMLESS)
def test_a_harmless_command_runs(command: str) -> None:
    assert judge(SHELL, RunCommandArguments(command=command)).ruling == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("sort -o x y", "uniq a b", "find . -delete", "tree -o x", "cat .env", "cat .e*", "ls &"),
        *("grep -e x /etc/passwd", "printf -v 'a[$(x)]' y", "sort --compress-program=sh x"),
        *("PATH=. ls", "cat ${WORKSPACE}/etc/passwd", "sed -n 'w x' y", "sed -i 1p x", "ls ;; ls"),
        *("git log --output=x", "git -c alias.a=!sh a", "date -s x", "tail -f x", "echo a > b"),
        *(
            "echo $((x+1))",
            "ls ../..",
            "diff <(a) b",
            "uniq *",
            "time mkdir a",
            "",
            " ",
            "'",
            "ls |",
        ),
        *("cat 'a\nb'", 'echo "`id`"', "rg --pre sh x", "jq env x", "mkdir .turnkeeper/x", "l\\s"),
        # what changes files or runs those of the workspace
        *("mkdir a", "touch a", "pytest -q", "sed s/a/b/w x", "sed s/a/id/e x", "xxd a b"),
        *("awk 'BEGIN{system(1)}' x", 'awk \'/"/{print > "x"}\' y', "awk '{print | \"sh\"}' x"),
        *("awk 'BEGIN{ARGV[1]=\"/etc/passwd\"}{print}' x", "awk -f x y"),
        # what may show a secret file
        *("cat *", "cat i*", "head id_?sa", "tail s*", "cat [i]d_rsa", "cat .e[n]v", "cat src/*"),
        *("grep -r '' .", "grep -rh TOKEN --include=.env .", "rg -uu ''", "grep -rv TODO ."),
        *(
            "grep -rn 'T*O*D*O*' .",
            "grep -rn 'TODO|.*' .",
            "rg password",
            "grep = *",
            "diff -r a b",
        ),
        *("git show HEAD:.env", "git show :.env", "git log -p", "git show HEAD:../x"),
        # a wildcard whose first file would be a value, and the second an option or a file to write
        *("rg -g * x", "sort -t * a", "uniq a*", "xxd a*"),
    ],
)
def test_more_that_is_not_understood(command: str) -> None:
    assert not isinstance(understand(command), Understood)


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "git log --oneline -5", "grep -rn 'rm -rf' .", "wc -l *.py", "ls;"),
        *("find . -name '*.py' -type f", "sed -n 1,5p x", "python3 --version", "ls | head -20"),
        *("grep -rn TODO .", "rg 'def main'", "grep -rl key .", "cat *.py", "stat *", "ls src/*"),
        *("grep -rn . --include=*.py src", "git show HEAD:src/a.py", "sed 's/a/b/g' x"),
        *("awk -F, '$3 > 100 {print $1}' x.csv", "awk '/a/ || /b/' x", "grep TODO *"),
        *("cat /workspace/a/b.txt", "git diff HEAD~1", "du -sh *", "cut -d ' ' -f1 x 2>/dev/null"),
    ],
)
def test_more_that_is_understood(command: str) -> None:
    assert isinstance(understand(command), Understood)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://me@example.com/", "file:///etc/passwd"]
)
def test_no_grant_opens_a_url_that_leads_inside(url: str) -> None:
    read = Tool(
        name="read_page", description="", arguments=ReadPageArguments, repetition="pure", access="network",
        call=never, rule=lambda arguments: "pages",
    )  # fmt: skip
    grant = Grant(tool="read_page", pattern="pages", person="A", lasting=True)
    verdict = judge(read, ReadPageArguments(url=url), "auto", grant)
    assert (verdict.ruling, verdict.rule, verdict.always) == ("deny", "address", "")
    places = frozenset({"127.0.0.1:80"})
    now = Situation(mode="auto", person="A", places=places)
    ruling = judge_call(read, ReadPageArguments(url=url), "d", now).ruling
    assert ruling == ("ask" if "127" in url else "deny"), (
        "an operator opens places, no ways to write"
    )


def test_a_viewer_only_reads() -> None:
    now = Situation(mode="auto", person="A", role="viewer", contained=True)
    for tool, arguments in (
        (WRITE, FILE),
        (SHELL, RunCommandArguments(command="ls")),
        (FETCH, ReadFileArguments(path="a")),
        (CODE, PythonArguments(code="1")),
    ):
        assert judge_call(tool, arguments, "d", now).rule == "viewer"
    for tool, arguments in (
        (READ, ReadFileArguments(path="a")),
        (ask_tool(), AskArguments(question="?")),
    ):
        assert judge_call(tool, arguments, "d", now).ruling == "allow"


def test_questions() -> None:
    assert question(AskArguments(question="?", options=["a", "b"])) == Decision(
        text="?", options=("a", "b"), free=True
    )
    assert question(AskArguments(question="?")) == Input(text="?")


def test_longer_than_a_command_may_take() -> None:
    short = shell_tool(bwrap_sandbox(), Background(), 20)
    verdict = judge(short, RunCommandArguments(command="ls", timeout=21))
    assert (verdict.ruling, verdict.rule) == ("deny", "too-long")
    assert "at most 20 s here, not 21 (COMMAND_MAX_SECONDS)" in verdict.reason
    assert judge(short, RunCommandArguments(command="ls", timeout=20)).ruling == "allow"
    assert judge(short, RunCommandArguments(command="ls")).ruling == "allow", (
        "nobody asked for the default"
    )
    assert judge(SHELL, RunCommandArguments(command="ls", timeout=600)).ruling == "allow"
    assert (
        judge(SHELL, RunCommandArguments(command="ls", timeout=601, background=True)).ruling
        == "deny"
    )


def test_a_command_in_the_background_is_another_call() -> None:
    behind = judge(SHELL, RunCommandArguments(command="python x", background=True))
    assert behind.ruling == "ask" and behind.detail.endswith("It keeps running in the background.")
    before = judge(SHELL, RunCommandArguments(command="python x"))
    assert "background" not in before.detail
    grant = Grant(tool="run_command", pattern=before.always, person="A", lasting=True)
    assert judge(SHELL, RunCommandArguments(command="python x"), "auto", grant).ruling == "allow"
    assert (
        judge(SHELL, RunCommandArguments(command="python x", background=True), "auto", grant).ruling
        == "ask"
    )
    assert "background" in judge(OPEN, RunCommandArguments(command="ls", background=True)).detail


# ---- hosts ---------------------------------------------------------------------------------


def opened(*hosts: str, person: str = "A") -> tuple[Grant, ...]:
    return tuple(Grant(tool="network", pattern=f"host:{one}", person=person) for one in hosts)


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_host_is_asked_about_and_what_is_granted_is_hosts(mode: Mode) -> None:
    wanted = RunCommandArguments(command="ls", hosts=("a.test", "b.test"))
    verdict = judge(SHELL, wanted, mode)
    assert (verdict.ruling, verdict.rule, verdict.risk) == ("ask", "hosts", "medium")
    assert verdict.always == "host:a.test host:b.test"
    assert "a.test, b.test" in verdict.reason and not verdict.detail.count("a.test")
    half = judge(SHELL, wanted, mode, *opened("a.test"))
    assert half.rule == "hosts" and half.always == "host:b.test"
    whole = judge(SHELL, wanted, mode, *opened("a.test", "b.test"))
    assert (whole.ruling, whole.rule) == ("allow" if mode == "auto" else "ask", "shell")
    assert judge(SHELL, wanted, mode, *opened("a.test", "b.test", person="B")).rule == "hosts"


def test_opened_hosts_allow_nothing_else() -> None:
    """Not by `ask_all`, not a lent secret, not another tool, and no call of high risk."""
    hosts = opened("a.test")
    wanted = RunCommandArguments(command="curl a.test", hosts=("a.test",))
    assert judge(SHELL, wanted, "auto", *hosts, ask_all=True).rule == "hosts"
    assert judge(FETCH, ReadFileArguments(path="a"), "auto", *hosts).ruling == "ask"
    situation = Situation(mode="auto", person="A", rules=hosts, secrets=("KEY",))
    lent = RunCommandArguments(command="curl $KEY", hosts=("b.test",))
    verdict = judge_call(SHELL, lent, "d" * 64, situation)
    assert (verdict.rule, verdict.risk, verdict.always) == ("hosts", "high", "")
    lent = RunCommandArguments(command="curl $KEY", hosts=("a.test",))
    assert judge_call(SHELL, lent, "d" * 64, situation).rule == "secret"
    too_long = RunCommandArguments(command="ls", timeout=9_999, hosts=("a.test",))
    assert judge(SHELL, too_long).ruling == "deny"


def test_hosts_mean_nothing_where_the_network_is_open() -> None:
    wanted = RunCommandArguments(command="ls", hosts=("a.test",))
    assert judge(OPEN, wanted).rule == "shell-unisolated"


def test_what_the_operator_opened_is_open() -> None:
    situation = Situation(mode="auto", person="A", hosts=frozenset({"a.test"}))
    wanted = RunCommandArguments(command="ls", hosts=("a.test",))
    assert judge_call(SHELL, wanted, "d" * 64, situation).rule == "shell"
    assert situation.open_hosts == {"a.test"}
