"""What a story is that all surfaces tell, and the ones there are."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.stories.surfaces.surface import Surface

Tell = Callable[[Any], Awaitable[None]]


@contextlib.asynccontextmanager
async def alone(_: Surface) -> AsyncIterator[dict[str, str]]:
    """No other servers."""
    yield {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Story:
    """`rests`: where the gateway is killed, one after another. `effects`: how often the story's
    command has run in the end."""

    tell: Tell
    rests: tuple[str, ...]
    effects: int = 0
    language: str = "en"
    settings: dict[str, str] = dataclasses.field(default_factory=dict)
    beside: Callable[[Surface], AbstractAsyncContextManager[dict[str, str]]] = alone
    """Further servers, and the settings by which the gateway finds them."""
    differs: str = ""
    """The rest after which the person sees something else, which is a golden of its own."""
    labelled: str = ""
    """The rest after which a message may bear the word that it was possibly sent twice."""
    needs: tuple[pytest.MarkDecorator, ...] = ()
    """Programs of the system without which it is skipped."""
    long: bool = False
    """It is killed in a slow run only."""


STORIES: dict[str, Story] = {}


def story(*rests: str, **more: Any) -> Callable[[Tell], Tell]:
    """Enters the function into `STORIES`."""

    def enter(tell: Tell) -> Tell:
        STORIES[tell.__name__] = Story(tell=tell, rests=rests, **more)
        return tell

    return enter
