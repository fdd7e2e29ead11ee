"""Words of others in a card stay words: they make no link, mention, heading, quote, picture or button
that is not there without them, on no surface."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from adapters.discord.markdown import escape_markup
from adapters.telegram.entities import convert_line
from adapters.text import measure_utf16, split
from tests.attacks.card_grammar import MARKUP, count_marks, make_words, place_step, place_words
from tests.attacks.text_grammar import DRAWN
from tests.sampling import dice, take

SURFACES = [name for name in DRAWN if name != "signs"]
BLOCKS = frozenset({"heading", "quote", "blockquote", "mention", "ping", "button", "image"})


@cache
def count_plain() -> dict[tuple[str, str], Counter[str]]:
    """What each card has by itself on each surface."""
    return {
        (name, surface): count_marks(surface, DRAWN[surface](view))
        for name, view in place_words("xyz")
        for surface in SURFACES
    }


def find_made(words: str) -> list[str]:
    """What the words make that is not theirs to make."""
    made = []
    for name, view in place_words(words):
        for surface in SURFACES:
            more = count_marks(surface, DRAWN[surface](view)) - count_plain()[name, surface]
            made += [f"{surface}, {name}: {kind}" for kind in more]
    for surface in SURFACES:
        found = count_marks(surface, DRAWN[surface](place_step(words)))
        plain = count_marks(surface, DRAWN[surface](place_step("xyz")))
        made += [f"{surface}, step: {kind}" for kind in (found - plain) if kind in BLOCKS]
    return made


def test_what_words_make_is_seen() -> None:
    """By the very readers above."""
    content = b'{"components": [{"type": 10, "content": "# a\\n<@1> [x](http://e.x/)"}]}'
    found = count_marks("discord", (content,))
    assert {"heading", "mention", "link"} <= {kind for kind, count in found.items() if count}


def test_single_words_make_nothing() -> None:
    for words in take(MARKUP, 3, "single"):
        assert find_made(words) == [], words


@pytest.mark.parametrize("words", ["<#1>", "> q"])
def test_what_a_step_once_made(words: str) -> None:
    assert find_made(words) == []


def test_a_few_words_make_nothing() -> None:
    for n in range(3):
        words = make_words(dice("card words", n))
        assert find_made(words) == [], words


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a", "b", "c"])
def test_hundreds_of_words_make_nothing(part: str) -> None:
    for n in range(400):
        words = make_words(dice("card words", part, n))
        assert find_made(words) == [], words


def test_no_message_begins_with_a_sign_that_was_escaped() -> None:
    """Where words are parted for a next message, a sign stays with its backslash."""
    for size in range(30, 60):
        words = "w" * size + "# Approved by Ann\\\\" + "*" * size
        pieces = split(escape_markup(words), 50, measure_utf16)
        assert "".join(pieces) == escape_markup(words)
        for piece in pieces:
            assert (len(piece) - len(piece.rstrip("\\"))) % 2 == 0, pieces


@pytest.mark.parametrize("line", ["> a", "# a", "[x]: http://e.x/", "- a", "    a", "1. a"])
def test_a_line_on_telegram_is_no_block_and_not_left_out(line: str) -> None:
    assert convert_line(line).text == line.strip()
    assert not convert_line(line).entities


def test_markup_within_a_line_stays_on_telegram() -> None:
    marked = convert_line("_a_ **b** 😀 `c` [d](http://e.x/)")
    assert marked.text == "a b 😀 c d"
    assert [(one.type, one.offset) for one in marked.entities] == [
        ("italic", 0),
        ("bold", 2),
        ("code", 7),
        ("text_link", 9),
    ]


TURNING = ("\u202e", "\u2066", "\u200b", "\u2060", "\u061c", "\u2028", "\u00ad", "\U000e0041")
OUTPUTS = frozenset({"line's output", "file"})
"""A tool's own output is shown as it is, within a block; a file's name was changed as it came."""


def test_no_sign_hides_or_turns_what_people_decide_by() -> None:
    for sign in TURNING:
        words = f"rm a{sign}b"
        places = [*place_words(words), ("step", place_step(words))]
        for name, view in places:
            if name in OUTPUTS:
                continue
            for surface in SURFACES:
                assert sign not in "".join(list_shown(DRAWN[surface](view))), (name, surface)


def list_shown(drawn: object) -> Iterator[str]:
    """Each text in it but the arguments themselves, which the page has besides what it shows."""
    match drawn:
        case bytes():
            yield from list_shown(json.loads(drawn))
        case dict():
            yield from list_shown([one for key, one in drawn.items() if key != "arguments"])
        case tuple() | list():
            for one in drawn:
                yield from list_shown(one)
        case str():
            yield drawn
        case msgspec.Struct():
            yield from list_shown(msgspec.to_builtins(drawn))
