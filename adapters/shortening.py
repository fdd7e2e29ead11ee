"""Shortens texts and plans that are too long for a message, on platforms that draw them."""

from collections.abc import Sequence

from gateway.texts import say
from gateway.views import ENDED, PlanStep


def shorten_words(words: str, most: int, language: str) -> str:
    """`words`, or the first `most` characters and how many are not shown."""
    if len(words) <= most:
        return words
    return f"{words[:most]}… ({say('more_characters', language, n=len(words) - most)})"


def say_earlier(count: int, language: str) -> str:
    """Say that so many lines or steps precede those that are shown; "" for none."""
    return say("earlier_steps", language, n=count) if count else ""


def say_later(count: int, language: str) -> str:
    """Say that so many steps follow those that are shown; "" for none."""
    return say("later_steps", language, n=count) if count else ""


def choose_steps(
    steps: Sequence[PlanStep], sizes: Sequence[int], room: int, most: int | None = None
) -> tuple[int, int]:
    """Return which of the steps fit: the first one, and the end. Finished ones are dropped first,
    then the last ones. `sizes`: of each, in the unit of `room`; at most `most`."""
    ended = next((n for n, step in enumerate(steps) if step.state not in ENDED), len(steps))
    first, last, used = 0, len(sizes), sum(sizes)

    def is_full() -> bool:
        return used > room or (most is not None and last - first > most)

    while first < ended and is_full():
        used -= sizes[first]
        first += 1
    while last > first and is_full():
        last -= 1
        used -= sizes[last]
    return first, last
