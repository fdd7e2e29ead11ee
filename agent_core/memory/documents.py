"""The memory as values: two documents of one-line entries, and their changes.

MEMORY.md is about the work, USER.md about the person. An entry is one line, so that none can look
like the end of its document. Pure: the holder decides where the documents are.
"""

from typing import Literal

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.memory.refusals import refusal

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]
FILES: dict[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}

_ENDS = (".", "!", "?", "…", "。", "！", "？", "।", "؟")
_CLOSING = "\"'”’»)]」』）"

FULL = (
    "{file} is full: it would have {size:,} of {limit:,} characters, so nothing was stored. Make "
    "room first: merge entries with replace, take out what is outdated with remove, then add "
    "again. It holds:\n{text}"
)


class Change(Struct, frozen=True, kw_only=True):
    """A requested change of the document `target`. `old`: words of the entry that is meant."""

    action: Action
    target: Target
    text: str = ""
    old: str = ""


class MemoryDocuments(Struct, frozen=True, kw_only=True):
    """The two documents of one place."""

    memory: tuple[str, ...] = ()
    user: tuple[str, ...] = ()


class ChangeOutcome(Struct, frozen=True, kw_only=True):
    """The result of a change: `text` for the model; `shown`: the entry told to people, "" if
    nothing changed."""

    text: str
    shown: str = ""


class EntryEdit(Struct, frozen=True, kw_only=True):
    """Entry number `at` becomes `text`: a new one where `at` is None, none where `text` is ""."""

    at: int | None
    text: str

    def apply(self, entries: tuple[str, ...]) -> tuple[str, ...]:
        """The document's entries afterwards."""
        new = (self.text,) if self.text else ()
        if self.at is None:
            return (*entries, *new)
        return (*entries[: self.at], *new, *entries[self.at + 1 :])


def edit(entries: tuple[str, ...], change: Change, limit: int) -> EntryEdit | None:
    """Translate `change` for a document of `entries` with at most `limit` characters; None if it
    holds that already. ToolFailed tells the model why it is impossible."""
    text = one_line(change.text) if change.action != "remove" else ""
    if change.action != "remove":
        if not text:
            raise ToolFailed("Say in `text` what shall be remembered.")
        if why := refusal(text):
            raise ToolFailed(why)
        if text in entries:
            return None
    at = None if change.action == "add" else find_entry(entries, change)
    wanted = EntryEdit(at=at, text=text)
    size = len(write_document(wanted.apply(entries)))
    if size > limit and size > len(write_document(entries)):
        file, known = FILES[change.target], write_document(entries)
        raise ToolFailed(FULL.format(file=file, size=size, limit=limit, text=known))
    return wanted


def find_entry(entries: tuple[str, ...], change: Change) -> int:
    """Return the number of the entry that `change.old` names: the equal one, otherwise the only one
    that contains it. Raises ToolFailed."""
    old, file = one_line(change.old), FILES[change.target]
    if not old:
        raise ToolFailed(f"Give in `old_text` words of the entry to {change.action}.")
    if old in entries:
        return entries.index(old)
    numbers = [n for n, entry in enumerate(entries) if old in entry]
    if len(numbers) == 1:
        return numbers[0]
    if numbers:
        several = write_document(tuple(entries[n] for n in numbers))
        raise ToolFailed(f"{old!r} is in several entries of {file}; say more of one:\n{several}")
    raise ToolFailed(f"No entry of {file} holds {old!r}. It holds:\n{write_document(entries)}")


def write_document(entries: tuple[str, ...]) -> str:
    """The document's text; entries that are "" are left out."""
    return "\n".join(f"- {entry}" for entry in entries if entry) or "(nothing)"


def end_sentence(text: str) -> str:
    """`text` with a full stop, if it does not end a sentence already."""
    return text if text.rstrip(_CLOSING).endswith(_ENDS) else f"{text}."


def one_line(text: str) -> str:
    """`text` with single spaces in place of all white space."""
    return " ".join(text.split())
