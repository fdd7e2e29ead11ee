"""Read-only commands of git, and the arguments that keep them so."""

import re

from agent_core.tools.shell_reading.verbs import DIGITS, Verb


def _split(names: str) -> tuple[str, ...]:
    return tuple(names.split())


_COMPARED = _split(
    "--minimal --patience --histogram --indent-heuristic --no-indent-heuristic --numstat "
    "--shortstat --dirstat --dirstat= --dirstat-by-file --cumulative --summary --raw --full-index "
    "--abbrev --abbrev= --no-abbrev --find-renames --find-renames= --find-copies --find-copies= "
    "--find-copies-harder --break-rewrites --break-rewrites= --irreversible-delete --rename-empty "
    "--no-rename-empty --no-renames --pickaxe-all --pickaxe-regex --find-object= --relative "
    "--relative= --no-relative --ignore-submodules --ignore-submodules= --color-moved "
    "--color-moved= --no-color-moved --color-moved-ws= --no-color-moved-ws --word-diff-regex= "
    "--ws-error-highlight= --inter-hunk-context= --ignore-matching-lines= --ignore-cr-at-eol "
    "--ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines "
    "--no-ext-diff --no-textconv --src-prefix= --dst-prefix= --line-prefix= --no-prefix "
    "--default-prefix --output-indicator-new= --output-indicator-old= "
    "--output-indicator-context= --anchored= --diff-algorithm= --stat-width= --stat-name-width= "
    "--stat-count= --stat-graph-width= --skip-to= --rotate-to= --no-color --exit-code"
)
"""How changes are found and drawn, none of which shows more of a file than was asked for."""
_CHOSEN = _split(
    "--min-parents= --max-parents= --no-min-parents --no-max-parents --remove-empty --exclude= "
    "--glob= --reflog --alternate-refs --single-worktree --ignore-missing --cherry --walk-reflogs "
    "--grep-reflog= --boundary --simplify-merges --show-pulls --full-history --dense --sparse "
    "--author-date-order --parents --children --no-walk --no-walk= --do-walk --not --max-age= "
    "--min-age= --since-as-filter= --exclude-first-parent-only --basic-regexp --fixed-strings "
    "--perl-regexp --extended-regexp --regexp-ignore-case --ancestry-path --ancestry-path="
)
"""How commits are chosen."""
_TOLD = _split(
    "--encoding= --expand-tabs --expand-tabs= --no-expand-tabs --notes --notes= --no-notes "
    "--show-notes --show-notes= --log-size --decorate --decorate= --no-decorate "
    "--source --mailmap --no-mailmap --use-mailmap --no-use-mailmap --decorate-refs= "
    "--decorate-refs-exclude= --clear-decorations "
    "--no-abbrev-commit --relative-date"
)
"""How commits are described."""
_TAKEN = tuple(
    (name, 1)
    for name in _split(
        "--since --after --until --before --author --committer --grep --max-count --skip --date "
        "--encoding --glob --exclude --min-age --max-age --diff-filter --find-object"
    )
)
_ATTACHED = "MBC"
"""Letters of options whose value, if any, is the rest of the word."""

