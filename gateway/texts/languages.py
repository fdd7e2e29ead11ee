"""Fixed texts by language: how one is found, and what is wrong with a set of them.

Vocabulary: imports nothing of ours but the commands in texts.
"""

from collections.abc import Mapping
from string import Formatter
from typing import Generic, TypeVar, cast

from msgspec import Struct

from gateway.command_texts import OwnText, drop_marks, mark_commands

K_contra = TypeVar("K_contra", bound=str, contravariant=True)
ENGLISH = "en"


class Texts(Struct, Generic[K_contra], frozen=True):
    """Texts by language (`en`, `de`, …), then by key. `{name}` in a text is a place for a value.
    English is complete; what another language lacks is said in English."""

    languages: Mapping[str, Mapping[K_contra, str]] = {}

    def say(self, key: K_contra, language: str = "", **values: object) -> str:
        """The text `key` in the person's `language` (`de`, `de-AT`, …).

        It holds its commands as values; of `values` only an OwnText may bring more of them."""
        text = self.find(key, language)
        if text is None:
            raise KeyError(key)
        text = mark_commands(text)
        if not values:
            return text
        return text.format(**{name: _drop_commands(value) for name, value in values.items()})

    def find(self, key: str, language: str = "") -> str | None:
        """The text `key` with its places, None if there is none."""
        for code in (language[:2].lower(), ENGLISH):
            if (text := self._texts(code).get(key)) is not None:
                return text
        return None

    def check(self) -> None:
        """Raise a ValueError that names the first text that cannot be said in a language."""
        english = self._texts(ENGLISH)
        for code in self.languages:
            for key, text in self._texts(code).items():
                if key not in english:
                    raise ValueError(f"the text {key} is there in {code}, but not in {ENGLISH}")
                if more := _find_places(key, text) - _find_places(key, english[key]):
                    names = ", ".join(sorted(more))
                    raise ValueError(f"the text {key} has no {names} in {ENGLISH}, but in {code}")

    def _texts(self, code: str) -> Mapping[str, str]:
        return cast(Mapping[str, str], self.languages.get(code, {}))


def _drop_commands(value: object) -> object:
    return drop_marks(value) if isinstance(value, str) and type(value) is not OwnText else value


def _find_places(key: str, text: str) -> frozenset[str]:
    """The names in braces."""
    try:
        places = Formatter().parse(mark_commands(text))
        return frozenset(name for _, name, _, _ in places if name is not None)
    except ValueError as error:
        raise ValueError(f"the text {key} cannot be read: {error}") from None
