"""What a chat stream is made of, and what has to be appended to one. Pure.

Slack adds to a stream and takes nothing back: of a task the title and the state are replaced, its
details and output grow. What cannot be said by adding is shown by an edit of the whole message.
"""

from collections.abc import Sequence

from msgspec import Struct

Chunk = dict[str, object]

GROWS = ("details", "output")
"""Fields of a task to which Slack adds what it is given, each time."""


class Stream(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as a chat stream shows it. `live`: it is about to change; `last`: it never will.
    `tail`: blocks that stand below it when it has ended."""

    chunks: tuple[Chunk, ...]
    live: bool = False
    last: bool = False
    tail: tuple[Chunk, ...] = ()


def spoken(text: str) -> Chunk:
    return {"type": "markdown_text", "text": text}


def step(name: str, title: str, status: str, output: str = "") -> Chunk:
    """A task; of the same `name` it is the same task, changed."""
    made: Chunk = {"type": "task_update", "id": name, "title": title, "status": status}
    return made | ({"output": output} if output else {})


def difference(shown: Sequence[Chunk], wanted: Sequence[Chunk]) -> list[Chunk] | None:
    """What to append for a stream that shows `shown` to show `wanted`; None if adding will not do.
    Both have at most one text, and it stands first."""
    old_text, old_tasks = _parts(shown)
    new_text, new_tasks = _parts(wanted)
    names = list(new_tasks)
    if not new_text.startswith(old_text) or names[: len(old_tasks)] != list(old_tasks):
        return None
    more: list[Chunk] = []
    if grown := new_text[len(old_text) :]:
        more.append(spoken(grown))
    for name, task in new_tasks.items():
        before = old_tasks.get(name)
        if before is None:
            more.append(task)
        elif before != task:
            changed = _changed(before, task)
            if changed is None:
                return None
            more.append(changed)
    return more


def _changed(before: Chunk, after: Chunk) -> Chunk | None:
    made = {name: value for name, value in after.items() if name not in GROWS}
    for name in GROWS:
        old, new = str(before.get(name, "")), str(after.get(name, ""))
        if not new.startswith(old):
            return None
        if new != old:
            made[name] = new[len(old) :]
    return made


def _parts(chunks: Sequence[Chunk]) -> tuple[str, dict[str, Chunk]]:
    text = "".join(str(one["text"]) for one in chunks if one["type"] == "markdown_text")
    return text, {str(one["id"]): one for one in chunks if one["type"] == "task_update"}
