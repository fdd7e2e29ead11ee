"""What a scripted model may do with one call."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    words: int = 1
    """Words per chunk."""
    tokens: int = 7
    """What the provider counts for it."""


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning, then what `then` answers."""

    text: str
    then: "Say | Call | Calls" = field(default_factory=lambda: Say("ok"))
    signature: str = "sig-1"
    redacted: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: str = "{}"
    id: str | None = None
    text: str = ""
    """Words before the call."""
    tokens: int = 7


@dataclass(frozen=True, slots=True)
class Calls:
    calls: tuple[Call, ...]

    def __init__(self, calls: "list[Call] | tuple[Call, ...]") -> None:
        object.__setattr__(self, "calls", tuple(calls))


@dataclass(frozen=True, slots=True)
class Fail:
    status: int
    retry_after: float | None = None
    """Seconds; sent as retry-after-ms too, so that a fraction counts."""
    message: str = "scripted failure"
    param: str | None = None
    body: object = None
    """The whole answer, in place of the protocol's own form."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Streams the first `after_chars` characters of `text`, then drops the connection."""

    after_chars: int = 5
    text: str = "This answer will never be whole."


@dataclass(frozen=True, slots=True)
class Stop:
    """Ends the stream cleanly, but without a finish."""

    text: str = "half"


@dataclass(frozen=True, slots=True)
class Hang:
    """Says nothing for `seconds`."""

    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Slow:
    """Streams `text`, a word every `delay` seconds."""

    delay: float = 0.05
    text: str = "one two three four five six seven eight nine ten"


@dataclass(frozen=True, slots=True)
class Halted:
    """Streams the words of `then`, and its call once the test sets `ModelServer.midway`."""

    then: Call


@dataclass(frozen=True, slots=True)
class Events:
    """Sends exactly these data lines (bad streams)."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """What `then` answers, which the provider says it ended early."""

    then: "Step"
    how: Literal["length", "refused"] = "length"


Step: TypeAlias = (
    Ends | Say | Think | Call | Calls | Fail | Cut | Stop | Hang | Empty | Slow | Halted
    | Events     | Callable[[Json], "Step"]
)  # fmt: skip
