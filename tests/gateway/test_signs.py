"""Signs that imitate or hide are named in what will run; words of languages are not."""

import unicodedata
from typing import Literal

import pytest

from gateway.texts.signs import name_signs, visible
from tests.sampling import dice, examples

ALIKE = {
    "c": "сⅽᴄ𝐜ⓒｃ", "a": "аɑᴀ𝚊ⓐ", "g": "ɡɢⓖ𝔤", "i": "іɩɪℹⓘ", "s": "ѕꜱⓢ", "o": "оοᴏⓞօ",
    "p": "рᴘⓟ", "m": "мᴍⓜ", "r": "ʀⓡ", "t": "тᴛⓣ", "n": "ɴⓝ", "l": "ʟⅼⓛ", "e": "еᴇⓔ",
    "/": "∕⁄⧸", ":": "∶꞉˸", "|": "ǀ∣❘׀⎪", ".": "․ꓸ", "-": "﹣", "S": "🅂ЅՏ", "R": "🅁Ꮢ",
}  # fmt: skip
HIDDEN = (
    "\u200b\u2060\u00ad\u3164\u2800\ufffc\U0001d159\U00016fe4\u202e\u2066\ufe00\U000e0041\u00a0"
)
COMMANDS = ("git pull origin", "rm -rf a/b.lo | sort", "curl http://sample.io/SRS", "cat plain.st")
LANGUAGES = (
    *("kırmızı ışık", "привет, мир", "Größe", "ελληνικά και", "日本語　です", "ქართული", "한국어"),
    *(
        "naïve œuvre",
        "Tiếng Việt",
        "español ¿qué?",
        "Հայերեն լեզու",
        "हिन्दी",
        "it’s – “so”",
        "x ≤ 5 °C",
    ),
    *("❤️ 👩‍💻", "« bon »".replace(" ", ""), "½ m²", "ภาษาไทย", "中文，标点。"),
)


def test_a_letter_that_looks_like_another_is_named() -> None:
    for n in range(examples(400)):
        chance = dice("alike", n)
        command = chance.choice(COMMANDS)
        at = chance.choice([at for at, one in enumerate(command) if one in ALIKE])
        sign = chance.choice(ALIKE[command[at]])
        text = f"{command[:at]}{sign}{command[at + 1 :]}"
        assert name_signs(text) and sign not in visible(text, exact=True), (text, sign)


@pytest.mark.parametrize("sign", HIDDEN, ids=lambda sign: f"{ord(sign):x}")
def test_a_sign_that_shows_nothing_is_named(sign: str) -> None:
    for command in COMMANDS:
        at = dice(sign, command).randrange(1, len(command))
        text = f"{command[:at]}{sign}{command[at:]}"
        assert name_signs(text) and sign not in visible(text, exact=True)


@pytest.mark.parametrize("words", LANGUAGES)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_words_of_languages_are_no_alarm(words: str, form: Literal["NFC", "NFD"]) -> None:
    """Also with each accent as a sign of its own, as macOS names files, and many of them."""
    written = unicodedata.normalize(form, words)
    for text in (written, " ".join([written] * 5)):
        assert name_signs(f"echo '{text}'") == () and visible(text) == text


def test_marks_are_counted_for_each_letter() -> None:
    for letter in ("a", "é", "\u0439", "ש"):
        few, many = f"{letter}\u0301\u0323\u0308", letter + "\u0301" * 9
        assert visible(few * 9) == few * 9
        assert visible(f"{few}{many}{few}") != f"{few}{many}{few}"
