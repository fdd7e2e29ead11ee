"""Read-only commands of git, and the arguments that keep them so."""

import re

from agent_core.tools.shell_reading.verbs import DIGITS, Verb

_LOG = Verb(
    flags="izsp" + DIGITS,
    valued="nSGLU",
    names=(
        *("--oneline", "--stat", "--graph", "--all", "--decorate", "--name-only", "--no-color"),
        *("--since=", "--until=", "--after=", "--before=", "--author=", "--grep=", "--format="),
        *("--pretty=", "--no-merges", "--merges", "--max-count=", "--name-status", "--reverse"),
        *("--date=", "--follow", "--numstat", "--shortstat", "--abbrev-commit", "--first-parent"),
        *("--color", "--color=", "--decorate=", "--branches", "--tags", "--remotes", "--no-patch"),
        *("--abbrev=", "--topo-order", "--date-order", "--left-right", "--summary", "--skip="),
        *(
            "--diff-filter=",
            "--find-renames",
            "--no-renames",
            "--regexp-ignore-case",
            "--no-decorate",
        ),
        *("--committer=", "--cherry-pick", "--cherry-mark", "--right-only", "--left-only"),
        *("--all-match", "--invert-grep", "--source", "--no-abbrev-commit", "--ancestry-path"),
        *("--dirstat", "--compact-summary", "--stat=", "--merge", "--simplify-by-decoration"),
        *("--branches=", "--tags=", "--remotes=", "--relative-date", "--extended-regexp"),
        "--patch",
    ),
)
_DIFF = Verb(
    flags="pwbzM",
    valued="USG",
    names=(
        *("--stat", "--cached", "--staged", "--name-only", "--name-status", "--check"),
        *("--shortstat", "--numstat", "--word-diff", "--word-diff=", "--color", "--color="),
        *("--color-words", "--no-color", "--ignore-all-space", "--ignore-space-change"),
        *("--unified=", "--summary", "--minimal", "--patience", "--histogram", "--exit-code"),
        *("--quiet", "--diff-filter=", "--find-renames", "--stat=", "--merge-base"),
        *("--ignore-blank-lines", "--function-context", "--no-renames", "--dirstat", "--raw"),
        *("--compact-summary", "--find-copies", "--ignore-space-at-eol", "--no-prefix", "--patch"),
        *("--inter-hunk-context=", "--no-patch", "--relative", "--pickaxe-regex", "--text"),
        *("--diff-algorithm=", "--ignore-submodules", "--color-moved", "--patch-with-stat"),
        "--no-index",
    ),
)
_REFS = Verb(
    names=(
        *("--format=", "--sort=", "--count=", "--contains=", "--merged=", "--points-at="),
        *("--merged", "--no-merged", "--no-merged=", "--contains", "--ignore-case"),
    )
)

_TAGS = Verb(
    flags=f"n{DIGITS}",
    names=("--sort=", "--format=", "--merged", "--points-at="),
    takes=(("--points-at", 1), ("--sort", 1)),
    free=10,
    most=10,
)

