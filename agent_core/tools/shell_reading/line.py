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

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.lines import conditions
from agent_core.tools.shell_reading.lines.compounds import MAX_COMMANDS, CompoundReader, State
from agent_core.tools.shell_reading.lines.names import (
    ARRAY,
    ASSIGNED,
    EXPORT,
    FUNCTION,
    LOCAL,
    QUOTED_VARIABLE,
    READ_ARRAY,
    READ_TEXT,
)
from agent_core.tools.shell_reading.lines.words import MAX_LENGTH, STOPS, Rewritten
from agent_core.tools.shell_reading.verbs import TELLING, VERBS, VERSIONS
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word


class SplitLine(Struct, frozen=True, kw_only=True):
    """The commands of a line. `sets`: it also sets variables; `exports`: some for programs."""

    commands: tuple[PlainCommand, ...]
    sets: bool
    exports: bool


_OPERATOR = re.compile(r"&&|\|\||\||;|\n")
_REDIRECTION = re.compile(r"(?:[12]?>&[12]|(?:[12]?>|&>)[ ]*/dev/null)(?=$|[ \t\n;|&)])")
_TARGET = re.compile(r"(?:[12]?>>?|&>>?)[ \t]*")
_SOURCE = re.compile(r"<(?![<&>(])[ \t]*")
_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|[{}!])(?=$|[\s;&|)])"
)
_HERE = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z0-9_]{1,40})\2(?=$|[\s;|&])")
MAX_DEPTH = 8
MAX_REWRITTEN = 40
_NUMBERS = "123456789"
_BUILTINS = """
    alias bg bind break builtin caller cd command compgen complete continue declare dirs disown echo
    enable eval exec exit export fc fg find getopts git hash help history jobs kill let local logout
    mapfile popd pushd pwd read readarray readonly return set shift shopt source suspend tar times
    trap type typeset ulimit umask unalias unset wait xargs nice ionice timeout env stdbuf time
    command_not_found_handle
"""
_UNDERSTOOD = VERBS.keys() | VERSIONS | {words[0] for words in TELLING} | set(_BUILTINS.split())
"""Names that mean something already: programs and builtins."""


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


