"""Splits a shell line into plain commands, and refuses everything beyond its small grammar.

It has words, quotes, escaped signs, `;`, `&&`, `||`, `|`, line ends, comments, `<` from a file,
here-documents, output to /dev/null, groups, `if`, `for` over words, `while read`, and of expansions
`$WORKSPACE`, which is empty, a few that print a text, `$(…)` and `<(…)` of commands of this
grammar, and variables that the line itself sets. All commands of a line count, whether they would
be run or not; the body of a `for` counts once for each of its words.
"""

import re
import unicodedata

from msgspec import Struct
from msgspec.structs import replace

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.lines.names import ASSIGNED, NAME, QUOTED_VARIABLE, TAKEN
from agent_core.tools.shell_reading.lines.words import MAX_LENGTH, STOPS, Rewritten, WordReader
from agent_core.tools.shell_reading.printed_text import prints_no_wildcard
from agent_core.tools.shell_reading.printed_words import describe_line
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word


class SplitLine(Struct, frozen=True, kw_only=True):
    """The commands of a line. `sets`: it also sets variables."""

    commands: tuple[PlainCommand, ...]
    sets: bool


_OPERATOR = re.compile(r"&&|\|\||\||;|\n")
_REDIRECTION = re.compile(r"(?:[12]?>&[12]|(?:[12]?>|&>)[ ]*/dev/null)(?=$|[ \t\n;|&)])")
_TARGET = re.compile(r"(?:[12]?>>?|&>>?)[ \t]*")
_SOURCE = re.compile(r"<(?![<&>(])[ \t]*")
_KEYWORD = re.compile(r"(?:if|then|elif|else|fi|for|while|until|do|done|[{}!])(?=$|[\s;&|)])")
_FOR = re.compile(rf"for[ \t]+({NAME.pattern})[ \t]+in(?=[ \t])")
_COUNTED = re.compile(r"\$\(seq(?: -w)?(?: \d{1,6}){1,3}\)")
_DO = re.compile(r"[ \t]{0,80}[;\n]\s{0,80}do(?=\s)")
_READ = re.compile(
    r"while[ \t]+(?:IFS=(?:[,:]|'[^'\n]?'|\"[^\"$`\\\n]?\")?[ \t]+)?read[ \t]+(?:-r[ \t]+)?"
    rf"({NAME.pattern}(?:[ \t]+{NAME.pattern}){{0,8}})[ \t]*[;\n]\s*do(?=\s)"
)
_HERE = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z0-9_]{1,40})\2(?=$|[\s;|&])")
_THEN = ("then",)
MAX_DEPTH, MAX_COMMANDS = 8, 200
MAX_REWRITTEN = 40


def split_line(command: str, *, writes: bool = False) -> SplitLine:
    """The commands of the line. `writes`: their output may go to files. Raises Strange."""
    if len(command) > MAX_LENGTH:
        raise Strange(phrase("odd_long"))
    for char in command:
        if unicodedata.category(char)[0] in "CZ" and char not in " \t\n":
            raise Strange(phrase("odd_lines"))
    line = command.strip()
    for _ in range(MAX_REWRITTEN):
        try:
            return _Reader(line, writes=writes).read()
        except Rewritten as plainer:
            line = plainer.line
    raise Strange(phrase("odd_long"))


class _State(Struct, kw_only=True):
    """The state of the command being read. `sure`: it is run, if the line is."""

    words: list[Word] = []
    source: Word | None = None
    targets: list[Word] = []
    fed: bool = False
    grouped: bool = False
    assigned: bool = False
    negated: bool = False
    sure: bool = True
    operator: str = ""
    piped: PlainCommand | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.source or self.fed or self.grouped or self.assigned)


