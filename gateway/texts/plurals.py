"""Plural forms of a text: `{n} {n:step|steps}`.

Vocabulary: imports nothing of ours. A language lists its forms in the order of the CLDR (one, few,
many, other), without those that whole numbers never take, and without French's, Spanish's and
Portuguese's form for millions.
"""

from collections.abc import Callable

BETWEEN = "|"
"""Stands between the forms; a place with it chooses, any other shows its value."""


def _rule_of_one(n: int) -> int:
    return 0 if n == 1 else 1


def _rule_of_nought(n: int) -> int:
    return 0 if n in (0, 1) else 1


def _rule_of_russian(n: int) -> int:
    if n % 10 == 1 and n % 100 != 11:
        return 0
    return 1 if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else 2


def _rule_of_none(n: int) -> int:
    return 0


_USUAL = (2, _rule_of_one)
_RULES: dict[str, tuple[int, Callable[[int], int]]] = {
    "fr": (2, _rule_of_nought),
    "pt": (2, _rule_of_nought),
    "ru": (3, _rule_of_russian),
    "ja": (1, _rule_of_none),
    "zh": (1, _rule_of_none),
}
"""Number of forms and the rule that picks one; all other languages: one and other."""


def count_forms(language: str) -> int:
    """Return the number of forms that a text of the language (`de`) must have."""
    return _RULES.get(language, _USUAL)[0]


def choose_form(language: str, n: int, forms: str) -> str:
    """Return the form of `step|steps` for `n`, the last one if there are too few."""
    listed = forms.split(BETWEEN)
    return listed[min(_RULES.get(language, _USUAL)[1](abs(n)), len(listed) - 1)]


class Counted:
    """A number in a text of the language: formats as itself, or as the matching plural form."""

    __slots__ = ("_language", "_n")

    def __init__(self, n: int, language: str) -> None:
        self._n, self._language = n, language

    def __format__(self, spec: str) -> str:
        if BETWEEN in spec:
            return choose_form(self._language, self._n, spec)
        return format(self._n, spec)

    def __str__(self) -> str:
        return str(self._n)
