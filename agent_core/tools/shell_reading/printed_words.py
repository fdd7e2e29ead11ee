"""Decides what is known of the words of a substitution: a number or a time, revisions of git, or
names of existing files.

A file's name counts as a wildcard that matches it: a program may be given both or neither.
"""

import re

from msgspec.structs import replace

from agent_core.tools.shell_reach import could_be_secret
from agent_core.tools.shell_reading.arguments import read_arguments
from agent_core.tools.shell_reading.piped_names import ORDERS, PICKS, SEARCHES, check_source
from agent_core.tools.shell_reading.searches import is_of_a_kind
from agent_core.tools.shell_reading.verbs import VERBS
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word

ANY_NAME = "*"
"""A name of which nothing else is known."""
_TIMES = {
    "%Y": "2000", "%m": "01", "%d": "01", "%H": "00", "%M": "00", "%S": "00", "%s": "0",
    "%j": "001", "%F": "2000-01-01", "%T": "00:00:00", "%R": "00:00", "%N": "0", "%V": "01",
}  # fmt: skip
"""Parts of a time that consist of digits, and separators allowed between digits."""
_TIME = re.compile(r"\+(%[YmdHMSsjFTRNV](?:[-_:]?%[YmdHMSsjFTRNV]){0,8})")
_COUNTS = frozenset("lwcm")
_REVISION = re.compile(r"[\w@][\w./~^@-]{0,200}(?:@\{(?:u|upstream|\d{1,4})\})?")
_HASHES = re.compile(
    r"--(?:format|pretty)=(?:format:)?%[hH]|-\d{1,4}|-n|--(?:no-merges|all|reverse)?"
)
_HASH = re.compile(r"--format=%\(objectname(?::short)?\)")
_ASKED_OF_GIT: dict[str, re.Pattern[str]] = {
    "rev-parse": re.compile(r"--(?:short(?:=\d{1,2})?|verify|quiet)"),
    "branch": re.compile(rf"-[ar]|--(?:no-)?merged|--sort=[\w:-]+|{_HASH.pattern}"),
    "for-each-ref": re.compile(rf"--sort=[\w:-]+|--count=\d{{1,4}}|{_HASH.pattern}"),
    "merge-base": re.compile(r"--(?:all|fork-point)"),
    "log": _HASHES,
    "rev-list": re.compile(r"-\d{1,4}|-n|--(?:all|no-merges|max-count=\d{1,4}|max-parents=0)?"),
}
"""Questions that git answers only with hashes of commits, one a line."""
_ONE_NAME: dict[str, re.Pattern[str]] = {
    "rev-parse": re.compile(r"--(?:abbrev-ref|symbolic-full-name|verify|quiet)"),
    "branch": re.compile(r"--show-current"),
    "describe": re.compile(r"--(?:tags|always|all|long|dirty|abbrev=\d{1,2})"),
    "symbolic-ref": re.compile(r"--short|--quiet|-q"),
}
"""Options with which it prints one name of a branch or a tag. The repository's author chose that
name, and it may read like an option if nothing precedes it."""
_ENDING = re.compile(r"\\\.(?:\\?\(((?:\w{1,10}\\?\|){0,8}\w{1,10})\\?\)|(\w{1,10}))\$")


def describe_printed(commands: list[PlainCommand], word: Word) -> Word:
    """Return the word `word`, which the commands' output replaces, with what is known of it."""
    piped = [one.piped for one in commands]
    last = [one for one in commands if one not in piped]
    if len(last) != 1:
        return word
    if number := _find_number(last[0]):
        return Word(text=number, plain=False)
    return _describe_name(last[0], word)


def describe_line(command: PlainCommand, word: Word) -> Word:
    """The word `word`, which becomes a line that the command prints."""
    try:
        check_source(command, is_counted=False)
    except Strange:
        return word
    return replace(word, plain=False, stands=_find_pattern(command))


def loosen(word: Word) -> Word:
    """Return the word as it is without quotes: a shell splits it at its blanks."""
    return replace(word, plain=False, loose=True)


def _describe_name(command: PlainCommand, word: Word) -> Word:
    if _prints_hashes(command):
        return Word(text="HEAD", plain=False, expands=True, fact=True)
    if _prints_one_name(command):
        return Word(text="HEAD", plain=False, expands=True, wild=word.wild, branch=True)
    known = describe_line(command, word)
    if not known.stands:
        return known
    try:
        check_source(command, is_counted=True)
    except Strange:
        return known
    return replace(known, counts=True)


