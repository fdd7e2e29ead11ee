"""Reads the compound commands of a shell line: conditions, loops, branches."""

import re
from abc import abstractmethod

from msgspec import Struct
from msgspec.structs import replace

from agent_core.phrases import phrase
from agent_core.text import LatePattern
from agent_core.tools.shell_reading.lines import conditions
from agent_core.tools.shell_reading.lines.conditions import is_number
from agent_core.tools.shell_reading.lines.names import COUNTING, EACH, NAME, TAKEN
from agent_core.tools.shell_reading.lines.words import WordReader
from agent_core.tools.shell_reading.printed_text import prints_no_wildcard
from agent_core.tools.shell_reading.printed_words import describe_line
from agent_core.tools.shell_reading.words import PlainCommand, Strange, Word

_FOR = LatePattern(rf"for[ \t]+({NAME.pattern})[ \t]+in(?=[ \t])")
_COUNTED = re.compile(r"\$\(seq(?: -w)?(?: \d{1,6}){1,3}\)")
_BLANKS = re.compile(r"[ \t]+")
_SPACES = re.compile(r"\s*")
_IN = re.compile(r"[ \t]{1,80}in\s+")
_ESAC = re.compile(r"esac(?=$|[\s;|&)])")
_NO_BRANCH = re.compile(r"\s{0,80};;")
_DO_NEXT = re.compile(r"[ \t]{0,80}do(?=\s)")
_DO = re.compile(r"[ \t]{0,80}[;\n]\s{0,80}do(?=\s)")
_READ = LatePattern(
    r"while[ \t]+(?:IFS=(?:[,:]|'[^'\n]?'|\"[^\"$`\\\n]?\")?[ \t]+)?read[ \t]+(?:-r[ \t]+)?"
    rf"({NAME.pattern}(?:[ \t]+{NAME.pattern}){{0,8}})[ \t]*[;\n]\s*do(?=\s)"
)
_THEN = ("then",)
MAX_TURNS = 4
MAX_COMMANDS = 200


class State(Struct, kw_only=True):
    """The state of the command being read. `sure`: it is run, if the line is."""

    words: list[Word] = []
    source: Word | None = None
    targets: list[Word] = []
    fed: bool = False
    grouped: bool = False
    assigned: bool = False
    exports: bool = False
    negated: bool = False
    sure: bool = True
    operator: str = ""
    piped: PlainCommand | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.source or self.fed or self.grouped or self.assigned)


