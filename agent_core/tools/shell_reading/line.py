"""Splits a shell line into plain commands; what its small grammar does not have is refused.

It has words, quotes, escaped signs, `;`, `&&`, `||`, `|`, line ends, comments, `<` from a file,
what goes to /dev/null, and of expansions `$WORKSPACE`, which is empty, and a few that print a text.
"""

import re
import unicodedata

from msgspec import Struct

from agent_core.phrases import Phrase, phrase

MAX_LENGTH = 1_000
"""Characters; padding hides what is at a longer command's end."""


class Word(Struct, frozen=True, kw_only=True):
    """A word as the program is given it. `plain`: written without quotes, escapes, expansions and
    wildcards; `glob`: it has a wildcard outside of quotes; `expands`: part of it is not known."""

    text: str
    plain: bool = True
    glob: bool = False
    expands: bool = False


class PlainCommand(Struct, frozen=True, kw_only=True):
    """One program with its words. `source`: the file that it reads as its input; `after`: the
    operator before it."""

    words: tuple[Word, ...]
    source: Word | None = None
    after: str = ""


class Strange(Exception):
    """The line is not in the grammar, for `reason`."""

    def __init__(self, reason: Phrase) -> None:
        super().__init__(reason)
        self.reason = reason


_OPERATOR = re.compile(r"&&|\|\||\||;|\n")
_REDIRECTION = re.compile(r"(?:[12]?>&[12]|(?:[12]?>|&>)[ ]*/dev/null)(?=$|[ \t\n;|&])")
_SOURCE = re.compile(r"<(?![<&>(])[ \t]*")
_WORKSPACE = re.compile(r"\$\{WORKSPACE\}|\$WORKSPACE(?![A-Za-z0-9_])")
_SHOWN = re.compile(
    r"\$(?:HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME)(?![A-Za-z0-9_])"
    r"|\$\{(?:HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME)\}"
    r"|\$\(\([0-9+*/%() -]{1,80}\)\)"
)
"""Variables that hold no secret, and sums."""
_LITERAL_DOLLAR = re.compile(r"\$(?=$|[\s|;&])")
_LITERAL_DOLLAR_QUOTED = re.compile(r"\$(?![A-Za-z0-9_{(\[*@#?!$'-])")
_REFLOG = re.compile(r"@\{(?:\d{1,6}|u|upstream|push)\}")
_BARE = re.compile(r"(?:\{\}|\[|\])(?=$|[\s;|&])")
_ESCAPED = re.compile(r"\\[ ()!;|&*?\[\]{}$'\"#~<>,.:=+/@%^-]")
_WIDE = re.compile(r"[\uff01-\uff5e]")


def split_line(command: str) -> list[PlainCommand]:
    """The commands of the line. Raises Strange."""
    if len(command) > MAX_LENGTH:
        raise Strange(phrase("odd_long"))
    for char in command:
        if unicodedata.category(char)[0] in "CZ" and char not in " \t\n":
            raise Strange(phrase("odd_lines"))
    return _Reader(command.strip()).read()


class _Reader:
    def __init__(self, line: str) -> None:
        self._line, self._at = line, 0
        self._done: list[PlainCommand] = []
        self._words: list[Word] = []
        self._source: Word | None = None
        self._after = ""

    def read(self) -> list[PlainCommand]:
        line = self._line
        while self._at < len(line):
            at = self._at
            if line[at] in " \t":
                self._at += 1
            elif line[at] == "#":
                end = line.find("\n", at)
                self._at = len(line) if end < 0 else end
            elif found := _REDIRECTION.match(line, at):
                self._at = found.end()
            elif found := _OPERATOR.match(line, at):
                self._at = found.end()
                self._end_command(found.group())
            elif line[at] == "&":
                raise Strange(phrase("odd_behind"))
            elif found := _SOURCE.match(line, at):
                self._read_source(found.end())
            elif (word := self._read_word()) is not None:
                self._words.append(word)
        self._end_command("\n")
        if self._after not in ("\n", ";") or not self._done:
            raise Strange(phrase("odd_empty"))
        return self._done

    def _end_command(self, operator: str) -> None:
        if self._words:
            self._done.append(
                PlainCommand(words=tuple(self._words), source=self._source, after=self._after)
            )
        elif operator != "\n" or self._source is not None:
            raise Strange(phrase("odd_empty"))
        else:  # an empty line ends nothing
            return
        self._words, self._source, self._after = [], None, operator

    def _read_source(self, at: int) -> None:
        self._at = at
        word = (
            self._read_word() if at < len(self._line) and self._line[at] not in "\n;|&#" else None
        )
        if word is None or self._source is not None or word.glob or word.expands or not word.text:
            raise Strange(phrase("odd_syntax"))
        self._source = word

    def _read_word(self) -> Word | None:
        """The word that begins here, None where it expands to nothing."""
        line, start = self._line, self._at
        text, glob, quoted, expands = "", False, False, False
        while self._at < len(line) and line[self._at] not in " \t\n;|&":
            at = self._at
            char = line[at]
            if char in "'\"":
                inner, more = self._read_quoted(char)
                text, quoted, expands = text + inner, True, expands or more
            elif found := _WORKSPACE.match(line, at):
                self._at = found.end()
            elif found := _SHOWN.match(line, at):
                text, expands, self._at = text + found.group(), True, found.end()
            elif found := (_ESCAPED.match(line, at) or _LITERAL_DOLLAR.match(line, at)):
                text, quoted, self._at = text + found.group()[-1], True, found.end()
            elif found := (_REFLOG.match(line, at) if at > start else _BARE.match(line, at)):
                text, self._at = text + found.group(), found.end()
            else:
                self._check_sign(char, start)
                glob, text = glob or char in "*?", text + char
                self._at += 1
        if not text and not quoted and not expands:
            return None
        plain = line[start : self._at] == text and not glob and not expands
        return Word(text=text, plain=plain, glob=glob, expands=expands)

    def _check_sign(self, char: str, start: int) -> None:
        """Refuse what means something to a shell beyond this grammar."""
        at = self._at
        if char == "$":
            raise Strange(phrase("odd_substitution"))
        if char in "\\`<>(){}[]" or _WIDE.match(char):
            raise Strange(phrase("odd_syntax"))
        if char in "~#" and (at == start or self._line[at - 1] in "=:"):
            raise Strange(phrase("odd_syntax"))

    def _read_quoted(self, quote: str) -> tuple[str, bool]:
        """What stands in quotes, and whether part of it expands."""
        line, at = self._line, self._at + 1
        text, expands = "", False
        while at < len(line) and line[at] != quote:
            if quote == "'":
                end = line.find("'", at)
                end = len(line) if end < 0 else end
                text, at = text + line[at:end], end
            elif found := _WORKSPACE.match(line, at):
                at = found.end()
            elif found := _SHOWN.match(line, at):
                text, expands, at = text + found.group(), True, found.end()
            elif line[at] == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\"):
                text, at = text + line[at + 1], at + 2
            elif (
                line[at] == "`"
                or (line[at] == "$" and not _LITERAL_DOLLAR_QUOTED.match(line, at))
                or line[at] == "\\"
                and line[at + 1 : at + 2] == "\n"
            ):
                raise Strange(phrase("odd_escape"))
            else:
                text, at = text + line[at], at + 1
        if at >= len(line):
            raise Strange(phrase("odd_quote"))
        self._at = at + 1
        return text, expands