def _find_number(command: PlainCommand) -> str:
    """A number like that which the command prints, or a time; "" where it prints something else."""
    name, texts = command.words[0].text, [word.text for word in command.words[1:]]
    fed = command.piped is not None or command.source is not None or command.fed
    if name == "nproc" or (name == "id" and texts == ["-u"]):
        return "0"
    if name == "date":
        found = [_TIME.fullmatch(text) for text in texts if text[:1] == "+"]
        plain = {"-u", "-d", "--utc"}.issuperset(text for text in texts if text[:1] == "-")
        if len(found) == 1 and found[0] is not None and plain:
            return re.sub("%.", lambda part: _TIMES[part[0]], found[0][1])
    if name == "wc" and fed:
        asked = len(texts) == 1 and texts[0][:1] == "-" and texts[0][1:] in _COUNTS
        return "0" if asked else ""
    if name == "tr" and texts[:1] == ["-d"] and command.piped is not None:
        return _find_number(command.piped)
    if name in SEARCHES:
        return "0" if _counts_one(command, fed) else ""
    if name == "git" and texts[:2] == ["rev-list", "--count"]:
        return "0"
    return ""


def _counts_one(command: PlainCommand, fed: bool) -> bool:
    """Return True for a search that counts lines of one file, and prints no name beside its
    number."""
    try:
        given = read_arguments(VERBS[command.words[0].text], command.words[1:])
    except Strange:
        return False
    files = len(given.operands) + len(given.scripts) - 1
    whole = any(word.glob for word in given.operands[1:])
    plain = "c" in given.letters <= set("ceivwxEFP") and not given.names
    return plain and not whole and files == (0 if fed else 1)


def _prints_hashes(command: PlainCommand) -> bool:
    name, words = command.words[0].text, command.words[1:]
    if name in PICKS | ORDERS and command.piped is not None and command.source is None:
        given = {word.text for word in words if word.text[:1] != "-" and not word.text.isdecimal()}
        return not given and _prints_hashes(command.piped)
    if not _asks_git(command, _ASKED_OF_GIT):
        return False
    texts = [word.text for word in words[1:]]
    told = any(map(_HASH.fullmatch, texts))
    hashes = any(text.startswith(("--format=", "--pretty=")) for text in texts)
    return {"branch": told, "for-each-ref": told, "log": hashes}.get(words[0].text, True)


def _prints_one_name(command: PlainCommand) -> bool:
    if not _asks_git(command, _ONE_NAME):
        return False
    asked, given = command.words[1].text, command.words[2:]
    operands = sum(word.text[:1] != "-" for word in given)
    return operands <= 1 and (operands < len(given) or asked not in ("branch", "rev-parse"))


def _asks_git(command: PlainCommand, known: dict[str, re.Pattern[str]]) -> bool:
    words = command.words[1:]
    asked = known.get(words[0].text) if command.words[0].text == "git" and words else None
    if asked is None or any(word.expands and not word.fact for word in words):
        return False
    return all(asked.fullmatch(one.text) or _REVISION.fullmatch(one.text) for one in words[1:])


def _find_pattern(command: PlainCommand) -> str:
    """Return a wildcard for the names that the command prints, one a line. A name may hold a line
    end, and its parts are then names of their own, of which nothing is known; git escapes such
    names."""
    kinds: tuple[str, ...] = ()
    source = command
    while source.piped is not None and source.words[0].text in PICKS | ORDERS | SEARCHES:
        if source.words[0].text in SEARCHES and not kinds:
            kinds = _list_endings(source)
        source = source.piped
    if source.words[0].text != "git":
        return ANY_NAME
    if not kinds:
        asked = [word.text for word in source.words[1:] if word.text[:1] != "-"]
        kinds = tuple(asked[1:]) if all(map(is_of_a_kind, asked[1:])) else ()
    return next(filter(could_be_secret, kinds), kinds[0]) if kinds else ANY_NAME


def _list_endings(command: PlainCommand) -> tuple[str, ...]:
    """The kinds of names that a search picks by their endings."""
    given = read_arguments(VERBS[command.words[0].text], command.words[1:])
    sought = given.scripts or given.operands[:1]
    found = [_ENDING.search(word.text) for word in sought]
    if "v" in given.letters or len(found) != 1 or found[0] is None:
        return ()
    if "|" in sought[0].text[: found[0].start()] or found[0].end() != len(sought[0].text):
        return ()
    endings = found[0][2] or found[0][1].replace("\\", "")
    return tuple(f"*.{ending}" for ending in endings.split("|"))
