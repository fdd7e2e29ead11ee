"""Decides whether a shell command is understood: plain words of known verbs that change nothing.

The boundary is the sandbox; this only decides whether a person is asked. So it is an allow list
with its own small grammar (`shell_reading/line.py`): everything else (assignments, substitutions,
braces, redirections to files, control characters, other verbs, other options) is not understood.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_core.phrases import Phrase, phrase
from agent_core.tools import paths
from agent_core.tools.secret_files import holds_settings, is_keeper
from agent_core.tools.shell_reach import could_be_kept
from agent_core.tools.shell_reading.arguments import (
    GivenArguments,
    check_glob,
    check_place,
    check_text,
    is_hidden,
    read_arguments,
)
from agent_core.tools.shell_reading.find import list_kinds, read_find
from agent_core.tools.shell_reading.git_reading import check_git
from agent_core.tools.shell_reading.line import split_line
from agent_core.tools.shell_reading.lines.conditions import (
    COUNTS,
    check_condition,
    is_number,
    names_inside,
)
from agent_core.tools.shell_reading.lines.names import TOLD
from agent_core.tools.shell_reading.lines.prefixes import CALM, drop_before
from agent_core.tools.shell_reading.piped_names import check_on_names, read_xargs
from agent_core.tools.shell_reading.programs import awk_prints, jq_filters, sed_prints, yq_filters
from agent_core.tools.shell_reading.searches import check_search
from agent_core.tools.shell_reading.verbs import TELLING, VERBS, VERSIONS, Verb
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word


class Understood(Struct, frozen=True, kw_only=True, tag_field="kind", tag="understood"):
    """Every command of the line is known to change nothing that matters. `verbs`: in order; `sets`:
    the shell's variables differ afterwards."""

    verbs: tuple[str, ...]
    sets: bool = False


class NotUnderstood(Struct, frozen=True, kw_only=True, tag_field="kind", tag="not_understood"):
    """A person has to read it. `reason`: a clause such as 'it has a substitution'."""

    reason: Phrase


Check: TypeAlias = Callable[[GivenArguments], bool]

_SEARCHES = frozenset({"diff", "grep", "egrep", "fgrep", "rg", "ag", "zgrep"})
_ON_FOUND = frozenset(
    {"basename", "cksum", "dirname", "du", "egrep", "fgrep", "file", "grep", "ls", "md5sum"}
    | {"sha1sum", "sha256sum", "sha512sum", "stat", "wc"}
)
"""Verbs that may be run on any found files: they do not print their content."""
_WRITERS = {
    "tee": Verb(flags="ai", names=("--append",)),
    "touch": Verb(flags="acm"),
    "mkdir": Verb(flags="pv", names=("--parents", "--verbose")),
}
"""Verbs that change files and run none."""
_NAMED_PYTHON = re.compile(r"python3\.\d{1,2}")
_TOLD = frozenset(TOLD.split("|"))
"""Variables that hold no secret."""
_TESTS = re.compile(
    r"-[abcdefghknoprstuwxzGLNOS]|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)|==?|!=?|-?\d{1,18}|"
)
_PROBES = frozenset({"groups", "hostname", "id", "tty", "whoami"})
"""Verbs that, nested in something else, are typical of probing attacks."""
_SHELLS = frozenset({"sh", "bash", "dash"})
_FIELD = (
    r"(?:p?pid|pgid|sid|u?comm|e?user|e?uid|r?group|%cpu|pcpu|c|%mem|pmem|rss|vsz|stat|state|s|etimes?"
    r"|c?time|cputime|l?start|start_time|tty?|tname|nlwp|psr|pri|ni)=?"
)
_PROCESSES = re.compile(
    rf"(?:-[eA] |-p (?:\d{{1,9}}|\$\$) )*-[eA]?o {_FIELD}(?:,{_FIELD})*"
    rf"(?: (?:--sort=[+-]?{_FIELD}|--no-headers|-p (?:\d{{1,9}}|\$\$)))*"
)
"""A list of processes by their names: the words of a command may be secrets."""
_PORT = re.compile(r"(?:[tT][cC][pP]|[uU][dD][pP])?(?::\d{1,5})?")
_LISTS = re.compile(r"-?(?=[vzjJ]*t)[tvzjJ]{1,5}f")
_SHELL_OPTIONS = {
    "set": re.compile(r"-[eu]{1,2}|-[eu]{0,2}o pipefail|\+e"),
    "shopt": re.compile(r"-s (?:globstar|nullglob|failglob)"),
    "ulimit": re.compile(r"-[an]"),
}
"""Shell options that change no word's meaning."""
_SETTERS = frozenset({"export", "set", "shopt"})
_ASKED_OF_FILE = re.compile(r"-[abcdefghkLprsuwxGNOS]")


