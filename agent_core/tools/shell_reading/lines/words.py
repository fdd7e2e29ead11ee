"""Reads one word of a shell line: its quotes, escapes and expansions."""

import re
import unicodedata
from abc import ABC, abstractmethod
from typing import NoReturn

from msgspec.structs import replace

from agent_core.phrases import phrase
from agent_core.text import LatePattern
from agent_core.tools.shell_reading.lines.conditions import is_number
from agent_core.tools.shell_reading.lines.names import (
    ELEMENTS,
    LENGTH,
    POSITIONAL,
    SHAPED,
    SHOWN_NOW,
    SUM,
    VARIABLE,
)
from agent_core.tools.shell_reading.printed_text import prints_no_wildcard
from agent_core.tools.shell_reading.printed_words import describe_printed, loosen
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word, join_parts

MAX_LENGTH = 1_000
"""Maximum characters; padding hides the end of a longer command."""
MAX_REWRITTEN_LENGTH = 2 * MAX_LENGTH
MAX_COUNTED = 40
STOPS = " \t\n;|&"
"""Signs that end a word."""
_WORKSPACE = re.compile(r"\$\{WORKSPACE\}|\$WORKSPACE(?![A-Za-z0-9_])")
_BEGINS = re.compile(r"(?:\A|[\s;|&(=])\"?\Z|\A\"\Z")
_FOLDER = re.compile(r"(?:\$PWD|\$\{PWD\}|\$\(pwd\))(?=$|[/\s;|&)])")
_FOLDER_QUOTED = re.compile(r"(?:\$PWD|\$\{PWD\}|\$\(pwd\))(?=/|\"(?:$|[/\s;|&)]))")
"""The folder that the shell is in, as a path of its own or the beginning of one."""
_ANSI = re.compile(r"\$'((?:[^'\\\n]|\\[tn])*)'")
_EASY = re.compile(r"[A-Za-z0-9_./:,=+@%-]*")
"""A value that stays one word without quotes."""
_BRACES = LatePattern(
    r"([\w./*?:=%@+,-]{0,80})\{(?:([\w.*-]{0,40}(?:,[\w.*-]{0,40}){1,20})|(\d{1,4})\.\.(\d{1,4})"
    r"|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))\}"
    r"([\w./*?:=%@+,{}-]{0,80}(?=[\s;|&)]|$))"
)
"""A word of plain signs with a list in braces. A shell without them takes it as it stands."""
_LITERAL_DOLLAR = re.compile(r"\$(?=$|[\s|;&])")
_LITERAL_DOLLAR_QUOTED = re.compile(r"\$(?![A-Za-z0-9_{(\[*@#?!$'-])")
_REFLOG = re.compile(r"@\{(?:\d{1,6}|u|upstream|push|yesterday|\d{4}-\d\d-\d\d)\}|\^\{[a-z]{0,6}\}")
_BARE = re.compile(r"(?:\{\}|\[\[?|\]\]?)(?=$|[\s;|&)])")
_EMPTY = re.compile(r"\{\}")
_CLASS = re.compile(r"\[(?:[A-Za-z0-9](?:-[A-Za-z0-9])?){1,20}\]")
_ESCAPED = re.compile(r"\\[ ()!;|&*?\[\]{}$'\"#~<>,.:=+/@%^-]")
_BACKTICKS = re.compile(r"`([\w./ :=,+%@|&;'-]{1,80})`")
"""The older way to write `$(…)`, where nothing in it means something else there."""
_WIDE = re.compile(r"[\uff01-\uff5e]")
_SIGNS = frozenset(";|&<>`$(){}[]\\'\"#~!")


