"""Spellings of a word that people mean as one: in each case, composed and decomposed, without its
accents."""

import unicodedata


def spell(word: str) -> list[str]:
    """Return different spellings, the given one first."""
    cases = (word, word.lower(), word.upper(), word.casefold(), word.title())
    forms = [unicodedata.normalize(form, case) for case in cases for form in ("NFC", "NFD", "NFKC")]
    return list(dict.fromkeys((word, *forms, *map(_drop_accents, forms))))


def _drop_accents(word: str) -> str:
    """Drop the accents of Latin, Greek and Cyrillic letters."""
    apart = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in apart if not "\u0300" <= c < "\u0370"))
