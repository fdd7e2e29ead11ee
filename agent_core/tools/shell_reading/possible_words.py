"""Lists the commands that a shell line may run, for rules that forbid some: rather too many than
too few.

Quotes, `$'…'`, braces, variables that the line sets, `$(echo …)`, `eval`, `sh -c` and programs that
run another one are followed. Unknown parts are marked: UNKNOWN stands for any letters, so a word
with it could be many a word. Nothing is run, no disk is read.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product

from msgspec import Struct

from agent_core.tools.shell_reading.raw_words import (
    MAX_LENGTH,
    expand_braces,
    find_close,
    split_raw,
    unescape_ansi,
)

UNKNOWN = "\ue000"
"""Any letters, or none."""
_ALL = UNKNOWN * 3
"""Any number of words, also in quotes; UNKNOWN twice: without quotes."""
MAX_WAYS, MAX_DEPTH, MAX_COMMANDS = 16, 5, 2_000
MAX_LETTERS = 200_000
"""Maximum letters read of a line in all passes; no line of MAX_LENGTH takes longer."""

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "mksh", "rbash"})
WRAPPERS: dict[str, str] = {
    **dict.fromkeys(("command", "builtin", "setsid", "nohup", "coproc", "busybox", "unbuffer"), ""),
    "env": "uCS", "xargs": "IidnPLsaE", "nice": "n", "timeout": "ks", "sudo": "ugpCDhRrTtU",
    "doas": "uC", "stdbuf": "ioe", "ionice": "cnp", "chrt": "TPD", "taskset": "", "flock": "wE",
    "time": "fo", "exec": "a", "strace": "oepsE", "ltrace": "oes", "watch": "n", "parallel": "jI",
    "caffeinate": "t", "chronic": "", "torsocks": "", "proxychains": "f", "chroot": "", "!": "",
    "unshare": "", "nsenter": "t", "runuser": "ug", "script": "", "pkexec": "u", "su": "s",
}  # fmt: skip
"""Programs that run the following command, and their letters that take a value."""
_PLACED = frozenset({"timeout", "flock", "chrt", "taskset", "chroot", "su", "script"})
"""Programs with one more word before the command."""
_KEYWORDS = frozenset(
    {
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "do",
        "done",
        "while",
        "until",
        "{",
        "}",
        "!",
        "time",
        "case",
    }
    | {"esac", "in", "select", "function", "[[", "]]"}
)
_SET = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*)(\+?)=", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"[@*#?$!0-9-]")
_PRINTED = re.compile(r"%s|%b|\\n")

Fields = tuple[str, ...]


class PossibleCommand(Struct, frozen=True, kw_only=True):
    """A command as words with UNKNOWN in them. `many`: positions of words that may be any number of
    them."""

    words: Fields
    many: frozenset[int] = frozenset()


@lru_cache(maxsize=32)
def read_possible(command: str) -> tuple[PossibleCommand, ...]:
    """Return all commands that the line may run."""
    if len(command) > MAX_LENGTH:
        return (_ANYTHING,)
    reader = _Possible()
    reader.read(command, 0)
    values = None
    for _ in range(4):  # a value may be made of others
        if values == reader.values:
            break
        values = {name: list(ways) for name, ways in reader.values.items()}
        reader.found.clear()
        reader.read(command, 0)
    return tuple(dict.fromkeys(reader.found))


_ANYTHING = PossibleCommand(words=(UNKNOWN,), many=frozenset({0}))


class _Possible:
    """`values`: possible values of each variable, in any order."""

    def __init__(self) -> None:
        self.found: list[PossibleCommand] = []
        self.values: dict[str, list[str]] = {}
        self._left = MAX_LETTERS

    def read(self, text: str, depth: int) -> list[list[list[Fields]]]:
        """Add the commands of `text`; the ways to read the words of each, for who prints them."""
        if not self._spend(depth, len(text)):
            return []
        return [self._read_command(raw, depth) for raw in split_raw(text)]

    def _spend(self, depth: int, letters: int) -> bool:
        """Return True if there is budget to read more; otherwise anything is possible."""
        self._left -= letters + 1
        if depth <= MAX_DEPTH and self._left > 0:
            return True
        if self.found[:1] != [_ANYTHING]:
            self.found.insert(0, _ANYTHING)
        return False

    def _read_command(self, raw: list[str], depth: int) -> list[list[Fields]]:
        while raw and raw[0] in _KEYWORDS:
            raw = raw[1:]
        self._learn(raw, depth)
        spread = (one for word in raw for one in expand_braces(word))
        ways = [self._expand(word, depth) for word in islice(spread, MAX_COMMANDS)]
        sizes = 1
        for at, listed in enumerate(ways):
            sizes *= len(listed)
            if sizes > MAX_WAYS:
                ways[at], sizes = [(UNKNOWN, UNKNOWN)], sizes // max(len(listed), 1)
        for chosen in product(*ways):
            self._add(tuple(field for fields in chosen for field in fields), depth)
        return ways

    def _add(self, words: Fields, depth: int) -> None:
        """Add one command, and those that it runs."""
        words = _drop_settings(words)
        if not words or not self._spend(depth, sum(map(len, words)) + len(words)):
            return
        self._keep(words)
        name = words[0].rpartition("/")[2]
        if name in _SHELLS:
            self._read_shell(words[1:], depth)
        elif name in ("eval", "trap"):
            self.read(_loosen(" ".join(words[1:])), depth + 1)
        elif name == "alias":
            for word in words[1:]:
                self._set(word.partition("=")[0], word.partition("=")[2])
        elif name == "find":
            for at in islice(_find_inner(words), MAX_WAYS):
                self._add(_open(words[at:]), depth + 1)
        elif name in WRAPPERS:
            self._add_inner(name, words[1:], depth)
        self._add_aliased(words, depth)

    def _add_aliased(self, words: Fields, depth: int) -> None:
        if words[0] in self.values and depth < MAX_DEPTH:
            for value in self.values[words[0]][:MAX_WAYS]:
                if value != words[0]:
                    self._add((*value.split(), *words[1:]), depth + 1)

    def _add_inner(self, name: str, words: Fields, depth: int) -> None:
        """Add the command that a program runs that exists to run others."""
        for script in _list_scripts(name, words):
            self.read(_loosen(script), depth + 1)
        inner = _drop_wrapper(name, words)
        if name in ("xargs", "parallel") and inner:
            inner = (*_open(inner), UNKNOWN * 2)
        if inner:
            self._add(inner, depth + 1)

    def _keep(self, words: Fields) -> None:
        many = frozenset(at for at, word in enumerate(words) if UNKNOWN * 2 in word)
        plain = tuple(re.sub(f"{UNKNOWN}+", UNKNOWN, word) for word in words)
        self.found.append(PossibleCommand(words=plain, many=many))

    def _read_shell(self, words: Fields, depth: int) -> None:
        """Read a shell's commands: from -c, or from its input, which is unknown."""
        for at, word in enumerate(words):
            if not word.startswith(("-", "+")):
                if UNKNOWN in word:
                    self.found.append(_ANYTHING)
                return
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                if at + 1 < len(words):
                    self.read(_loosen(words[at + 1]), depth + 1)
                return
        if "--version" not in words and "--help" not in words:
            self.found.append(_ANYTHING)

    def _learn(self, raw: list[str], depth: int) -> None:
        """Note the values that the words may give to variables."""
        for word in raw:
            if found := _SET.match(word):
                name, value = found[1], word[found.end() :]
                if found[2] or value.startswith("("):
                    self._set(name, UNKNOWN * 2)
                    continue
                for fields in self._expand(value, depth):
                    self._set(name, " ".join(fields))
        if raw[:1] == ["for"] and len(raw) > 2:
            listed = raw[3:] if raw[2:3] == ["in"] else [UNKNOWN]
            spread = (one for each in listed for one in expand_braces(each))
            for word in islice(spread, 2 * MAX_WAYS):
                for fields in self._expand(word, depth):
                    self._set(raw[1], " ".join(fields))
        if raw[:1] in (["read"], ["mapfile"], ["readarray"], ["printf"], ["getopts"]):
            for word in raw[1:]:
                if _NAME.fullmatch(word):
                    self._set(word, UNKNOWN * 2)

    def _set(self, name: str, value: str) -> None:
        ways = self.values.setdefault(name, [])
        if value not in ways:
            if len(ways) >= MAX_WAYS or len(value) > 2_000:
                self.values[name] = [UNKNOWN * 2]
            elif ways != [UNKNOWN * 2] or len(ways) != 1:
                ways.append(value)

    def _expand(self, raw: str, depth: int) -> list[Fields]:
        """Return the readings of a word, each as the words it becomes."""
        if not self._spend(depth, len(raw)):
            return [(UNKNOWN * 2,)]
        ways: list[list[str]] = [[""]]
        empty = False
        for text, quoted in self._list_pieces(raw, depth):
            empty = empty or quoted
            following = [_join(way, value, quoted) for way in ways for value in text]
            ways = following if len(following) <= MAX_WAYS else [[UNKNOWN * 2]]
        return [tuple(way) if way != [""] or empty else () for way in ways]

    def _list_pieces(self, raw: str, depth: int) -> Iterator[tuple[list[str], bool]]:
        """Yield the parts of a word, each with its possible values, and whether it is quoted."""
        at, inside = 0, False
        while at < len(raw):
            char = raw[at]
            if char == '"':
                inside, at = not inside, at + 1
                yield [""], True
            elif char == "'" and not inside:
                end = raw.find("'", at + 1)
                end = len(raw) if end < 0 else end
                yield [raw[at + 1 : end]], True
                at = end + 1
            elif raw.startswith("$'", at) and not inside:
                end = find_close(raw, at + 2, "'")
                yield [unescape_ansi(raw[at + 2 : end])], True
                at = end + 1
            elif raw.startswith('$"', at) and not inside:
                at += 1
            elif char == "\\" and inside and raw[at + 1 : at + 2] not in tuple('$`"\\\n'):
                yield [char], True
                at += 1
            elif char == "\\":
                yield [raw[at + 1 : at + 2].replace("\n", "")], True
                at += 2
            elif char == "$" or char == "`":
                values, at = self._expand_dollar(raw, at, depth)
                yield values, inside
            elif (char in "*?" or (char == "[" and "]" in raw[at:])) and not inside:
                yield [UNKNOWN], True
                end = raw.find("]", at) if char == "[" else at
                at = max(at, end) + 1
            else:
                end = next((n for n in range(at, len(raw)) if raw[n] in "\"'\\$`*?["), len(raw))
                end = max(end, at + 1)
                yield [raw[at:end]], inside or UNKNOWN not in raw[at:end]
                at = end

    def _expand_dollar(self, raw: str, at: int, depth: int) -> tuple[list[str], int]:
        """Return the possible values of a dollar or a backtick, and where the word continues."""
        if raw[at] == "`":
            end = find_close(raw, at + 1, "`")
            return self._read_output(raw[at + 1 : end], depth), end + 1
        if raw.startswith("$(", at):
            end = find_close(raw, at + 2, ")")
            if raw.startswith("$((", at):
                return [UNKNOWN], end + 1
            return self._read_output(raw[at + 2 : end], depth), end + 1
        if raw.startswith("${", at):
            end = find_close(raw, at + 2, "}")
            return self._read_braced(raw[at + 2 : end], depth), end + 1
        if found := _NAME.match(raw, at + 1):
            return self._find_values(found.group()), found.end()
        if _SPECIAL.match(raw, at + 1):
            return [_ALL if raw[at + 1] == "@" else UNKNOWN * 2], at + 2
        return ["$"], at + 1

    def _read_braced(self, inner: str, depth: int) -> list[str]:
        found = _NAME.match(inner)
        if found is None:
            return [_ALL]
        rest = inner[found.end() :]
        values = self._find_values(found.group()) if found.group() in self.values else []
        if not rest:
            return self._find_values(found.group())
        if default := re.match(r":?[-=+]", rest):
            given = [" ".join(one) for one in self._expand(rest[default.end() :], depth + 1)]
            return [*values, *given, "", *([] if values else [UNKNOWN * 2])]
        return [_ALL if rest == "[@]" else UNKNOWN * 2]

    def _find_values(self, name: str) -> list[str]:
        if name == "IFS":
            return [" "]
        return self.values.get(name) or ["", UNKNOWN * 2]  # most unset variables are empty

    def _read_output(self, inner: str, depth: int) -> list[str]:
        """Return the possible output of commands: known of a single echo or printf."""
        commands = self.read(inner, depth + 1)
        if len(commands) != 1:
            return [UNKNOWN * 2]
        printed: list[str] = []
        for chosen in islice(product(*commands[0]), MAX_WAYS):
            words = [field for fields in chosen for field in fields]
            if words[:1] == ["echo"]:
                while words[1:2] and re.fullmatch(r"-[neE]+", words[1]):
                    words = words[1:]
                printed.append(" ".join(words[1:]))
            elif words[:1] == ["printf"] and len(words) > 1:
                shape, rest = words[1], words[2:]
                if "%" not in _PRINTED.sub("", shape):
                    parts = iter(rest)
                    filled = re.sub("%[sb]", lambda _, parts=parts: next(parts, ""), shape)  # type: ignore[misc]
                    printed.append(unescape_ansi("".join((filled, *parts))))
                else:
                    return [UNKNOWN * 2]
            else:
                return [UNKNOWN * 2]
        return printed or [UNKNOWN * 2]