class _Reader(CompoundReader):
    def __init__(self, line: str, *, writes: bool) -> None:
        super().__init__(line, writes=writes)
        self._writes = writes
        self._bodies: dict[str, int] = {}
        """Where the bodies of functions begin, by their names."""
        self._calls = 0
        self._exports = False

    def read(self) -> SplitLine:
        self._read_list(())
        sets = bool(self._names or self._bodies)
        return SplitLine(commands=tuple(self._done), sets=sets, exports=self._exports)

    def _read_list(self, ends: tuple[str, ...]) -> str:
        """Read commands up to one of the words or the bracket `ends`, the line's end without."""
        outer, self._state = self._state, State()
        begun, end, before = len(self._done), "", dict(self._names)
        around, self._set_inside = self._set_inside, {}
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
        if not ends or end in (")", ";;"):
            self._end_command("\n")
        state = self._state
        if bool(end) != bool(ends) or not state.is_empty or state.operator not in ("\n", ";"):
            raise Strange(phrase("odd_empty"))
        only_sets = bool(ends) and self._names != before
        if (len(self._done) == begun and not only_sets) or self._here:
            raise Strange(phrase("odd_empty"))
        self._depth -= 1
        self._state = outer
        if ends:
            self._join_names(before)
        self._leave_names(around)
        return end

    def _find_end(self, ends: tuple[str, ...]) -> str:
        if ";;" in ends and self._line.startswith(";;", self._at):
            return ";;"
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
        elif (state.is_empty or state.assigned) and self._read_setting():
            pass
        elif state.grouped or state.assigned:
            raise Strange(phrase("odd_syntax"))
        elif line.startswith("<(", at):
            self._read_inner(at + 2)
            if self._at < len(line) and line[self._at] not in STOPS + ")":
                raise Strange(phrase("odd_syntax"))
            state.words.append(Word(text="-", plain=False, feeds=True))
        else:
            if state.words:
                self._expand_braces()
            if (word := self._read_measured() or self._read_word()) is not None:
                state.words.append(word)

    def _read_setting(self) -> bool:
        """A condition, a function or variables at the beginning of a command, if they are here."""
        line, at, state = self._line, self._at, self._state
        if found := ASSIGNED.match(line, at):
            self._assign(found[1], found.end())
        elif found := ARRAY.match(line, at):
            self._read_array(found[1], found.end())
        elif state.assigned:
            return False
        elif conditions.BEGIN.match(line, at):
            self._read_condition(at + 2)
        elif (found := EXPORT.match(line, at)) or (
            self._calls and (found := LOCAL.match(line, at))
        ):
            state.assigned = state.exports = True
            self._exports = self._exports or found.re is EXPORT.expression
            self._at = found.end()
        elif found := READ_TEXT.match(line, at):
            self._at = found.end()
            self._assign_all(found[1].split())
        elif found := READ_ARRAY.match(line, at):
            self._at, unknown = found.end(), Word(text="$_", expands=True, wild=True)
            self._set_array(found[1] or found[2], (unknown,))
        elif found := FUNCTION.match(line, at):
            self._define(found)
        else:
            return False
        return True

    def _read_measured(self) -> Word | None:
        """Any variable behind `[ -z` or `[ -n`."""
        words = [word.text for word in self._state.words]
        if words[:1] not in (["test"], ["["]) or words[-1] not in ("-z", "-n"):
            return None
        found = conditions.EMPTINESS.match(self._line, self._at)
        if found is None or found[0][0] != '"':
            return None
        self._at = found.end()
        return Word(text="$_", plain=False, expands=True)

    def _define(self, found: re.Match[str]) -> None:
        """A function: its body counts where it is called, with the words it is given."""
        name = found[1]
        taken = name in _UNDERSTOOD or name in self._bodies
        if self._depth > 1 or not self._state.sure or taken:
            raise Strange(phrase("odd_syntax"))
        begun, names = len(self._done), dict(self._names)
        self._call(found.end(), (), Word(text="1"))
        del self._done[begun:]
        self._names = names
        self._bodies[name] = found.end()
        self._state.grouped = True

    def _call(self, at: int, given: tuple[Word, ...], other: Word) -> None:
        """Read the body at `at` with the words that it is given; `other`: one more."""
        if len(given) > 9 or any(
            (word.glob and not word.stands) or word.loose or word.feeds for word in given
        ):
            raise Strange(phrase("odd_substitution"))
        outer = {number: self._names.pop(number, None) for number in _NUMBERS}
        self._names.update(zip(_NUMBERS, (*given, *[other] * 9), strict=False))
        self._at, self._calls = at, self._calls + 1
        self._read_list(("}",))
        self._calls -= 1
        for number, word in outer.items():
            del self._names[number]
            if word is not None:
                self._names[number] = word

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
        if state.words and state.words[0].plain and state.words[0].text in self._bodies:
            self._end_call()
        if state.words:
            made = PlainCommand(
                words=tuple(state.words),
                source=state.source,
                targets=tuple(state.targets),
                fed=state.fed,
                piped=state.piped,
                nested=self._depth > 1 or state.negated,
            )
        elif (state.grouped or state.assigned) and state.source is not None:
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
        self._state = State(operator=operator, sure=sure, piped=piped)

    def _end_call(self) -> None:
        """Replace the call of a function by what it runs."""
        state, behind = self._state, self._at
        if state.targets:
            raise Strange(phrase("odd_syntax"))
        self._call(self._bodies[state.words[0].text], tuple(state.words[1:]), Word(text=""))
        self._at, self._state = behind, state
        state.words, state.grouped = [], True

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
            self._read_if(at + 2)
        elif word == "case":
            self._read_case(at + 4)
        else:
            self._read_loop(word)
        self._state.grouped = True

    def _read_inner(self, at: int) -> None:
        """The commands in brackets that begin before `at`."""
        self._at = at
        self._brackets += 1
        self._read_list((")",))
        self._brackets -= 1

    def _assign(self, name: str, at: int) -> None:
        """`name=value` as a command of its own, which is run whenever the line is."""
        state, line = self._state, self._line
        self._at = at
        value = Word(text="")
        if at < len(line) and line[at] not in STOPS:
            value = self._read_word(is_value=not state.exports) or value
        if not state.sure or value.glob or (state.exports and value.loose):
            raise Strange(phrase("odd_substitution"))
        self._set_name(name, value)
        self._note_set(name, value)
        state.assigned = True

    def _assign_all(self, names: list[str]) -> None:
        """Variables that are given unknown parts of a text."""
        if not self._state.sure:
            raise Strange(phrase("odd_substitution"))
        for name in names:
            self._set_name(name, None)
            self._note_set(name, self._names[name])
        self._state.assigned = True

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
