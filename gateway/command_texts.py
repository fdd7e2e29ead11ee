"""Commands named in the gateway's texts: values inside the text, written by each platform in its
own way.

A catalogue has them in braces: `{/stop all}`, or `{/resume …}` for one that is only put into the
input field because it needs more words or a second thought. `mark_commands` wraps each in
noncharacters. `agent_core.text.clean` strips those from everything that people and models write, so
only the gateway's own texts can hold a command; without the marks it reads as `/stop all`.
Vocabulary: imports nothing of ours but views and the moments of texts.
"""

import re
from collections.abc import Callable
from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from gateway.moment_texts import drop_moments
from gateway.views import (
    Activity,
    ApprovalCard,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    ReplyView,
    ReportView,
    SaidView,
    View,
)

OPENS, RUNS, GOES_ON = "\ufdd2", "\ufdd3", "\ufdd4"
"""Marks: start of a command; end of a complete one; end of one that the person completes."""
MARKED = re.compile(f"{OPENS}/([^{OPENS}{RUNS}{GOES_ON}]*)([{RUNS}{GOES_ON}])")
MARKS = re.compile(f"[{OPENS}{RUNS}{GOES_ON}]")
_BRACES = re.compile(r"\{/((?:[^{}]|\{\w+\})*?)( ?…)?\}")


class NamedCommand(Struct, frozen=True, kw_only=True):
    """A command in a text: `stop` with the arguments `all`. `whole`: it can be run as it is."""

    name: str
    arguments: str = ""
    whole: bool = True

    @property
    def words(self) -> str:
        """The command without its slash."""
        return f"{self.name} {self.arguments}".strip()


def take_word(text: str) -> tuple[str, str]:
    """Return the first word of `text` and the rest; any space, such as a narrow or a wide one, ends
    it."""
    first, rest = (*text.split(maxsplit=1), "", "")[:2]
    return first, rest.strip()


WriteCommand: TypeAlias = Callable[[NamedCommand], str]


def write_line(command: NamedCommand) -> str:
    """The command as most platforms take it: `/stop all`."""
    return f"/{command.words}"


class OwnText(str):
    """A text of ours, which keeps its commands and moments where `say` puts it into another one."""

    __slots__ = ()


def name_command(words: str, *, whole: bool = True) -> str:
    """The command `words` (`stop all`) for a text of ours."""
    return f"{OPENS}/{words}{RUNS if whole else GOES_ON}"


def mark_commands(template: str) -> str:
    """Mark the commands of a catalogue's text; other braces stay."""
    if "{/" not in template:
        return template
    return _BRACES.sub(lambda found: name_command(found[1], whole=not found[2]), template)


def write_commands(text: str, write: WriteCommand = write_line, *, moments: bool = False) -> str:
    """`text` with each of its commands as `write` has it, and its moments in words. `moments`:
    they stay, to be written later."""
    text = text if moments else drop_moments(text)
    if OPENS not in text:
        return text
    return _drop(MARKED.sub(lambda found: write(_read(found)), text))


def drop_marks(text: str) -> str:
    """Replace marked commands and moments by plain words. Text without marks is returned as it
    is."""
    return _drop(drop_moments(text))


def _drop(text: str) -> str:
    return text if text.isascii() else MARKS.sub("", text)


def find_commands(text: str) -> tuple[NamedCommand, ...]:
    """The commands in `text`, in order."""
    return tuple(map(_read, MARKED.finditer(text)))


def write_in_view(
    view: View,
    markdown: WriteCommand = write_line,
    plain: WriteCommand = write_line,
    *,
    moments: bool = False,
) -> View:
    """Return `view` with its commands written out: by `markdown` in texts that are read as
    Markdown, by `plain` elsewhere. Moments become words; with `moments` they stay, to be written
    later. A model's text has neither."""

    def write(text: str, way: WriteCommand) -> str:
        return write_commands(text, way, moments=moments)

    match view:
        case Notice():
            return _replace_words(view, text=write(view.text, markdown))
        case ChoiceCard() | FormCard():
            text = write(view.text, markdown)
            return _replace_words(view, text=text, outcome=write(view.outcome, plain))
        case ApprovalCard():
            return _replace_words(view, outcome=write(view.outcome, plain))
        case PlanView():
            return _replace_words(view, outcome=write(view.outcome, plain))
        case ReplyView() | ReportView():
            return _replace_words(view, note=write(view.note, plain))
        case Activity() | Media() | SaidView():
            return view
    assert_never(view)


def _replace_words(view: View, **words: str) -> View:
    """`view` with other words, itself if it has them already."""
    same = all(getattr(view, name) is text for name, text in words.items())
    return view if same else replace(view, **words)


def _read(found: "re.Match[str]") -> NamedCommand:
    name, _, arguments = found[1].partition(" ")
    return NamedCommand(name=name, arguments=arguments, whole=found[2] == RUNS)
