"""Decides whether a command uses a file with secrets, or only mentions it.

`echo .env >> .gitignore` reads no such file. A mentioned file stays hidden where the command runs,
so a mistake costs the command a file and shows nobody a secret.
"""

import re
import shlex

from agent_core.tools import secret_files

MAX_LENGTH = 20_000
"""Maximum characters of a command that is analysed; a longer one with such a name counts as using
it."""
_NAMES_ONLY = frozenset({"[", "[[", "echo", "ls", "printf", "stat", "test"})
_NAMES_ONLY_OF_GIT = frozenset({"check-ignore", "ls-files", "ls-tree", "rm"})
_WITH_MESSAGE = frozenset({"commit", "merge", "notes", "stash", "tag"})
"""Commands with a message behind `-m`, which shows the changes of merges elsewhere."""
_SUMMARIES_OF_GIT = frozenset({"diff", "log", "status"})
"""Commands that show no content of a file if their options are all of these."""
_SUMMED = re.compile(r"--(?:name-only|name-status|stat|shortstat|numstat|quiet)")
_TOLD_ONLY = re.compile(
    r"--|-(?:\d{1,4}|n\d{0,4}|s|sb|b|uno)|--(?:oneline|follow|all|graph|reverse|no-merges|merges|short"
    r"|branch|porcelain|ignored|cached|staged|abbrev-commit|decorate|no-color|no-patch"
    r"|(?:date|format|pretty|since|until|after|before|author|grep|max-count|diff-filter|color)=.*)"
)
_TEXT_FIRST = frozenset({"egrep", "fgrep", "grep", "jq", "rg"})
"""Programs whose first operand is no file."""
_OTHER_FIRST = frozenset({"-e", "-f", "--file", "--from-file", "--regexp", "-L"})
"""Options with which it is one."""
_WRITTEN = re.compile(
    r"(?:^|(?<=[\n;&|]))[ \t]*(?:cat|tee(?:[ \t]+-a)?(?:[ \t]+[\w./-]{1,200})?)"
    r"(?:[ \t]*>>?[ \t]*[\w./-]{1,200})?[ \t]*<<[ \t]*(['\"]?)([A-Za-z_]\w{0,40})\1"
    r"(?:[ \t]*>>?[ \t]*[\w./-]{1,200})?[ \t]*\n"
)
"""Matches commands that write the following lines into a file verbatim."""
_SIGNS = frozenset("();<>|&\n")


def names_secret(command: str) -> bool:
    """True if the shell's command names a file that usually holds credentials as one to use."""
    if "<<" in command and len(command) <= MAX_LENGTH:
        command = _drop_bodies(command)
    if not secret_files.names_secret(command):
        return False
    if len(command) > MAX_LENGTH or any(sign in command for sign in ("$(", "`", "<<", "<(", ">(")):
        return True
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = list(lexer)
    except ValueError:
        return True
    return any(_uses_secret(words) for words in _split_commands(tokens))


def _drop_bodies(command: str) -> str:
    """The command without texts that it writes, if a shell puts nothing else into them."""
    kept, at = "", 0
    while found := _WRITTEN.search(command, at):
        end = f"{command}\n".find(f"\n{found[2]}\n", found.end() - 1)
        if end < 0:
            break
        inert = bool(found[1]) or not set("$`\\") & set(command[found.end() : end])
        behind = end + 1 + len(found[2])
        first = command[at : found.end()] if inert else command[at:behind]
        kept, at = kept + (first.replace("<<", " ") if inert else first), behind
    return kept + command[at:]


def _split_commands(tokens: list[str]) -> list[list[str]]:
    """The words of each command; where something is redirected to or from is one by itself."""
    commands: list[list[str]] = [[]]
    targets: list[list[str]] = []
    redirected = False
    for token in tokens:
        if redirected:
            targets.append(["<", token])
            redirected = False
        elif token and _SIGNS.issuperset(token):
            redirected = bool(set("<>") & set(token))
            if not redirected:
                commands.append([])
        else:
            commands[-1].append(token)
    return [*commands, *targets]


def _uses_secret(words: list[str]) -> bool:
    if not words:
        return False
    return any(map(secret_files.names_secret, _drop_texts(words[0], words[1:])))


def _drop_texts(verb: str, words: list[str]) -> list[str]:
    """Drop the words that are no files to this program."""
    if verb in _NAMES_ONLY:
        return []
    if verb == "git" and words:
        if words[0] in _NAMES_ONLY_OF_GIT or _sums_up(words):
            return []
        return _drop_messages(words)
    if verb == "find" and not any(word.startswith(("-exec", "-ok", "-f")) for word in words):
        return [
            word for before, word in zip(["", *words], words, strict=False) if before[:1] != "-"
        ]
    if verb in _TEXT_FIRST and not _OTHER_FIRST & set(words):
        at = next((n for n, word in enumerate(words) if not word.startswith("-")), len(words))
        return [*words[:at], *words[at + 1 :]]
    return [verb, *words]


def _sums_up(words: list[str]) -> bool:
    """Return True for a `git log`, `diff` or `status` that tells when files changed, not how."""
    if words[0] not in _SUMMARIES_OF_GIT:
        return False
    options = [word for word in words[1:] if word.startswith("-")]
    summed = any(map(_SUMMED.fullmatch, options))
    told = all(_SUMMED.fullmatch(one) or _TOLD_ONLY.fullmatch(one) for one in options)
    return told and (summed or words[0] != "diff")


def _find_verb(words: list[str]) -> str:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c") else 1
    return words[at] if at < len(words) else ""


def _drop_messages(words: list[str]) -> list[str]:
    """Drop a commit's message, and the words that a log is searched for."""
    left: list[str] = []
    takes = _find_verb(words) in _WITH_MESSAGE
    is_message = False
    for word in words:
        if is_message or word.startswith(("--message=", "--grep=", "--author=")):
            is_message = False
            continue
        is_message = takes and word in ("-m", "--message", "-am")
        left.append(word)
    return left
