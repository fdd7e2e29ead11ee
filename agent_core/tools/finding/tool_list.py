"""The list of tools that a request does not describe, one line each, for its prompt.

An unknown tool is not searched for. Families of names are folded to keep the list short; a call
without arguments is answered with the schema.
"""

import re
from collections.abc import Iterable, Mapping

MAX_LINE = 44
"""Characters said of one tool."""
MIN_FAMILY = 3
"""Names with the same beginning that share a line."""
HEAD = "More tools, called by name or through {call}{find}:"
CALL = "call_tool"
FIND = "; find_tools gives their arguments"
_END = re.compile(r"[.;:(]|, (?=and|or|which|whose|to )")
_LOOSE = frozenset({"a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "that"})
_LOOSE |= {"the", "this", "to", "with", "your"}
"""Words that a line does not end with."""
_NAMED = re.compile(r" ?`[^`]*`")


def summarize(description: str) -> str:
    """The beginning of a tool's description, at most MAX_LINE characters, in whole words."""
    text = _NAMED.sub("", _END.split(description, maxsplit=1)[0]).strip()
    if len(text) <= MAX_LINE:
        return text
    words = text[: MAX_LINE + 1].split(" ")[:-1]
    while words and words[-1].lower() in _LOOSE:
        words.pop()
    return " ".join(words).rstrip(",")


def render_tool_list(
    lines: Mapping[str, str],
    *,
    found: bool,
    short: bool = False,
    servers: tuple[str, ...] = (),
) -> str:
    """Render the list of tools by name, in their order; "" for none. `found`: there are the tools
    by which others are found and called. `short`: all names in one line, without descriptions.
    `servers`: names of MCP servers, whose tools come and go: a prompt that named them would not
    stay the same."""
    servers = servers if found else ()
    if not (lines or servers):
        return ""
    head = HEAD.format(call=CALL, find=FIND) if found else "More tools, called by name:"
    if short:
        named = (*_fold(dict.fromkeys(lines, "")), *(f"{one}__…" for one in servers))
        return f"{head} {', '.join(named)}"
    rows = (*_fold(lines), *(f"{one}__…: tools of the server {one}" for one in servers))
    return "\n".join((head, *(f"- {row}" for row in rows)))


def _fold(lines: Mapping[str, str]) -> Iterable[str]:
    families: dict[str, list[str]] = {}
    for name in lines:
        first, _, rest = name.partition("_")
        families.setdefault(f"{first}_" if rest else first, []).append(name)
    for first, names in families.items():
        if len(names) < MIN_FAMILY:
            yield from (f"{name}: {lines[name]}" if lines[name] else name for name in names)
        else:
            yield f"{first}{{{','.join(name.removeprefix(first) for name in names)}}}"
