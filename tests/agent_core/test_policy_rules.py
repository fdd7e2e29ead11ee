"""The operator's rules: what they cover, which is stronger, and what they never widen."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.config.declaration import SettingsError
from agent_core.policy import Grant, Mode, Situation, Verdict
from agent_core.policy_file import parse_rules
from agent_core.policy_rules import Hours, match_stars
from agent_core.policy_words import describe_rule
from agent_core.tools.contract import Tool
from agent_core.tools.facts import judge_call
from agent_core.tools.shell_words import (
    NotUnderstood,
    Understood,
    runs_no_file,
    split_plainly,
    understand,
)
from tests.agent_core.policy_rig import FETCH, WRITING, make_shell, read_rule
from tests.attacks.case_lists import read_cases
from tests.sampling import dice, examples

NOON = 1_767_960_000.0
"""2026-01-09 12:00 UTC, a Friday."""
SHELL, OPEN = make_shell(isolated=True), make_shell(isolated=False)


def judge(
    tool: Tool,
    rules: str,
    mode: Mode = "ask",
    situation: Situation | None = None,
    **arguments: object,
) -> Verdict:
    now = situation or Situation(mode=mode, person="A", now=NOON)
    from msgspec.structs import replace

    ruled = replace(now, operator=parse_rules(rules, "policy.toml"))
    return judge_call(tool, tool.arguments.model_validate(arguments), "d" * 64, ruled)


@pytest.mark.parametrize(
    ("command", "ruling"),
    [
        ("npm test", "allow"),
        ("npm test --watch", "allow"),
        ("npm test && npm test", "allow"),
        ("npm install", "ask"),
        ("npm test; make", "ask"),
        ("npm test > out", "ask"),
        ("npm test $(id)", "ask"),
        ("npm test /etc/passwd", "ask"),
        ("npm test --env=.env", "ask"),
        ("npm test ../x", "ask"),
        ("X=1 npm test", "ask"),
        ("npm te*", "ask"),
    ],
)
def test_an_allow_covers_plain_commands_that_begin_so(command: str, ruling: str) -> None:
    verdict = judge(SHELL, read_rule("allow", command="npm test"), command=command)
    assert verdict.ruling == ruling, command
    if ruling == "allow":
        assert verdict.rule == "operator:it"


@pytest.mark.parametrize("folder", ["./", "bin/", "b.d/../", "npm/", "n/npm/"])
@pytest.mark.parametrize("allowed", ["npm test", "npm *", "np* test", "n*"])
def test_an_allow_of_a_program_covers_no_file_of_its_name(folder: str, allowed: str) -> None:
    """An agent can write such a file before it runs it."""
    rule = read_rule("allow", command=allowed)
    for line in ("{}npm test", "npm test && {}npm test", "{}npm test; npm test"):
        assert judge(SHELL, rule, "auto", command=line.format(folder)).ruling == "ask", line
    rule = read_rule("allow", command=f"{folder}npm test")
    if ".." not in folder:
        assert judge(SHELL, rule, "auto", command=f"{folder}npm test").ruling == "allow"
    anything = read_rule("allow", command="*")
    assert judge(SHELL, anything, "auto", command="bin/npm test").ruling == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push origin",
        "ls; git push",
        "sh -c 'git push'",
        "/usr/bin/git push",
        "x $(git push)",
        "git -C . push",
        "git --no-pager push",
        "git -c a=b -C . push",
        "g'i't push",
        "git pu\\sh",
        "git \\\n push",
        "git${IFS}push",
        "sh -c \"gi''t push\"",
        "$'git' push",
    ],
)
def test_a_deny_covers_a_command_wherever_it_stands(command: str) -> None:
    contained = Situation(mode="auto", person="A", contained=True)
    verdict = judge(
        SHELL, read_rule("deny", command="git push"), situation=contained, command=command
    )
    assert (verdict.ruling, verdict.rule) == ("deny", "operator:it")
    assert (
        judge(
            SHELL, read_rule("deny", command="git push"), situation=contained, command="git pull"
        ).ruling
        == "allow"
    )


@pytest.mark.parametrize("command", ["git log --grep push", "git -C . pull", "git stash push", "git commit -m 'push it'", "npm run push"])  # fmt: skip
def test_a_deny_covers_no_other_command(command: str) -> None:
    contained = Situation(mode="auto", person="A", contained=True)
    rule = read_rule("deny", command="git push")
    assert judge(SHELL, rule, situation=contained, command=command).ruling == "allow"


BETWEEN = (";", "&&", "||", "|", "&", "\n", "\r", "\x0b", "$(", "`", ">", "<(", "\u2028", "\u00a0&& ",
           "；", "＆＆ ", "\u200b; ", "#\n", "\\\n;", "-- ;", "{", "};")  # fmt: skip
ALLOWED = ("npm test", "git status", "ls", "echo", "make *")


def test_an_allow_lets_nothing_else_run_behind_it() -> None:
    """Whatever is put between, what the rule allows takes along no other command."""
    hostile = read_cases("shell_hostile")
    for n in range(examples(3_000)):
        chance = dice("allow", n)
        allowed, command = chance.choice(ALLOWED), chance.choice(hostile)
        if command.split()[:1] == allowed.split()[:1]:
            continue  # of a command that is allowed whole, the operator allowed this too
        line = f"{allowed.replace('*', 'x')} {chance.choice(BETWEEN)} {command}"
        verdict = judge(SHELL, read_rule("allow", command=allowed), "auto", command=line)
        plain = verdict.ruling == "allow" and all(
            part[: len(allowed.split()) - 1] == tuple(allowed.split()[:-1])
            and (allowed.endswith("*") or part[: len(allowed.split())] == tuple(allowed.split()))
            for part in split_plainly(line)
        )
        assert not verdict.rule.startswith("operator:") or plain, line


@pytest.mark.parametrize("before", ["export foo=x; ", "export npm_config_script_shell=./x\n", "f() { export foo=x; }; f; ", "if ls; then export foo=x; fi; "])  # fmt: skip
def test_an_allow_holds_for_no_command_with_other_variables(before: str) -> None:
    line = f"{before}npm test"
    assert (
        judge(SHELL, read_rule("allow", command="npm test"), "auto", command=line).ruling == "ask"
    )


@pytest.mark.parametrize("name", ["npm_config_userconfig", "npm_config_node_options", "pip_x"])
def test_no_program_is_given_settings_by_small_letters(name: str) -> None:
    assert isinstance(understand(f"export {name}=x; npm --version"), NotUnderstood)
    assert isinstance(understand("export name=x; npm --version"), Understood)


@pytest.mark.parametrize("place", [".git/hooks/x", ".envrc", "~/.bashrc"])
@pytest.mark.parametrize("line", ["f() {{ echo hi; }}; f > {}", "f() {{ echo hi > {}; }}; f"])
def test_what_a_function_writes_is_written(line: str, place: str) -> None:
    assert not runs_no_file(line.format(place))


def test_nothing_widens_what_is_denied_for_good() -> None:
    allow = read_rule("allow", tool="*")
    for tool, arguments in (
        (WRITING, {"path": "../x", "content": ""}),
        (WRITING, {"path": ".env", "content": ""}),
        (WRITING, {"path": ".turnkeeper/x", "content": ""}),
        (FETCH, {"url": "http://127.0.0.1/"}),
        (SHELL, {"command": "ls", "timeout": 9_999}),
    ):
        assert judge(tool, allow, "auto", **arguments).ruling == "deny", arguments
    viewer = Situation(mode="auto", person="A", role="viewer")
    assert judge(WRITING, allow, situation=viewer, path="a", content="").ruling == "deny"
    lends = Situation(mode="auto", person="A", secrets=("KEY",))
    assert judge(SHELL, allow, situation=lends, command="echo $KEY").rule == "secret"
    for command in ("cat .env", "cat a/id_rsa"):
        for rule in (allow, read_rule("allow", command="cat")):
            assert judge(SHELL, rule, "auto", command=command).rule == "secret-file"
    everything = Situation(mode="auto", person="A", ask_all=True)
    assert judge(WRITING, allow, situation=everything, path="a", content="").ruling == "ask"


def test_deny_is_stronger_than_ask_than_allow() -> None:
    rules = "".join(
        read_rule(effect, name=effect, path=path)
        for effect, path in (("allow", "**"), ("ask", "docs/**"), ("deny", "docs/law/**"))
    )
    said = {
        path: judge(WRITING, rules, path=path, content="").rule
        for path in ("a", "docs/a", "docs/law/a", "/workspace/docs//law/./b")
    }
    assert list(said.values()) == [
        "operator:allow",
        "operator:ask",
        "operator:deny",
        "operator:deny",
    ]


def test_what_an_operator_asks_no_grant_answers() -> None:
    grant = Grant(tool="write_file", pattern="risk:low", person="A")
    now = Situation(mode="ask", person="A", rules=(grant,))
    assert judge(WRITING, "", situation=now, path="a", content="").ruling == "allow"
    verdict = judge(WRITING, read_rule("ask", tool="write_*"), situation=now, path="a", content="")
    assert (verdict.ruling, verdict.always) == ("ask", "")


def test_hosts_are_opened_and_closed() -> None:
    allow = read_rule("allow", tool="run_command", host="*.example.com")
    wide = {"command": "ls", "hosts": ["a.example.com", "b.test"]}
    assert judge(SHELL, allow, "auto", **wide).always == "host:b.test"
    assert judge(SHELL, allow, "auto", command="ls", hosts=["a.example.com"]).ruling == "allow"
    assert (
        judge(
            FETCH, read_rule("allow", host="docs.example.com"), url="https://docs.example.com/x"
        ).ruling
        == "allow"
    )
    assert (
        judge(
            FETCH,
            read_rule("allow", host="docs.example.com"),
            url="https://evil.example/docs.example.com",
        ).ruling
        == "ask"
    )
    assert (
        judge(FETCH, read_rule("deny", host="*.example"), url="https://evil.example/").ruling
        == "deny"
    )


@pytest.mark.parametrize(
    "command",
    [
        "curl https://x.example/a", "curl -s 'https://x.exam'ple:8443/", "wget --url=http://u:p@X.Example./",
        "git clone git@x.example:a/b", "ssh x.example", "nc x.example 80", "rsync a x.example:b", "ping -c 1 x.example",
        "H=x.example; curl https://$H/", "sh -c 'curl http://x.example'", "dig @9.9.9.9 x.example",
    ],
)  # fmt: skip
def test_a_denied_host_is_denied_in_the_words_of_commands(command: str) -> None:
    deny = read_rule("deny", host="x.example")
    assert judge(OPEN, deny, "auto", command=command).rule == "operator:it", command
    assert judge(OPEN, read_rule("deny", host="y.example"), "auto", command=command).rule != (
        "operator:it"
    )


def test_a_file_is_no_host_of_a_rule_for_all() -> None:
    deny = read_rule("deny", host="*")
    assert judge(SHELL, deny, "auto", command="cat a.txt notes.md").ruling == "allow"
    assert judge(SHELL, deny, "auto", command="curl https://a.example").ruling == "deny"
    allow = read_rule("allow", host="x.example")
    assert judge(OPEN, allow, "auto", command="curl https://x.example").ruling == "ask"


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("x.example.", "https://x.example/"), ("m\u00fcnchen.de", "https://xn--mnchen-3ya.de/"),
        ("*.M\u00fcnchen.de", "https://a.m\u00fcnchen.de/"), ("[2606:4700::1]", "https://[2606:4700:0::1]/"),
        ("2606:4700::1", "https://[2606:4700::1]:8443/"),
    ],
)  # fmt: skip
def test_a_host_may_be_written_as_people_write_it(written: str, url: str) -> None:
    assert judge(FETCH, read_rule("deny", host=written), url=url).rule == "operator:it"


def test_roles_conversations_and_hours() -> None:
    rules = read_rule(
        "deny",
        tool="*",
        role="user",
        conversation="telegram:-100*",
        time="18:00-08:00",
        days=["fri"],
    )
    base = {"mode": "auto", "person": "A", "role": "user", "conversation": "telegram:-1005"}

    def ruling(hour: float, **other: object) -> str:
        situation = Situation(**{**base, "now": NOON + hour * 3_600, **other})
        return judge(WRITING, rules, situation=situation, path="a", content="").ruling

    assert [ruling(hour) for hour in (0, 5.9, 6, 11, 12, 19.9, 20, 30)] == [
        "allow", "allow", "deny", "deny", "deny", "deny", "allow", "allow",
    ]  # fmt: skip
    assert ruling(7, role="admin") == ruling(7, conversation="telegram:5") == "allow"


def test_an_hour_is_one_of_its_zone() -> None:
    (rule,) = parse_rules(
        read_rule("deny", tool="*", time="12:00-13:00", zone="Europe/Berlin"), "f"
    )
    assert isinstance(rule.hours, Hours)
    assert rule.hours.hold(NOON - 1_800) and not rule.hours.hold(NOON + 60)


@pytest.mark.parametrize(
    ("text", "line", "shown", "mend"),
    [
        ('\n[[rule]]\nname = "a"\neffect = "alow"\n', 4, "alow", "allow, ask or deny"),
        ('[[rule]]\nname = "A B"\neffect = "ask"', 2, "A B", "small letters"),
        ('[[rule]]\neffect = "ask"', 1, "", "small letters"),
        ('[[rule]]\nname = "a"\neffect = "allow"', 3, "allow", "would allow everything"),
        ('[[rule]]\nname = "a"\neffect = "ask"\ntools = "x"', 4, "x", "did you mean tool"),
        ('[[rule]]\nname = "a"\neffect = "ask"\npath = "../x"', 4, "../x", "workspace's folder"),
        ('[[rule]]\nname = "a"\neffect = "ask"\npath = "' + "*a" * 30 + '"', 4, "*a", "stars"),
        ('[[rule]]\nname = "a"\neffect = "ask"\nrole = ["boss"]', 4, "boss", "admin, user, viewer"),
        ('[[rule]]\nname = "a"\neffect = "ask"\ntime = "8-9"', 4, "8-9", "18:00-08:00"),
        ('[[rule]]\nname = "a"\neffect = "ask"\ntime = "25:00-26:00"', 4, "25:00", "18:00-08:00"),
        ('[[rule]]\nname = "a"\neffect = "ask"\nzone = "Mars"', 4, "Mars", "Europe/Berlin"),
        ('[[rule]]\nname = "a"\neffect = "ask"\ndays = ["funday"]', 4, "funday", "mon, tue"),
        ('[[rule]]\nname = "a"\neffect = "ask"\ntool = 5', 4, "5", "list of texts"),
        ('[[rule]]\nname = "a"\neffect = "ask"\ntool = []', 4, "[]", "at least one"),
        ('[[rule]]\nname = "a"\neffect = "ask"\n\n[[rule]]\nname = "a"\neffect = "ask"', 6, "a", "this name"),
        ('[[rule]]\nname = "a"\neffect = "deny"\nhost = "http://x.example"', 4, "http://x.example", "a host alone"),
        ('[[rule]]\nname = "a"\neffect = "deny"\nhost = ["a.example", "x.example:443"]', 4, "x.example:443", "a host alone"),
        ('[[rule]]\nname = "a"\neffect = "deny"\nhost = "x.example/y"', 4, "x.example/y", "a host alone"),
        ('[[rule]]\nname = "a"\neffect = "deny"\nhost = "\u00fc*.example"', 4, "\u00fc*", "no name of a host"),
        ('[[rule]]\nname = "a"\neffect = "deny"\ncommand = "git push; rm"', 4, "git push; rm", "one command"),
        ('[[rule]]\nname = "a"\neffect = "deny"\nconversation = "Team"', 4, "Team", "as /secret shows it"),
        ('[[rule]]\nname = "a"\neffect = ask', 3, "effect = ask", "no TOML"),
        ('x = 1\n', 1, "x", "[[rule]]"),
        ('[rule]\nname = "a"', None, "rule", "[[rule]]"),
        ("x = " + "[" * 5_000, 1, "x = [", "no TOML"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told_with_its_line(
    text: str, line: int | None, shown: str, mend: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_rules(text, "/data/policy.toml")
    said = str(caught.value)
    assert said.startswith("/data/policy.toml") and mend in said and shown in said, said
    if line is not None:
        assert f"line {line}" in said, said


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for one in (text, f'[[rule]]\nname = "a"\n{text}'):
        try:
            parse_rules(one, "f")
        except SettingsError as error:
            assert str(error).startswith("f")


@given(st.text(alphabet="ab*", max_size=12), st.text(alphabet="ab", max_size=12))
def test_stars_match_as_fnmatch_does(pattern: str, text: str) -> None:
    from fnmatch import fnmatchcase

    assert match_stars(pattern, text) == fnmatchcase(text, pattern)


def test_the_hardest_patterns_take_no_time() -> None:
    rules = "".join(
        read_rule(
            "deny",
            name=f"n{n}",
            tool="*a*a*a*a*a*a*a*b",
            command="*a*a*a*a*a*a*a*b",
            path="**/*a*a*a*b",
        )
        for n in range(20)
    )
    words, long = " ".join(["a" * 500] * 190), "a/" * 200 + "a" * 120
    began = time.process_time()
    judge(SHELL, rules, command=words)
    judge(WRITING, rules, path=long, content="")
    assert time.process_time() - began < 2


def test_a_rule_in_words() -> None:
    (rule,) = parse_rules(
        read_rule("deny", command="git push", role="user", reason="Releases."), "f"
    )
    assert describe_rule(rule) == "deny, by the operator: command git push, role user. Releases."


WRITES = {
    "cp": "cp a {}|cp a b {}|cp -t {} a|cp -t{} a|cp --target-directory={} a|cp -r {} .",
    "mv": "mv a {}|mv -f a {}|mv {} a",
    "tee": "tee {}|tee -a {}|tee x {}",
    "sort": "sort -o {} x|sort -o{} x|sort --output={} x",
    "dd": "dd if=x of={}|dd of={} if=x",
    "install": "install -m755 x {}|install -D x {}",
    "rsync": "rsync -a x {}|rsync -a {} .",
    "ln": "ln -s x {}|ln -sf x {}",
    "touch": "touch {}",
    "sed -i": "sed -i s/a/b/ {}",
    "tar": "tar xf a.tar -C {}|tar cf {} x",
    "unzip": "unzip a.zip -d {}",
    "git mv": "git mv a {}",
    "git checkout": "git checkout main -- {}",
}
OBEYED = (".git/hooks/pre-commit", ".git/config", "sub/.git", ".bashrc", "home/.zshrc", ".vimrc",
          ".vscode/tasks.json", ".husky/pre-push", "AGENTS.md", "x/.claude/settings.json")  # fmt: skip


@pytest.mark.parametrize("allowed", WRITES)
def test_an_allow_writes_no_settings_that_programs_obey(allowed: str) -> None:
    for line in WRITES[allowed].split("|"):
        for place in OBEYED:
            verdict = judge(SHELL, read_rule("allow", command=allowed), command=line.format(place))
            assert not verdict.rule.startswith("operator:"), line.format(place)
        plain = judge(SHELL, read_rule("allow", command=allowed), command=line.format("docs/b"))
        assert plain.rule == "operator:it", line.format("docs/b")


@pytest.mark.parametrize("line", ["cat .bashrc", "git add .gitmodules", "diff .vimrc a", "ls .git"])
def test_an_allow_reads_settings(line: str) -> None:
    rule = read_rule("allow", command=" ".join(line.split()[: 2 if line[:3] == "git" else 1]))
    assert judge(SHELL, rule, command=line).rule == "operator:it"


STARTS = """
kubectl exec pod -- sh|kubectl -n a exec pod -- sh|kubectl run x --image=y -- sh|kubectl debug node/x
kubectl cp a b:c|kubectl --context=a delete pod x|oc rsh pod
ip netns exec a sh|ip netns e a sh|ip vrf exec a sh|ip -batch x|ip -b x
docker run alpine sh|docker exec a sh|docker container run a|docker compose exec a sh|docker -H x ps
docker build .|podman run a|nerdctl exec a sh
sqlite3 a.db '.shell id'|sqlite3 a.db '.sh id'|sqlite3 a.db '.system id'|sqlite3 -cmd '.shell id' a.db
sqlite3 -init x a.db|sqlite3 a.db '.once |sh'|sqlite3 a.db '.read x'
sqlite3 a.db "select load_extension('x')"|sqlite3 a.db "select WRITEFILE ('.bashrc', 'x')"
find . -exec sh x|find . -execdir sh x|find . -ok sh x|find . -delete|find . -fprintf a x
xargs sh|xargs -n1 rm|awk 'BEGIN{system("id")}'|awk '{print | "sh"}' x|awk -f x y
git -c core.pager=x log|git -c alias.x=!id x|git config core.hooksPath x|git bisect run sh
mysql -e 'system id'|uv run id|npm exec x|poetry run id|npx x|systemd-run id|bwrap sh|entr sh
""".replace("\n", "|")


@pytest.mark.parametrize("line", [one for one in STARTS.split("|") if one])
def test_an_allow_of_a_program_starts_no_other(line: str) -> None:
    verdict = judge(SHELL, read_rule("allow", command=line.split()[0]), command=line)
    assert not verdict.rule.startswith("operator:"), line


@pytest.mark.parametrize(
    ("allowed", "line"),
    [
        ("kubectl", "kubectl -n a get pods"),
        ("kubectl exec", "kubectl exec pod -- ls"),
        ("docker", "docker ps"),
        ("docker run", "docker run alpine ls"),
        ("docker compose", "docker compose up"),
        ("docker compose exec", "docker compose exec web ls"),
        ("ip", "ip -br addr"),
        ("sqlite3", "sqlite3 a.db 'select 1'"),
        ("sqlite3", "sqlite3 a.db .tables"),
        ("find", "find . -name x"),
        ("awk", "awk '{print $1}' x"),
        ("git config", "git config user.name x"),
        ("git config", "git config --get core.pager"),
        ("npm", "npm test"),
        ("uv run", "uv run pytest"),
        ("npx eslint", "npx eslint x"),
    ],
)
def test_an_allow_covers_what_its_program_is_for(allowed: str, line: str) -> None:
    assert judge(SHELL, read_rule("allow", command=allowed), command=line).rule == "operator:it"
