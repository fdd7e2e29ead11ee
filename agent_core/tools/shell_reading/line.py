"""Splits a shell line into plain commands, and refuses everything beyond its small grammar.

It has words, quotes, escaped signs, `;`, `&&`, `||`, `|`, line ends, comments, `<` from a file,
here-documents, output to /dev/null, groups, `if`, `for` over words, `while read`, and of expansions
`$WORKSPACE`, which is empty, a few that print a text, `$(…)` and `<(…)` of commands of this
grammar, and variables that the line itself sets. All commands of a line count, whether they would
be run or not; the body of a `for` counts once for each of its words.
"""

import re
import unicodedata
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from agent_core.phrases import phrase
from agent_core.tools.shell_reading.printed_text import prints_no_wildcard
from agent_core.tools.shell_reading.printed_words import describe_line, describe_printed, loosen
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word, join_parts

MAX_LENGTH = 1_000
"""Maximum characters; padding hides the end of a longer command."""


class SplitLine(Struct, frozen=True, kw_only=True):
    """The commands of a line. `sets`: it also sets variables."""

    commands: tuple[PlainCommand, ...]
    sets: bool


class _Rewritten(Exception):
    """The line says the same as `line`, which is plainer: it is read anew."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.line = line


_OPERATOR = re.compile(r"&&|\|\||\||;|\n")
_REDIRECTION = re.compile(r"(?:[12]?>&[12]|(?:[12]?>|&>)[ ]*/dev/null)(?=$|[ \t\n;|&)])")
_TARGET = re.compile(r"(?:[12]?>>?|&>>?)[ \t]*")
_SOURCE = re.compile(r"<(?![<&>(])[ \t]*")
_WORKSPACE = re.compile(r"\$\{WORKSPACE\}|\$WORKSPACE(?![A-Za-z0-9_])")
TOLD = r"HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME"
_BRACED = rf"{TOLD}|RANDOM|SECONDS|E?UID"
SHOWN = rf"{_BRACED}|PPID|SHLVL|LINENO|OSTYPE|BASH_VERSION"
_SHOWN = re.compile(
    rf"\$(?:{SHOWN})(?![A-Za-z0-9_])|\$\{{(?:{_BRACED})\}}"
    r"|\$\(\([0-9+*/%() -]{1,80}\)\)|\$[?$]|\$\{PIPESTATUS\[\d\]\}"
)
"""Variables that hold no secret, sums, and how a command ended."""
_SUM = re.compile(r"\$\(\(([a-z0-9_+*/% -]{1,80})\)\)")
_NAME = re.compile(
    r"(?:[a-z_][a-z0-9_]{0,40}|[A-Z]|BASE|BRANCH|COMMIT|COUNT|DIRS?|END|FILES?|NAME|OUT|PATTERN|ROOT|SRC"
    r"|START|TAG|TARGET|TOTAL|VERSION)"
)
"""Names of variables that no program obeys."""
_VARIABLE = re.compile(rf"\$(?:({_NAME.pattern})(?![A-Za-z0-9_])|\{{({_NAME.pattern})\}})")
_LENGTH = re.compile(rf"\$\{{#(?:({_NAME.pattern})|({TOLD}))\}}")
_SHAPED = re.compile(
    rf"\$\{{(?:({_NAME.pattern})|{TOLD})(?:(?:%%?|##?)[\w./*?@:-]{{0,40}}|:\d{{1,3}}(?::\d{{1,3}})?"
    r"|\^\^?|,,?|:?-([\w./:@-]{0,40})|//?[\w.:@ -]{1,20}/[\w.:@ -]{0,20})\}"
)
"""A part of a variable, in other letters, or a text where it is empty."""
_BEGINS = re.compile(r"(?:\A|[\s;|&(=])\"?\Z|\A\"\Z")
_FOLDER = re.compile(r"(?:\$PWD|\$\{PWD\}|\$\(pwd\))(?=$|[/\s;|&)])")
_FOLDER_QUOTED = re.compile(r"(?:\$PWD|\$\{PWD\}|\$\(pwd\))(?=/|\"(?:$|[/\s;|&)]))")
"""The folder that the shell is in, as a path of its own or the beginning of one."""
_ANSI = re.compile(r"\$'((?:[^'\\\n]|\\[tn])*)'")
_QUOTED_VARIABLE = re.compile(rf"\"(?:{_VARIABLE.pattern})[\w./-]{{0,80}}\"")
_ASSIGNED = re.compile(rf"({_NAME.pattern})=(?!\()")
_TAKEN = frozenset(
    {"_", "argv", "cdpath", "fpath", "mailpath", "manpath", "module_path", "options", "path"}
    | {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "prompt", "status"}
)
"""Names that mean something to some shell or program."""
_EASY = re.compile(r"[A-Za-z0-9_./:,=+@%-]*")
"""A value that stays one word without quotes."""
_KEYWORD = re.compile(r"(?:if|then|elif|else|fi|for|while|until|do|done|[{}!])(?=$|[\s;&|)])")
_FOR = re.compile(rf"for[ \t]+({_NAME.pattern})[ \t]+in(?=[ \t])")
_COUNTED = re.compile(r"\$\(seq(?: -w)?(?: \d{1,6}){1,3}\)")
_DO = re.compile(r"[ \t]{0,80}[;\n]\s{0,80}do(?=\s)")
_READ = re.compile(
    r"while[ \t]+(?:IFS=(?:[,:]|'[^'\n]?'|\"[^\"$`\\\n]?\")?[ \t]+)?read[ \t]+(?:-r[ \t]+)?"
    rf"({_NAME.pattern}(?:[ \t]+{_NAME.pattern}){{0,8}})[ \t]*[;\n]\s*do(?=\s)"
)
_HERE = re.compile(r"<<(-?)[ \t]*(['\"]?)([A-Za-z0-9_]{1,40})\2(?=$|[\s;|&])")
_STOPS = " \t\n;|&"
"""Signs that end a word."""
_THEN = ("then",)
MAX_DEPTH, MAX_COMMANDS = 8, 200
MAX_REWRITTEN = MAX_COUNTED = 40
MAX_REWRITTEN_LENGTH = 2 * MAX_LENGTH
_BRACES = re.compile(
    r"([\w./*?:=%@+,-]{0,80})\{(?:([\w.*-]{0,40}(?:,[\w.*-]{0,40}){1,20})|(\d{1,4})\.\.(\d{1,4}))\}"
    r"([\w./*?:=%@+,{}-]{0,80}(?=[\s;|&)]|$))"
)
"""A word of plain signs with a list in braces. A shell without them takes it as it stands."""
_LITERAL_DOLLAR = re.compile(r"\$(?=$|[\s|;&])")
_LITERAL_DOLLAR_QUOTED = re.compile(r"\$(?![A-Za-z0-9_{(\[*@#?!$'-])")
_REFLOG = re.compile(r"@\{(?:\d{1,6}|u|upstream|push)\}")
_BARE = re.compile(r"(?:\{\}|\[\[?|\]\]?)(?=$|[\s;|&)])")
_EMPTY = re.compile(r"\{\}")
_CLASS = re.compile(r"\[(?:[A-Za-z0-9](?:-[A-Za-z0-9])?){1,20}\]")
_ESCAPED = re.compile(r"\\[ ()!;|&*?\[\]{}$'\"#~<>,.:=+/@%^-]")
_BACKTICKS = re.compile(r"`([\w./ :=,+%@|&;'-]{1,80})`")
"""The older way to write `$(…)`, where nothing in it means something else there."""
_WIDE = re.compile(r"[\uff01-\uff5e]")
_SIGNS = frozenset(";|&<>`$(){}[]\\'\"#~!")


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
        except _Rewritten as plainer:
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


class _Reader:
    def __init__(self, line: str, *, writes: bool) -> None:
        self._line, self._at = line, 0
        self._stops = _STOPS + ">" if writes else _STOPS
        self._writes = writes
        self._done: list[PlainCommand] = []
        self._state = _State()
        self._depth = self._brackets = 0
        self._names: dict[str, Word] = {}
        self._here: list[tuple[str, bool, bool]] = []

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
            if self._at < len(line) and line[self._at] not in _STOPS + ")":
                raise Strange(phrase("odd_syntax"))
            state.words.append(Word(text="-", plain=False, feeds=True))
        elif state.is_empty and (found := _ASSIGNED.match(line, at)):
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
        fed = self._at < len(line) and line[self._at] not in _STOPS and self._read_word()
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

    def _expand_braces(self) -> None:
        """Replace a list in braces by its words, as bash does before all else."""
        if found := _BRACES.match(self._line, self._at):
            before, listed, first, last, behind = found.groups()
            words = listed.split(",") if listed else _count(int(first), int(last))
            self._rewrite(found.end(), " ".join(f"{before}{word}{behind}" for word in words))

    def _rewrite(self, end: int, text: str) -> NoReturn:
        line = self._line[: self._at] + text + self._line[end:]
        if len(line) > MAX_REWRITTEN_LENGTH:
            raise Strange(phrase("odd_long"))
        raise _Rewritten(line)

    def _read_value(self) -> Word | None:
        return None if self._line[self._at] in "\n;|&<>" else self._read_word()

    def _assign(self, name: str, at: int) -> None:
        """`name=value` as a command of its own, which is run whenever the line is."""
        state, line = self._state, self._line
        self._at = at
        value = Word(text="")
        if at < len(line) and line[at] not in _STOPS:
            value = self._read_word(is_value=True) or value
        if self._depth > 1 or not state.sure or value.glob:
            raise Strange(phrase("odd_substitution"))
        self._set_name(name, value)
        state.assigned = True

    def _set_name(self, name: str, value: Word | None) -> None:
        """Set a variable; None if its value is unknown."""
        if name in _TAKEN:
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
        if word.glob and not (found and _QUOTED_VARIABLE.fullmatch(line, at, self._at)):
            raise Strange(phrase("odd_syntax"))
        return word

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
                or (_REFLOG.match(line, at) if at > start else _BARE.match(line, at))
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
        if (found := _SHAPED.match(line, at)) and (shaped := self._shape(found)):
            self._at = found.end()
            return shaped
        if (found := _SHOWN.match(line, at)) or (
            (found := _SUM.match(line, at)) and self._is_sum(found[1])
        ):
            self._at = found.end()
            return Word(text=found.group(), expands=True)
        if (found := _LENGTH.match(line, at)) and (found[1] in self._names or found[2]):
            self._at = found.end()
            return Word(text=found.group(), expands=True)
        if (found := _VARIABLE.match(line, at)) and (found[1] or found[2]) in self._names:
            self._at = found.end()
            return self._names[found[1] or found[2]]
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

    def _shape(self, found: re.Match[str]) -> Word | None:
        """A variable of which a part is taken, or another text where it is empty."""
        name, other = found[1], found[2] or ""
        value = self._names.get(name) if name else Word(text="", wild=True)
        if value is None:
            return None
        wild = value.wild or value.glob or bool(set("*?[\\") & set(value.text + other))
        return Word(text=found.group(), plain=False, expands=True, wild=wild)

    def _is_sum(self, text: str) -> bool:
        """Return True for numbers only: a variable might hold an expression."""
        return all(
            name in self._names and self._names[name].text.isdecimal()
            for name in re.findall(r"[a-z_][a-z0-9_]*", text)
        )

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
