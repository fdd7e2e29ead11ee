"""Commands that the gateway's texts name: values within the text, which each platform writes in its
own way.

A catalogue has them in braces: `{/stop all}`, and `{/resume …}` for one that is put where its
person writes, because it wants more words or a second thought. `mark_commands` sets each between
noncharacters. `agent_core.text.clean` takes those out of all that people and models write, so only
a text of ours can hold a command; without the marks it reads as `/stop all`.

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
"""A command begins; it ends and is whole; it ends and its person goes on with it."""
MARKED = re.compile(f"{OPENS}/([^{OPENS}{RUNS}{GOES_ON}]*)([{RUNS}{GOES_ON}])")
MARKS = re.compile(f"[{OPENS}{RUNS}{GOES_ON}]")
_BRACES = re.compile(r"\{/((?:[^{}]|\{\w+\})*?)( ?…)?\}")


class NamedCommand(Struct, frozen=True, kw_only=True):
    """A command in a text: `stop` with the arguments `all`. `whole`: it can be given as it is."""

    name: str
    arguments: str = ""
    whole: bool = True

    @property
    def words(self) -> str:
        """The command without its slash."""
        return f"{self.name} {self.arguments}".strip()


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
    """A catalogue's text with its commands marked; what else is in braces stays."""
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
    """`text` with its commands and moments in plain words, which is also any text that is not
    ours."""
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
    """`view` with its commands written: `markdown` in texts that are read as such, `plain` in its
    other words. Its moments are in words; with `moments` they stay, to be written later. What a
    model wrote has none."""

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