class _Reader(WordReader):
    def __init__(self, line: str, *, writes: bool) -> None:
        super().__init__(line, writes=writes)
        self._writes = writes
        self._state = _State()
        self._depth = 0

    def read(self) -> SplitLine:
        self._read_list(())
        return SplitLine(commands=tuple(self._done), sets=bool(self._names))

    def _read_list(self, ends: tuple[str, ...]) -> str:
        """Read commands up to one of the words or the bracket `ends`, the line's end without."""
        outer, self._state = self._state, _State()
        begun, end = len(self._done), ""
        self._depth += 1
        if self._depth > MAX_DEPTH or self._here:
            raise Strange(phrase("odd_syntax"))
        while self._at < len(self._line) and not end:
            at, end = self._at, self._find_end(ends)
            if end:
                self._at += len(end)
            elif not self._read_space():
                self._read_part()
                if self._at == at:  # a bracket that closes nothing here
                    raise Strange(phrase("odd_syntax"))
        if not ends or end == ")":
            self._end_command("\n")
        state = self._state
        if bool(end) != bool(ends) or not state.is_empty or state.operator not in ("\n", ";"):
            raise Strange(phrase("odd_empty"))
        if len(self._done) == begun or self._here:
            raise Strange(phrase("odd_empty"))
        self._depth -= 1
        self._state = outer
        return end

    def _find_end(self, ends: tuple[str, ...]) -> str:
        if ")" in ends:
            return ")" if self._line[self._at] == ")" else ""
        found = _KEYWORD.match(self._line, self._at) if self._state.is_empty else None
        return found.group() if found and found.group() in ends else ""

    def _read_space(self) -> bool:
        """Skip separators of words and commands. Return False if there is none."""
        line, at = self._line, self._at
        if line[at] in " \t":
            self._at += 1
        elif line.startswith("\\\n", at):
            self._at += 2
        elif line[at] == "#":
            end = line.find("\n", at)
            self._at = len(line) if end < 0 else end
        elif found := _REDIRECTION.match(line, at):
            self._at = found.end()
        elif found := _OPERATOR.match(line, at):
            self._at = found.end()
            self._end_command(found.group())
            if found.group() == "\n":
                self._pass_documents()
        elif line[at] == "&":
            raise Strange(phrase("odd_behind"))
        else:
            return False
        return True

    def _read_part(self) -> None:
        """Read one word, a redirection, or a compound command."""
        line, at, state = self._line, self._at, self._state
        if line.startswith("<<<", at):
            self._read_text(at + 3)
        elif found := _HERE.match(line, at):
            if self._depth > 1 or state.fed:
                raise Strange(phrase("odd_syntax"))
            self._here.append((found[3], bool(found[2]), bool(found[1])))
            state.fed, self._at = True, found.end()
        elif self._read_file():
            pass
        elif state.is_empty and (line[at] == "(" or _KEYWORD.match(line, at)):
            self._read_compound()
        elif state.grouped or state.assigned:
            raise Strange(phrase("odd_syntax"))
        elif line.startswith("<(", at):
            self._read_inner(at + 2)
            if self._at < len(line) and line[self._at] not in STOPS + ")":
                raise Strange(phrase("odd_syntax"))
            state.words.append(Word(text="-", plain=False, feeds=True))
        elif state.is_empty and (found := ASSIGNED.match(line, at)):
            self._assign(found[1], found.end())
        else:
            if state.words:
                self._expand_braces()
            if (word := self._read_word()) is not None:
                state.words.append(word)

    def _read_text(self, at: int) -> None:
        """The word behind `<<<`."""
        line, self._at = self._line, at
        while line[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        fed = self._at < len(line) and line[self._at] not in STOPS and self._read_word()
        if not fed or self._state.fed:
            raise Strange(phrase("odd_syntax"))
        self._state.fed = True

    def _end_command(self, operator: str) -> None:
        state = self._state
        made = None
        if state.words:
            made = PlainCommand(
                words=tuple(state.words),
                source=state.source,
                targets=tuple(state.targets),
                fed=state.fed,
                piped=state.piped,
                nested=self._depth > 1 or state.negated,
            )
        elif state.grouped and state.source is not None:
            made = PlainCommand(words=(Word(text="cat"),), source=state.source)
        elif state.assigned and operator in ("|", "||"):
            raise Strange(phrase("odd_syntax"))
        elif state.is_empty and operator == "\n":  # an empty line ends nothing
            return
        elif not (state.grouped or state.assigned):
            raise Strange(phrase("odd_empty"))
        if made is not None:
            self._done.append(made)
        if len(self._done) > MAX_COMMANDS:
            raise Strange(phrase("odd_long"))
        sure = operator in ("\n", ";") or (state.assigned and state.sure and operator == "&&")
        piped = made if operator == "|" and not state.grouped else None
        self._state = _State(operator=operator, sure=sure, piped=piped)

    def _read_compound(self) -> None:
        """A group, `if`, `for`, `while read`, or `!` before a command."""
        line, at = self._line, self._at
        found = _KEYWORD.match(line, at)
        word = found.group() if found else "("
        if word == "!":
            self._at, self._state.negated = at + 1, True
            return
        if line.startswith("((", at) or self._here:
            raise Strange(phrase("odd_syntax"))
        if word == "(":
            self._read_inner(at + 1)
        elif word == "{":
            self._at = at + 1
            self._read_list(("}",))
        elif word == "if":
            self._at = at + 2
            end = "elif"
            while end == "elif":
                self._read_list(_THEN)
                end = self._read_list(("elif", "else", "fi"))
            if end == "else":
                self._read_list(("fi",))
        elif found := _READ.match(line, at):
            fed = self._state.piped
            read = Word(text="$_", expands=True, wild=fed is None or not prints_no_wildcard(fed))
            names = found[1].split()
            for name in names:
                named = replace(read, text=f"${name}")
                whole = fed is not None and len(names) == 1
                self._set_name(name, describe_line(fed, named) if fed and whole else named)
            self._at = found.end()
            self._read_list(("done",))
        elif word in ("while", "until"):
            self._read_waiting(at + len(word))
        else:
            self._read_for()
        self._state.grouped = True

    def _read_waiting(self, at: int) -> None:
        """A loop that waits for something: it sleeps in between."""
        self._at = at
        self._read_list(("do",))
        begun = len(self._done)
        self._read_list(("done",))
        if not any(one.words[0].text == "sleep" for one in self._done[begun:]):
            raise Strange(phrase("odd_syntax"))

    def _read_inner(self, at: int) -> None:
        """The commands in brackets that begin before `at`."""
        self._at = at
        self._brackets += 1
        self._read_list((")",))
        self._brackets -= 1

    def _read_for(self) -> None:
        found = _FOR.match(self._line, self._at)
        if found is None:
            raise Strange(phrase("odd_syntax"))
        name, values = found[1], list[Word]()
        self._at = found.end()
        while not (done := _DO.match(self._line, self._at)):
            if self._line[self._at : self._at + 1] in (" ", "\t"):
                self._at += 1
                continue
            self._expand_braces()
            word = None if self._at >= len(self._line) else self._read_value()
            if word is None:
                raise Strange(phrase("odd_syntax"))
            values.append(Word(text="1") if _COUNTED.fullmatch(word.text) else word)
        if not values:
            raise Strange(phrase("odd_syntax"))
        for value in values:
            self._set_name(name, replace(value, counts=False))
            self._at = done.end()
            self._read_list(("done",))
        self._set_name(name, None)

    def _read_value(self) -> Word | None:
        return None if self._line[self._at] in "\n;|&<>" else self._read_word()

    def _assign(self, name: str, at: int) -> None:
        """`name=value` as a command of its own, which is run whenever the line is."""
        state, line = self._state, self._line
        self._at = at
        value = Word(text="")
        if at < len(line) and line[at] not in STOPS:
            value = self._read_word(is_value=True) or value
        if self._depth > 1 or not state.sure or value.glob:
            raise Strange(phrase("odd_substitution"))
        self._set_name(name, value)
        state.assigned = True

    def _set_name(self, name: str, value: Word | None) -> None:
        """Set a variable; None if its value is unknown."""
        if name in TAKEN:
            raise Strange(phrase("odd_substitution"))
        self._names[name] = value or Word(text=f"${name}", expands=True, wild=True)

    def _pass_documents(self) -> None:
        """Pass the here-documents of the line that has just ended."""
        waiting, self._here = self._here, []
        for ends, quoted, indented in waiting:
            while True:
                if self._at >= len(self._line):
                    raise Strange(phrase("odd_quote"))
                stop = self._line.find("\n", self._at)
                stop = len(self._line) if stop < 0 else stop
                text = self._line[self._at : stop]
                self._at = min(stop + 1, len(self._line))
                if (text.lstrip("\t") if indented else text) == ends:
                    break
                if not quoted and set("$`\\") & set(text):
                    raise Strange(phrase("odd_substitution"))

    def _read_file(self) -> bool:
        """The file that the command reads or writes, if one is named here."""
        state, line, at = self._state, self._line, self._at
        if found := _SOURCE.match(line, at):
            if state.source is not None:
                raise Strange(phrase("odd_syntax"))
            state.source = self._read_place(found.end(), found=True)
        elif self._writes and (found := _TARGET.match(line, at)):
            if not state.words:
                raise Strange(phrase("odd_syntax"))
            state.targets.append(self._read_place(found.end()))
        return found is not None

    def _read_place(self, at: int, *, found: bool = False) -> Word:
        """Return the word at `at`, which names one file; `found`: a loop's wildcard may have
        matched it."""
        self._at, line = at, self._line
        word = self._read_word() if at < len(line) and line[at] not in "\n;|&#" else None
        if found and word is not None and word.stands:  # a shell splits no name here, or fails
            text = "*" if word.loose else word.stands
            return Word(text=text, plain=False, glob=True)
        if word is None or word.expands or not word.text:
            raise Strange(phrase("odd_syntax"))
        if word.glob and not (found and QUOTED_VARIABLE.fullmatch(line, at, self._at)):
            raise Strange(phrase("odd_syntax"))
        return word
