"""Decides whether a command does more than its program's own work: runs another program, reaches
another machine, or writes settings that other programs obey, by words that a rule which allows the
program does not name.

Code that a program exists to run is its own work: `python3 x.py`, `npm test`, `make`.
"""

import re

from agent_core.tools.secret_files import is_settings, list_named
from agent_core.tools.shell_reading.possible_words import WRAPPERS
from agent_core.tools.shell_reading.programs import awk_prints, sed_prints

_LOCAL_GIT = frozenset(
    {"add", "am", "annotate", "apply", "blame", "branch", "cat-file", "check-ignore", "checkout"}
    | {"cherry", "cherry-pick", "clean", "commit", "count-objects", "describe", "diff", "diff-tree"}
    | {"for-each-ref", "format-patch", "fsck", "gc", "grep", "init", "log", "ls-files", "ls-tree"}
    | {"merge", "merge-base", "mv", "name-rev", "notes", "range-diff", "rebase", "reflog", "reset"}
    | {"restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show", "show-ref", "stash"}
    | {"status", "switch", "tag", "version", "whatchanged", "worktree", "write-tree"}
)
"""Commands of git that run no other program and reach no other machine; any other name may be an
alias."""
_BEFORE_GIT = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_OPTIONS: dict[str, tuple[str, ...]] = {
    "git": (
        *("--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--textconv", "--remote"),
        *("--open-files-in-pager", "--extcmd", "--template", "--config", "--edit", "--strategy"),
        *("-O", "-x", "-c", "-s"),
    ),
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fls"),
    "tar": (
        *("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command"),
        *("--info-script", "--new-volume-script", "-I", "-F"),
    ),
    "rsync": ("--rsh", "--rsync-path", "-e"),
    "sort": ("--compress-program",),
    "rg": ("--pre", "--hostname-bin"),
    "zip": ("--unzip-command", "-TT", "-T"),
    "ssh": ("-o", "-F"),
    "scp": ("-o", "-F", "-S"),
    "sftp": ("-o", "-F", "-S", "-b"),
    "man": ("--pager", "--html", "--preprocessor", "-P", "-H"),
    "curl": ("--config", "-K"),
    "wget": ("--use-askpass", "--config", "-e"),
    "jq": ("--from-file", "-f", "-L"),
    "split": ("--filter",),
    "go": ("-exec", "-toolexec", "-vettool", "-overlay"),
    "pandoc": ("--filter", "--lua-filter", "--pdf-engine", "--defaults", "-F", "-L", "-d"),
    "tcpdump": ("-z",),
    "svn": ("--diff-cmd", "--diff3-cmd", "--editor-cmd", "--config-option", "--config-dir"),
    "hg": ("--config", "--config-file"),
    "npm": ("--script-shell", "--shell", "--node-options", "--git"),
    "psql": ("--command", "--file", "-c", "-f"),
    "emacs": ("--eval", "--execute", "--load", "--funcall", "-l", "-f"),
    "gdb": ("--eval-command", "--init-eval-command", "--command", "-e", "-x"),
    "nmap": ("--script", "--datadir"),
    "ar": ("--plugin",),
    "cargo": ("--config",),
    "cpio": ("--rsh-command",),
    "gpg": ("--exec-path", "--photo-viewer", "--agent-program", "--pinentry-program"),
    **dict.fromkeys(("fd", "fdfind"), ("--exec", "--exec-batch", "-x", "-X")),
    **dict.fromkeys(("gcc", "g++", "cc", "c++"), ("-wrapper", "-specs", "-B", "-fplugin")),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view"), ("--cmd", "-c", "-S", "-s", "-u")),
    **dict.fromkeys(("nc", "ncat", "netcat"), ("--exec", "--sh-exec", "--lua-exec", "-e", "-c")),
}
"""Options that run a program, or read more options from a file."""
_STARTERS = frozenset(
    {"tmux", "screen", "start-stop-daemon", "capsh", "socat", "dbus-run-session", "at", "batch"}
    | {"systemd-run", "entr", "expect", "firejail", "bwrap", "proot", "dotenv", "direnv", "setarch"}
    | {"xvfb-run", "dbus-launch", "fakeroot", "numactl", "cgexec", "valgrind", "lxc", "machinectl"}
    | {"npx", "pipx", "uvx", "bunx", "ansible", "vagrant", "crun", "runc", "ctr", "crictl"}
)
"""Programs that start others, by words of their own."""
_CONTAINERS = frozenset(
    {"ps", "images", "logs", "inspect", "version", "info", "stats", "top", "port", "diff"}
    | {"history", "search", "events", "pull", "help"}
)
_CLUSTER = frozenset(
    {"get", "describe", "logs", "top", "version", "explain", "api-resources", "api-versions"}
    | {"cluster-info", "diff", "wait", "events", "help"}
)
_OWN_WORK: dict[str, frozenset[str]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), _CONTAINERS),
    **dict.fromkeys(("kubectl", "oc"), _CLUSTER),
}
"""Commands of a program that run nothing and reach no further; any other has to be named."""
_RUNNING: dict[str, frozenset[str]] = {
    "npm": frozenset({"exec", "x"}),
    "yarn": frozenset({"exec", "dlx"}),
    "pnpm": frozenset({"exec", "dlx"}),
    "bun": frozenset({"x"}),
    "uv": frozenset({"run", "tool", "x"}),
    "nix": frozenset({"run", "shell", "develop"}),
    "helm": frozenset({"plugin"}),
    "gcloud": frozenset({"compute", "alpha", "beta"}),
    "aws": frozenset({"ssm", "ecs"}),
    **dict.fromkeys(("poetry", "pdm", "pipenv", "hatch", "conda", "mamba"), frozenset({"run"})),
    **dict.fromkeys(("bundle", "composer", "mise", "asdf"), frozenset({"exec"})),
}
"""Commands of a program that run another one."""
_PLACES = frozenset({"-n", "--namespace", "--context", "--cluster"})
"""Options in front of a command of kubectl that name where it works."""
_READERS = frozenset(
    {"cat", "bat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "ls", "stat"}
    | {"file", "diff", "cmp", "wc", "nl", "tree", "du", "md5sum", "sha1sum", "sha256sum", "test"}
    | {"echo", "printf", "realpath", "basename", "dirname", "readlink", "which", "strings", "xxd"}
)
"""Programs that change no file, whatever they are given."""
_READING_GIT = frozenset(
    {
        "add",
        "annotate",
        "blame",
        "check-ignore",
        "commit",
        "diff",
        "grep",
        "log",
        "ls-files",
        "show",
    }
    | {"shortlog", "status", "whatchanged", "cat-file", "ls-tree", "rev-list", "reset"}
)
"""Commands of git that change no file that they name."""
_DATABASE = re.compile(
    r"(?m)^[^\S\n]*\.(?!(?:tables|schema|indexes|indices|databases|headers|mode|help|show|width"
    r"|separator|nullvalue|timer|stats|changes|fullschema|dbinfo|eqp|explain|lint|quit|exit)\b)\w"
    r"|(?i:\b(?:load_extension|writefile|edit|fts3_tokenizer)\s*\()"
)
"""Commands and functions of sqlite3 that reach beyond its database."""
_CLIENT = re.compile(r"(?im)\\!|^[^\S\n]*system\b|\bsource\s|\\\.|\binto\s+(?:out|dump)file\b")
"""The same of mysql."""
_MEANT_GIT = {
    "-c": ("clone", "switch", "init"),
    "-s": ("merge", "rebase", "cherry-pick", "revert"),
    "-x": ("rebase", "difftool"),
    "-O": ("grep",),
}
"""Short ones that mean so in some of git's commands only."""
_ELSEWHERE = re.compile(r"(?<![\w.+-])[\w.+-]*::|(?<![\w+.-])\w[\w+.-]*://|(?<![^/:])[^/:]+:")


def hands_over(words: tuple[str, ...], named: tuple[str, ...]) -> bool:
    """Return True if the command does what the words `named` of a rule do not say."""
    program = words[0].rpartition("/")[2]
    rest = tuple(word for word in words[1:] if word not in named[1:])
    if _may_write(program, words) and any(map(_names_settings, rest)):
        return True
    if any(map(_names_option, rest, [program] * len(rest), [words] * len(rest))):
        return True
    if program in WRAPPERS or program in _STARTERS:
        return len(named) == 1
    if program == "git":
        return _git_hands_over(words, named)
    if program in _OWN_WORK or program in _RUNNING:
        return _command_hands_over(program, words, named)
    if program == "ip":
        return any(map(_runs_in_netns, rest))
    if program in ("sqlite3", "sqlite"):
        return any(word.startswith("-init") or _DATABASE.search(word) for word in rest)
    if program in ("mysql", "mariadb"):
        return any(map(_CLIENT.search, rest))
    if program == "rsync":
        return any(_ELSEWHERE.match(word) for word in rest)
    scripts = [word for word in words[1:] if not word.startswith("-")][:1]
    if program == "sed":
        scripts += [after for word, after in zip(words, words[1:], strict=False) if word == "-e"]
        has_file = any(word.startswith(("-f", "--file")) for word in words)
        return has_file or not all(map(sed_prints, scripts))
    if program in ("awk", "gawk", "mawk", "nawk"):
        acts = any(word.startswith("-") and word[:2] not in ("-F", "-v") for word in words[1:])
        return acts or not any(awk_prints(one) for one in words[1:] if "{" in one or "/" in one)
    return False


def _sets_program(words: tuple[str, ...], named: tuple[str, ...]) -> bool:
    """`git config` sets something that may run a program: all but the person's name and colours."""
    given = [word for word in words if word[:1] != "-" and word not in ("get", "list", "set")]
    reads = {"--get", "--get-all", "-l", "--list", "get", "list"} & set(words)
    harmless = given[:1] and given[0].lower().startswith(("user.name", "user.email", "color."))
    return not reads and len(given) > 1 and not harmless and given[0] not in named


def _names_option(word: str, program: str, words: tuple[str, ...]) -> bool:
    """The word is one of the program's options that run something, also cut short."""
    if not word.startswith("-") or word in ("-", "--"):
        return False
    name = word.partition("=")[0]
    for option in _OPTIONS.get(program, ()):
        if option.startswith("--"):
            if len(name) > 3 and option.startswith(name):
                return True
        elif program == "find":
            if name == option or name.startswith("-fprint"):
                return True
        elif not word.startswith("--") and option[1:] in word[1:]:
            meant = _MEANT_GIT.get(option, ()) if program == "git" else ()
            if program != "git" or set(meant) & set(words):
                return True
    return False


def _may_write(program: str, words: tuple[str, ...]) -> bool:
    """The program may write to a file that it is given."""
    if program == "git":
        return next((word for word in words[1:] if word[:1] != "-"), "") not in _READING_GIT
    return program not in _READERS


def _names_settings(word: str) -> bool:
    """The word, or a part of it, is the path of a file that programs obey unasked."""
    return any(is_settings(part) for part in list_named(word) if not part.startswith("-"))


def _command_hands_over(program: str, words: tuple[str, ...], named: tuple[str, ...]) -> bool:
    """A program with commands of its own is given one that the rule does not name."""
    at = 1
    while program in ("kubectl", "oc") and at < len(words):
        option, equals, _ = words[at].partition("=")
        if option not in _PLACES:
            break
        at += 1 if equals else 2
    name = words[at] if at < len(words) else "help"
    if named[1:2] == (name,):
        inner = words[at + 1 : at + 2] if name in ("compose", "container") else ()
        return inner in (("exec",), ("run",)) and inner != named[2:3]
    if program in _RUNNING:
        return next((one for one in words[1:] if one[:1] != "-"), "") in _RUNNING[program]
    return name not in _OWN_WORK[program] and name not in ("--version", "--help")


def _runs_in_netns(word: str) -> bool:
    """A word of ip, perhaps cut short, that runs a program or reads more commands from a file."""
    batch = word.startswith(("-b", "--b")) and not word.lstrip("-").startswith("br")
    return batch or (bool(word) and "exec".startswith(word))


def _git_hands_over(words: tuple[str, ...], named: tuple[str, ...]) -> bool:
    if named[1:2] and named[1].startswith("-") and words[: len(named)] == named:
        return False  # the rule includes options of git itself
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C":
            at += 2
        elif words[at] in _BEFORE_GIT:
            at += 1
        else:
            return words[at] not in ("--version", "--help")
    if at >= len(words):
        return False
    name = words[at]
    if name == "config":
        return named[1:2] != (name,) or _sets_program(words[at + 1 :], named)
    if name in _LOCAL_GIT:
        return False
    if named[1:2] != (name,):
        return True
    places = [word for word in words[at + 1 :] if not word.startswith("-") and word not in named]
    return bool(places) and _ELSEWHERE.match(places[0]) is not None
