"""Decides whether a command of git only reads."""

import re

from msgspec.structs import replace

from agent_core.phrases import phrase
from agent_core.tools import paths
from agent_core.tools.shell_reading.arguments import (
    GivenArguments,
    check_place,
    check_text,
    read_arguments,
)
from agent_core.tools.shell_reading.git_verbs import GIT, REMOTE, SAID
from agent_core.tools.shell_reading.searches import FILE, check_search
from agent_core.tools.shell_reading.verbs import Verb
from agent_core.tools.shell_reading.words import Strange, Word

_COMMIT = re.compile(r"HEAD(?:[~^]\d{0,4}){0,4}(?:\^\{(?:tree|commit)\})?(?=$|:)")
_SPAN = re.compile(r"(?:HEAD|[\w./-]{1,80}\.\.)[\w./~^-]{0,80}")
"""Commits, by words that are no path of a folder."""
_MERGED = frozenset({"--merged", "--no-merged"})
"""Options that make a word after `git branch` no new branch's name."""


def check_git(words: tuple[Word, ...]) -> None:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text == "-C" and at + 1 < len(words):
            check_text(words[at + 1 : at + 2])
            check_place(words[at + 1])
            at += 2
        elif words[at].plain and words[at].text in ("--no-pager", "-P"):
            at += 1
        else:
            raise Strange(phrase("odd_option", option=words[at].text[:40]))
    rest = words[at:]
    if not rest or not rest[0].plain:
        raise Strange(phrase("odd_verb", name="git"))
    name = rest[0].text
    longer = f"{name} {rest[1].text}" if len(rest) > 1 and rest[1].plain else ""
    if name == "config":
        _check_setting(rest[2:] if longer == "config --get" else rest[1:])
        return
    verb = GIT.get(longer) or GIT.get(name)
    if verb is None or any(word.text == "--help" for word in rest):
        raise Strange(phrase("odd_verb", name=f"git {name}"[:40]))
    known = replace(verb, revisions=name != "cat-file")
    given = read_arguments(known, rest[2 if longer in GIT else 1 :])
    _check_use(verb, name, given)
    for word in given.operands:
        _check_revision(word)


def _check_setting(asked: tuple[Word, ...]) -> None:
    if len(asked) != 1 or not asked[0].plain:
        raise Strange(phrase("odd_use", name="git config"))
    if not (asked[0].text.startswith(SAID) or REMOTE.fullmatch(asked[0].text)):
        raise Strange(phrase("odd_use", name="git config"))


def _check_use(verb: Verb, name: str, given: GivenArguments) -> None:
    """Refuse arguments that make a known command do more than look."""
    if name == "grep":
        check_search("git grep", given, found=True)
    if verb is GIT["branch"] and given.operands and not _MERGED & set(given.names):
        raise Strange(phrase("odd_use", name="git branch"))
    if name == "cat-file" and not _names_object(given):
        raise Strange(phrase("odd_use", name="git cat-file"))
    if verb is GIT["log"]:
        _check_changes(given)
    if "--no-index" in given.names:
        _check_compared(given)


def _check_changes(given: GivenArguments) -> None:
    """Refuse the changes in a log of more than files that are named one by one."""
    if not ({"p", "U"} & given.letters or "--patch" in given.names):
        return
    rest = [word for word in given.operands if not FILE.search(word.text)]
    if len(rest) == len(given.operands) or not all(_SPAN.fullmatch(word.text) for word in rest):
        raise Strange(phrase("odd_option", option="-p"))


def _check_compared(given: GivenArguments) -> None:
    """Require two files, not two folders with all their content."""
    files = [one for one in given.operands if FILE.search(one.text) or one.text == "/dev/null"]
    if not len(files) == len(given.operands) == 2:
        raise Strange(phrase("odd_search"))


def _names_object(given: GivenArguments) -> bool:
    """Return True if an object's content is not shown, or is that of a commit, a tree or a file by
    its name: an object's own number may be that of a file with secrets."""
    shown = given.operands[0].text
    return bool(given.letters - {"p"}) or ("p" in given.letters and bool(_COMMIT.match(shown)))


def _check_revision(word: Word) -> None:
    """Refuse an unsafe path after the colon of `revision:path`."""
    path = word.text.partition(":")[2]
    if path and paths.why_refused(path.removeprefix("./")):
        raise Strange(phrase("odd_place"))