_LOG = Verb(
    flags="izspgEFPtRwb" + DIGITS,
    valued="nSGLUlI",
    attached=_ATTACHED,
    takes=_TAKEN,
    names=(
        *(*_COMPARED, *_CHOSEN, *_TOLD),
        *("--full-diff", "--show-linear-break", "--show-linear-break=", "--no-graph"),
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
    flags="pwbzRaWDrtus",
    valued="USGlI",
    attached=_ATTACHED,
    takes=_TAKEN,
    names=(
        *_COMPARED,
        *("--binary", "--submodule", "--submodule=", "--word-diff-regex=", "--color-words="),
        *("--patch-with-raw", "--ita-invisible-in-index", "--ita-visible-in-index", "--cc"),
        *("--ours", "--theirs", "--base", "--no-function-context"),
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
        *("--color", "--color=", "--no-contains="),
    ),
    takes=tuple((name, 1) for name in ("--format", "--sort", "--count", "--points-at")),
)

_TAGS = Verb(
    flags=f"iln{DIGITS}",
    names=(
        *("--list", "--sort=", "--format=", "--merged", "--no-merged", "--points-at="),
        *(
            "--contains=",
            "--no-contains=",
            "--merged=",
            "--no-merged=",
            "--column",
            "--column=",
            "--no-column",
        ),
        *("--ignore-case", "--color", "--color=", "--no-color"),
    ),
    takes=(("--points-at", 1), ("--sort", 1), ("--contains", 1), ("--format", 1)),
    free=10,
    most=10,
)

GIT: dict[str, Verb] = {
    "status": Verb(
        flags="sbvunormalz",
        attached="M",
        names=(
            *("--short", "--branch", "--porcelain", "--porcelain=", "--ignored", "--long"),
            *("--untracked-files", "--ignored=", "--show-stash", "--untracked-files=no"),
            *("--untracked-files=all", "--untracked-files=normal"),
            *("--no-renames", "--renames", "--find-renames", "--find-renames=", "--verbose"),
            *("--ahead-behind", "--no-ahead-behind", "--ignore-submodules", "--null"),
            *("--ignore-submodules=", "--column", "--column=", "--no-column"),
        ),
    ),
    "log": _LOG,
    "diff": _DIFF,
    "show": Verb(
        flags="pswzbaWRDrtcm",
        valued="USGlI",
        attached=_ATTACHED,
        takes=_TAKEN,
        names=(
            *(*_COMPARED, *_TOLD),
            *("--binary", "--cc", "--submodule", "--submodule=", "--color-words", "--text"),
            *("--color-words=", "--oneline", "--no-decorate", "--no-walk", "--function-context"),
            *("--patch-with-stat", "--patch-with-raw", "--check", "--name-only", "--graph"),
            *("--stat", "--oneline", "--name-only", "--name-status", "--format=", "--pretty="),
            *("--no-patch", "--numstat", "--shortstat", "--color", "--no-color", "--summary"),
            *("--abbrev-commit", "--date=", "--unified=", "--word-diff", "--word-diff=", "--raw"),
            *("--diff-filter=", "--ignore-all-space", "--no-renames", "--decorate", "--dirstat"),
            *("--quiet", "--patch", "--compact-summary", "--stat=", "--color=", "--first-parent"),
        ),
    ),
    "blame": Verb(
        flags="wbsleptfnck",
        valued="L",
        attached="MC",
        names=(
            *("--date=", "--porcelain", "--line-porcelain", "--incremental", "--root"),
            *("--show-stats", "--score-debug", "--show-name", "--show-number", "--show-email"),
            *("--since=", "--abbrev=", "--color-lines", "--color-by-age", "--minimal"),
            *("--encoding=", "--first-parent", "--progress", "--no-progress", "--ignore-rev="),
        ),
        takes=(("--date", 1), ("--since", 1), ("--encoding", 1), ("--ignore-rev", 1)),
        most=2,
    ),
    "archive --list": Verb(most=0),
    "archive -l": Verb(most=0),
    "bisect log": Verb(most=0),
    "branch": Verb(
        flags="avrli",
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
            *("--contains=", "--remotes", "--verbose", "--no-color", "--color", "--color="),
            *("--column", "--column=", "--no-column", "--abbrev=", "--no-abbrev"),
            *("--ignore-case", "--points-at=", "--no-contains=", "--merged=", "--no-merged="),
        ),
        takes=tuple((name, 1) for name in ("--contains", "--points-at", "--sort", "--format")),
        most=1,
    ),
    "branch --list": Verb(
        flags="avril",
        names=(
            *("--list", "--sort=", "--format=", "--show-current", "--abbrev=", "--no-abbrev"),
            *("--merged", "--no-merged", "--points-at=", "--contains=", "--merged="),
            *("--no-color", "--color", "--color=", "--column"),
            *("--column=", "--no-column", "--ignore-case", "--all", "--remotes", "--verbose"),
        ),
        takes=(("--sort", 1), ("--format", 1)),
        free=10,
        most=10,
    ),
    "cat-file": Verb(flags="tsep", least=1, most=1),
    "check-ignore": Verb(
        flags="vnq", names=("--verbose", "--non-matching", "--no-index", "--quiet"), shows=False
    ),
    "check-attr": Verb(flags="a", free=1, shows=False),
    "cherry": Verb(flags="v", names=("--verbose", "--abbrev", "--abbrev=")),
    "config --get": Verb(free=1, least=1, most=1),
    "count-objects": Verb(flags="vH", most=0),
    "describe": Verb(
        names=(
            *("--tags", "--always", "--dirty", "--all", "--long", "--abbrev=", "--contains"),
            *("--match=", "--exclude=", "--exact-match", "--first-parent", "--dirty="),
            *("--candidates=", "--debug"),
        ),
        takes=(("--match", 1), ("--exclude", 1), ("--candidates", 1)),
    ),
    "diff-files": Verb(
        flags="zqr",
        attached=_ATTACHED,
        names=(*_COMPARED, "--name-only", "--name-status", "--stat"),
    ),
    "diff-index": Verb(
        flags="zr",
        attached=_ATTACHED,
        names=(*_COMPARED, "--quiet", "--name-only", "--name-status", "--cached", "--stat"),
        least=1,
    ),
    "diff-tree": Verb(
        flags="rzt",
        attached=_ATTACHED,
        names=(
            *(*_COMPARED, "--no-commit-id", "--name-only", "--name-status", "--stat"),
            *("--root", "--always", "--diff-filter="),
        ),
        least=1,
    ),
    "for-each-ref": _REFS,
    "fsck": Verb(
        names=(
            *("--full", "--no-full", "--strict", "--dangling", "--no-dangling", "--unreachable"),
            *("--tags", "--root", "--cache", "--connectivity-only", "--progress", "--no-progress"),
            *("--verbose", "--name-objects", "--no-reflogs"),
        ),
        most=0,
    ),
    "grep": Verb(
        flags="nilLcwEFPqhHIaz",
        valued="eABC",
        names=(
            *("--count", "--files-with-matches", "--line-number", "--ignore-case", "--heading"),
            *("--name-only", "--files-without-match", "--word-regexp", "--fixed-strings"),
            *("--extended-regexp", "--perl-regexp", "--basic-regexp", "--column", "--break"),
            *("--color", "--color=", "--no-color", "--max-depth=", "--quiet", "--full-name"),
            *("--text", "--null", "--after-context=", "--before-context=", "--context="),
        ),
        free=1,
        shows=False,
    ),
    "ls-files": Verb(
        flags="comdstzkuvi",
        valued="x",
        names=(
            *("--eol", "--killed", "--unmerged", "--resolve-undo", "--directory", "--abbrev"),
            *("--no-empty-directory", "--recurse-submodules", "--abbrev=", "--debug"),
            *("--deduplicate", "--sparse", "--exclude=", "--format="),
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
        names=(
            *("--name-only", "--full-tree", "--long", "--full-name", "--name-status", "--abbrev"),
            *("--abbrev=", "--object-only", "--format="),
        ),
        least=1,
        shows=False,
    ),
    "merge-base": Verb(
        flags="a",
        names=("--is-ancestor", "--all", "--fork-point", "--octopus", "--independent"),
        least=1,
    ),
    "name-rev": Verb(
        names=(
            *("--name-only", "--tags", "--refs=", "--exclude=", "--always", "--undefined"),
            *("--no-undefined", "--all"),
        ),
    ),
    "reflog": Verb(flags=DIGITS, valued="n", names=("--date=", "--format=", "--all"), most=0),
    "reflog show": Verb(flags=DIGITS, valued="n", names=("--date=", "--format="), most=1),
    "remote": Verb(flags="v", names=("--verbose",), most=0),
    "remote show": Verb(most=0),
    "remote get-url": Verb(names=("--all", "--push"), free=1, least=1, most=1),
    "rev-list": Verb(
        flags=f"{DIGITS}giEFP",
        valued="n",
        takes=_TAKEN,
        names=(
            *(*_CHOSEN, "--committer=", "--grep=", "--all-match", "--invert-grep", "--skip="),
            *("--abbrev-commit", "--no-commit-header", "--topo-order", "--date-order", "--quiet"),
            *("--timestamp", "--format=", "--pretty=", "--oneline", "--remotes", "--graph"),
            *("--count", "--all", "--max-count=", "--no-merges", "--max-parents=", "--merges"),
            *("--since=", "--until=", "--after=", "--before=", "--author=", "--left-right"),
            *("--objects", "--reverse", "--first-parent", "--branches", "--tags", "--parents"),
        ),
    ),
    "rev-parse": Verb(
        names=(
            *("--short", "--short=", "--abbrev-ref", "--show-toplevel", "--verify", "--quiet"),
            *("--is-inside-work-tree", "--symbolic-full-name", "--show-prefix", "--git-dir"),
            *("--absolute-git-dir", "--git-common-dir", "--show-cdup", "--is-bare-repository"),
            *("--is-inside-git-dir", "--is-shallow-repository", "--all", "--branches", "--tags"),
            *("--show-superproject-working-tree", "--remotes", "--symbolic", "--revs-only"),
            *("--no-revs", "--flags", "--no-flags", "--show-object-format", "--local-env-vars"),
        )
    ),
    "shortlog": Verb(
        flags="snec",
        takes=tuple((name, value) for name, value in _TAKEN if name != "--committer"),
        names=(
            *("--all", "--since=", "--until=", "--no-merges", "--summary", "--numbered"),
            *("--email", "--committer", "--group=", "--format=", "--author=", "--after="),
            *("--before=", "--grep=", "--merges", "--first-parent"),
        ),
    ),
    "show-ref": Verb(
        flags="sdq",
        names=(
            *("--heads", "--tags", "--head", "--dereference", "--hash", "--hash=", "--abbrev"),
            *("--abbrev=", "--quiet", "--verify"),
        ),
    ),
    "submodule status": Verb(names=("--cached",)),
    "symbolic-ref": Verb(flags="q", names=("--short", "--quiet"), least=1, most=1),
    "stash list": Verb(
        flags=DIGITS,
        valued="n",
        names=("--oneline", "--stat", "--date=", "--format=", "--pretty=", "--name-only"),
        most=0,
    ),
    "stash show": Verb(names=("--stat", "--name-only", "--name-status"), most=1),
    "notes list": Verb(most=1),
    "show-branch": Verb(flags="a", names=("--all", "--list"), most=0),
    "tag": Verb(
        flags=f"iln{DIGITS}",
        names=(
            *("--list", "--sort=", "--merged", "--contains=", "--points-at=", "--format="),
            *("--no-merged", "--no-contains=", "--merged=", "--no-merged=", "--column"),
            *("--column=", "--no-column", "--ignore-case", "--color", "--color=", "--no-color"),
        ),
        takes=(("--contains", 1), ("--points-at", 1), ("--sort", 1)),
        most=0,
    ),
    "tag --list": _TAGS,
    "tag -l": _TAGS,
    "var GIT_AUTHOR_IDENT": Verb(most=0),
    "var GIT_COMMITTER_IDENT": Verb(most=0),
    "version": Verb(most=0),
    "whatchanged": _LOG,
    "worktree list": Verb(flags="vz", names=("--porcelain", "--verbose"), most=0),
}
REMOTE = re.compile(r"remote\.[\w.-]{1,80}\.(?:url|pushurl|fetch)")
"""Addresses that `git remote -v` shows as well."""
SAID = ("user.", "branch.", "init.", "pull.", "push.", "core.autocrlf", "merge.conflictstyle")
"""Prefixes of settings that `git config --get` may show: none that could hold a token."""
