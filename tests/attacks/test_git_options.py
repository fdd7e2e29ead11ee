"""Each option of git's commands that only look is no alarm, alone and beside others; and none of
them lets an option by that writes, runs a program or reads a file of its own choice."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.settings import ModelSettings
from gateway.wiring.policy_check import PolicyChecker
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))
CANARY = "k4nary-0f-a-secret"

FOUND = (
    "--minimal --patience --histogram --numstat --shortstat --dirstat --dirstat=lines --summary --raw "
    "--full-index --abbrev=8 --no-abbrev -M -M50% -C -B --find-renames --find-renames=50 --find-copies "
    "--find-copies-harder --no-renames --pickaxe-all --pickaxe-regex --relative --no-relative "
    "--ignore-submodules --color-moved=no --no-color-moved --ws-error-highlight=all -w -b "
    "--ignore-cr-at-eol --ignore-space-at-eol --ignore-blank-lines --no-ext-diff --no-textconv "
    "--src-prefix=x/ --dst-prefix=y/ --no-prefix --output-indicator-new=+ --stat --stat=90 "
    "--stat-width=80 --name-only --name-status --compact-summary --diff-filter=AM -R -z "
    "--color=never --no-color -S foo -G foo -l 9 --exit-code --inter-hunk-context=1 "
)
CHOSEN = (
    "--since=2.weeks --until=now --author=Ann --committer=Ann --grep=fix --all-match --invert-grep "
    "-i -E -F -P --merges --no-merges --min-parents=0 --max-parents=2 --first-parent --not --all "
    "--exclude-first-parent-only --branches --tags --remotes --exclude=x --glob=heads/* --reflog "
    "--ignore-missing --boundary --cherry --left-right --topo-order --date-order --reverse "
    "--author-date-order --no-walk --full-history --dense --sparse --simplify-merges --show-pulls "
    "--ancestry-path --remove-empty --parents --children --skip=1 --max-count=3 -n 3 -n3 -3 "
)
TOLD = (
    "--oneline --pretty=oneline --pretty=format:%h --format=%H --date=short --date=iso --source "
    "--abbrev-commit --no-abbrev-commit --decorate --decorate=short --no-decorate --encoding=UTF-8 "
    "--notes --no-notes --show-notes --expand-tabs --no-expand-tabs --log-size --mailmap "
    "--no-mailmap --use-mailmap --relative-date --decorate-refs=x --clear-decorations "
)
PAIRS = ("-n", "-S", "-G", "-l")
OPTIONS = {
    "log": FOUND + CHOSEN + TOLD + "-g --walk-reflogs --graph --no-graph --full-diff -s",
    "diff": FOUND + "--cached --check --binary --submodule -W -a --text --quiet --word-diff --unified=5 -U5 -p -u -D",
    "show": FOUND + TOLD + "-s -p --binary --cc -c -m -W --text --no-patch --graph --unified=1 --word-diff",
    "status": "-s -b -v -u -uno -uall -z --short --branch --long --porcelain --porcelain=v2 --ignored --ignored=no "
    "--untracked-files=all --show-stash --no-renames --renames --find-renames=9 --ahead-behind --no-ahead-behind "
    "--ignore-submodules --ignore-submodules=all --column --no-column --null --verbose",
    "branch": "-a -r -v -vv -l -i --all --list --show-current --no-color --color --color=never --column --no-column "
    "--sort=-committerdate --format=%(refname:short) --no-merged --merged --abbrev=9 --no-abbrev --ignore-case",
    "tag": "-l -n -n3 -i --list --sort=-creatordate --format=%(refname) --no-merged --column --ignore-case --color=never",
    "blame a.py": "-w -b -s -l -e -p -t -f -n -c -M -M9 -C -C9 --line-porcelain --porcelain --incremental --root "
    "--show-stats --show-name --show-number --show-email --since=3.weeks --abbrev=9 --color-lines --date=short "
    "--first-parent --minimal",
    "ls-files": "-c -o -m -d -s -t -z -k -u -v --eol --killed --unmerged --directory --exclude-standard --full-name "
    "--error-unmatch --abbrev --debug --deduplicate --others --stage --cached --modified --deleted --exclude=*.o",
    "ls-tree HEAD": "-r -d -t -l -z --name-only --name-status --full-name --full-tree --long --abbrev --object-only",
    "rev-parse HEAD": "--short --abbrev-ref --verify --quiet --symbolic --symbolic-full-name --absolute-git-dir "
    "--git-common-dir --is-bare-repository --is-inside-git-dir --is-shallow-repository --revs-only",
    "rev-list HEAD": CHOSEN + "--count --objects --timestamp --oneline --graph --quiet --format=%h",
    "shortlog HEAD": "-s -n -e -c -sn --summary --numbered --email --committer --no-merges --since=1.year --group=author",
    "describe": "--all --tags --always --dirty --dirty=-x --long --abbrev=4 --exact-match --first-parent --candidates=3",
    "show-ref": "-s -d -q --heads --tags --head --dereference --hash --abbrev",
    "diff-tree HEAD~1 HEAD": "-r -t -z --name-only --name-status --stat --numstat --shortstat --summary --no-commit-id -M",
    "diff-files": "-z -q --name-only --name-status --stat --numstat --shortstat",
    "fsck": "--full --strict --no-dangling --unreachable --tags --root --connectivity-only --no-progress --verbose",
    "grep -n foo": "-i -w -l -L -c -E -F -q -h -H -I --name-only --heading --break --column --color=never --full-name -C2",
}  # fmt: skip
BAD = (
    *("--output=out", "--output out", "--outp=out", "--ext-diff", "--ext-d", "--textconv", "--textc"),
    *("--show-signature", "--show-si", "-O.env", "--no-such-option", "-Oorder", "--stdin", "--pathspec-from-file=.env"),
    *("--contents=.env", "--contents .env", "--ignore-revs-file=.env", "-X.env", "--exclude-from=.env", "-X .env"),
    *("--exclude-per-directory=.env", "--lost-found", "--open-files-in-pager=sh", "-Osh", "-f.env", "-f .env"),
)  # fmt: skip
CHANGING = (
    *("--edit-description", "--set-upstream-to=x", "--unset-upstream", "-d x", "-D x", "-m x", "-c x"),
    *("--delete x", "-f x", "--move x", "--copy x", "-u x", "-t x", "--track x", "-l --edit-description"),
)  # fmt: skip
"""Of `git branch` and `git tag`."""


def judge(command: str) -> str:
    call = {"tool": "run_command", "args": {"command": command}, "mode": "auto", "tier": "none"}
    return CHECKER.judge_call(json.dumps(call).encode()).decision


def spell(verb: str, options: list[str]) -> str:
    first, _, rest = verb.partition(" ")
    return " ".join(["git", first, *options, *([rest] if rest else [])])


def list_options(verb: str) -> list[str]:
    """The options, each with its value."""
    found = OPTIONS[verb].split()
    for at in range(len(found) - 2, -1, -1):
        if found[at] in PAIRS and not found[at + 1].startswith("-"):
            found[at : at + 2] = [f"{found[at]} {found[at + 1]}"]
    return [f"'{one}'" if set(one) & set("*()") else one for one in found]


@pytest.mark.parametrize("verb", OPTIONS)
def test_an_option_that_only_looks_is_no_alarm(verb: str) -> None:
    alarms = [line for one in list_options(verb) if judge(line := spell(verb, [one])) != "allow"]
    assert alarms == []


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(st.data())
def test_nor_are_several_and_none_hides_one_that_does_more(data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(sorted(OPTIONS)))
    known = st.sampled_from(list_options(verb))
    before, after = data.draw(st.lists(known, max_size=3)), data.draw(st.lists(known, max_size=3))
    assert judge(spell(verb, [*before, *after])) == "allow"
    bad = data.draw(st.sampled_from(BAD if verb not in ("branch", "tag") else (*BAD, *CHANGING)))
    assert judge(spell(verb, [*before, bad, *after])) != "allow"


@pytest.mark.parametrize("verb", ["branch", "tag"])
def test_a_name_alone_makes_a_branch_or_a_tag(verb: str) -> None:
    assert judge(f"git {verb} x") != "allow"
    for option in ("-v", "-i", "--no-color", "--column", "--ignore-case", "--abbrev=9"):
        assert judge(f"git {verb} {option} x") != "allow"


def test_a_value_may_be_a_word_of_its_own() -> None:
    for option in ("--since", "--until", "--author", "--grep", "--date", "--max-count", "--skip"):
        for verb in ("log", "log --oneline", "rev-list HEAD"):
            assert judge(f"git {verb} {option} 'a b'") == "allow"
    for option in ("--output", "--format", "--stat", "--oneline"):
        assert judge(f"git log {option} ../x") != "allow"


def test_what_is_allowed_writes_nothing_and_a_log_shows_no_content(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    run_quietly(here, "git init -q")
    for text in ("foo\n", "foo\nbar\n"):
        (here / "a.py").write_text(text)
        (here / ".env").write_text(f"KEY={CANARY}{len(text)}\n")
        run_quietly(here, "git add -f . && git -c user.name=a -c user.email=a@b commit -qm x")
    (here / "a.py").write_text("changed\n")
    files = sorted(one.name for one in here.iterdir())
    drawn = random.Random(SEED)
    for verb in OPTIONS:
        options = list_options(verb)
        lines = [spell(verb, [one]) for one in options]
        lines += [spell(verb, drawn.sample(options, min(4, len(options)))) for _ in range(6)]
        for line in drawn.sample(lines, min(len(lines), examples(40))):
            shown = run_quietly(here, line)
            assert verb.startswith(("diff", "show")) or CANARY not in shown, line
            assert sorted(one.name for one in here.iterdir()) == files, line


def run_quietly(folder: Path, line: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_PAGER": "cat"}
    done = subprocess.run(
        ["timeout", "5", "sh", "-c", line], cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, env=environment,
    )  # fmt: skip
    return (done.stdout + done.stderr).decode(errors="replace")
