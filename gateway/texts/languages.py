"""Fixed texts by language: look-up, and checks of a set of texts.

Vocabulary: imports nothing of ours but the commands in texts.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from gateway.command_texts import OwnText, drop_marks, find_commands, mark_commands
from gateway.texts.isolation import isolate
from gateway.texts.plurals import BETWEEN, Counted, count_forms

K_contra = TypeVar("K_contra", bound=str, contravariant=True)
ENGLISH = "en"
_END = re.compile("[-_]")


class LanguageFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of texts: `fr.json`. `note` says who has read it, `how` how it is mended."""

    language: str
    note: str
    how: str
    texts: dict[str, str]


class Texts(Struct, Generic[K_contra], frozen=True):
    """Texts by language (`en`, `de`, …), then by key. `{name}` in a text is a placeholder,
    `{name:step|steps}` the plural form for the number `name`. `folder` holds more languages, a file
    for each (`fr.json`), loaded on first use. English is complete; texts that another language
    lacks are English."""

    languages: Mapping[str, Mapping[K_contra, str]] = {}
    folder: Path | None = None

    def say(self, key: K_contra, language: str = "", **values: object) -> str:
        """Return the text `key` in the person's `language` (`de`, `de-AT`, …). It holds its
        commands as values; of `values` only an OwnText may add commands."""
        code = self._code(key, language)
        text = self.read(code).get(key)
        if text is None:
            raise KeyError(key)
        text = mark_commands(text)
        if not values:
            return text
        return text.format(
            **{name: _fit(text, name, value, code) for name, value in values.items()}
        )

    def find(self, key: str, language: str = "") -> str | None:
        """Return the text `key` with its placeholders, None if there is none."""
        return self.read(self._code(key, language)).get(key)

    def read(self, code: str) -> Mapping[str, str]:
        """Return all texts of the language (`de`), none if it is not supported."""
        if code in self.languages:
            return cast(Mapping[str, str], self.languages[code])
        if self.folder is None or code not in _list_files(self.folder):
            return {}
        return _read_file(self.folder, code)

    def list_codes(self) -> tuple[str, ...]:
        """The languages (`de`) that there are texts in."""
        return tuple(dict.fromkeys((*self.languages, *_list_files(self.folder))))

    def check(self) -> None:
        """Raise a ValueError that names the first text that cannot be said in a language."""
        english = self.read(ENGLISH)
        for code in self.list_codes():
            for key, text in self.read(code).items():
                if key not in english:
                    raise ValueError(f"the text {key} is there in {code}, but not in {ENGLISH}")
                if more := _find_places(key, text) - _find_places(key, english[key]):
                    names = ", ".join(sorted(more))
                    raise ValueError(f"the text {key} has no {names} in {ENGLISH}, but in {code}")
                _check_forms(key, text, code)

    def _code(self, key: str, language: str) -> str:
        code = reduce_language(language) or ENGLISH
        return code if key in self.read(code) else ENGLISH


def reduce_language(language: str) -> str:
    """The language without place and script: `pt` of `pt-BR`, `zh` of `zh-hans` and `zh_TW`."""
    return _END.split(language, maxsplit=1)[0].lower()


def compare(key: str, text: str, english: str) -> str:
    """Return the difference between a text's placeholders and the English ones; "" if there is
    none."""
    if not text.strip():
        return "is empty"
    if _find_places(key, text) != _find_places(key, english):
        return "has other places"
    named, meant = (sorted(map(str, find_commands(mark_commands(one)))) for one in (text, english))
    if named != meant:
        return "names other commands"
    begins = [one[: len(one) - len(one.lstrip())] for one in (text, english)]
    ends = [one[len(one.rstrip()) :] for one in (text, english)]
    same = begins[0] == begins[1] and ends[0] == ends[1]
    return "" if same else "begins or ends with another blank"


def _fit(text: str, name: str, value: object, code: str) -> object:
    if isinstance(value, str):
        if value.endswith(".") and _has_stop_behind(text, name) and not value.endswith(".."):
            value = type(value)(value[:-1])  # an error's own words may be a sentence, or not
        return value if type(value) is OwnText else isolate(drop_marks(value))
    return Counted(value, code) if type(value) is int else value


def _has_stop_behind(text: str, name: str) -> bool:
    return any(f"{{{name}}}{stop}" in text for stop in ".。")


@cache
def _read_file(folder: Path, code: str) -> Mapping[str, str]:
    found = msgspec.json.decode((folder / f"{code}.json").read_bytes(), type=LanguageFile)
    return {key: mark_commands(text) for key, text in found.texts.items()}


@cache
def _list_files(folder: Path | None) -> tuple[str, ...]:
    """The languages of a folder, by the names of its files."""
    return tuple(sorted(one.stem for one in folder.glob("*.json"))) if folder is not None else ()


def _check_forms(key: str, text: str, code: str) -> None:
    needed = count_forms(code)
    for name, spec in _parse(key, text):
        if BETWEEN in spec and spec.count(BETWEEN) + 1 != needed:
            raise ValueError(f"the text {key} in {code} needs {needed} forms by {name}: {spec}")


def _find_places(key: str, text: str) -> frozenset[str]:
    """The names in braces."""
    return frozenset(name for name, _ in _parse(key, text))


def _parse(key: str, text: str) -> Iterator[tuple[str, str]]:
    try:
        places = list(Formatter().parse(mark_commands(text)))
    except ValueError as error:
        raise ValueError(f"the text {key} cannot be read: {error}") from None
    return ((name, spec or "") for _, name, spec, _ in places if name is not None)


def choose_accepted(accepted: str, known: Collection[str]) -> str:
    """Return the language of those `known` that the header Accept-Language prefers; "" if none."""
    wishes: list[tuple[float, str]] = []
    for wish in accepted[:500].split(","):
        language, _, weight = wish.partition(";")
        number = weight.strip().removeprefix("q=") or "1"
        spoken = reduce_language(language.strip()) in known
        if spoken and re.fullmatch(r"[01](\.\d{1,3})?", number) and float(number):
            wishes.append((-float(number), language.strip()))
    return min(wishes, key=lambda wish: wish[0])[1] if wishes else ""