def understand(command: str) -> Understood | NotUnderstood:
    """Return whether `command` is plain enough to run without asking."""
    try:
        line = split_line(command)
        verbs = tuple(map(_check_command, line.commands))
    except Strange as strange:
        return NotUnderstood(reason=strange.reason)
    sets = line.sets or not _SETTERS.isdisjoint(verbs)
    return Understood(verbs=verbs, sets=sets)


def runs_no_file(command: str) -> bool:
    """Return True if each command of the line is understood except for the workspace files that it
    writes, by `>`, tee, touch or mkdir: none of them runs a file, or writes what programs obey."""
    try:
        for one in split_line(command, writes=True).commands:
            written = one.targets
            verb = _WRITERS.get(one.words[0].text) if one.words[0].plain else None
            if verb is None:
                _check_command(one)
            else:
                written += read_arguments(verb, one.words[1:]).operands
            for word in written:
                _check_written(word)
    except Strange:
        return False
    return True


def _check_written(word: Word) -> None:
    check_text((word,))
    if paths.why_refused(word.text, write=True) or holds_settings(word.text):
        raise Strange(phrase("odd_place"))


def split_plainly(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of each command of the line; () if it is more than plain words, has wildcards, or
    gives programs variables."""
    try:
        line = split_line(command)
    except Strange:
        return ()
    commands = () if line.exports else line.commands
    if any(word.glob or word.expands or word.feeds for one in commands for word in one.words):
        return ()
    if any(one.source is not None or one.fed for one in commands):
        return ()
    return tuple(tuple(word.text for word in one.words) for one in commands)


def _check_command(command: PlainCommand) -> str:
    """Return the verb of a command that is understood."""
    _check_places(command)
    given = drop_before(command.words)
    verb, words = given[0], given[1:]
    if not verb.plain:
        raise Strange(phrase("odd_name"))
    name = verb.text
    asked = name == "id" and [word.text for word in words] in (["-u"], ["-un"])
    if name in _PROBES and not asked and (command.nested or len(given) < len(command.words)):
        raise Strange(phrase("odd_substitution"))
    if _tells_version(name, words):
        return name
    if any(word.loose and word.stands for word in words) and not _prints(name):
        _check_loose(given)
    elif name in _SHELL_OPTIONS:
        _check_shell_option(name, words)
    elif name == "xargs":
        read_xargs(command.piped, words, _check_on_found, reads_file=command.source is not None)
    elif name == "git":
        check_git(words)
    elif name in _SHELLS:
        _check_inner(words)
    elif name == "find":
        inner, kinds = read_find(words), list_kinds(words)
        for one in inner:
            _check_on_found(one, kinds)
    else:
        _check_plain(name, words)
    return name


def _check_inner(words: tuple[Word, ...]) -> None:
    """A line that a shell of its own reads."""
    if len(words) != 2 or words[0].text != "-c":
        raise Strange(phrase("odd_use", name="sh"))
    check_text(words)
    for one in split_line(words[1].text).commands:
        if one.words[0].text in _SHELLS:
            raise Strange(phrase("odd_use", name="sh"))
        _check_command(replace(one, nested=True))


def _check_plain(name: str, words: tuple[Word, ...]) -> None:
    """A command that runs no other."""
    if name == "[[" and words and words[-1].text == "]]":
        check_condition(words[:-1])
    elif name in ("test", "["):
        ends = name == "[" and words and words[-1].text == "]"
        _check_test(words[:-1] if ends else words)
    elif name == "ps" and _PROCESSES.fullmatch(" ".join(word.text for word in words)):
        check_text(word for word in words if not word.number)
    elif name == "tar":
        _check_tar(words)
    elif name in VERBS:
        _check_verb(name, words)
    else:
        raise Strange(phrase("odd_verb", name=name[:40]))


def _check_places(command: PlainCommand) -> None:
    """Refuse words that lead outside by themselves. A shell expands a wildcard for any program: a
    text that is printed, or searched for, may not match such files either."""
    if command.source is not None:
        check_place(command.source)
        if command.words[0].text not in _ON_FOUND - _SEARCHES:
            check_glob(command.source)
    for word in command.words:
        if word.glob and "$" in word.text[: max(map(word.text.rfind, "*?["))]:
            raise Strange(phrase("odd_substitution"))
        if word.glob and not (command.words[0].text == "ls" and is_hidden(word)):
            check_place(word)


def _tells_version(name: str, words: tuple[Word, ...]) -> bool:
    given = tuple(word.text for word in words)
    if any(word.glob or word.expands for word in words):
        return False
    if name == "command" or (name in ("pip", "pip3") and given[:1] == ("show",)):
        is_asked = given[:1] in (("-v",), ("show",))
        return is_asked and all(text[:1].isalpha() for text in given[1:])
    if name == "help":
        return all(text.isalpha() for text in given)
    if given == ("--help",) and name in VERBS.keys() | VERSIONS - {"aws"}:  # which runs a pager
        return True
    is_named = name in VERSIONS or _NAMED_PYTHON.fullmatch(name) is not None
    return (is_named and given == ("--version",)) or (name, *given) in TELLING


def _check_verb(name: str, words: tuple[Word, ...], *, found: bool = False) -> None:
    given = read_arguments(VERBS[name], words)
    if name in _SEARCHES:
        check_search(name, given, found=found)
    if name == "seq" and any(
        len(word.text) > 7 and not word.text.startswith(("--equal", "--separator="))
        for word in words
    ):
        raise Strange(phrase("odd_use", name=name))
    check = _EXTRA.get(name)
    if check is not None and not check(given):
        raise Strange(phrase("odd_use", name=name))


def _check_on_found(words: tuple[Word, ...], kinds: tuple[str, ...]) -> None:
    """Check a command that is run on files whose names, `{}`, match one of `kinds`; any without."""
    if not words or not words[0].plain or words[0].text not in (VERBS if kinds else _ON_FOUND):
        raise Strange(phrase("odd_find"))
    name, given = words[0].text, words[1:]
    if not kinds or any(map(could_be_kept, kinds)):
        if name not in _ON_FOUND:
            raise Strange(phrase("odd_find"))
        _check_verb(name, given, found=True)
        return
    if any("{}" in word.text and word.text != "{}" for word in given):
        raise Strange(phrase("odd_find"))
    file = Word(text=f"./{kinds[0]}", plain=False, glob=True)
    _check_verb(name, tuple(file if word.text == "{}" else word for word in given))


def _prints(name: str) -> bool:
    return name in VERBS and VERBS[name].prints


def _check_loose(given: tuple[Word, ...]) -> None:
    """Check a command whose arguments are names of files that a shell splits at their blanks, as
    xargs does."""
    rest = tuple(word for word in given if not (word.loose and word.stands))
    alone = not all(word.counts for word in given if word.loose)
    check_on_names(rest, _check_on_found, alone=alone)


def _check_shell_option(name: str, words: tuple[Word, ...]) -> None:
    check_text(words)
    if not _SHELL_OPTIONS[name].fullmatch(" ".join(word.text for word in words)):
        raise Strange(phrase("odd_use", name=name))


def _check_tar(words: tuple[Word, ...]) -> None:
    """An archive's list; the name of one with a colon would be another machine's."""
    check_text(words)
    if len(words) < 2 or not _LISTS.fullmatch(words[0].text) or ":" in words[1].text:
        raise Strange(phrase("odd_use", name="tar"))
    for word in words[1:]:
        if word.text.startswith("-"):
            raise Strange(phrase("odd_option", option=word.text[:40]))
        check_place(word)


def _check_test(words: tuple[Word, ...]) -> None:
    if any(word.expands or word.stands for word in words):
        _check_compared(words)
        return
    check_text(words)
    for word in words:
        if _TESTS.fullmatch(word.text):
            continue
        if word.text.startswith("-") or set("$`") & set(word.text):
            raise Strange(phrase("odd_option", option=word.text[:40]))
        if not names_inside(word):  # the existence of a secret file is no secret
            check_place(word)


def _check_compared(words: tuple[Word, ...]) -> None:
    """Check an unknown text that is compared or tested: split into words at its blanks, it could be
    an option of the test."""
    words = words[1:] if words[:1] and words[0].text == "!" else words
    if any(word.loose and not word.number for word in words):
        raise Strange(phrase("odd_substitution"))
    first, *rest = words
    compares = len(words) == 3 and words[1].text in ("=", "==", "!=") and not words[1].expands
    counts = len(words) == 3 and words[1].plain and words[1].text in COUNTS
    counts = counts and is_number(first) and is_number(words[2])
    measures = len(words) == 2 and first.text in ("-z", "-n") and not first.expands
    looks = len(words) == 2 and bool(_ASKED_OF_FILE.fullmatch(first.text) and rest[0].stands)
    globs = any(word.glob and not word.stands for word in words)
    if globs or not (compares or counts or measures or looks or not rest):
        raise Strange(phrase("odd_substitution"))


def _check_sed(given: GivenArguments) -> bool:
    """Lines chosen, replaced and printed; the flags e and w of a replacement run and write."""
    scripts = given.scripts or given.operands[:1]
    return bool(scripts) and all(sed_prints(word.text) for word in scripts)


def _prints_text(given: GivenArguments) -> bool:
    """Return True if its first word is no option, such as one that sets a variable, and cannot
    become one."""
    first = given.operands[:1]
    return bool(first) and not first[0].text.startswith("-") and not first[0].expands


def _decompresses(given: GivenArguments) -> bool:
    """Return True if it prints what it unpacks, or only its size."""
    return "l" in given.letters or {"d", "c"} <= given.letters


def _unpacks_named(given: GivenArguments) -> bool:
    """Return True if it prints named files of an archive: the program has wildcards of its own."""
    names = [word.text for word in given.operands[1:]]
    return (
        "p" in given.letters and bool(names) and not any(set("*?[") & set(name) for name in names)
    )


def _enters_plain(folder: Word) -> bool:
    """Return True for a folder in which names have their plain meaning."""
    plain = folder.text != "-" and not folder.glob
    return plain and not any(map(is_keeper, folder.text.split("/")))


_EXTRA: dict[str, Check] = {
    "awk": lambda given: awk_prints(given.operands[0].text),
    "sed": _check_sed,
    "jq": lambda given: not given.operands or jq_filters(given.operands[0].text),
    "yq": lambda given: yq_filters(given.operands[0].text),
    "date": lambda given: all(word.text.startswith("+") for word in given.operands),
    "printenv": lambda given: given.operands[0].text in _TOLD,
    "printf": _prints_text,
    "pdftotext": lambda given: given.operands[1].text == "-",
    "top": lambda given: {"b", "n"} <= given.letters,
    "vmstat": lambda given: len(given.operands) != 1,
    "export": lambda given: all(CALM.fullmatch(word.text) for word in given.operands),
    "unzip": lambda given: bool({"l", "t", "v", "Z"} & given.letters) or _unpacks_named(given),
    "gzip": _decompresses,
    "xz": _decompresses,
    "gunzip": lambda given: bool({"c", "l"} & given.letters),
    "pushd": lambda given: (
        _enters_plain(given.operands[0]) and not given.operands[0].text.startswith("+")
    ),
    "lsof": lambda given: all(_PORT.fullmatch(word.text) for word in given.operands),
    "pgrep": lambda given: not given.operands[0].text.startswith("-"),
    "cd": lambda given: _enters_plain(given.operands[0]),
}
