"""The content of a chat stream, and the difference to append to one. Pure.

Slack adds to a stream and removes nothing: the title of a plan, the title and the state of a task
are replaced, a task's details and output grow, blocks stay as they were appended. Other changes are
made by an edit of the whole message.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Chunk = dict[str, object]

GROWS = ("details", "output")
"""Fields of a task to which Slack appends each time."""


class StreamChunks(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as a chat stream. `live`: it will change soon; `last`: it never will. `tail`:
    blocks below it after its end. `display`: how Slack shows its tasks."""

    chunks: tuple[Chunk, ...]
    live: bool = False
    last: bool = False
    tail: tuple[Chunk, ...] = ()
    display: Literal["timeline", "plan"] = "timeline"


class _Parts(Struct, frozen=True, kw_only=True):
    """A stream taken apart; of the title, the text and the blocks there is at most one each."""

    title: str
    text: str
    tasks: dict[str, Chunk]
    tokens: frozenset[str]


def make_text_chunk(text: str) -> Chunk:
    return {"type": "markdown_text", "text": text}


def make_title_chunk(title: str) -> Chunk:
    """The title of the plan that the stream's tasks are."""
    return {"type": "plan_update", "title": title}


def step(name: str, title: str, status: str, output: str = "", details: str = "") -> Chunk:
    """A task; of the same `name` it is the same task, changed."""
    made: Chunk = {"type": "task_update", "id": name, "title": title, "status": status}
    made |= {"details": details} if details else {}
    return made | ({"output": output} if output else {})


def controls(blocks: Sequence[Chunk]) -> Chunk:
    """Make buttons and lists. They stay while the stream lasts, so pressing outdated ones must do
    no harm."""
    return {"type": "blocks", "blocks": list(blocks)}


def difference(shown: Sequence[Chunk], wanted: Sequence[Chunk]) -> list[Chunk] | None:
    """Return what to append to a stream that shows `shown` to show `wanted`; None if appending is
    not enough."""
    old, new = _parts(shown), _parts(wanted)
    grows = new.text.startswith(old.text) and bool(old.title) == bool(new.title)
    if not grows or list(new.tasks)[: len(old.tasks)] != list(old.tasks):
        return None
    if not new.tokens <= old.tokens:
        return None
    more = [make_title_chunk(new.title)] if new.title != old.title else []
    more += [make_text_chunk(new.text[len(old.text) :])] if new.text != old.text else []
    for name, task in new.tasks.items():
        changed = _diff_task(old.tasks.get(name), task)
        if changed is None:
            return None
        more += [changed] if changed else []
    return more


def _diff_task(before: Chunk | None, after: Chunk) -> Chunk | None:
    """Return what to append for one task, {} if it is unchanged."""
    if before is None or before == after:
        return after if before is None else {}
    made = {name: value for name, value in after.items() if name not in GROWS}
    for name in GROWS:
        old, new = str(before.get(name, "")), str(after.get(name, ""))
        if not new.startswith(old):
            return None
        if new != old:
            made[name] = new[len(old) :]
    return made


def read_beginning(chunks: Sequence[Chunk]) -> str:
    """Return words that identify its message: a plan's steps, or a text without anything else."""
    parts = _parts(chunks)
    if parts.title:
        return "\n".join(str(task["title"]) for task in parts.tasks.values())
    return "" if parts.tasks else parts.text


def _parts(chunks: Sequence[Chunk]) -> _Parts:
    def all_of(kind: str) -> list[Chunk]:
        return [one for one in chunks if one["type"] == kind]

    return _Parts(
        title="".join(str(one["title"]) for one in all_of("plan_update")),
        text="".join(str(one["text"]) for one in all_of("markdown_text")),
        tasks={str(one["id"]): one for one in all_of("task_update")},
        tokens=frozenset(_tokens([one["blocks"] for one in all_of("blocks")])),
    )


def _tokens(block: object) -> list[str]:
    """Return the tokens in `block`."""
    if isinstance(block, dict):
        own = [block["value"]] if isinstance(block.get("value"), str) else []
        return [*own, *_tokens(list(block.values()))]
    return [token for one in block for token in _tokens(one)] if isinstance(block, list) else []
