"""Decides whether a command's output may hold a wildcard: a shell that substitutes the output for
words expands wildcards in it."""

import re

from agent_core.tools.shell_reading.words import PlainCommand

_NAMES_FILES = re.compile(r"-[a-zA-Z]*[lLc][a-zA-Z]*|--files-with-matches|--count")
_TELLING = frozenset(
    {"arch", "basename", "date", "dirname", "echo", "expr", "hostname", "id", "nproc", "printf"}
    | {"pwd", "realpath", "seq", "stat", "test", "tty", "uname", "which", "whoami", "cd", "true"}
)
"""Programs that print nothing but their arguments, and facts about the machine."""
_WILDCARDS = frozenset("*?[\\")
"""Matches wildcards, also as escapes for a program that prints them."""
_TOLD_GIT = frozenset({"branch", "describe", "merge-base", "rev-list", "rev-parse", "symbolic-ref"})


def prints_no_wildcard(command: PlainCommand) -> bool:
    """Return True if it prints names of existing files, numbers, or words that the line shows: a
    shell finds no wildcard in them that leads elsewhere."""
    name, words = command.words[0].text, command.words[1:]
    texts = [word.text for word in words]
    if any(text.startswith("-") and _WILDCARDS & set(text) for text in texts):
        return False  # such as a format
    if name in ("ls", "wc", "du"):
        return True
    if name == "find":
        return not {"-printf", "-ls", "-exec"} & set(texts)
    if name in ("grep", "egrep", "fgrep", "rg"):
        return "--files" in texts or any(_NAMES_FILES.fullmatch(text) for text in texts)
    if name == "git" and texts[:1] in (["ls-files"], ["diff"]):
        return texts[0] == "ls-files" or "--name-only" in texts
    if name in ("head", "tail", "sort", "uniq") and command.piped is not None:
        given = [text for text in texts if not text.startswith("-") and not text.isdecimal()]
        return not given and prints_no_wildcard(command.piped)
    tells = name in _TELLING or (name == "git" and bool(_TOLD_GIT & set(texts[:1])))
    shown = any(word.wild or _WILDCARDS & set(word.text) for word in words)
    is_version = len(texts) == 1 and texts[0] in ("-v", "-V", "--version")
    return (tells or is_version) and not shown and command.source is None
