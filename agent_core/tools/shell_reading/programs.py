"""Decides whether a program of awk, sed or jq only prints."""

import re

_AWK_ACTS = re.compile(
    r"[@|]|system|getline|close|fflush|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|ARG[VC]|include|load"
)
_AWK_COMPARED = re.compile(r"\((?:[$\w.+*%<>=!&|;, -]|\[[$\w]*\]|\([$\w, ]*\))*")
"""Characters allowed between a bracket and a `>` that compares: none that could be a text."""

_BRACKET = re.compile(r"\[\^?\]?(?:[^\[\]\\\n]|\\[^\]\n]|\[:[a-z]{1,10}:\])*\]")
_LINES = (
    r"\d{1,9}|\$|/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\[\]\\/\n]|\\[^\]/\n]|\[:[a-z]{1,10}:\])*\])*/I?"
)
_SED_ADDRESS = re.compile(
    rf"(?:\d{{1,9}}~\d{{1,9}}|{_LINES})(?:\s*,\s*(?:[+~]\d{{1,9}}|{_LINES}))?\s*!?\s*"
)
_SED_SIMPLE = re.compile(
    r"[pPdDhHgGxnNl=](?=$|[\s;}])|[qQ]\d{0,3}(?=$|[\s;}])|(?::|[bt] ?)[A-Za-z]\w{0,20}(?=$|[;\n])"
)
_SED_SIGNS = frozenset("/,|#:@!_%~^=+")
_SED_FLAGS = re.compile(r"[gIiMmp0-9]*(?=$|[\s;}])")

_JQ_ACTS = re.compile(
    r"\$ENV|\$__prog|(?<![.\w$])env\b"
    r"|\b(include|import|input_filename|debug|stderr|halt\w*|modulemeta|get_search_list)\b"
)
_YQ_ACTS = re.compile(r"load|env|eval|file|split_doc|from_|to_|@|system|exec")


def awk_prints(text: str) -> bool:
    """A program without commands, files of its own, other files' names and the environment."""
    if _AWK_ACTS.search(text.replace("||", "")):
        return False
    body = text.partition("{")[2]
    at = body.find(">")
    while at >= 0:
        inner = _cut_bracket(body[:at])
        if "print" in inner or not _AWK_COMPARED.fullmatch(inner):
            return False
        at = body.find(">", at + 1)
    return True


def _cut_bracket(text: str) -> str:
    """Cut the text before its last unclosed bracket, "" without one."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth < 0:
            return text[at:]
    return ""


def sed_prints(text: str) -> bool:
    """Return True for a script that selects, replaces and prints lines; running and writing are
    unknown here."""
    at, depth = 0, 0
    while at < len(text):
        if text[at] in " \t;\n":
            at += 1
            continue
        if text[at] == "}":
            at, depth = at + 1, depth - 1
            continue
        if found := _SED_ADDRESS.match(text, at):
            at = found.end()
        if at < len(text) and text[at] == "{":
            at, depth = at + 1, depth + 1
            continue
        end = _end_of_command(text, at)
        if end < 0:
            return False
        at = end
    return depth == 0


def _end_of_command(text: str, at: int) -> int:
    """Return the end of the sed command that begins at `at`; -1 if it is not one that prints."""
    if found := _SED_SIMPLE.match(text, at):
        return found.end()
    if text[at : at + 1] not in ("s", "y") or text[at + 1 : at + 2] not in _SED_SIGNS:
        return -1
    sign, end = text[at + 1], at + 2
    for has_brackets in (text[at] == "s", False):
        end = _end_of_part(text, end, sign, has_brackets)
        if end < 0:
            return -1
    flags = _SED_FLAGS.match(text, end)
    return flags.end() if flags else -1


def _end_of_part(text: str, at: int, sign: str, has_brackets: bool) -> int:
    """Return the end of the next unescaped `sign`; -1 without one, or if a line ends before, or two
    readers may see its end in two places."""
    while at < len(text):
        if text[at] == "\n":
            return -1
        if has_brackets and text[at] == "[":
            found = _BRACKET.match(text, at)
            if found is None or sign in found.group():
                return -1
            at = found.end()
            continue
        if text[at] == "\\":
            at += 1
        elif text[at] == sign:
            return at + 1
        at += 1
    return -1


def jq_filters(text: str) -> bool:
    """A filter without the environment, modules and names of files."""
    return not _JQ_ACTS.search(text)


def yq_filters(text: str) -> bool:
    """Return True for a filter of both programs of this name: it begins as one does, not with
    another command, and loads, decodes and asks for nothing besides the file."""
    return text[:1] in (".", "[", "{") and jq_filters(text) and not _YQ_ACTS.search(text)
