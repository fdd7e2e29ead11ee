"""Describes a call that waits for approval: what is approved looks like what will run.

`describe_call` makes one value of it, which all platforms draw. Nothing in it hides or reorders
text, and of a long text the head and the tail are always visible, whatever is between.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from gateway.moment_texts import map_words
from gateway.texts import say
from gateway.texts.call_lines import read_arguments, summarize_call
from gateway.texts.signs import name_signs, visible
from gateway.texts.tool_names import name_tool
from gateway.texts.tools import ARGUMENT_NAMES
from gateway.views import CARD_MARKS, ApprovalCard, ProposalLine

BodyKind: TypeAlias = Literal["diff", "code"]

MAX_LINES, HEAD_LINES, TAIL_LINES = 24, 14, 8
"""Lines of a body: all of them, or its head and its tail."""
MAX_CHARACTERS, HEAD_CHARACTERS, TAIL_CHARACTERS = 1_500, 900, 450
MAX_LINE, HEAD_OF_LINE, TAIL_OF_LINE = 400, 240, 120
MAX_FACT, HEAD_OF_FACT, TAIL_OF_FACT = 200, 120, 60
MAX_FACTS = 16
"""Maximum arguments beside a body that are told as facts; with more, all are shown as JSON."""
MAX_IN_CHAT = 3_000
"""Characters of calls in full that are written above their card; more are a file."""
CALLS_FILE = "calls.txt"
MAX_TITLES = 3
"""Maximum calls named on a decided card; the rest is counted."""

_EDITS = frozenset(
    {"write_file", "str_replace_editor", "rollback", "sandbox_file", "sandbox_files"}
)
"""Tools whose preview is the change of a file."""
_IN_DIFF = frozenset({"content", "file_text", "old_str", "new_str"})
_BODIES = ("command", "code")
_BLANKS = re.compile(r"(?<=[^ \t\n])[ \t]{9,}|(?<=[ \t]{40})[ \t]{9,}")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_EMPTY = re.compile(r"\n(?:[ \t]*\n){3,}")


class CallDescription(Struct, frozen=True, kw_only=True):
    """One call for people; none of its words holds a hidden sign. `facts`: (name, value), a line
    each. `body`: the command, the code, or the change of a file, whole or with its head and tail.
    `warnings`: deceptive signs, by name. `notes`: the policy's. `whole`: the call as given, "" if
    the rest says it all."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    body: str = ""
    kind: BodyKind = "code"
    warnings: tuple[str, ...] = ()
    notes: str = ""
    whole: str = ""


def describe_call(line: ProposalLine, language: str) -> CallDescription:
    """The call for people. Pure, and about linear in the length of its arguments."""
    title = _cut_name(visible(name_tool(line.tool, language)))
    known = read_arguments(line.arguments)
    notes, preview = line.detail.strip(), line.preview.strip("\n")
    if line.tool not in _EDITS and preview:
        notes, preview = "\n".join(filter(None, (notes, preview))), ""
    deceits = name_signs("\n".join((*_list_texts(line, known), preview)), language)
    kind: BodyKind = "diff" if preview else "code"
    facts: tuple[tuple[str, str], ...] = ()
    body, cut = _lay_out(line), False
    if known is not None and len(known) <= MAX_FACTS:
        body, rest = _take_body(known)
        if preview:
            body, rest = preview, {name: known[name] for name in known if name not in _IN_DIFF}
        facts, cut = _list_facts(rest, language)
    shown = _show(body, language)
    partly = cut or shown != visible(body, exact=True) or (preview != "" and _is_cut(preview))
    return CallDescription(
        title=title,
        facts=facts,
        body=shown,
        kind=kind,
        warnings=deceits,
        notes=visible(notes),
        whole=visible(_lay_out(line), exact=True) if partly else "",
    )


def write_calls_file(calls: Iterable[CallDescription]) -> str:
    """Return the calls in full, each below its title, as the text of a file beside the card; "" if
    they fit into the chat. A decided card keeps its file: messages do not change their kind."""
    long = [call for call in calls if call.whole]
    if sum(len(call.whole) for call in long) <= MAX_IN_CHAT:
        return ""
    return "\n\n".join(f"{call.title}\n{call.whole}" for call in long)


def describe_scope(view: ApprovalCard) -> str:
    """Describe the extent of lasting answers, a line each; "" for none."""
    if view.rule == view.here != "":
        return say("both_cover", view.language, rule=view.rule)
    here = say("here_covers", view.language, rule=view.here) if view.here else ""
    rule = say("always_covers", view.language, rule=view.rule) if view.rule else ""
    return "\n".join(filter(None, (here, rule)))


class DecidedLine(Struct, frozen=True, kw_only=True):
    """A decided card in one line: its mark and question, the decision and by whom."""

    what: str
    outcome: str


