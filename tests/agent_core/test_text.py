"""Text from outside is cleaned, and names are shown so that they can be opened."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.text import (
    MAX_DEPTH,
    clean,
    escape_name,
    file_name,
    is_clean,
    is_deep,
    unescape_name,
)

ANY = st.text(st.characters(codec=None, categories=None))
NAMES = st.binary(min_size=1, max_size=60).map(
    lambda data: data.replace(b"/", b"_").replace(b"\0", b"_").decode("utf-8", "surrogateescape")
)


@given(ANY)
def test_what_is_clean_can_be_stored_and_sent(text: str) -> None:
    cleaned = clean(text)
    assert msgspec.json.decode(msgspec.json.encode(cleaned)) == cleaned
    assert json.loads(json.dumps(cleaned).encode()) == cleaned
    assert clean(cleaned) == cleaned and is_clean(cleaned)
    assert not {chr(n) for n in (*range(32), *range(0x7F, 0xA0))} & set(cleaned) - set("\t\n\r")


def test_each_character_alone() -> None:
    for code in range(0x110000):
        char = chr(code)
        unfit = code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000
        mark = 0xFDD0 <= code < 0xFDF0
        expected = "" if mark else "\ufffd" if unfit and char not in "\t\n" else char
        assert clean(f"a{char}b") == (f"a{expected}b" if char != "\r" else "a\nb")
    assert clean("a\r\nb") == "a\r\nb"


def test_a_clean_text_is_not_copied() -> None:
    for text in ("plain", "zwei\nZeilen", "Ünï 名 🙂"):
        assert clean(text) is text


@given(NAMES)
def test_a_shown_name_is_the_name(name: str) -> None:
    shown = escape_name(name)
    assert unescape_name(shown) == name and is_clean(shown)
    shown.encode()


@given(st.text(st.sampled_from("\\xuU019aEe/.\u202e\udce9\n"), max_size=20))
def test_names_that_look_like_escapes(name: str) -> None:
    assert unescape_name(escape_name(name)) == name


def test_no_escape_writes_a_slash_or_a_dot() -> None:
    for text in (r"\x2f", r"\x2e\x2e", r"\u002f", r"\U0000002f", r"\x00", r"\U00110000", r"\ud800"):
        assert unescape_name(text) == text
    assert escape_name("caf\udce9.txt") == r"caf\xE9.txt"


@given(ANY)
def test_a_file_name_is_one(name: str) -> None:
    made = file_name(name)
    assert made and "/" not in made and not made.startswith(".") and made.isprintable()
    assert len(made.encode()) <= 140 and is_clean(made)


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
def test_deep_json_is_known_by_its_depth(opens: str, closes: str, depth: int) -> None:
    count = depth // (len(closes))
    text = opens * count + "1" + closes * count
    assert is_deep(text) == (count * len(closes) > MAX_DEPTH)
    assert is_deep("[" + text) or count * len(closes) < MAX_DEPTH, "also what is cut"


def test_what_stands_in_strings_is_no_depth() -> None:
    assert not is_deep('["' + "[" * 1_000 + '"]')
    assert not is_deep('["\\"' + "[" * 1_000 + '"]')
    assert not is_deep("[]" * 1_000)
    assert is_deep('"\\\\"' + "[" * 1_000)