def _join(way: list[str], value: str, quoted: bool) -> list[str]:
    """The words with `value` behind the last; without quotes it is parted at its blanks."""
    if quoted or not value:
        return [*way[:-1], way[-1] + (value.replace(UNKNOWN * 2, UNKNOWN) if quoted else value)]
    parts = value.split()
    if not parts:
        return [*way, ""]
    joined = way if not value[0].isspace() or way == [""] else [*way, ""]
    joined = [*joined[:-1], joined[-1] + parts[0], *parts[1:]]
    return [*joined, ""] if value[-1].isspace() else joined


def _drop_settings(words: Fields) -> Fields:
    at = 0
    while at < len(words) and (_SET.match(words[at]) or words[at] in _KEYWORDS):
        at += 1
    return words[at:]


def _find_inner(words: Fields) -> Iterator[int]:
    """Yield where the commands begin that a `find` runs."""
    return (at for at, word in enumerate(words, 1) if word.startswith(("-exec", "-ok")))


def _loosen(script: str) -> str:
    """Replace the unknown parts of a script by any number of words."""
    return script.replace(UNKNOWN, UNKNOWN * 2)


def _open(words: Fields) -> Fields:
    """`{}` is the name of something found."""
    return tuple(word.replace("{}", UNKNOWN) for word in words)


def _drop_wrapper(name: str, words: Fields) -> Fields:
    """Return the command that a wrapper runs, without the wrapper's own options."""
    at = 0
    while at < len(words) and (words[at].startswith("-") or _SET.match(words[at])):
        takes = len(words[at]) == 2 and words[at][1] in WRAPPERS[name]
        at += 2 if takes and not words[at].startswith("--") else 1
    return words[at + (name in _PLACED) :]


def _list_scripts(name: str, words: Fields) -> Iterator[str]:
    """Options of a program that hold a command as one text."""
    for at, word in enumerate(words[:-1]):
        if word in ("-c", "--command") and name in ("su", "flock", "script", "runuser"):
            yield words[at + 1]
        if word in ("-S", "--split-string") and name == "env":
            yield words[at + 1]
    if name in ("watch", "parallel", "su"):
        yield " ".join(word for word in words if not word.startswith("-"))
