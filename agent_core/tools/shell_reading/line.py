"""Splits a shell line into plain commands; what its small grammar does not have is refused.

It has words, quotes, escaped signs, `;`, `&&`, `||`, `|`, line ends, comments, `<` from a file,
here-documents, what goes to /dev/null, groups, `if`, `for` over words, `while read`, and of
expansions `$WORKSPACE`, which is empty, a few that print a text, `$(…)` and `<(…)` of commands of
this grammar, and variables that the line itself gives a value. All commands of a line count,
whether they would be run or not; the body of a `for` counts once for each of its words.
"""

import re
import unicodedata
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from agent_core.phrases import Phrase, phrase
from agent_core.tools.shell_reading.printed_text import prints_no_wildcard
from agent_core.tools.shell_reading.words import PlainCommand, Word

MAX_LENGTH = 1_000
"""Characters; padding hides what is at a longer command's end."""


class SplitLine(Struct, frozen=True, kw_only=True):
    """The commands of a line. `sets`: it also gives variables a value."""

    commands: tuple[PlainCommand, ...]
    sets: bool


class Strange(Exception):
    """The line is not in the grammar, for `reason`."""

    def __init__(self, reason: Phrase) -> None:
        super().__init__(reason)
        self.reason = reason


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
_SHOWN = re.compile(
    r"\$(?:HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME)(?![A-Za-z0-9_])"
    r"|\$\{(?:HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME)\}"
    r"|\$\(\([0-9+*/%() -]{1,80}\)\)|\$\?|\$\{PIPESTATUS\[\d\]\}"
)
"""Variables that hold no secret, sums, and how a command ended."""
_SUM = re.compile(r"\$\(\(([a-z0-9_+*/% -]{1,80})\)\)")
_NAME = re.compile(
    r"(?:[a-z_][a-z0-9_]{0,40}|[A-Z]|BASE|BRANCH|COMMIT|COUNT|DIRS?|END|FILES?|NAME|OUT|PATTERN|ROOT|SRC"
    r"|START|TAG|TARGET|TOTAL|VERSION)"
)
"""Names of variables; of the large ones, which programs may obey, those that nothing obeys."""
_VARIABLE = re.compile(rf"\$(?:({_NAME.pattern})(?![A-Za-z0-9_])|\{{({_NAME.pattern})\}})")
_LENGTH = re.compile(rf"\$\{{#({_NAME.pattern})\}}")
_QUOTED_VARIABLE = re.compile(rf"\"(?:{_VARIABLE.pattern})[\w./-]{{0,80}}\"")
_ASSIGNED = re.compile(rf"({_NAME.pattern})=(?!\()")
_TAKEN = frozenset(
    {"_", "argv", "cdpath", "fpath", "mailpath", "manpath", "module_path", "options", "path"}
    | {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "prompt", "status"}
)
"""Names that mean something to some shell or program."""
_EASY = re.compile(r"[A-Za-z0-9_./:,=+@%-]*")
"""A value that stays one word without quotes."""
_KEYWORD = re.compile(r"(?:if|then|elif|else|fi|for|while|do|done|[{}!])(?=$|[\s;&|)])")
_FOR = re.compile(rf"for[ \t]+({_NAME.pattern})[ \t]+in(?=[ \t])")
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
    """What is known of the command that is being read. `sure`: it is run, if the line is."""

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
        """Pass what stands between words and commands; False where it is neither."""
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
        """One word, what feeds the command, or a command made of others."""
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
            for name in found[1].split():
                self._set_name(name, replace(read, text=f"${name}"))
            self._at = found.end()
            self._read_list(("done",))
        else:
            self._read_for()
        self._state.grouped = True

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
            values.append(word)
        if not values:
            raise Strange(phrase("odd_syntax"))
        for value in values:
            self._set_name(name, value)
            self._at = done.end()
            self._read_list(("done",))
        self._set_name(name, None)

    def _expand_braces(self) -> None:
        """Have the words of a list in braces stand where it does, as bash does before all else."""
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
        """What a variable holds; None where it is not known."""
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
        """The word at `at`, which names one file. `found`: it may be one that a wildcard of a loop
        found, held by a variable."""
        self._at, line = at, self._line
        word = self._read_word() if at < len(line) and line[at] not in "\n;|&#" else None
        if word is None or word.expands or not word.text:
            raise Strange(phrase("odd_syntax"))
        if word.glob and not (found and _QUOTED_VARIABLE.fullmatch(line, at, self._at)):
            raise Strange(phrase("odd_syntax"))
        return word

    def _read_word(self, *, is_value: bool = False) -> Word | None:
        """The word that begins here, None where it expands to nothing. `is_value`: of a variable,
        in which a shell looks for no wildcard yet."""
        line, start = self._line, self._at
        text, glob, quoted, expands, wild = "", False, False, False, False
        stops = self._stops + ")" if self._brackets else self._stops
        while self._at < len(line) and line[self._at] not in stops:
            at = self._at
            char = line[at]
            if char in "'\"":
                part = self._read_quoted(char)
                quoted, glob, expands = True, glob or part.glob, expands or part.expands
                text, wild = text + part.text, wild or part.wild
            elif (inner := self._read_expansion()) is not None:
                if inner.glob or not (inner.expands or _EASY.fullmatch(inner.text)):
                    raise Strange(phrase("odd_substitution"))
                if inner.wild and not is_value:
                    raise Strange(phrase("odd_substitution"))
                text, expands, wild = (
                    text + inner.text,
                    expands or inner.expands,
                    wild or inner.wild,
                )
            elif found := (_ESCAPED.match(line, at) or _LITERAL_DOLLAR.match(line, at)):
                text, quoted, self._at = text + found.group()[-1], True, found.end()
            elif found := (_REFLOG.match(line, at) if at > start else _BARE.match(line, at)):
                text, self._at = text + found.group(), found.end()
            elif found := _CLASS.match(line, at):
                glob, text, self._at = True, text + found.group(), found.end()
            else:
                self._check_sign(char, start)
                glob, text = glob or char in "*?", text + char
                self._at += 1
        if not text and not quoted and not expands:
            return None
        plain = line[start : self._at] == text and not glob and not expands
        return Word(text=text, plain=plain, glob=glob, expands=expands, wild=wild)

    def _check_sign(self, char: str, start: int) -> None:
        """Refuse what means something to a shell beyond this grammar."""
        at = self._at
        if char == "$":
            raise Strange(phrase("odd_substitution"))
        if char in "\\`<>(){}[]" or _WIDE.match(char) or _SIGNS & set(_normalize(char)):
            raise Strange(phrase("odd_syntax"))
        if char in "~#" and (at == start or self._line[at - 1] in "=:"):
            raise Strange(phrase("odd_syntax"))

    def _read_expansion(self) -> Word | None:
        """What a dollar that stands here becomes; None if none does, or nothing is known of it."""
        line, at = self._line, self._at
        if found := _BACKTICKS.match(line, at):
            self._rewrite(found.end(), f"$({found[1]})")
        if line[at] != "$":
            return None
        if found := _WORKSPACE.match(line, at):
            self._at = found.end()
            return Word(text="")
        if (found := _SHOWN.match(line, at)) or (
            (found := _SUM.match(line, at)) and self._is_sum(found[1])
        ):
            self._at = found.end()
            return Word(text=found.group(), expands=True)
        if (found := _LENGTH.match(line, at)) and found[1] in self._names:
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
            return Word(text=line[at : self._at], expands=True, wild=wild)
        return None

    def _is_sum(self, text: str) -> bool:
        """Only numbers: a variable that is something else could be a sum by itself."""
        return all(
            name in self._names and self._names[name].text.isdecimal()
            for name in re.findall(r"[a-z_][a-z0-9_]*", text)
        )

    def _read_quoted(self, quote: str) -> Word:
        """What stands in quotes."""
        line, self._at = self._line, self._at + 1
        text, expands, glob, wild = "", False, False, False
        while self._at < len(line) and line[self._at] != quote:
            at = self._at
            if quote == "'":
                end = line.find("'", at)
                end = len(line) if end < 0 else end
                text, self._at = text + line[at:end], end
            elif (inner := self._read_expansion()) is not None:
                text, expands = text + inner.text, expands or inner.expands
                glob, wild = glob or inner.glob, wild or inner.wild
            elif line[at] == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\"):
                text, self._at = text + line[at + 1], at + 2
            elif (
                line[at] == "`"
                or (line[at] == "$" and not _LITERAL_DOLLAR_QUOTED.match(line, at))
                or line[at] == "\\"
                and line[at + 1 : at + 2] == "\n"
            ):
                raise Strange(phrase("odd_escape"))
            else:
                text, self._at = text + line[at], at + 1
        if self._at >= len(line) or (self._here and "\n" in text):
            raise Strange(phrase("odd_quote"))
        self._at += 1
        return Word(text=text, glob=glob, expands=expands, wild=wild)


def _normalize(char: str) -> str:
    """What some reader may take a sign for that looks like another one."""
    return "" if char.isascii() else unicodedata.normalize("NFKC", char)


def _count(first: int, last: int) -> list[str]:
    step = 1 if first <= last else -1
    numbers = range(first, last + step, step)
    if len(numbers) > MAX_COUNTED:
        raise Strange(phrase("odd_long"))
    return list(map(str, numbers))
