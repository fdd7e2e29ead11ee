"""Decides whether a shell command is understood: plain words of known verbs that change nothing.

The boundary is the sandbox; this only decides whether a person is asked. So it is an allow list
with its own small grammar: what the grammar does not have (assignments, substitutions, braces,
escapes, redirections to files, control characters, other verbs, other options) is not understood.
`$WORKSPACE` is the one expansion: the sandbox's environment is cleared, so it is empty.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from agent_core.phrases import Phrase, phrase
from agent_core.tools import paths
from agent_core.tools.shell_reach import could_be_secret, is_plain_search

MAX_LENGTH = 1_000
"""Characters; padding hides what is at a longer command's end."""


class Understood(Struct, frozen=True, kw_only=True, tag_field="kind", tag="understood"):
    """Every command of the line is known to change nothing that matters. `verbs`: in order."""

    verbs: tuple[str, ...]


class NotUnderstood(Struct, frozen=True, kw_only=True, tag_field="kind", tag="not_understood"):
    """A person has to read it. `reason`: a clause such as 'it has a substitution'."""

    reason: Phrase


class _Word(Struct, frozen=True):
    text: str
    plain: bool
    """Written without quotes, expansions and wildcards."""
    glob: bool
    """Has a wildcard outside of quotes."""


class _Strange(Exception):
    """The line is not in the grammar, for `reason`."""

    def __init__(self, reason: Phrase) -> None:
        super().__init__(reason)
        self.reason = reason


Check: TypeAlias = Callable[[tuple[_Word, ...]], bool]


class _Verb(Struct, frozen=True):
    """What a verb may be given: `flags` are letters; `valued` letters and names take a value that
    is no path; `names` are long options; `free` operands at the start are text, not paths."""

    flags: str = ""
    valued: str = ""
    names: tuple[str, ...] = ()
    free: int = 0
    most: int = 1_000
    least: int = 0
    wild: bool = False
    """A file called like an option could do no harm, so a wildcard may stand first."""
    shows: bool = True
    """It prints what stands in the files that it is given, not only their names and sizes."""


_DIGITS = "0123456789"
_ANY = 1_000
_NAMES = ("--help", "--version")