class Rewritten(Exception):
    """The line says the same as `line`, which is plainer: it is read anew."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.line = line


class WordReader(ABC):
    """Reads words of `line` from `_at` on. `_names`: the variables that it set so far."""

    def __init__(self, line: str, *, writes: bool) -> None:
        self._line, self._at = line, 0
        self._stops = STOPS + ">" if writes else STOPS
        self._done: list[PlainCommand] = []
        self._brackets = 0
        self._names: dict[str, Word] = {}
        self._arrays: dict[str, tuple[Word, ...]] = {}
        self._here: list[tuple[str, bool, bool]] = []

    @abstractmethod
    def _read_inner(self, at: int) -> None:
        """The commands in brackets that begin before `at`."""

    def _expand_braces(self) -> None:
        """Replace a list in braces by its words, as bash does before all else."""
        if found := _BRACES.match(self._line, self._at):
            before, listed, *ends, behind = found.groups()
            first, last = [end for end in ends if end] or ("", "")
            if listed:
                words = listed.split(",")
            elif first.isdecimal():
                words = _count(int(first), int(last))
            else:
                words = [chr(int(code)) for code in _count(ord(first), ord(last))]
            self._rewrite(found.end(), " ".join(f"{before}{word}{behind}" for word in words))

    def _rewrite(self, end: int, text: str) -> NoReturn:
        line = self._line[: self._at] + text + self._line[end:]
        if len(line) > MAX_REWRITTEN_LENGTH:
            raise Strange(phrase("odd_long"))
        raise Rewritten(line)

    def _read_word(self, *, is_value: bool = False) -> Word | None:
        """The word that begins here, None where it expands to nothing. `is_value`: of a variable,
        in which a shell looks for no wildcard yet."""
        line, start = self._line, self._at
        parts, quoted = list[Word](), False
        stops = self._stops + ")" if self._brackets else self._stops
        while self._at < len(line) and line[self._at] not in stops:
            at = self._at
            char = line[at]
            if char in "'\"":
                parts.append(self._read_quoted(char))
                quoted = True
            elif found := _ANSI.match(line, at):
                parts.append(Word(text=found[1].replace("\\t", "\t").replace("\\n", "\n")))
                quoted, self._at = True, found.end()
            elif (inner := self._read_expansion()) is not None:
                parts.append(
                    inner if is_value and not inner.glob else _take_unquoted(inner, is_value)
                )
            elif found := (_ESCAPED.match(line, at) or _LITERAL_DOLLAR.match(line, at)):
                parts.append(Word(text=found.group()[-1]))
                quoted, self._at = True, found.end()
            elif found := (
                _EMPTY.match(line, at)
                or (_REFLOG.match(line, at) if at > start or char == "@" else _BARE.match(line, at))
            ):
                parts.append(Word(text=found.group()))
                self._at = found.end()
            elif found := _CLASS.match(line, at):
                parts.append(Word(text=found.group(), glob=True))
                self._at = found.end()
            else:
                self._check_sign(char, start)
                parts.append(Word(text=char, glob=char in "*?"))
                self._at += 1
        word = join_parts(parts)
        if not word.text and not quoted and not word.expands:
            return None
        plain = line[start : self._at] == word.text and not word.glob and not word.expands
        return replace(word, plain=plain)

    def _check_sign(self, char: str, start: int) -> None:
        """Refuse what means something to a shell beyond this grammar."""
        at = self._at
        if char == "$":
            raise Strange(phrase("odd_substitution"))
        if char in "\\`<>(){}[]" or _WIDE.match(char) or _SIGNS & set(_normalize(char)):
            raise Strange(phrase("odd_syntax"))
        if char in "~#" and (at == start or self._line[at - 1] in "=:"):
            raise Strange(phrase("odd_syntax"))

    def _read_expansion(self, *, quoted: bool = False) -> Word | None:
        """Expand a dollar here; None if there is none, or its value is unknown."""
        line, at = self._line, self._at
        if found := _BACKTICKS.match(line, at):
            self._rewrite(found.end(), f"$({found[1]})")
        if line[at] != "$":
            return None
        if found := _WORKSPACE.match(line, at):
            self._at = found.end()
            return Word(text="")
        folder = _FOLDER_QUOTED if quoted else _FOLDER
        if _BEGINS.search(line, max(at - 2, 0), at) and (found := folder.match(line, at)):
            self._at = found.end()
            return Word(text=".")
        if (found := SHAPED.match(line, at)) and (shaped := self._shape(found)):
            self._at = found.end()
            return shaped
        if found := SHOWN_NOW.match(line, at):
            self._at = found.end()
            return Word(text=found.group(), expands=True, number=found.group()[1:2] in "(?$")
        if (found := SUM.match(line, at)) and self._is_sum(found[1]):
            self._at = found.end()
            return Word(text=found.group(), plain=False, expands=True, number=True)
        if (known := self._read_known()) is not None:
            return known
        if line.startswith("$(", at) and not line.startswith("$((", at):
            begun = len(self._done)
            self._read_inner(at + 2)
            inner = self._done[begun:]
            piped = [one.piped for one in inner]
            last = [one for one in inner if one not in piped]
            wild = not all(map(prints_no_wildcard, last))
            printed = Word(text=line[at : self._at], expands=True, wild=wild)
            return describe_printed(inner, printed)
        return None

    def _read_known(self) -> Word | None:
        """A variable that the line itself sets."""
        line, at, names = self._line, self._at, self._names
        if (found := LENGTH.match(line, at)) and (found[1] in names or found[2]):
            self._at = found.end()
            return Word(text=found.group(), expands=True, number=True)
        if (found := ELEMENTS.match(line, at)) and found[2] in self._arrays:
            return self._take_elements(found)
        for shape in (VARIABLE, POSITIONAL):
            if (found := shape.match(line, at)) and (found[1] or found[2]) in names:
                self._at = found.end()
                return names[found[1] or found[2]]
        return None

    def _take_elements(self, found: re.Match[str]) -> Word:
        """Some of an array, or their number."""
        index = found[3]
        if index and not (index in self._names and is_number(self._names[index])):
            raise Strange(phrase("odd_substitution"))
        self._at = found.end()
        words = self._arrays[found[2]]
        wild = any(word.wild or word.glob or set("*?[\\") & set(word.text) for word in words)
        if found[1]:
            return Word(text=found[0], plain=False, expands=True, number=True)
        return Word(text=found[0], plain=False, expands=True, wild=wild)

    def _shape(self, found: re.Match[str]) -> Word | None:
        """A variable of which a part is taken, or another text where it is empty."""
        name, other = found[1], found[2] or ""
        value = self._names.get(name) if name else Word(text="")
        if value is None:
            return None
        wild = value.wild or value.glob or bool(set("*?[\\") & set(value.text + other))
        return Word(text=found.group(), plain=False, expands=True, wild=wild)

    def _is_sum(self, text: str) -> bool:
        """Return True for numbers only: a variable might hold an expression."""
        named = re.findall(r"[A-Za-z_][A-Za-z0-9_]*", re.sub(r"\b\d+", "", text))
        if "++" in text or "--" in text:
            return False
        signs = text.count("$") == len(re.findall(r"\$[A-Za-z_]", text))
        return signs and all(name in self._names and is_number(self._names[name]) for name in named)

    def _read_quoted(self, quote: str) -> Word:
        """Read a quoted part."""
        line, self._at = self._line, self._at + 1
        parts = [Word(text="")]
        while self._at < len(line) and line[self._at] != quote:
            at = self._at
            if quote == "'":
                end = line.find("'", at)
                end = len(line) if end < 0 else end
                parts.append(Word(text=line[at:end]))
                self._at = end
            elif (inner := self._read_expansion(quoted=True)) is not None:
                parts.append(inner)
            elif line[at] == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\"):
                parts.append(Word(text=line[at + 1]))
                self._at = at + 2
            elif (
                line[at] == "`"
                or (line[at] == "$" and not _LITERAL_DOLLAR_QUOTED.match(line, at))
                or line[at] == "\\"
                and line[at + 1 : at + 2] == "\n"
            ):
                raise Strange(phrase("odd_escape"))
            else:
                parts.append(Word(text=line[at]))
                self._at = at + 1
        word = join_parts(parts)
        if self._at >= len(line) or (self._here and "\n" in word.text):
            raise Strange(phrase("odd_quote"))
        self._at += 1
        return replace(word, stands=word.text) if word.glob else word


def _take_unquoted(inner: Word, is_value: bool) -> Word:
    """Return the value of an unquoted expansion."""
    if inner.glob:  # the variable of a loop
        name = Word(text="$_", plain=False, expands=True, stands=inner.text, counts=True)
        return name if is_value else loosen(name)
    if inner.wild or not (inner.expands or _EASY.fullmatch(inner.text)):
        raise Strange(phrase("odd_substitution"))
    return loosen(inner) if inner.expands else inner


def _normalize(char: str) -> str:
    """Return the sign for which some reader may take a look-alike."""
    return "" if char.isascii() else unicodedata.normalize("NFKC", char)


def _count(first: int, last: int) -> list[str]:
    step = 1 if first <= last else -1
    numbers = range(first, last + step, step)
    if len(numbers) > MAX_COUNTED:
        raise Strange(phrase("odd_long"))
    return list(map(str, numbers))