class CompoundReader(WordReader):
    """Reads compound commands, whose lists of commands `_read_list` reads."""

    def __init__(self, line: str, *, writes: bool) -> None:
        super().__init__(line, writes=writes)
        self._state = State()
        self._depth = 0
        self._set_inside: dict[str, bool] = {}
        """The variables set in the compound command being read: True if all are numbers."""

    @abstractmethod
    def _read_list(self, ends: tuple[str, ...]) -> str:
        """Read commands up to one of the words or the bracket `ends`, the line's end without."""

    def _join_names(self, before: dict[str, Word]) -> None:
        """Forget the values that commands set which may not have been run, or have been halfway."""
        for name, counts in self._set_inside.items():
            if counts and name in before and is_number(before[name]):
                self._names[name] = Word(text=f"${name}", plain=False, expands=True, number=True)
            else:
                self._names.pop(name, None)

    def _leave_names(self, around: dict[str, bool]) -> None:
        """Go on with the variables that were set around what has been read, and in it."""
        for name, counts in self._set_inside.items():
            around[name] = around.get(name, True) and counts
        self._set_inside = around

    def _read_if(self, at: int) -> None:
        self._at = at
        end = "elif"
        while end == "elif":
            self._read_list(_THEN)
            end = self._read_list(("elif", "else", "fi"))
        if end == "else":
            self._read_list(("fi",))

    def _read_loop(self, word: str) -> None:
        """Read a loop again until another turn of it finds its variables as the last one did."""
        at, begun, outer = self._at, len(self._done), self._set_inside
        for _ in range(MAX_TURNS):
            before, self._at, self._set_inside = dict(self._names), at, {}
            if found := _READ.match(self._line, at):
                self._read_lines(found)
            elif word in ("while", "until"):
                self._read_waiting(word, at + len(word), begun)
            elif found := COUNTING.match(self._line, at):
                self._read_counting(found)
            else:
                self._read_for()
            inside = self._set_inside
            self._leave_names(outer)
            if all(self._names.get(name) == before.get(name) for name in inside):
                return
        raise Strange(phrase("odd_syntax"))

    def _read_lines(self, found: re.Match[str]) -> None:
        """A loop over the lines of its input."""
        fed, names = self._state.piped, found[1].split()
        read = Word(text="$_", expands=True, wild=fed is None or not prints_no_wildcard(fed))
        for name in names:
            named = replace(read, text=f"${name}")
            whole = fed is not None and len(names) == 1
            self._set_name(name, describe_line(fed, named) if fed and whole else named)
        self._at = found.end()
        self._read_list(("done",))

    def _read_waiting(self, word: str, at: int, begun: int) -> None:
        """A loop that waits for something: it sleeps in between, or counts."""
        self._at = at
        self._read_list(("do",))
        asked = [each for one in self._done[begun:] for each in one.words]
        if word == "until" and any(each.text == "[[" for each in asked):
            raise Strange(phrase("odd_syntax"))  # without `[[` it would never end
        inside = len(self._done)
        self._read_list(("done",))
        counted = [name for name, counts in self._set_inside.items() if counts]
        counts = counted and any(each.number or each.text.isdecimal() for each in asked)
        names = {one.words[0].text for one in self._done[inside:]}
        if "sleep" not in names and (not counts or "continue" in names):
            raise Strange(phrase("odd_syntax"))

    def _read_counting(self, found: re.Match[str]) -> None:
        name, *counts = [one for one in found.groups() if one]
        for one in counts:
            if not one.isdecimal() and (one not in self._names or not is_number(self._names[one])):
                raise Strange(phrase("odd_substitution"))
        self._set_name(name, Word(text=f"${name}", plain=False, expands=True, number=True))
        self._at = found.end()
        done = _DO.match(self._line, self._at) or _DO_NEXT.match(self._line, self._at)
        if done is None:
            raise Strange(phrase("odd_syntax"))
        self._at = done.end()
        self._read_list(("done",))
        if name in self._set_inside:
            raise Strange(phrase("odd_syntax"))
        self._set_name(name, None)

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
            if (each := EACH.match(self._line, self._at)) and each[1] in self._arrays:
                values += self._arrays[each[1]]
                self._at = each.end()
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

    def _read_condition(self, at: int) -> None:
        """`[[ … ]]`: each of its tests counts as a command."""
        self._at, line = at, self._line
        words, risky, negated = list[Word](), False, self._state.negated
        while not conditions.END.match(line, self._at):
            if self._at >= len(line) or line[self._at] == "\n":
                raise Strange(phrase("odd_syntax"))
            if line[self._at] in " \t":
                self._at += 1
            elif found := conditions.JOINT.match(line, self._at):
                self._end_test(words, risky)
                words, risky, self._at = [], risky or negated or found[0] == "||", found.end()
            else:
                words.append(self._read_tested(words))
        self._at += 2
        self._end_test(words, risky)
        self._state.grouped = True

    def _read_tested(self, words: list[Word]) -> Word:
        asked = words[-1].text if words and words[-1].plain else ""
        line, at = self._line, self._at
        shape = {"=~": conditions.REGEX, "-z": conditions.EMPTINESS, "-n": conditions.EMPTINESS}
        if asked in shape and (found := shape[asked].match(line, at)):
            self._at = found.end()
            return Word(text=found[0], plain=False, expands=asked != "=~")
        if line.startswith(("=~ ", "=~\t"), at):
            self._at = at + 2
            return Word(text="=~")
        word = None if asked == "=~" else self._read_word(is_value=True)
        if word is None:
            raise Strange(phrase("odd_syntax"))
        return replace(word, glob=False)

    def _end_test(self, words: list[Word], risky: bool) -> None:
        if not words or (risky and not conditions.begins_safely(words)):
            raise Strange(phrase("odd_syntax"))
        made = (Word(text="[["), *words, Word(text="]]"))
        self._done.append(PlainCommand(words=made, nested=True))
        if len(self._done) > MAX_COMMANDS:
            raise Strange(phrase("odd_long"))

    def _read_case(self, at: int) -> None:
        """Branches of which any may be taken."""
        self._at = at
        found = _BLANKS.match(self._line, at)
        self._at = found.end() if found else at
        word = self._read_word(is_value=True) if self._at < len(self._line) else None
        opened = _IN.match(self._line, self._at)
        if word is None or opened is None or found is None:
            raise Strange(phrase("odd_syntax"))
        self._at, end = opened.end(), ";;"
        while end == ";;":
            if closed := _ESAC.match(self._line, self._at):
                self._at = closed.end()
                return
            branch = conditions.CASE.match(self._line, self._at)
            if branch is None:
                raise Strange(phrase("odd_syntax"))
            self._at = branch.end()
            if empty := _NO_BRANCH.match(self._line, self._at):
                self._at = empty.end()
            else:
                end = self._read_list((";;", "esac"))
            spaces = _SPACES.match(self._line, self._at)
            self._at = spaces.end() if spaces and end == ";;" else self._at

    def _read_value(self) -> Word | None:
        return None if self._line[self._at] in "\n;|&<>" else self._read_word()

    def _read_array(self, name: str, at: int) -> None:
        """`name=(…)`, which is set once in a line."""
        words = list[Word]()
        self._at, self._brackets = at, self._brackets + 1
        while self._at < len(self._line) and self._line[self._at] != ")":
            if self._line[self._at] in " \t\n":
                self._at += 1
                continue
            self._expand_braces()
            word = self._read_value()
            if word is None or word.loose:
                raise Strange(phrase("odd_syntax"))
            words.append(word)
        if self._at >= len(self._line):
            raise Strange(phrase("odd_quote"))
        self._at, self._brackets = self._at + 1, self._brackets - 1
        self._set_array(name, tuple(words))

    def _set_array(self, name: str, words: tuple[Word, ...]) -> None:
        if self._depth > 1 or not self._state.sure or name in self._names or name in TAKEN:
            raise Strange(phrase("odd_substitution"))
        self._names[name] = Word(text=f"${name}", plain=False, expands=True, wild=True)
        self._arrays[name] = words
        self._state.assigned = True

    def _set_name(self, name: str, value: Word | None) -> None:
        """Set a variable; None if its value is unknown."""
        if name in TAKEN or name in self._arrays:
            raise Strange(phrase("odd_substitution"))
        self._names[name] = value or Word(text=f"${name}", expands=True, wild=True)

    def _note_set(self, name: str, value: Word) -> None:
        if self._depth > 1:
            self._set_inside[name] = self._set_inside.get(name, True) and is_number(value)