GIT: dict[str, Verb] = {
    "status": Verb(
        flags="sbvunormal",
        names=("--short", "--branch", "--porcelain", "--porcelain=", "--ignored", "--long"),
    ),
    "log": _LOG,
    "diff": _DIFF,
    "show": Verb(
        flags="psw",
        names=(
            *("--stat", "--oneline", "--name-only", "--name-status", "--format=", "--pretty="),
            *("--no-patch", "--numstat", "--shortstat", "--color", "--no-color", "--summary"),
            *("--abbrev-commit", "--date=", "--unified=", "--word-diff", "--word-diff=", "--raw"),
            *("--diff-filter=", "--ignore-all-space", "--no-renames", "--decorate", "--dirstat"),
            *("--quiet", "--patch", "--compact-summary", "--stat=", "--color=", "--first-parent"),
        ),
    ),
    "blame": Verb(flags="wbsleC", valued="L", names=("--date=", "--porcelain"), most=2),
    "branch": Verb(
        flags="avr",
        names=(
            *(
                "--all",
                "--list",
                "--show-current",
                "--merged",
                "--no-merged",
                "--sort=",
                "--format=",
            ),
            *("--contains=", "--remotes", "--verbose"),
        ),
        takes=(*(("--contains", 1), ("--points-at", 1), ("--sort", 1)),),
        most=1,
    ),
    "branch --list": Verb(flags="avr", names=("--sort=", "--format="), free=10, most=10),
    "cat-file": Verb(flags="tsep", least=1, most=1),
    "check-ignore": Verb(flags="vn", shows=False),
    "check-attr": Verb(flags="a", free=1, shows=False),
    "cherry": Verb(flags="v"),
    "config --get": Verb(free=1, least=1, most=1),
    "count-objects": Verb(flags="vH", most=0),
    "describe": Verb(
        names=(
            *("--tags", "--always", "--dirty", "--all", "--long", "--abbrev=", "--contains"),
            *("--match=", "--exclude=", "--exact-match", "--first-parent"),
        )
    ),
    "diff-index": Verb(names=("--quiet", "--name-only", "--name-status", "--cached"), least=1),
    "diff-tree": Verb(
        flags="r", names=("--no-commit-id", "--name-only", "--name-status", "--stat"), least=1
    ),
    "for-each-ref": _REFS,
    "grep": Verb(
        flags="nilLcwEFPqhH",
        valued="eABC",
        names=("--count", "--files-with-matches", "--line-number", "--ignore-case", "--heading"),
        free=1,
        shows=False,
    ),
    "ls-files": Verb(
        flags="comdstz",
        names=(
            "--others",
            "--exclude-standard",
            "--cached",
            "--modified",
            "--deleted",
            "--ignored",
            "--stage",
            "--error-unmatch",
            "--full-name",
        ),
        shows=False,
    ),
    "ls-tree": Verb(
        flags="rdtlz",
        names=("--name-only", "--full-tree", "--long", "--full-name"),
        least=1,
        shows=False,
    ),
    "merge-base": Verb(names=("--is-ancestor", "--all", "--fork-point"), least=1),
    "name-rev": Verb(names=("--name-only", "--tags"), least=1),
    "reflog": Verb(flags=DIGITS, valued="n", names=("--date=", "--format=", "--all"), most=0),
    "reflog show": Verb(flags=DIGITS, valued="n", names=("--date=", "--format="), most=1),
    "remote": Verb(flags="v", most=0),
    "remote show": Verb(most=0),
    "remote get-url": Verb(names=("--all", "--push"), free=1, least=1, most=1),
    "rev-list": Verb(
        flags=DIGITS,
        valued="n",
        names=(
            *("--count", "--all", "--max-count=", "--no-merges", "--max-parents=", "--merges"),
            *("--since=", "--until=", "--after=", "--before=", "--author=", "--left-right"),
            *("--objects", "--reverse", "--first-parent", "--branches", "--tags", "--parents"),
        ),
    ),
    "rev-parse": Verb(
        names=(
            *("--short", "--short=", "--abbrev-ref", "--show-toplevel", "--verify", "--quiet"),
            *("--is-inside-work-tree", "--symbolic-full-name", "--show-prefix", "--git-dir"),
        )
    ),
    "shortlog": Verb(flags="sne", names=("--all", "--since=", "--until=", "--no-merges")),
    "show-ref": Verb(flags="sd", names=("--heads", "--tags", "--head")),
    "submodule status": Verb(names=("--cached",)),
    "symbolic-ref": Verb(flags="q", names=("--short", "--quiet"), least=1, most=1),
    "stash list": Verb(names=("--oneline", "--stat"), most=0),
    "stash show": Verb(names=("--stat", "--name-only", "--name-status"), most=1),
    "notes list": Verb(most=1),
    "show-branch": Verb(flags="a", names=("--all", "--list"), most=0),
    "tag": Verb(
        flags=f"ln{DIGITS}",
        names=("--list", "--sort=", "--merged", "--contains=", "--points-at=", "--format="),
        takes=(("--contains", 1), ("--points-at", 1), ("--sort", 1)),
        most=0,
    ),
    "tag --list": _TAGS,
    "tag -l": _TAGS,
    "var GIT_AUTHOR_IDENT": Verb(most=0),
    "var GIT_COMMITTER_IDENT": Verb(most=0),
    "version": Verb(most=0),
    "whatchanged": _LOG,
    "worktree list": Verb(names=("--porcelain",), most=0),
}
REMOTE = re.compile(r"remote\.[\w.-]{1,80}\.(?:url|pushurl|fetch)")
"""Addresses that `git remote -v` shows as well."""
SAID = ("user.", "branch.", "init.", "pull.", "push.", "core.autocrlf", "merge.conflictstyle")
"""Prefixes of settings that `git config --get` may show: none that could hold a token."""