def fold_decided(view: ApprovalCard) -> DecidedLine:
    """The one line that a card becomes when it is decided."""
    language, calls = view.language, view.proposals
    if len(calls) > MAX_TITLES:
        what = say("calls_of", language, n=len(calls))
    else:
        what = ", ".join(summarize_call(one.tool, one.arguments, language) for one in calls)
    outcome = " ".join(map_words(view.outcome, visible).split())
    return DecidedLine(what=f"{CARD_MARKS[view.state]} {what}", outcome=outcome)


def _list_texts(line: ProposalLine, known: dict[str, object] | None) -> Iterator[str]:
    """Yield all texts of the call as they will be passed, not escaped as in JSON."""
    yield from (line.tool, line.reason, line.detail, line.arguments if known is None else "")
    if known is None:
        yield "".join(chr(int(one, 16)) for one in _ESCAPE.findall(line.arguments))
    waiting: list[object] = [known]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as inside:
                waiting += [*inside.keys(), *inside.values()]
            case list() as inside:
                waiting += inside


def _take_body(known: dict[str, object]) -> tuple[str, dict[str, object]]:
    """Return (the command or the code, the other arguments)."""
    for name in _BODIES:
        body = known.get(name)
        if isinstance(body, str) and body.strip():
            return body, {other: value for other, value in known.items() if other != name}
    return "", known


def _list_facts(
    known: dict[str, object], language: str
) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return (name and value of each argument given, whether a value was cut)."""
    facts, cut = [], False
    for name, value in known.items():
        if value is None:
            continue
        key = ARGUMENT_NAMES.get(name)
        label = say(key, language) if key is not None else visible(name, exact=True)
        words = visible(_write_value(value), exact=True)
        short = _squeeze(words, language)
        if len(short) > MAX_FACT:
            left = len(short) - HEAD_OF_FACT - TAIL_OF_FACT
            gap = _mark(say("left_characters", language, n=left))
            short = f"{short[:HEAD_OF_FACT]}{gap}{short[-TAIL_OF_FACT:]}"
        cut = cut or short != words
        facts.append((_cut_name(label), short))
    return tuple(facts), cut


def _cut_name(label: str) -> str:
    return label if len(label) <= MAX_FACT else f"{label[:HEAD_OF_FACT]}…{label[-TAIL_OF_FACT:]}"


def _write_value(value: object) -> str:
    """A text in one line, several texts in a row, all else as JSON."""
    if isinstance(value, str) and value.strip():
        return value.replace("\n", " ⏎ ").replace("\t", " ⇥ ")
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ", ".join(json.dumps(one, ensure_ascii=False)[1:-1] for one in value)
    return json.dumps(value, ensure_ascii=False)


def _lay_out(line: ProposalLine) -> str:
    """Write all arguments as readable JSON, to which only blanks are added; "" without any."""
    try:
        text = msgspec.json.format(line.arguments, indent=2)
    except (msgspec.DecodeError, RecursionError):
        text = line.arguments.strip()
    return "" if text == "{}" else text


def _is_cut(preview: str) -> bool:
    return "\n[… " in preview or preview.endswith("; no diff]")


def _show(body: str, language: str) -> str:
    """`body` with its signs as codes, whole or with its head and its tail."""
    text = _squeeze(visible(body, exact=True), language)
    lines = [_cut_line(one, language) for one in text.split("\n")]
    if len(lines) > MAX_LINES:
        gap = _mark(say("left_lines", language, n=len(lines) - HEAD_LINES - TAIL_LINES))
        lines = [*lines[:HEAD_LINES], gap, *lines[-TAIL_LINES:]]
    text = "\n".join(lines)
    if len(text) > MAX_CHARACTERS:
        left = len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS
        gap = _mark(say("left_characters", language, n=left))
        text = f"{text[:HEAD_CHARACTERS]}\n{gap}\n{text[-TAIL_CHARACTERS:]}"
    return text


def _cut_line(line: str, language: str) -> str:
    if len(line) <= MAX_LINE:
        return line
    gap = _mark(say("left_characters", language, n=len(line) - HEAD_OF_LINE - TAIL_OF_LINE))
    return f"{line[:HEAD_OF_LINE]}{gap}{line[-TAIL_OF_LINE:]}"


def _squeeze(text: str, language: str) -> str:
    """`text` with its long runs of blanks and of empty lines counted instead of shown."""
    text = _BLANKS.sub(
        lambda run: f" {_mark(say('left_blanks', language, n=len(run.group())))} ", text
    )
    return _EMPTY.sub(
        lambda run: f"\n{_mark(say('left_empty', language, n=run.group().count(chr(10)) - 1))}\n",
        text,
    )


def _mark(words: str) -> str:
    """Mark a word of ours within a call's: nobody else can write these signs
    (`gateway.texts.signs`)."""
    return f"⟨{words}⟩"
