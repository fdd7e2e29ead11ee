"""Splits a shell line into commands and raw words, with their quotes.

For rules that must match whatever a shell may be told: a line that no shell accepts is split too.
"""

import re

MAX_LENGTH = 20_000
MAX_BRACES, MAX_OPEN, MAX_WORD = 200, 12, 1_000
_UNREAD = "$_"
"""A word of which nothing is known."""
_REDIRECTION = re.compile(r"\d{0,9}(?:<<<|<<-?|<>|>>|>\||[<>]&?|&>>?)")
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_SIGNS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_HERE = re.compile(r"<<(-?)[ \t]*(?:(['\"])([^'\"\n]*)['\"]|\\?([A-Za-z0-9_.-]+))(?=[\s;|&)<>]|$)")
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.-?\d{1,6})?")


def split_raw(text: str) -> list[list[str]]:
    """The raw words of each command; a target of a redirection is a command by itself."""
    commands: list[list[str]] = [[]]
    targets: list[list[str]] = []
    here: list[tuple[str, bool, bool]] = []
    at, aimed = _pass_space(text, 0), False
    while at < len(text):
        char = text[at]
        if text.startswith(("<(", ">("), at):
            end = find_close(text, at + 2, ")")
            commands[-1].append(f"$({text[at + 2 : end]})")
            at, aimed = end + 1, False
        elif (found := _HERE.match(text, at)) and "((" not in text[:at]:
            here.append((found[3] or found[4], bool(found[2]), bool(found[1])))
            at = found.end()
        elif found := _REDIRECTION.match(text, at):
            at, aimed = found.end(), True
        elif char in "\n;&|()":
            at, bodies = _pass_documents(text, at + 1, here if char == "\n" else [])
            targets += [["<", body] for body in bodies]
            here = [] if char == "\n" else here
            commands.append([])
            aimed = False
        else:
            end = _end_of_word(text, at)
            if text[end : end + 1] == "(" and text[at:end].endswith("="):  # an array
                end = find_close(text, end + 1, ")") + 1
            if aimed:
                targets.append(["<", text[at:end]])
            else:
                commands[-1].append(text[at:end])
            at, aimed = end, False
        at = _pass_space(text, at)
    return [one for one in (*commands, *targets) if one]


def _pass_space(text: str, at: int) -> int:
    """Behind blanks, joined lines and a comment."""
    while at < len(text):
        if text[at] in " \t\r":
            at += 1
        elif text.startswith("\\\n", at):
            at += 2
        elif text[at] == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        else:
            break
    return at


def _pass_documents(
    text: str, at: int, here: list[tuple[str, bool, bool]]
) -> tuple[int, list[str]]:
    """Return where the line continues after its here-documents, and those in which a shell expands
    words, as quoted words."""
    bodies = []
    for ends, quoted, indented in here:
        begin = at
        shape = ("\n\t*" if indented else "\n") + re.escape(ends) + r"(?=\n|$)"
        if not re.compile(shape).search(text, at - 1):  # it was none: continue after it
            continue
        while at < len(text):
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            line = text[at:stop]
            at = min(stop + 1, len(text))
            if (line.lstrip("\t") if indented else line) == ends:
                break
        if not quoted and ("$" in text[begin:at] or "`" in text[begin:at]):
            bodies.append('"' + text[begin:at].replace('"', '\\"') + '"')
    return at, bodies


def _end_of_word(text: str, at: int) -> int:
    while at < len(text) and text[at] not in " \t\r\n;&|()<>":
        at = _pass_one(text, at)
    return min(at, len(text))


def _pass_one(text: str, at: int) -> int:
    """Behind the letter, the quotes or the expansion that begins at `at`."""
    char = text[at]
    if char == "\\":
        return at + 2
    if char == "'":
        end = text.find("'", at + 1)
        return len(text) if end < 0 else end + 1
    if char in '"`':
        return find_close(text, at + 1, char) + 1
    if text.startswith("$'", at):
        return find_close(text, at + 2, "'") + 1
    if text.startswith(("$(", "${"), at):
        return find_close(text, at + 2, ")" if text[at + 1] == "(" else "}") + 1
    return at + 1


def find_close(text: str, at: int, sign: str) -> int:
    """Return where the bracket or quote that opened before `at` is closed by `sign`; the text's end
    if it never is. Without recursion, as nesting may be as deep as the text is long."""
    waiting = [sign]
    while at < len(text):
        char, wanted = text[at], waiting[-1]
        if char == "\\":
            at += 2
            continue
        if char == wanted:
            waiting.pop()
            if not waiting:
                return at
        elif wanted == "'" or wanted == "`":
            pass
        elif text.startswith(("$(", "${"), at):
            waiting.append(")" if text[at + 1] == "(" else "}")
            at += 1
        elif char in '"`' or (char == "'" and wanted != '"'):
            waiting.append(char)
            if char == "'":
                end = text.find("'", at + 1)
                at = len(text) if end < 0 else end
                waiting.pop()
        elif char == "(" and wanted == ")":
            waiting.append(")")
        at += 1
    return len(text)


def unescape_ansi(text: str) -> str:
    """The letters of `$'…'`."""

    def read(found: re.Match[str]) -> str:
        number = found[1] or found[2] or found[3]
        if number:
            return chr(min(int(number, 16), 0x10FFFF))
        if found[4]:
            return chr(int(found[4], 8) & 0xFF)
        return "" if found[5] else _SIGNS.get(found[6], found[6])

    return _ANSI.sub(read, text)


def expand_braces(raw: str) -> list[str]:
    """The words that `{a,b}` and `{1..3}` outside of quotes make of a raw word."""
    if "{" not in raw:
        return [raw]
    if len(raw) > MAX_WORD or raw.count("{") > MAX_OPEN:
        return [_UNREAD]
    done: list[str] = []
    waiting = [raw]
    while waiting:
        word = waiting.pop()
        found = _find_braces(word) if len(done) + len(waiting) < MAX_BRACES else None
        if found is None:
            done.append(word)
        else:
            begin, parts, end = found
            waiting += [word[:begin] + part + word[end:] for part in reversed(parts)]
    return done


def _find_braces(word: str) -> tuple[int, list[str], int] | None:
    """The first braces of the word that part it: where they begin, their parts, their end."""
    at = 0
    while at < len(word):
        if word[at] == "{":
            found = _read_braces(word, at)
            if found:
                return found
            at += 1
        else:
            at = _pass_one(word, at)
    return None


def _read_braces(word: str, begin: int) -> tuple[int, list[str], int] | None:
    at, depth, parts, last = begin + 1, 0, list[str](), begin + 1
    while at < len(word):
        char = word[at]
        if char == "{":
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        elif char == "}":
            inner = word[begin + 1 : at]
            if not parts and _RANGE.fullmatch(inner):
                ends = inner.split("..")
                return begin, _count(ends[0], ends[1]), at + 1
            return (begin, [*parts, word[last:at]], at + 1) if parts else None
        elif char == "," and not depth:
            parts.append(word[last:at])
            last = at + 1
        at = at + 1 if char in "{}," else _pass_one(word, at)
    return None


def _count(first: str, last: str) -> list[str]:
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        begin, end = int(first), int(last)
        step = 1 if end >= begin else -1
        return [str(n) for n in range(begin, end + step, step)[:MAX_BRACES]]
    begin, end = ord(first[0]), ord(last[0])
    step = 1 if end >= begin else -1
    return [chr(n) for n in range(begin, end + step, step)]
