"""The forms in which models write calls as text: those of their chat templates, and plain JSON.

Templates begin with a mark (`<tool_call>`, `[TOOL_CALLS]`, `<|python_tag|>`, …), of which servers
and models often lose the end. Forms: Hermes, Qwen, Meta, Mistral, DeepSeek, Kimi, Zhipu, MiniMax,
IBM, Cohere, NVIDIA, OpenAI's harmony, Anthropic (November 2026).
"""

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

MAX_CALLS = 8
MAX_PLAIN = 20_000
"""Maximum characters of a text without a mark in which calls are looked for."""
MAX_END = 400
"""Maximum characters of template signs behind a line of Python."""
MAX_SAID = 400
"""Maximum characters before calls in a fence, which may also be examples."""
_BAR = "[|\N{FULLWIDTH VERTICAL LINE}]"
_TAGS = r"(?:tool_?calls?|function_?calls?)"
_OPENING = re.compile(
    rf"<{_TAGS}>|<function=(?=[\w.-]+>)|<invoke name=\"|\[TOOL_CALLS\]|<\|python_tag\|>"
    r"|<\|START_ACTION\|>|<\|channel\|>(?=(?:commentary|analysis) to=)"
    rf"|<{_BAR}tool[_\N{{LOWER ONE EIGHTH BLOCK}}]calls?[^<>|\n]{{0,20}}{_BAR}>",
    re.IGNORECASE,
)
"""Marks before calls."""
_FILLER = re.compile(
    rf"\s+|[,;\]}}]|</?{_TAGS}>|</(?:function|invoke|s)>|<{_BAR}[^<>\n]{{1,40}}{_BAR}>"
    r"|\[TOOL_CALLS\]|```\w*|(?:commentary|analysis)(?= to=)",
    re.IGNORECASE,
)
"""Text between calls and behind them that says nothing."""
_NAMESPACE = re.compile(
    r"(</?)(?:\N{FULLWIDTH VERTICAL LINE}DSML\N{FULLWIDTH VERTICAL LINE}|antml:|minimax:)"
)
_NAMED = re.compile(
    rf"(?:function<{_BAR}tool.sep{_BAR}>|to=)?([\w.:-]{{1,128}})"
    rf"(?:\[CALL_ID\]\w{{0,64}}|\[ARGS\]|<{_BAR}[^<>\n]{{1,40}}{_BAR}>(?:json)?|```json|\s)*"
    r"(?=\{|<arg_key>)"
)
_FUNCTION = re.compile(r'<(?:function=|invoke name=")([\w.:-]{1,128})"?\s*>')
_FUNCTION_END = re.compile(rf'</(?:function|invoke)>|<(?:function=|invoke name=")|</{_TAGS}>')
_PARAMETER = re.compile(
    r'<parameter(?:=| name=")([\w.-]{1,128})"?(?: [^<>]{0,40})?>\n?'
    r"((?:(?!<parameter[= ]).)*?)\n?(?:</parameter>|(?=<parameter[= ])|\Z)",
    re.DOTALL,
)
_PAIR = re.compile(
    r"\s*<arg_key>((?:(?!<arg_).){1,128}?)</arg_key>\s*"
    r"<arg_value>\n?((?:(?!<arg_key>).)*?)\n?(?:</arg_value>|\Z)",
    re.DOTALL,
)
_FENCE = re.compile(r"```(?:json|tool_calls?|tool_code)?[ \t]*\n((?:(?!```).)*)```", re.DOTALL)
_END = re.compile(rf"(?:<{_BAR}[^<>\n]{{1,40}}{_BAR}>|</s>|\s)+\Z")
_PYTHON = re.compile(r"(?:\[\s{0,80})?[A-Za-z_][\w.]{0,200}\(")
_NAME_IN = re.compile(r"""["'](?:name|tool_name|tool)["']\s*:\s*["']([\w.:-]{1,128})["']""")
_BODY = re.compile(r"""\{\s*["']|\[\s*\{\s*["']""")
_NAMES = ("name", "tool_name", "tool", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
_BESIDE = ("type", "id", "tool_call_id", "index")
_CUT = "{"
"""The arguments of a call that ends before they do."""
_decoder = json.JSONDecoder(strict=False)  # models write line breaks into their strings


class WrittenCall(Struct):
    """`arguments`: a text if they are no object, as it was written. `texts`: all its arguments were
    written as texts."""

    name: str
    arguments: dict[str, object] | str
    texts: bool = False


class WrittenCalls(NamedTuple):
    """`said`: the words before the calls. `marked`: they have the mark of a template."""

    said: str
    calls: list[WrittenCall]
    marked: bool = False


class _NoCall(Exception):
    """The text is something else."""


def find_calls(text: str) -> WrittenCalls | None:
    """Split a text into words and calls, up to its end; None if the rest is anything else."""
    try:
        found = _find_marked(text) or (_find_plain(text) if len(text) <= MAX_PLAIN else None)
    except (_NoCall, RecursionError, MemoryError):
        return None
    return found if found and 0 < len(found.calls) <= MAX_CALLS else None


def _find_marked(text: str) -> WrittenCalls | None:
    text = _NAMESPACE.sub(r"\1", text)
    if (mark := _OPENING.search(text)) is None:
        return None
    said = text[: mark.start()].strip()
    if said.startswith("```") and "\n" not in said:
        said = ""
    if said.count("```") % 2:
        raise _NoCall  # an example in a fence
    rest = text[mark.start() :]
    if mark[0].lower() == "<|python_tag|>" and (calls := _read_python(_FILLER.sub("", rest, 1))):
        return WrittenCalls(said, calls, marked=True)
    return WrittenCalls(said, list(_scan(rest, marked=True)), marked=True)


def _find_plain(text: str) -> WrittenCalls | None:
    """Find calls without a mark: alone, or in a fence after a sentence or two."""
    if (first := _FENCE.search(text)) is not None:
        said = text[: first.start()].strip()
        if _FENCE.sub("", text[first.start() :]).strip() or len(said) > MAX_SAID:
            return None
        pieces = (one[1] for one in _FENCE.finditer(text))
        return WrittenCalls(said, [call for piece in pieces for call in _read_plain(piece)])
    return WrittenCalls("", _read_plain(text))


def _read_plain(text: str) -> list[WrittenCall]:
    """Read calls in JSON, or as a line of Python. Raises _NoCall."""
    if text.lstrip()[:1] in ("{", "[") and not _PYTHON.match(text.strip()):
        return list(_scan(text, marked=False))
    return _read_python(text)


def _scan(text: str, *, marked: bool) -> Iterator[WrittenCall]:
    """Yield the calls that `text` consists of. Raises _NoCall."""
    at = 0
    for _ in range(MAX_CALLS + 1):
        while filler := _FILLER.match(text, at):
            at = filler.end()
        if at == len(text):
            return
        calls, at = _read_body(text, at, marked=marked)
        yield from calls
    raise _NoCall


def _read_body(text: str, at: int, *, marked: bool) -> tuple[list[WrittenCall], int]:
    """Read the call or calls at a place of a text; return them and their end. Raises _NoCall."""
    if text[at] in "{[":
        try:
            value, end = _decoder.raw_decode(text, at)
        except ValueError:
            if not marked or not _BODY.match(text, at):
                raise _NoCall from None
            name = _NAME_IN.search(text, at)
            return [WrittenCall(name[1] if name else "unnamed", text[at:])], len(text)
        return _read_value(value, marked=marked), end
    if function := _FUNCTION.match(text, at):
        ended = _FUNCTION_END.search(text, function.end())
        end = ended.start() if ended else len(text)
        inner = text[function.end() : end]
        return [_read_function(function[1], inner, ended=ended is not None)], end
    named = _NAMED.match(text, at) if marked else None
    if named is None:
        raise _NoCall
    return _read_named(named, text)


def _read_named(named: re.Match[str], text: str) -> tuple[list[WrittenCall], int]:
    """Read the arguments behind a name."""
    at = named.end()
    if text[at] == "{":
        try:
            value, end = _decoder.raw_decode(text, at)
        except ValueError:
            return [WrittenCall(named[1], text[at:])], len(text)
        return [WrittenCall(named[1], value)], end
    arguments: dict[str, object] = {}
    while pair := _PAIR.match(text, at):
        arguments[pair[1].strip()] = pair[2]
        at = pair.end()
    if not arguments or not text[:at].endswith(">"):
        return [WrittenCall(named[1], _CUT)], len(text)
    return [WrittenCall(named[1], arguments, texts=True)], at


def _read_function(name: str, inner: str, *, ended: bool) -> WrittenCall:
    """Read arguments between tags: JSON, or a tag for each. Raises _NoCall."""
    inner = inner.strip()
    if inner.startswith("{"):
        try:
            value, end = _decoder.raw_decode(inner)
        except ValueError:
            return WrittenCall(name, inner)
        return WrittenCall(name, value if not inner[end:].strip(" \n]}") else inner)
    if not ended and not inner.endswith("</parameter>"):
        return WrittenCall(name, _CUT)
    if _PARAMETER.sub("", inner).strip():
        raise _NoCall
    given: dict[str, object] = {one[1]: one[2] for one in _PARAMETER.finditer(inner)}
    return WrittenCall(name, given, texts=True)


def _read_value(value: object, *, marked: bool) -> list[WrittenCall]:
    """Read a call, or a list of calls. Raises _NoCall."""
    if isinstance(value, dict) and set(value) == {"tool_calls"}:
        value = value["tool_calls"]
    return [
        _read_row(row, marked=marked) for row in (value if isinstance(value, list) else [value])
    ]


def _read_row(row: object, *, marked: bool) -> WrittenCall:
    """Read one call. Behind a mark it is one whatever else it has, and without arguments."""
    if not isinstance(row, dict):
        raise _NoCall
    fields: dict[str, object] = row
    inner = row.get("function")
    if isinstance(inner, dict) and not set(row) - {"function", *_BESIDE}:
        fields = inner
    names = [name for key in _NAMES if isinstance(name := fields.get(key), str)]
    given = [fields[key] for key in _ARGUMENTS if fields.get(key) is not None]
    given = given or ([{}] if marked else [])
    more = set(fields) - {*_NAMES, *_ARGUMENTS, *_BESIDE}
    if not names or not given or (not marked and (more or len(names) + len(given) > 2)):
        raise _NoCall
    return WrittenCall(names[0], _read_object(given[0]))


def _read_object(arguments: object) -> dict[str, object]:
    """Read arguments: an object, or its JSON. Raises _NoCall."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            raise _NoCall from None
    if not isinstance(arguments, dict):
        raise _NoCall
    return arguments


def _read_python(text: str) -> list[WrittenCall]:
    """Read calls with named, literal arguments; [] for other code."""
    text = (text[:-MAX_END] + _END.sub("", text[-MAX_END:])).strip()
    if not _PYTHON.match(text):
        return []
    try:
        with warnings.catch_warnings(action="ignore"):  # about `1if x`
            body = ast.parse(text, mode="eval").body
        rows = body.elts if isinstance(body, ast.List) else [body]
        return [_read_expression(row) for row in rows]
    except (SyntaxError, ValueError):
        return []


def _read_expression(row: ast.expr) -> WrittenCall:
    """Raises ValueError if it is no such call."""
    match row:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            pass
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="call"), args=[], keywords=keywords
        ):
            pass  # Meta's `<|python_tag|>tool.call(…)`
        case _:
            raise ValueError
    return WrittenCall(name, {one.arg or "": ast.literal_eval(one.value) for one in keywords})