VERBS: dict[str, _Verb] = {
    "awk": _Verb(valued="F", free=1, least=1),
    "base64": _Verb(flags="di", valued="w", most=1),
    "basename": _Verb(flags="az", valued="s", shows=False),
    "cat": _Verb(flags="AbeEnstTuv", wild=True),
    "cd": _Verb(least=1, most=1),
    "cksum": _Verb(wild=True, shows=False),
    "cmp": _Verb(flags="bls", most=2),
    "column": _Verb(flags="tx", valued="sc"),
    "comm": _Verb(flags="123", most=2),
    "cut": _Verb(flags="sz", valued="bcdf", names=("--complement",), wild=True),
    "date": _Verb(flags="uRI", valued="d", names=("--utc", "--iso-8601", "--date="), most=1),
    "df": _Verb(flags="ahHiklTP", most=0),
    "diff": _Verb(
        flags="abBcdEiNpqrstTuwyZ",
        valued="UWC",
        names=("--color", "--brief", "--unified", "--recursive"),
        wild=True,
    ),
    "dirname": _Verb(flags="z", shows=False),
    "du": _Verb(
        flags="abcDhHkLlmPsSx", valued="d", names=("--max-depth=",), wild=True, shows=False
    ),
    "echo": _Verb(flags="neE", free=_ANY),
    "expand": _Verb(flags="i", valued="t", wild=True),
    "expr": _Verb(free=_ANY),
    "false": _Verb(most=0),
    "file": _Verb(flags="bihLkr", names=("--mime-type", "--brief"), wild=True, shows=False),
    "fmt": _Verb(flags="su", valued="w", wild=True),
    "fold": _Verb(flags="bs", valued="w", wild=True),
    "free": _Verb(flags="bkmghtlw", most=0),
    "grep": _Verb(
        flags="abcEFGhHiIlLnoPqrRsTUvVwxyzZ" + _DIGITS,
        valued="mABC",
        names=(
            *("--include=", "--exclude=", "--exclude-dir=", "--color", "--color=", "--count"),
            *("--ignore-case", "--line-number", "--recursive", "--files-with-matches"),
        ),
        free=1,
        wild=True,
        shows=False,
    ),
    "groups": _Verb(most=0),
    "head": _Verb(flags="qvz" + _DIGITS, valued="nc", names=("--lines=", "--bytes="), wild=True),
    "hexdump": _Verb(flags="Cbcdovx", valued="ns", wild=True),
    "hostname": _Verb(most=0),
    "id": _Verb(flags="ugnGr", most=0),
    "join": _Verb(flags="iz", valued="12jt", most=2),
    "jq": _Verb(flags="cCeMnrsSjR", names=("--raw-output", "--compact-output"), free=1),
    "locale": _Verb(flags="a", most=0),
    "ls": _Verb(
        flags="aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        valued="w",
        names=("--all", "--color", "--color=", "--human-readable", "--recursive", "--sort="),
        wild=True,
        shows=False,
    ),
    "lscpu": _Verb(most=0),
    "md5sum": _Verb(flags="bt", wild=True, shows=False),
    "nl": _Verb(flags="p", valued="bwnsv", wild=True),
    "nproc": _Verb(most=0),
    "od": _Verb(flags="bcdox", valued="AtNjw", wild=True),
    "paste": _Verb(flags="sz", valued="d", wild=True),
    "printf": _Verb(free=_ANY),
    "pwd": _Verb(flags="LP", most=0),
    "readlink": _Verb(flags="fem", shows=False),
    "realpath": _Verb(flags="emsz", shows=False),
    "rev": _Verb(wild=True),
    "rg": _Verb(flags="cFhHiIlLnNoPqsSuUvwx", valued="gtTmABC", free=1, shows=False),
    "sed": _Verb(flags="nEr", free=1, least=1),
    "seq": _Verb(flags="w", valued="s", free=3, most=3),
    "sha1sum": _Verb(flags="bt", wild=True, shows=False),
    "sha256sum": _Verb(flags="bt", wild=True, shows=False),
    "sha512sum": _Verb(flags="bt", wild=True, shows=False),
    "sort": _Verb(flags="bcCdfghiMmnrRsuVz", valued="kt", names=("--reverse", "--unique")),
    "stat": _Verb(flags="Lft", valued="c", names=("--format=",), wild=True, shows=False),
    "strings": _Verb(flags="a", valued="nt", wild=True),
    "sum": _Verb(wild=True, shows=False),
    "tac": _Verb(wild=True),
    "tail": _Verb(flags="qvz" + _DIGITS, valued="nc", names=("--lines=", "--bytes="), wild=True),
    "tr": _Verb(flags="cCdst", free=2, most=2),
    "tree": _Verb(flags="adfghilpsCFDQ", valued="LIP", shows=False),
    "true": _Verb(most=0),
    "tty": _Verb(flags="s", most=0),
    "uname": _Verb(flags="asnrvmpio", most=0),
    "unexpand": _Verb(flags="a", valued="t", wild=True),
    "uniq": _Verb(flags="cdDiuz", valued="fsw", names=("--count",), most=1),
    "uptime": _Verb(flags="ps", most=0),
    "wc": _Verb(flags="clLmw", names=("--lines", "--words", "--bytes"), wild=True, shows=False),
    "which": _Verb(flags="a", free=_ANY, shows=False),
    "whoami": _Verb(most=0),
    "xxd": _Verb(flags="bpu", valued="lsc", most=1),
    "zcat": _Verb(wild=True),
}

