"""Decides whether a search could show the content of a file with secrets."""

import re

from agent_core.phrases import phrase
from agent_core.tools.shell_reach import (
    could_be_kept,
    could_be_secret,
    is_plain_search,
    names_setting,
)
from agent_core.tools.shell_reading.arguments import GivenArguments, check_glob, check_place
from agent_core.tools.shell_reading.verbs import DIGITS
from agent_core.tools.shell_reading.words import Strange, Word

FILE = re.compile(
    r"\w\.(?:c|cc|cjs|cpp|cs|css|csv|ex|go|h|hpp|html?|hs|ipynb|java|jl|js|json|jsx|kt|log|lua|md|mdx"
    r"|mjs|pl|proto|py|r|rb|rs|rst|scala|scss|sh|sql|svelte|svg|swift|tex|toml|tsx?|tsv|txt|vue|xml"
    r"|ya?ml|zig)$"
)
"""Suffixes that files have and folders do not."""
_SPAN = re.compile(r"(?:\[\^[^\]]*\]|\[[^\]]*\\[SWDs][^\]]*\]|\\[SWDs])[*+](?!\?)")
"""Matches what stands for any number of lines."""
_AROUND = ("--after-context", "--before-context", "--context")
_KIND = re.compile(r"(?:[\w-]{1,80}/){0,20}\*\.[a-z0-9]{1,10}")


def check_search(name: str, given: GivenArguments, *, found: bool) -> None:
    """Refuse a search in possible files with secrets, unless its words are none."""
    if name == "diff":
        deep = "r" in given.letters or "--recursive" in given.names
        if deep and not {"q"} & given.letters and "--brief" not in given.names:
            raise Strange(phrase("odd_search"))
        return
    if name == "rg" and {"--files", "--type-list"} & set(given.names):
        for word in given.operands:
            check_place(word)
        return
    _check_found(name, given, found=found)


def _check_found(name: str, given: GivenArguments, *, found: bool) -> None:
    """Refuse lines from files that nobody names, unless its words occur in no secret."""
    sought = given.scripts or given.operands[:1]
    if "f" in given.letters:  # the pattern is in a file
        if found or given.scripts or given.letters & set("rR") or "--recursive" in given.names:
            raise Strange(phrase("odd_search"))
        for word in given.operands:
            check_place(word)
            check_glob(word)
        return
    if not sought:
        raise Strange(phrase("odd_count"))
    files = given.operands if given.scripts else given.operands[1:]
    if name == "git grep" and files and all(is_of_a_kind(word.text) for word in files):
        return
    deep = found or bool(given.letters & set("rR")) or "--recursive" in given.names
    if name in ("rg", "ag"):
        deep = not files or not all(FILE.search(word.text) for word in files)
    elif not found and files and all(_is_file(word) for word in files):
        deep = False
    wide = any(word.glob and could_be_secret(word.text) for word in files)
    if not deep and not wide:
        return
    kinds = [text.partition("=")[2] for text in given.names if text.startswith("--include=")]
    if any(map(could_be_kept, kinds)):
        raise Strange(phrase("odd_search"))
    if kinds and not wide:
        return
    if given.letters & set("lLcq") or {"--count", "--files-with-matches"} & set(given.names):
        return
    _check_words(name, given, sought)


def _check_words(name: str, given: GivenArguments, sought: tuple[Word, ...]) -> None:
    """Refuse words that occur in secrets, or beside them where more than matches is shown."""
    inverted = "v" in given.letters or "--invert-match" in given.names
    fixed = "F" in given.letters or "--fixed-strings" in given.names
    if inverted or not all(is_plain_search(word.text, fixed=fixed) for word in sought):
        raise Strange(phrase("odd_search"))
    spans = name == "rg" and ("U" in given.letters or "--multiline" in given.names)
    around = given.letters & {*"ABC", *DIGITS} or any(
        option.startswith(_AROUND) for option in given.names
    )
    if (around or spans) and any(names_setting(word.text) for word in sought):
        raise Strange(phrase("odd_search"))
    whole = {"--passthru", "--multiline-dotall"} & set(given.names) or (
        spans and any(_SPAN.search(word.text) for word in sought)
    )
    if whole or ("z" in given.letters and name != "git grep"):
        raise Strange(phrase("odd_search"))


def _is_file(word: Word) -> bool:
    return word.plain and FILE.search(word.text) is not None


def is_of_a_kind(pattern: str) -> bool:
    """Return True for all files with an extension that files with secrets do not have."""
    kind = _KIND.fullmatch(pattern) and FILE.search(pattern.replace("*", "x"))
    return bool(kind) and not could_be_secret(pattern)
