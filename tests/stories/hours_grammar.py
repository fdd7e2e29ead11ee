"""Hours of two people and a stranger on three platforms, as a grammar: what they do, drawn by
hypothesis."""

from typing import Any, Literal

from hypothesis import strategies as st
from msgspec import Struct

Json = dict[str, Any]
Platform = Literal["telegram", "discord", "slack"]
Who = Literal["ann", "bob", "eve"]
Way = Literal["typed", "forward", "quote", "album", "file", "paste"]
PLATFORMS: tuple[Platform, ...] = ("telegram", "discord", "slack")
IDS: dict[Platform, dict[Who, str]] = {
    "telegram": {"ann": "11", "bob": "12", "eve": "77"},
    "discord": {"ann": "11", "bob": "12", "eve": "77"},
    "slack": {"ann": "U0ANN", "bob": "U0BOB", "eve": "U0EVE"},
}
NAMES = (
    "Ann", "ann_*b*_`c`", "<b>Bob</b> & <@U0EVE>", "[x](tg://user?id=77)", "\u202egnorw", "@everyone",
    "A" * 64, "turnkeeper", "\u200b",
)  # fmt: skip


class Says(Struct, frozen=True, kw_only=True, tag=True):
    """`private`: in the own chat with the agent, else in the group. `reply`: to the agent's newest
    words there. `kind`: what is asked for. `way`: how it is brought; `topic`: of the group, where
    there are topics."""

    on: Platform
    who: Who
    private: bool
    named: bool = False
    reply: bool = False
    kind: Literal["plain", "write", "long"] = "plain"
    way: Way = "typed"
    topic: bool = False


class Changes(Struct, frozen=True, kw_only=True, tag=True):
    """One of the own messages, counted from the newest, is edited or deleted."""

    on: Platform
    back: int
    how: Literal["edit", "delete"]


class Presses(Struct, frozen=True, kw_only=True, tag=True):
    on: Platform
    who: Who
    label: Literal["Approve once", "Deny"]
    times: int = 1


class Commands(Struct, frozen=True, kw_only=True, tag=True):
    on: Platform
    who: Who
    private: bool
    name: Literal["status", "new", "stop", "whoami", "approve"]


class Moves(Struct, frozen=True, kw_only=True, tag=True):
    """Somebody joins the group or leaves it, and the platform says so in it."""

    on: Platform
    who: Who
    how: Literal["join", "leave"]


class Renames(Struct, frozen=True, kw_only=True, tag=True):
    """Somebody takes another name, or the group gets it."""

    on: Platform
    who: Who
    name: str
    group: bool


class Closes(Struct, frozen=True, kw_only=True, tag=True):
    """The group's topic is closed, or opened again."""

    opens: bool


class PutsOut(Struct, frozen=True, kw_only=True, tag=True):
    """The agent is put out of the group, or taken in again; or (`mutes`, not on Slack) it may not
    write there for a time."""

    on: Platform
    back: bool
    mutes: bool = False


class Passes(Struct, frozen=True, kw_only=True, tag=True):
    """Time passes; `rests`: so much that all that is under way ends."""

    seconds: int
    rests: bool = False


class Dies(Struct, frozen=True, kw_only=True, tag=True):
    """The gateway is killed, and starts again."""


Deed = Says | Changes | Presses | Commands | Moves | Renames | Closes | PutsOut | Passes | Dies
_on, _who = st.sampled_from(PLATFORMS), st.sampled_from(("ann", "ann", "bob", "eve"))
_says = st.builds(
    Says, on=_on, who=_who, private=st.booleans(), named=st.booleans(), reply=st.booleans(),
    kind=st.sampled_from(("plain", "write", "write", "long")),
    way=st.sampled_from(("typed",) * 5 + ("forward", "quote", "album", "file", "paste")),
    topic=st.booleans(),
)  # fmt: skip
_about_group = st.one_of(
    st.builds(Moves, on=_on, who=_who, how=st.sampled_from(("join", "leave"))),
    st.builds(Renames, on=_on, who=_who, name=st.sampled_from(NAMES), group=st.booleans()),
    st.builds(Closes, opens=st.booleans()),
    st.builds(PutsOut, on=_on, back=st.booleans(), mutes=st.booleans()),
)
_deeds = st.one_of(
    _says,
    _says,
    _says,
    st.builds(Changes, on=_on, back=st.integers(1, 3), how=st.sampled_from(("edit", "delete"))),
    st.builds(
        Presses, on=_on, who=_who, label=st.sampled_from(("Approve once", "Deny")),
        times=st.sampled_from((1, 1, 2)),
    ),
    st.builds(
        Commands, on=_on, who=_who, private=st.booleans(),
        name=st.sampled_from(("status", "new", "stop", "whoami", "approve")),
    ),
    _about_group,
    st.builds(Passes, seconds=st.integers(1, 600), rests=st.booleans()),
    st.one_of(st.just(Passes(seconds=60)), st.just(Dies())),
)  # fmt: skip
hours = st.lists(_deeds, min_size=8, max_size=30)