_GIT = {
    "status": _Verb(flags="sbuv", names=("--short", "--branch", "--porcelain")),
    "log": _Verb(
        flags=_DIGITS,
        valued="n",
        names=(
            *("--oneline", "--stat", "--graph", "--all", "--decorate", "--name-only"),
            *("--since=", "--until=", "--author=", "--grep=", "--format=", "--pretty="),
            *("--no-merges", "--max-count=", "--name-status", "--reverse", "--date="),
        ),
    ),
    "diff": _Verb(
        flags="pwb",
        valued="U",
        names=(
            *("--stat", "--cached", "--staged", "--name-only", "--name-status", "--check"),
            "--shortstat",
        ),
    ),
    "show": _Verb(flags="ps", names=("--stat", "--oneline", "--name-only", "--format=")),
    "blame": _Verb(flags="wbs", valued="L", most=2),
    "branch": _Verb(flags="avr", names=("--all", "--list", "--show-current"), most=0),
    "ls-files": _Verb(flags="comdst"),
    "rev-parse": _Verb(names=("--short", "--abbrev-ref", "--show-toplevel", "--verify")),
    "describe": _Verb(names=("--tags", "--always", "--dirty", "--all", "--long")),
    "remote": _Verb(flags="v", most=0),
    "shortlog": _Verb(flags="sne"),
    "tag": _Verb(flags="l", names=("--list",), most=0),
}  # fmt: skip

_VERSIONS = (
    "python",
    "python3",
    "node",
    "npm",
    "pip",
    "git",
    "make",
    "gcc",
    "go",
    "cargo",
    "rustc",
)

_FIND_VALUED = (
    *("-name", "-iname", "-path", "-ipath", "-type", "-maxdepth", "-mindepth", "-size"),
    *("-mtime", "-mmin"),
)
_FIND_PLAIN = ("-empty", "-print", "-print0", "-not", "-o", "-or", "-a", "-and", "-prune", "-ls")

_SEARCHES = frozenset({"diff", "grep", "rg"})
_END = _Word("--", True, False)
_SED_LINES = re.compile(r"(\d{1,9}|\$)(,(\d{1,9}|\$))?[pd]|\d{1,9}q")
_SED_SWAPS = re.compile(r"s(?:/[^/\\]*/[^/\\]*/|,[^,\\]*,[^,\\]*,|#[^#\\]*#[^#\\]*#)[gIip0-9]*")
_AWK_ACTS = re.compile(r"[@|]|system|getline|close|fflush|ENVIRON|PROCINFO|ARG[VC]|include|load")
_OPERATOR = re.compile(r"&&|\|\||\||;")
_REDIRECTION = re.compile(r"(?:2>&1|(?:[12]?>|&>)[ ]*/dev/null)(?=$|[ \t;|&])")
_WORKSPACE = re.compile(r"\$\{WORKSPACE\}|\$WORKSPACE(?![A-Za-z0-9_])")


def understand(command: str) -> Understood | NotUnderstood:
    """Whether `command` is plain enough to run without asking."""
    try:
        verbs = tuple(_command(words) for words in _split(command))
    except _Strange as strange:
        return NotUnderstood(reason=strange.reason)
    return Understood(verbs=verbs)


