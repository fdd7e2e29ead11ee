"""A search finds a word however it is typed: each case, each form, with and without its accents."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.folded_text import find_first, fold_text, split_at
from gateway.ports import parse_words
from tests.sampling import examples
from tests.spellings import spell

NAMES = (
    *("Häuser", "Straße", "Łódź", "naïve", "São", "Œuvre", "İstanbul", "Isparta", "Århus", "Việt"),
    *(
        "Ёлка",
        "Йод",
        "Ἀθήνα",
        "ΣΊΣΥΦΟΣ",
        "ｋｏｄｅ",
        "ﬁne",
        "がぎ",
        "ガス",
        "한국",
        "עברית",
        "हिन्दी",
    ),
)
letters = st.text(st.sampled_from("aAäÄßſéøıİ\u0301\u0323 ガﾞｶ\u3099한\u1112\u1161\u11abЁй…½Ἀή"))


def test_every_letter_is_found_in_each_case_and_form() -> None:
    for char in map(chr, (*range(0xD800), *range(0xE000, 0x110000))):
        folded = fold_text(char)
        assert fold_text(folded) == folded
        if char in "\u037a":  # its capital is a space and an accent
            continue
        forms = (unicodedata.normalize(form, char) for form in ("NFC", "NFD", "NFKC", "NFKD"))
        others = {char.upper(), char.lower(), *forms}
        assert {fold_text(one) for one in others} == {folded}, hex(ord(char))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_found_in_each_spelling(name: str) -> None:
    for written in spell(name):
        text = f"… and “{written}” there"
        for typed in spell(name):
            (word,) = parse_words(typed)
            assert word in fold_text(text), (typed, written)
            before, marked, after = split_at(text, {word})
            assert (before, marked, after) == ("… and “", written, "” there"), typed


def test_different_letters_of_other_scripts_stay_different() -> None:
    for one, other in (
        ("かき", "かぎ"),
        ("ハハ", "パパ"),
        ("하", "한"),
        ("किताब", "कताब"),
        ("no", "ño2"),
    ):
        assert fold_text(other) not in fold_text(one)
        assert fold_text(one) != fold_text(other)


@given(text=letters, words=st.lists(letters, max_size=3))
@settings(max_examples=examples(1_000))
def test_a_split_text_is_whole_and_its_marks_are_the_words(text: str, words: list[str]) -> None:
    sought = {fold_text(word).strip() for word in words} - {""}
    parts = split_at(text, sought)
    assert "".join(parts) == text and len(parts) % 2
    for marked in parts[1::2]:
        assert any(word in fold_text(marked) for word in sought), (marked, sought)
    found = find_first(text, sought)
    assert (found is not None) == any(word in fold_text(text) for word in sought)
    if found is not None:
        assert found[0] == len(parts[0])


@given(one=letters, other=letters)
@settings(max_examples=examples(1_000))
def test_equal_texts_fold_to_the_same_one(one: str, other: str) -> None:
    text = f"{one}x{other}"
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert fold_text(unicodedata.normalize(form, text)) == fold_text(text)


def test_a_text_of_many_scripts_is_folded_like_its_parts() -> None:
    every = [chr(n) for n in range(0xA0, 0x3000) if unicodedata.category(chr(n)) in ("Ll", "Lu")]
    assert fold_text("-".join(every)) == "-".join(map(fold_text, every))


@pytest.mark.parametrize("sign", ["ﬁ", "ß", "㎏", "½"])
def test_a_word_that_ends_within_a_sign_is_marked_with_the_whole_sign(sign: str) -> None:
    first = fold_text(sign)[0]
    assert find_first(f"- {sign}-", (first,)) == (2, 3)
    assert split_at(f"- {sign}-", (first,)) == ("- ", sign, "-")
