"""Reads the commands that `xargs` runs on names printed by a command before it.

xargs splits names at blanks, and a part may look like an option. Because of what a program does
with an option or a path that nobody wrote, so few may run on them; a file whose name holds such a
part is written only after a person was asked (`holds_settings`).
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.arguments import GivenArguments, read_arguments
from agent_core.tools.shell_reading.find import list_kinds, names_each_apart
from agent_core.tools.shell_reading.searches import is_of_a_kind
from agent_core.tools.shell_reading.verbs import VERBS, Verb
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word

SEARCHES = frozenset({"grep", "egrep", "fgrep"})
_COUNTING = frozenset({"wc", "du"})
"""Programs with an option that names a list of files, which print the words of a wrong list. With
another file beside it they refuse the list; a repository of that one file is not provided for."""
_ON_NAMES = SEARCHES | _COUNTING | {"basename", "dirname", "ls", "stat", "cksum", "md5sum"}
_ON_NAMES |= {"sha1sum", "sha256sum", "sha512sum"}
"""Verbs that print nothing of a file's content, whatever options and paths they are given."""
CheckFound: TypeAlias = Callable[[tuple[Word, ...], tuple[str, ...]], None]
"""Judges a command that is run on files of these kinds, of any without: `{}` is their names."""

PICKS = frozenset({"head", "tail"})
ORDERS = frozenset({"sort", "uniq"})
_SHORT_LISTS = frozenset("aAdrRtSUX1")
"""Letters of `ls` with which it prints names alone."""
_PLACE = re.compile(r"(?:\w[\w.-]{0,80}/?){1,20}|\.")
"""A folder, or a file of a plain name."""
_XARGS = Verb(flags="0rt", valued="nPLId")


def read_xargs(
    before: PlainCommand | None,
    words: tuple[Word, ...],
    check_found: CheckFound,
    *,
    reads_file: bool = False,
) -> None:
    """Raise Strange if the command of `xargs` could do more than look at the names before it.
    `reads_file`: they are in a file, of which it may print the words.
    `check_found`: judges a command that is run on files of any name, each a word by itself."""
    if before is None and not reads_file:
        raise Strange(phrase("odd_verb", name="xargs"))
    at = next((n for n, word in enumerate(words) if word.text in VERBS), len(words))
    given = read_arguments(_XARGS, words[:at])
    if given.operands:
        raise Strange(phrase("odd_use", name="xargs"))
    if at == len(words) or words[at].text == "echo":  # which prints its arguments
        return
    if before is None:
        raise Strange(phrase("odd_use", name="xargs"))
    if before.words[0].text == "find" and names_each_apart(before.words) and "0" in given.letters:
        replaced = () if "I" in given.letters else (Word(text="{}"),)
        check_found((*words[at:], *replaced), list_kinds(before.words[1:]))
        return
    check_on_names(words[at:], check_found, alone=bool(set("nPLI") & given.letters))
    check_source(before, is_counted=words[at].text in _COUNTING)


def check_on_names(words: tuple[Word, ...], check_found: CheckFound, *, alone: bool) -> None:
    """Check a command that may run on any words. `alone`: it is given few at a time."""
    name = words[0].text
    if name not in _ON_NAMES or (alone and name in _COUNTING):
        raise Strange(phrase("odd_use", name="xargs"))
    if name in SEARCHES:
        given = read_arguments(VERBS[name], words[1:])
        names = {"--count", "--files-with-matches"} & set(given.names)
        if not names and not given.letters & set("lLcq"):
            raise Strange(phrase("odd_search"))
    check_found(words, ())


def check_source(before: PlainCommand, *, is_counted: bool) -> None:
    """Refuse a command that prints more than names of existing files. `is_counted`: no single one
    may be picked out of them."""
    source: PlainCommand | None = before
    first = _find_source(before)
    if first.words[0].text == "find" or _searches_folder(first):  # no name begins like an option
        is_counted = False
    while source is not None and source.words[0].text in PICKS | ORDERS | SEARCHES:
        if _is_found(source):
            break
        given = read_arguments(VERBS[source.words[0].text], source.words[1:])
        picks = source.words[0].text not in ORDERS
        if (picks and is_counted) or not _only_picks(source.words[0].text, given) or source.fed:
            raise Strange(phrase("odd_use", name="xargs"))
        source = source.piped if source.source is None else None
    if source is None or not _prints_names(source, is_counted):
        raise Strange(phrase("odd_use", name="xargs"))


def _find_source(command: PlainCommand) -> PlainCommand:
    """The first of the commands that are piped into one another."""
    while command.piped is not None:
        command = command.piped
    return command


def _searches_folder(command: PlainCommand) -> bool:
    """Return True if it prints names of files that begin with those of folders it is given."""
    if not _is_found(command):
        return False
    given = read_arguments(VERBS[command.words[0].text], command.words[1:])
    folders = given.operands if given.scripts else given.operands[1:]
    return bool(folders) and all(_PLACE.fullmatch(word.text) for word in folders)


def _is_found(command: PlainCommand) -> bool:
    """A search that prints the names of files."""
    name = command.words[0].text
    if name not in SEARCHES:
        return False
    given = read_arguments(VERBS[name], command.words[1:])
    return bool(set("lL") & given.letters) or "--files-with-matches" in given.names


def _only_picks(name: str, given: GivenArguments) -> bool:
    """Return True if it prints some of its input lines unchanged."""
    if name in SEARCHES:
        kept = given.letters <= set("vEFiwxP") and not given.names
        return kept and len(given.operands) == 1
    return not given.operands and not given.letters & set("cdDoz")


def _prints_names(command: PlainCommand, is_counted: bool) -> bool:
    name, words = command.words[0].text, command.words[1:]
    texts = [word.text for word in words]
    if name == "find":
        return not {"-printf", "-ls", "-exec"} & set(texts)
    if name == "git":
        asked = [text for text in texts[1:] if text[:1] != "-"]
        whole = all(_PLACE.fullmatch(text) or is_of_a_kind(text) for text in asked)
        return texts[:1] == ["ls-files"] and (whole or not is_counted)
    if name == "ls":
        given = read_arguments(VERBS[name], words)
        kinds = bool(given.operands) and all(is_of_a_kind(word.text) for word in given.operands)
        return given.letters <= _SHORT_LISTS and not given.names and (kinds or not is_counted)
    if is_counted:
        return False
    if name == "rg":
        return "--files" in texts or bool(set("l") & read_arguments(VERBS[name], words).letters)
    return _is_found(command)