def split_plainly(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of each command of the line; () if it is more than plain words, or has
    wildcards."""
    try:
        commands = _split(command)
    except _Strange:
        return ()
    if any(word.glob for words in commands for word in words):
        return ()
    return tuple(tuple(word.text for word in words) for words in commands)


def _split(command: str) -> list[tuple[_Word, ...]]:
    """The words of each command of the line."""
    if len(command) > MAX_LENGTH:
        raise _Strange(phrase("odd_long"))
    for char in command:
        if unicodedata.category(char)[0] in "CZ" and char not in " \t":
            raise _Strange(phrase("odd_lines"))
    commands: list[list[_Word]] = [[]]
    at, rest = 0, command.strip()
    while at < len(rest):
        if rest[at] in " \t":
            at += 1
        elif found := _REDIRECTION.match(rest, at):
            at = found.end()
        elif found := _OPERATOR.match(rest, at):
            commands.append([])
            at = found.end()
        elif rest[at] == "&":
            raise _Strange(phrase("odd_behind"))
        else:
            word, at = _word(rest, at)
            if word is not None:
                commands[-1].append(word)
    if len(commands) > 1 and not commands[-1] and rest.endswith(";") and rest[-2:] != ";;":
        commands.pop()
    if not all(commands):
        raise _Strange(phrase("odd_empty"))
    return [tuple(words) for words in commands]


def _word(line: str, at: int) -> tuple[_Word | None, int]:
    """The word that begins at `at`, None where it expands to nothing, and where it ends."""
    start, text, glob, quoted = at, "", False, False
    while at < len(line) and line[at] not in " \t;|&":
        char = line[at]
        if char in "'\"":
            end = line.find(char, at + 1)
            if end < 0:
                raise _Strange(phrase("odd_quote"))
            inner = line[at + 1 : end]
            text += _WORKSPACE.sub("", inner) if char == '"' else inner
            if char == '"' and set("$`\\") & set(_WORKSPACE.sub("", inner)):
                raise _Strange(phrase("odd_escape"))
            quoted, at = True, end + 1
        elif char == "$":
            found = _WORKSPACE.match(line, at)
            if not found:
                raise _Strange(phrase("odd_substitution"))
            at = found.end()
        elif char in "\\`<>(){}[]!" or (char in "~#" and (at == start or line[at - 1] in "=:")):
            raise _Strange(phrase("odd_syntax"))
        else:
            glob = glob or char in "*?["
            text += char
            at += 1
    if not text and not quoted:
        return None, at
    plain = line[start:at] == text and not glob
    return _Word(text, plain, glob), at


def _command(words: tuple[_Word, ...]) -> str:
    """The verb of a command that is understood."""
    verb, arguments = words[0], words[1:]
    if not verb.plain:
        raise _Strange(phrase("odd_name"))
    name = verb.text
    if name in _VERSIONS and [word.text for word in arguments] == ["--version"]:
        return name
    if name == "find":
        _find(arguments)
    elif name == "git" and arguments and arguments[0].plain and arguments[0].text in _GIT:
        for word in _arguments(_GIT[arguments[0].text], arguments[1:]):
            _check_revision(word)
    elif name in VERBS:
        operands = _arguments(VERBS[name], arguments)
        if name in _SEARCHES:
            _check_search(name, arguments, operands)
        check = _EXTRA.get(name)
        if check is not None and not check(operands):
            raise _Strange(phrase("odd_use", name=name))
    else:
        raise _Strange(phrase("odd_verb", name=name[:40]))
    return name


def _arguments(verb: _Verb, words: tuple[_Word, ...]) -> tuple[_Word, ...]:
    """The operands, after every option and every path was checked."""
    operands: list[_Word] = []
    waiting, options = list(words), True
    while waiting:
        word = waiting.pop(0)
        if options and word.text == "--":
            options = False
        elif options and word.text.startswith("-") and word.text != "-":
            if _option(verb, word):
                if not waiting:
                    raise _Strange(phrase("odd_valued", option=word.text))
                if waiting.pop(0).glob:  # the first file would be the value, the others options
                    raise _Strange(phrase("odd_glob_in_option"))
        else:
            if word.text[:1] in ("*", "?", "[") and word.glob and options and not verb.wild:
                raise _Strange(phrase("odd_glob_option"))
            if len(operands) >= verb.free:
                _inside(word)
                if word.glob and verb.shows and could_be_secret(word.text):
                    raise _Strange(phrase("odd_glob_secret"))
            if word.glob and verb.most < _ANY:  # the shell may make more of it than one
                raise _Strange(phrase("odd_count"))
            operands.append(word)
    if not verb.least <= len(operands) <= verb.most:
        raise _Strange(phrase("odd_count"))
    return tuple(operands)


def _option(verb: _Verb, word: _Word) -> bool:
    """True if the option's value is the next word."""
    text = word.text
    name, equals, _ = text.partition("=")
    if text.startswith("--"):
        if name + equals not in (*verb.names, *_NAMES):
            raise _Strange(phrase("odd_option", option=name[:40]))
        return False
    if word.glob:
        raise _Strange(phrase("odd_glob_in_option"))
    for at, letter in enumerate(text[1:], 2):
        if letter in verb.valued:
            return at == len(text)
        if letter not in verb.flags:
            raise _Strange(phrase("odd_option", option=text[:40]))
    return False


def _inside(word: _Word) -> None:
    """Refuse an operand that may lead out of the workspace or to a secret."""
    text = word.text
    if text in ("-", "/dev/null"):
        return
    if paths.why_refused(text):
        raise _Strange(phrase("odd_place"))
    if word.glob and any(
        part[:1] == "." and part not in (".", "..") and set("*?[") & set(part)
        for part in text.split("/")
    ):
        raise _Strange(phrase("odd_glob_dot"))


def _check_revision(word: _Word) -> None:
    """Refuse what git finds behind the colon of `revision:path`."""
    path = word.text.partition(":")[2]
    if path and paths.why_refused(path.removeprefix("./")):
        raise _Strange(phrase("odd_place"))


def _check_search(name: str, words: tuple[_Word, ...], operands: tuple[_Word, ...]) -> None:
    """Refuse a search of what may be a file for secrets, but for words that are none."""
    if not operands:
        raise _Strange(phrase("odd_count"))
    before = words[: words.index(_END)] if _END in words else words
    options = [word.text for word in before if word.text.startswith("-") and word not in operands]
    letters = {letter for text in options if text[:2] != "--" for letter in text[1:]}
    if name == "diff":
        if ("r" in letters or "--recursive" in options) and not letters & {"q"}:
            raise _Strange(phrase("odd_search"))
        return
    deep = name == "rg" or bool(letters & set("rR")) or "--recursive" in options
    wide = any(word.glob and could_be_secret(word.text) for word in operands[1:])
    if not deep and not wide:
        return
    kinds = [text.partition("=")[2] for text in options if text.startswith("--include=")]
    if any(map(could_be_secret, kinds)):
        raise _Strange(phrase("odd_search"))
    if kinds and not wide:
        return
    if letters & set("lLcq") or {"--count", "--files-with-matches"} & set(options):
        return
    if "v" in letters or not is_plain_search(operands[0].text):
        raise _Strange(phrase("odd_search"))


def _find(words: tuple[_Word, ...]) -> None:
    texts = list(words)
    while texts and not texts[0].text.startswith("-"):
        if texts[0].glob:
            raise _Strange(phrase("odd_find_glob"))
        _inside(texts.pop(0))
    while texts:
        word = texts.pop(0)
        if word.text in _FIND_VALUED and texts and not texts[0].glob:
            texts.pop(0)
        elif word.text not in _FIND_PLAIN:
            raise _Strange(phrase("odd_find"))


def _sed_prints(operands: tuple[_Word, ...]) -> bool:
    """Lines by their number, or one replacement; its flags e and w run and write."""
    return bool(_SED_LINES.fullmatch(operands[0].text) or _SED_SWAPS.fullmatch(operands[0].text))


def _awk_prints(operands: tuple[_Word, ...]) -> bool:
    """A program without commands, files of its own, other files' names and the environment."""
    text = operands[0].text
    acts = _AWK_ACTS.search(text.replace("||", ""))
    return not acts and ">" not in text.partition("{")[2]


def _jq_filters(operands: tuple[_Word, ...]) -> bool:
    text = operands[0].text if operands else "."
    return not re.search(r"\b(env|ENV|include|import|input_filename|debug|halt\w*)\b", text)


_EXTRA: dict[str, Check] = {
    "awk": _awk_prints,
    "sed": _sed_prints,
    "jq": _jq_filters,
    "date": lambda operands: all(word.text.startswith("+") for word in operands),
    "printf": lambda operands: bool(operands) and not operands[0].text.startswith("-"),
    "cd": lambda operands: operands[0].text != "-" and not operands[0].glob,
}
